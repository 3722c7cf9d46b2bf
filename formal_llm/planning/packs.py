"""Task packs: a folder of tasks with their automaton and wording.

``pack.toml`` names the rules (a grammar, a flowchart, an automaton), adds limits and constraints, says how the inputs
and the goal of a task are told from its sentence, and composes the tasks; ``wording.toml``, if there is one, replaces
templates. A pack holds no code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from formal_llm import authored
from formal_llm.authored.tables import TableProblem, TomlFile
from formal_llm.automata import CFG, PDA, Limits
from formal_llm.automata.models.rules import Rules, automaton_of
from formal_llm.automata.notation.files import ENDINGS, read_rules
from formal_llm.errors import AutomatonError, NotationError, ResourceNotFound
from formal_llm.llms.llm import LLMLike, resolve
from formal_llm.planning.drivers.planner import Planner, PlannerSettings
from formal_llm.planning.pack_file import (
    SHAPE,
    WrongEntry,
    apply_limits,
    check_entries,
    compose_texts,
    read_constraints,
)
from formal_llm.planning.task import Task
from formal_llm.planning.walks.templates import fill_template
from formal_llm.planning.walks.terse import adapt_wording
from formal_llm.planning.walks.wording import Wording


@dataclass(frozen=True)
class TaskPack:
    """A task pack.

    Attributes:
        name: its name.
        title: what it is, in a few words.
        rules: its rules, as they are written.
        source: what a planner walks: its grammar, or the automaton of its rules.
        constraints: what a plan must satisfy besides, each with its name.
        wording: how its questions are put.
        folder: where it is.
        data: the contents of ``pack.toml``.
        facts: what its placeholders stand for.
    """

    name: str
    title: str
    rules: Rules
    source: CFG | PDA
    constraints: tuple[PDA, ...]
    wording: Wording
    folder: Path
    data: Mapping[str, Any] = field(hash=False)
    facts: Mapping[str, str] = field(hash=False)

    @classmethod
    def load(cls, name: str, facts: Mapping[str, str] | None = None) -> TaskPack:
        """The pack at a path, or the shipped pack of that name.

        Args:
            name: the path or the name.
            facts: what stands for the placeholders of the pack, where it is not what the pack itself says.

        Raises:
            ResourceNotFound: there is no such pack, or it has no such placeholder.
            NotationError: one of its files cannot be read; says which and where.
        """
        folder = authored.find("tasks", name)
        file = TomlFile.read(folder / "pack.toml", SHAPE)
        data = file.data
        beside = folder / data["rules"]
        rules = read_rules(beside if beside.is_file() else authored.find("grammars", data["rules"], ENDINGS))
        known = {key: str(value) for key, value in data.get("facts", {}).items()}
        for fact in facts or {}:
            if fact not in known:
                raise ResourceNotFound("fact", fact, known)
        known |= facts or {}
        try:
            source = apply_limits(automaton_of(rules, known), data.get("limits", {}))
            constraints = tuple(read_constraints(data, source))
            check_entries(data, source)
        except WrongEntry as error:
            file.fail(TableProblem(error.path, str(error)))
        except ValueError as error:
            raise NotationError(str(error), file=file.name) from None
        wording = folder / "wording.toml"
        words = Wording.from_file(wording) if wording.is_file() else Wording.default(source)
        return cls(folder.name, data["title"], rules, source, constraints, words, folder, data, known)

    @property
    def cfg(self) -> CFG:
        """The grammar.

        Raises:
            AutomatonError: its rules are no grammar.
        """
        if not isinstance(self.source, CFG):
            raise AutomatonError(f"the rules of {self.name} are no grammar but {self.data['rules']}; see pack.source")
        return self.source

    def planner(self, llm: LLMLike = "builtin", **settings: Unpack[PlannerSettings]) -> Planner:
        """A planner for the tasks of this pack: its rules, constraints and wording, short where the LLM reads it so.

        Constraints in the settings, which are those of :class:`Planner`, come on top of those of the pack.
        """
        settings["constraints"] = (*self.constraints, *settings.get("constraints", ()))
        who = resolve(llm)
        settings.setdefault("wording", adapt_wording(self.wording, who))
        return Planner(self.source, who, **settings)

    # -- tasks --------------------------------------------------------------------------------------------------

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks of the pack, in their order; the one that it is about, where it has no others."""
        if not self.data.get("groups") and "task" in self.data:
            return (self.task(""),)
        return tuple(
            self.read(text, group=group["name"])
            for group in self.data.get("groups", ())
            for text in compose_texts(group["text"], group.get("slots", ()), self.data.get("slots", {}))
        )

    @property
    def splits(self) -> Mapping[str, Sequence[int]]:
        """Named selections of tasks, by their numbers from 0."""
        splits: Mapping[str, Sequence[int]] = self.data.get("splits", {})
        return splits

    def split(self, name: str) -> tuple[Task, ...]:
        """The tasks of a split; ``"all"`` for all.

        Raises:
            ResourceNotFound: there is no split of that name.
        """
        if name == "all":
            return self.tasks
        if name not in self.splits:
            raise ResourceNotFound("split of tasks", name, ["all", *self.splits])
        return tuple(self.tasks[number] for number in self.splits[name])

    def task(self, which: str | int) -> Task:
        """A task by its number from 0, or by a sentence that describes it; empty for the one that the pack is about.

        Raises:
            ResourceNotFound: the pack has no task of that number.
        """
        if which == "" and "task" in self.data:
            return self.read(fill_template(self.data["task"], self.facts))
        if isinstance(which, int) or which.strip().isdecimal():
            number = int(which)
            if not 0 <= number < len(self.tasks):
                raise ResourceNotFound("task", str(number), [f"0 to {len(self.tasks) - 1}"])
            return self.tasks[number]
        return self.read(which)

    def read(
        self, sentence: str, *, inputs: Sequence[str] | None = None, goal: str | None = None, group: str = ""
    ) -> Task:
        """The task that a sentence describes.

        Args:
            sentence: the description.
            inputs: the names of the given inputs; told from the sentence where left out.
            goal: the name of the goal; told from the sentence where left out.
            group: the kind of task.

        A sentence that does not say what is given leaves all inputs open; one that does not say what is wanted leaves
        the goal to the LLM.

        Raises:
            ResourceNotFound: an input or a goal that the pack does not know.
        """
        known: Mapping[str, Any] = self.data.get("inputs", {})
        goals: Mapping[str, Any] = self.data.get("goals", {})
        pattern = self.data.get("sentence", {}).get("pattern")
        match = re.search(pattern, sentence, re.IGNORECASE) if pattern else None
        if inputs is None:
            inputs = _find_named_entries(match["given"], known) if match else []
            inputs = inputs or list(known)
        if goal is None and match:
            wanted = _find_named_entries(match["wanted"], goals)
            goal = wanted[0] if wanted else self.data["sentence"].get("otherwise")
        for name in inputs:
            if name not in known:
                raise ResourceNotFound("input", name, known)
        if goal is not None and goal not in goals:
            raise ResourceNotFound("goal", goal, goals)
        missing = {known[name]["terminal"]: 0 for name in known if name not in inputs}
        return Task(
            sentence,
            goal=None if goal is None else goals[goal]["symbol"],
            limits=Limits(at_most=missing),
            inputs=tuple(inputs),
            group=group,
        )


def _find_named_entries(text: str, entries: Mapping[str, Any]) -> list[str]:
    """The entries one of whose words occurs in ``text``."""
    words = set(re.findall(r"[^\W\d_]+", text.casefold()))
    return [name for name, entry in entries.items() if words.intersection(entry.get("words", ()))]
