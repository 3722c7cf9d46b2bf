"""What can happen at all: the plant, as supervisory control calls it (Ramadge and Wonham 1987).

An agent may call any tool and write any text. A result comes for a call that was made, and it may be any that the
conditions tell apart; the user may say anything at any time. Looking ahead, a tool is called again only when its last
call has returned; calls that are under way, however many, are all counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction

from formal_llm.agents.guard.labels import Labeller
from formal_llm.agents.guard.machines import Letters
from formal_llm.agents.guard.samples import EventVariants, find_possible_events, find_possible_results


@dataclass(frozen=True)
class PlantSymbol:
    """One kind of event, as the rules tell events apart.

    Attributes:
        kind: ``"call"``, ``"result"``, ``"user"`` or ``"assistant"``.
        tool: the tool; empty for texts.
        letters: the letters that the event has.
        least: the least that it adds to each quantity.
        doubtful: whether it is not known that there are such events.
        after: of a result, the letters of the calls that it may come for.
    """

    kind: str
    tool: str
    letters: Letters
    least: Mapping[str, Fraction]
    doubtful: bool = False
    after: frozenset[Letters] = frozenset()

    @property
    def is_controllable(self) -> bool:
        """Whether the agent decides that it comes."""
        return self.kind in ("call", "assistant")


class Plant:
    """All symbols.

    Args:
        labeller: the letters.
        tools: the tools that there are; empty where that is not known.
    """

    def __init__(self, labeller: Labeller, tools: Collection[str] = ()) -> None:
        self.told = tuple(dict.fromkeys(tools))
        named = [
            pattern.tool
            for letter in labeller.letters
            for pattern in letter.patterns
            if pattern.kind in ("call", "result")
        ]
        if tools:
            found = [tool for tool in self.told if any(fnmatchcase(tool, name) for name in named)]
        else:
            # Where the tools are not known, a name with a star stands for one tool that nothing else names.
            found = [_instantiate_pattern(name) for name in dict.fromkeys(named)]
        #: The tools that the rules look at.
        self.tools: tuple[str, ...] = tuple(dict.fromkeys(found))
        #: Those whose results they look at, so that calls under way matter.
        self.answering: frozenset[str] = frozenset(
            tool for tool in self.tools if labeller.find_patterns("result", tool)
        )
        self.symbols: tuple[PlantSymbol, ...] = tuple(self._build_symbols(labeller))

    def _build_symbols(self, labeller: Labeller) -> Iterable[PlantSymbol]:
        for tool in self.tools:
            yield from _build_event_symbols("call", tool, find_possible_events(labeller, "call", tool))
            if tool in self.answering:
                yield from _build_result_symbols(labeller, tool)
        for role in ("assistant", "user"):
            if labeller.find_patterns(role, ""):
                yield from _build_event_symbols(role, "", find_possible_events(labeller, role, ""))


def _instantiate_pattern(name: str) -> str:
    """A tool that a name with stars means, and hardly any other name does."""
    return name.replace("*", "…").replace("?", "…")


def _build_event_symbols(kind: str, tool: str, found: EventVariants) -> Iterable[PlantSymbol]:
    for letters, least in found.least.items():
        yield PlantSymbol(kind, tool, letters, least)
    for letters in sorted(found.doubtful, key=sorted):
        yield PlantSymbol(kind, tool, letters, {}, doubtful=True)


def _build_result_symbols(labeller: Labeller, tool: str) -> Iterable[PlantSymbol]:
    """The results of a tool; the same letters after several calls are one symbol."""
    sure: dict[Letters, set[Letters]] = {}
    doubtful: dict[Letters, set[Letters]] = {}
    for call, found in find_possible_results(labeller, tool).items():
        for letters in found.least:
            sure.setdefault(letters, set()).add(call)
        for letters in found.doubtful:
            doubtful.setdefault(letters, set()).add(call)
    for letters, calls in sure.items():
        yield PlantSymbol("result", tool, letters, {}, after=frozenset(calls))
    for letters, calls in doubtful.items():
        yield PlantSymbol("result", tool, letters, {}, doubtful=True, after=frozenset(calls))
