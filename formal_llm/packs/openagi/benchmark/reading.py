"""Plans in free text: which tool each step means, and the word of the chain that the tools make.

A model that is asked for a plan in free text writes steps. Each is matched with the tool that it is most similar to;
one that is similar to none ("return the result") is no step of the plan. The tools are then applied one after the
other, each to the result of the one before: a chain. Tasks that need a tree (many of Task X) ask for more than that.
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
from formal_llm.llms.local.minilm import find_minilm
from formal_llm.packs.openagi.scores.text import Encoder
from formal_llm.planning import TaskPack

if TYPE_CHECKING:
    import torch

_STEP = re.compile(r"\b(?:step|setp)\s*\d+\s*[:.)\-]", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:\d+\s*[:.)]|[-*•])\s+", re.MULTILINE)
_WORDS = re.compile(r"[^\W_]+")
#: A longer text is no plan of fifteen tools.
_MOST_STEPS = 100


def read_steps(text: str) -> list[str]:
    """The steps that a text lists: what is marked as "Step 1:"; else items of a list; else its lines."""
    text = text.replace("**", "").replace("`", "")
    for mark in (_STEP, _ITEM):
        _, *parts = mark.split(text)
        if parts:
            return [line for part in parts[:_MOST_STEPS] for line in _lines(part)[:1]]
    return _lines(text)[:_MOST_STEPS]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in lines_of(text) if line.strip()]


# -- which tool a step means -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolText:
    """A tool as a step may mention it: its terminal and texts, the kinds of what it takes, and of what it gives."""

    name: str
    label: str
    description: str
    kinds: tuple[str, ...]
    gives: str


def tool_texts(pack: TaskPack) -> tuple[ToolText, ...]:
    """The tools of a pack, in the order of its alphabet: what its grammar applies to something."""
    cfg, kinds = pack.cfg, pack.data["kinds"]
    taken: dict[str, tuple[tuple[str, ...], str]] = {}
    for production in cfg.productions:
        if len(production.body) > 1:
            for name in _tools(cfg, production.body[0]):
                taken.setdefault(name, (tuple(kinds[symbol] for symbol in production.body[1:]), kinds[production.head]))
    return tuple(
        ToolText(name, cfg.label(name), cfg.symbols[name].description or "", *taken[name])
        for name in cfg.terminals
        if name in taken
    )


def _tools(cfg: CFG, symbol: str) -> Sequence[str]:
    if symbol in cfg.terminals:
        return (symbol,)
    return [production.body[0] for production in cfg.by_head[symbol] if len(production.body) == 1]


class Matcher(Protocol):
    """Tells which tool a step means."""

    @property
    def identity(self) -> dict[str, object]:
        """What its answers depend on, as JSON data."""
        ...

    def match(self, steps: Sequence[str]) -> list[str | None]:
        """For each step the name of the tool that it means; None where it means none."""
        ...


def matcher_for(tools: Sequence[ToolText]) -> Matcher:
    """A matcher by sentence similarity where MiniLM is installed, else one by words."""
    try:
        find_minilm()
        import transformers  # noqa: F401  # looked for before the first step comes
    except ImportError:
        return LexicalMatcher(tools)
    return SentenceMatcher(tools)


class SentenceMatcher:
    """Matches by the cosine of sentence embeddings (the mean of an encoder's token vectors).

    A step that has the label of a tool in it means that tool (the longest label counts). Any other is compared with the
    label and the description of each.

    Args:
        tools: the tools.
        threshold: a step that is less similar to every tool means none.
        encoder: the folder of an encoder that transformers can load; MiniLM where left out.
    """

    def __init__(self, tools: Sequence[ToolText], threshold: float = 0.6, encoder: str | None = None) -> None:
        self._tools = tuple(tools)
        self._threshold = threshold
        self._encoder = Encoder(encoder)

    @property
    def identity(self) -> dict[str, object]:
        """As :attr:`Matcher.identity`."""
        return {"matcher": "sentences", "threshold": self._threshold, "encoder": self._encoder.folder or "MiniLM"}

    def match(self, steps: Sequence[str]) -> list[str | None]:
        """As :meth:`Matcher.match`; raises MissingDependency where the encoder cannot be loaded."""
        found = [_labelled(step, self._tools) for step in steps]
        open_ = [place for place, name in enumerate(found) if name is None and steps[place].strip()]
        if open_:
            likeness = self._encoder.texts([steps[place] for place in open_]) @ self._known.T
            for place, row in zip(open_, likeness.reshape(len(open_), -1, 2).amax(dim=-1), strict=True):
                if float(row.max()) >= self._threshold:
                    found[place] = self._tools[int(row.argmax())].name
        return found

    @cached_property
    def _known(self) -> torch.Tensor:
        """A vector for the label and one for the description of each tool, one after the other."""
        return self._encoder.texts([text for tool in self._tools for text in (tool.label, tool.description)])


class LexicalMatcher:
    """Matches by words without their endings, where no encoder is installed.

    A word counts the less, the more tools speak of it in their labels or descriptions.

    Args:
        tools: the tools.
        threshold: a step whose words count less for every tool means none; a word of one tool alone counts 1.
    """

    def __init__(self, tools: Sequence[ToolText], threshold: float = 0.5) -> None:
        self._tools = tuple(tools)
        self._threshold = threshold
        self._words = [set(stems(f"{tool.label} {tool.description}")) for tool in self._tools]

    @property
    def identity(self) -> dict[str, object]:
        """As :attr:`Matcher.identity`."""
        return {"matcher": "words", "threshold": self._threshold}

    def match(self, steps: Sequence[str]) -> list[str | None]:
        """For each step the name of the tool that it means; None where it means none."""
        return [_labelled(step, self._tools) or self._nearest(set(stems(step))) for step in steps]

    def _nearest(self, words: set[str]) -> str | None:
        weights = {word: 1 / count for word in words if (count := sum(word in known for known in self._words))}
        shares = [sum(weights.get(word, 0.0) for word in known) for known in self._words]
        best = max(range(len(shares)), key=shares.__getitem__)
        return self._tools[best].name if shares[best] >= self._threshold else None


def _labelled(step: str, tools: Sequence[ToolText]) -> str | None:
    """The tool whose label, or name, stands in a step; the longest of several."""
    said = f" {' '.join(_WORDS.findall(step.casefold()))} "
    named = [(len(text), tool.name) for tool in tools for text in (tool.label, tool.name.replace("_", " "))
             if f" {text.casefold()} " in said]  # fmt: skip
    return max(named, key=lambda entry: entry[0])[1] if named else None


# -- chains ------------------------------------------------------------------------------------------------------------


def chain_word(chain: Sequence[str], tools: Sequence[ToolText], inputs: Mapping[str, str]) -> tuple[str, ...]:
    """The word of a chain: each tool is applied to the result of the one before, the first to the input.

    Whatever else a tool takes, it gets from the inputs as they are; the result of the tool before goes to the first
    place of its kind (to the first of all where it fits none: then the word is not valid, and says where).

    Args:
        chain: the names of the tools, in the order in which they are carried out.
        tools: what they take.
        inputs: for each kind the terminal of the input.
    """
    known = {tool.name: tool for tool in tools}
    word: tuple[str, ...] = ()
    kind = ""
    for name in chain:
        kinds = known[name].kinds
        taken: list[tuple[str, ...]] = [(inputs[one],) for one in kinds]
        if word:
            taken[kinds.index(kind) if kind in kinds else 0] = word
        word = (name, *(part for one in taken for part in one))
        kind = known[name].gives
    return word
