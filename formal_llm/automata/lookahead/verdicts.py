"""Verdicts: whether something can be completed, what decided it, and how many were decided by what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN

#: What decided a question.
FILTER, SEARCH, LINEAR, PROGRAM = "filter", "search", "linear argument", "integer program"
#: What ended it before it was decided.
BUDGET, TIME = "state budget", "time"

#: Counts of what decided, in one number: a field of this many bits for each of :data:`KINDS`.
BITS = 32
KINDS = (FILTER, SEARCH, LINEAR, PROGRAM, "unknown")
TALLY = {kind: 1 << BITS * place for place, kind in enumerate(KINDS)}
TALLY[BUDGET] = TALLY[TIME] = TALLY["unknown"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something can be completed.

    Attributes:
        value: ``"yes"``, ``"no"`` or ``"unknown"``.
        how: what decided it: ``"filter"`` (no search was needed), ``"linear argument"`` (what is pending and what the
            limits leave add up to no: :mod:`formal_llm.automata.lookahead.linear`), ``"search"``,
            ``"integer program"``, or the budget that ran out: ``"time"`` (it continues when it is asked again),
            ``"state budget"``, ``"step budget"``.
        steps: for yes, the moves of one completion (not the cheapest one in general).
    """

    value: Literal["yes", "no", "unknown"]
    how: str
    steps: int | None = None

    @property
    def possible(self) -> bool:
        """Not ruled out: yes or unknown."""
        return self.value != "no"

    def __bool__(self) -> bool:
        raise TypeError("a verdict has three values: ask for verdict.value or verdict.possible")

    def __str__(self) -> str:
        return f"{self.value} ({self.how})"

    @classmethod
    def of(cls, found: float, how: str) -> Verdict:
        """That of a search: the moves of some completion, infinite for none, or ``UNKNOWN``; what decided it."""
        if found in (INFINITE, UNKNOWN):
            return cls("no" if found == INFINITE else "unknown", how)
        return cls("yes", how, int(found))
