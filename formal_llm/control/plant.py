"""What can happen: the plant, as supervisory control calls it (Ramadge and Wonham 1987)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from formal_llm.control.machines import Letters


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
