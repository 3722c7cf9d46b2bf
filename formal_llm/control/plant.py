"""What can happen: the plant, as supervisory control calls it (Ramadge and Wonham 1987)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from formal_llm.control.machines import OTHERS, Letters


@dataclass(frozen=True)
class PlantSymbol:
    """A class of events that the rules do not distinguish.

    Attributes:
        kind: ``"call"``, ``"result"``, ``"user"`` or ``"assistant"``.
        tool: the tool; empty for texts.
        letters: the letters that the event has.
        least: the minimum that it adds to each quantity.
        doubtful: whether it is unknown if such events exist.
        after: for a result, the letters of the calls that it may belong to.
        unbounded: the quantities of which nothing says what it adds at least.
    """

    kind: str
    tool: str
    letters: Letters
    least: Mapping[str, Fraction]
    doubtful: bool = False
    after: frozenset[Letters] = frozenset()
    unbounded: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """Its declared letters in order, without those that calls have by what they are not."""
        return tuple(sorted(name for name in self.letters if not name.startswith(OTHERS)))

    @property
    def is_controllable(self) -> bool:
        """Whether the agent controls its occurrence."""
        return self.kind in ("call", "assistant")

    def may_answer(self, call: Letters) -> bool:
        """Return whether a result with this symbol may belong to a call with these letters."""
        return not self.after or call in self.after


@dataclass(frozen=True)
class Plant:
    """All kinds of events that rules distinguish.

    Attributes:
        symbols: the kinds of events.
        tools: the tools that the rules look at.
        answering: those whose results the rules look at, so that calls under way matter.
    """

    symbols: tuple[PlantSymbol, ...]
    tools: tuple[str, ...]
    answering: frozenset[str]
