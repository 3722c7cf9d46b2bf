"""The tools that the sentence of an OpenAGI task requires, and the reward for using exactly these.

The benchmark (Ge et al. 2023) has no reference plans for its 185 tasks, only 15 solved examples for older sentences.
These references are our own interpretation of its sentences, in ``tasks/openagi/references.toml``: each of their words
requires one tool. So a plan can be judged without executing it, by comparing its tools with the required ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from formal_llm import authored
from formal_llm.authored.tables import Items, Keys, NamedEntries, problems, read_toml
from formal_llm.errors import NotationError
from formal_llm.planning.packs import SHAPE as PACK
from formal_llm.planning.task import Task
from formal_llm.rltf.reference_tools import ReferenceTools

#: The form of ``references.toml``.
SHAPE = Keys(
    {
        "words": NamedEntries(str),
        "questions": Items(Keys({"words": str, "given": str, "tool": str}, needed=("words", "tool"))),
    },
    needed=("words",),
)


@dataclass(frozen=True)
class ToolReferences:
    """The tools that the words of a sentence require.

    Attributes:
        words: the required tool for words of a sentence.
        questions: rules of words, the name of an input that must be given (empty for none), and a tool; of the rules
            with the same words, the first matching one counts.
        version: a hash of both.
    """

    words: Mapping[str, str]
    questions: tuple[tuple[str, str, str], ...]
    version: str

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], *, file: str | None = None) -> ToolReferences:
        """Create references from the tables of a TOML file.

        Raises:
            NotationError: a table is missing, or does not have the form described in ``references.toml``.
        """
        found = next(problems(data, SHAPE), None)
        if found is not None:
            raise NotationError(found.problem, file=file, expected=found.expected, suggestion=found.suggestion)
        words = dict(data["words"])
        rows = [(row["words"], row.get("given", ""), row["tool"]) for row in data.get("questions", ())]
        content = json.dumps([sorted(words.items()), rows])
        return cls(words, tuple(rows), hashlib.sha256(content.encode()).hexdigest()[:16])

    def find_tools(self, task: Task) -> set[str]:
        """Return the tools that a task's sentence requires; none for a sentence without any of the words.

        A reworded task requires the tools of its original sentence.
        """
        sentence = task.original or task.description
        tools = {tool for words, tool in self.words.items() if words in sentence}
        answered = set()
        for words, given, tool in self.questions:
            if words in sentence and words not in answered and (not given or given in task.inputs):
                answered.add(words)
                tools.add(tool)
        return tools


@cache
def load_references() -> ToolReferences:
    """Load the references of the OpenAGI pack.

    Raises:
        NotationError: the file cannot be read.
    """
    file = authored.find("tasks", "openagi") / "references.toml"
    return ToolReferences.from_mapping(read_toml(file, SHAPE), file=str(file))


def tools_called_for(task: Task) -> set[str]:
    """Return the tools that the sentence of an OpenAGI task requires, by its words and the names of its inputs."""
    return load_references().find_tools(task)


def openagi_reward(kind: Literal["f1", "exact"] = "f1") -> ReferenceTools:
    """Create the offline reward of the OpenAGI tasks: the agreement of a plan's tools with the required ones.

    For the two kinds see :class:`~formal_llm.rltf.reference_tools.ReferenceTools`.
    """
    pack = read_toml(authored.find("tasks", "openagi") / "pack.toml", PACK)
    inputs = [entry["terminal"] for entry in pack["inputs"].values()]
    name = f"openagi tools, {kind}, {load_references().version}"
    return ReferenceTools(tools_called_for, kind, inputs=inputs, name=name)


def openagi_exact_reward() -> ReferenceTools:
    """Create the reward that is 1 for a plan with exactly the required tools, else 0."""
    return openagi_reward("exact")
