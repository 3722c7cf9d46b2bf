"""Verdicts: whether something can be completed, what decided it, and how many were decided by what."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN

#: Whether rules must be possible to keep for some answers of the world, or whatever it answers.
Guarantee = Literal["some", "whatever"]
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
            limits leave add up to no: :mod:`formal_llm.automata.lookahead.program`), ``"search"``,
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


#: Tries in a second of search, on the core that the rate was measured on.
TRIES = 80_000
#: The seconds of search that a question may take by default.
SEARCH_TIME = 0.05
#: The tries that building a lookahead costs for each symbol of its flow grammar.
MADE = 8
#: One query uses no more than such a part of what is left, when others come after it.
_PARTS = 4
#: What the start of a plan may take, in times of a question.
START = 20


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Let the garbage collector rest while something large is built of which all is kept.

    It would go over what is there already again and again, and find nothing: of a grammar of 10,000 productions that
    takes a third of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class WorkBudget:
    """What queries may still cost.

    Attributes:
        left: the tries that are left to all queries of a question; infinite outside of one.
        part: the most of these that one query may use.
        used: the seconds that the queries within the last bound have taken.
        floor: the query that runs ends when no more than this is left.
    """

    __slots__ = ("_bounds", "floor", "left", "part", "used")

    def __init__(self) -> None:
        self.left = self.part = INFINITE
        self.floor = self.used = 0.0
        self._bounds: dict[float | None, _BudgetWindow] = {}

    @property
    def is_over(self) -> bool:
        """Whether the query that runs has used up its part."""
        return self.left <= self.floor

    def begin_query(self) -> None:
        """Begin a query."""
        self.floor = max(0.0, self.left - self.part) if self.part < INFINITE else 0.0

    def share_among(self, queries: int) -> None:
        """Leave something of what is left for each of the queries to come.

        The first ones may use more: what they find often decides those after them.
        """
        self.part = max(0.0, self.left) / (min(queries, _PARTS) or 1)

    def limit_seconds(self, seconds: float | None) -> AbstractContextManager[None]:
        """Bound the seconds of all queries inside together, None for no bound; within another bound that one."""
        bound = self._bounds.get(seconds)
        if bound is None:
            bound = self._bounds[seconds] = _BudgetWindow(self, INFINITE if seconds is None else seconds * TRIES)
        return bound


class _BudgetWindow:
    """What queries may cost, bounded for a while; within another bound it does nothing.

    Made once and entered by every question, so it costs little to enter.
    """

    __slots__ = ("_inside", "_tries", "_work")

    def __init__(self, work: WorkBudget, tries: float) -> None:
        self._work = work
        self._tries = tries
        #: How often it has been entered within a bound.
        self._inside = 0

    def __enter__(self) -> None:
        work = self._work
        if work.left < INFINITE:
            self._inside += 1
        else:
            work.left = work.part = self._tries

    def __exit__(self, *_: object) -> None:
        if self._inside:
            self._inside -= 1
        else:
            work = self._work
            work.used = (self._tries - work.left) / TRIES if self._tries < INFINITE else 0.0
            work.left = work.part = INFINITE
            work.floor = 0.0
