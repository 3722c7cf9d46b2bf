"""Parsing plans in free text: the tool that each step means, and the word of the chain of tools.

A model that plans in free text writes steps. Each is matched with the most similar tool; one that is similar to none
("return the result") is not a step of the plan. The tools are then applied one after the other, each to the previous
result: a chain. Tasks that need a tree (many of Task X) require more than that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from formal_llm.authored.files import lines_of
from formal_llm.automata import CFG
from formal_llm.llms.builtin import stems
from formal_llm.llms.packaged import find_minilm
from formal_llm.packs.openagi.scores.text import Encoder
from formal_llm.planning import TaskPack

if TYPE_CHECKING:
    import torch

_STEP = re.compile(r"\b(?:step|setp)\s*\d+\s*[:.)\-]", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:\d+\s*[:.)]|[-*•])\s+", re.MULTILINE)
_WORDS = re.compile(r"[^\W_]+")
#: The maximum number of steps to read; a plan with fifteen tools has fewer.
_MOST_STEPS = 100


def read_steps(text: str) -> list[str]:
    """Read the steps in a text: the parts marked as "Step 1:"; else the items of a list; else the lines."""
    text = text.replace("**", "").replace("`", "")
    for mark in (_STEP, _ITEM):
        _, *parts = mark.split(text)
        if parts:
            return [line for part in parts[:_MOST_STEPS] for line in _split_lines(part)[:1]]
    return _split_lines(text)[:_MOST_STEPS]


def _split_lines(text: str) -> list[str]:
    return [line.strip() for line in lines_of(text) if line.strip()]


@dataclass(frozen=True, slots=True)
class ToolText:
    """A tool as a step may mention it: its terminal and texts, the kinds of its inputs and of its output."""

    name: str
    label: str
    description: str
    kinds: tuple[str, ...]
    gives: str


def tool_texts(pack: TaskPack) -> tuple[ToolText, ...]:
    """Return the tools of a pack, in the order of its alphabet: the terminals that its grammar applies to something."""
    cfg, kinds = pack.cfg, pack.data["kinds"]
    types: dict[str, tuple[tuple[str, ...], str]] = {}
    for production in cfg.productions:
        if len(production.body) > 1:
            for name in _list_tools(cfg, production.body[0]):
                types.setdefault(name, (tuple(kinds[symbol] for symbol in production.body[1:]), kinds[production.head]))
    return tuple(
        ToolText(name, cfg.label(name), cfg.symbols[name].description or "", *types[name])
        for name in cfg.terminals
        if name in types
    )


def _list_tools(cfg: CFG, symbol: str) -> Sequence[str]:
    if symbol in cfg.terminals:
        return (symbol,)
    return [production.body[0] for production in cfg.by_head[symbol] if len(production.body) == 1]


class Matcher(Protocol):
    """Determines which tool a step means."""

    @property
    def identity(self) -> dict[str, object]:
        """The factors that determine its answers, as JSON data."""
        ...

    def match(self, steps: Sequence[str]) -> list[str | None]:
        """Return for each step the name of the tool that it means, or None."""
        ...


def matcher_for(tools: Sequence[ToolText]) -> Matcher:
    """Create a matcher by sentence similarity if MiniLM is installed, else one by words."""
    try:
        find_minilm()
        import transformers  # noqa: F401  # detected before the first step is matched
    except ImportError:
        return LexicalMatcher(tools)
    return SentenceMatcher(tools)


class SentenceMatcher:
    """A matcher by the cosine of sentence embeddings (the mean of an encoder's token vectors).

    A step that contains the label of a tool means that tool (the longest label counts). Any other step is compared with
    the label and the description of each tool.

    Args:
        threshold: the minimum similarity of a step to the tool that it means.
        encoder: the folder of an encoder that transformers can load; by default MiniLM.
    """

    def __init__(self, tools: Sequence[ToolText], threshold: float = 0.6, encoder: str | None = None) -> None:
        self._tools = tuple(tools)
        self._threshold = threshold
        self._encoder = Encoder(encoder)

    @property
    def identity(self) -> dict[str, object]:
        """The same as :attr:`Matcher.identity`."""
        return {"matcher": "sentences", "threshold": self._threshold, "encoder": self._encoder.folder or "MiniLM"}

    def match(self, steps: Sequence[str]) -> list[str | None]:
        """Do the same as :meth:`Matcher.match`; raises MissingDependency if the encoder cannot be loaded."""
        found = [_find_labelled_tool(step, self._tools) for step in steps]
        open_ = [place for place, name in enumerate(found) if name is None and steps[place].strip()]
        if open_:
            likeness = self._encoder.embed_texts([steps[place] for place in open_]) @ self._known.T
            for place, row in zip(open_, likeness.reshape(len(open_), -1, 2).amax(dim=-1), strict=True):
                if float(row.max()) >= self._threshold:
                    found[place] = self._tools[int(row.argmax())].name
        return found

    @cached_property
    def _known(self) -> torch.Tensor:
        """The vectors of the label and of the description of each tool, one after the other."""
        return self._encoder.embed_texts([text for tool in self._tools for text in (tool.label, tool.description)])


class LexicalMatcher:
    """A matcher by word stems, for use without an encoder.

    The weight of a word decreases with the number of tools whose labels or descriptions contain it.

    Args:
        threshold: the minimum weight of a step's words for the tool that it means; a word of only one tool counts 1.
    """

    def __init__(self, tools: Sequence[ToolText], threshold: float = 0.5) -> None:
        self._tools = tuple(tools)
        self._threshold = threshold
        self._words = [set(stems(f"{tool.label} {tool.description}")) for tool in self._tools]

    @property
    def identity(self) -> dict[str, object]:
        """The same as :attr:`Matcher.identity`."""
        return {"matcher": "words", "threshold": self._threshold}

    def match(self, steps: Sequence[str]) -> list[str | None]:
        """Do the same as :meth:`Matcher.match`."""
        return [_find_labelled_tool(step, self._tools) or self._find_nearest(set(stems(step))) for step in steps]

    def _find_nearest(self, words: set[str]) -> str | None:
        weights = {word: 1 / count for word in words if (count := sum(word in known for known in self._words))}
        shares = [sum(weights.get(word, 0.0) for word in known) for known in self._words]
        best = max(range(len(shares)), key=shares.__getitem__)
        return self._tools[best].name if shares[best] >= self._threshold else None


def _find_labelled_tool(step: str, tools: Sequence[ToolText]) -> str | None:
    """Return the tool whose label or name occurs in a step; the longest of several."""
    normalized = f" {' '.join(_WORDS.findall(step.casefold()))} "
    named = [(len(text), tool.name) for tool in tools for text in (tool.label, tool.name.replace("_", " "))
             if f" {text.casefold()} " in normalized]  # fmt: skip
    return max(named, key=lambda entry: entry[0])[1] if named else None


def chain_word(chain: Sequence[str], tools: Sequence[ToolText], inputs: Mapping[str, str]) -> tuple[str, ...]:
    """Build the word of a chain: each tool is applied to the result of the previous one, the first to the input.

    A tool takes its other arguments directly from the inputs; the previous result is the first argument of its kind
    (the first of all if it fits none: then the word is invalid, and verification shows where).

    Args:
        chain: the names of the tools, in the order of their execution.
        tools: the tools with the kinds of their inputs.
        inputs: for each kind, the terminal of the input.
    """
    known = {tool.name: tool for tool in tools}
    word: tuple[str, ...] = ()
    kind = ""
    for name in chain:
        kinds = known[name].kinds
        arguments: list[tuple[str, ...]] = [(inputs[one],) for one in kinds]
        if word:
            arguments[kinds.index(kind) if kind in kinds else 0] = word
        word = (name, *(part for one in arguments for part in one))
        kind = known[name].gives
    return word
