"""How much searching a question may cost: a bound on work, so that it does not depend on the machine.

Work is counted in *tries*: the states that a search looks at, decided or not. A time in seconds is turned into tries at
a fixed rate, measured once on one core. So the same question is decided in the same way on every machine, on a slow one
as on a busy one; only how long that takes differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from formal_llm.automata.lookahead.cheapest import INFINITE

#: Tries in a second of search, on the core that the rate was measured on (``benchmarks/strain_cases/clock.py``).
TRIES = 80_000
#: The seconds of search that a question may take where nobody says.
SEARCH_TIME = 0.05
#: Making a lookahead takes as long as so many tries for each symbol of its flow grammar.
MADE = 8
#: One query uses no more than such a part of what is left, when others come after it.
_PARTS = 4
#: What the start of a plan may take, in times of a question.
START = 20


class Work:
    """What queries may still cost.

    Attributes:
        left: the tries that are left to all queries of a question; infinite outside of one.
        part: the most of these that one query may use.
        floor: the query that runs ends when no more than this is left.
    """

    __slots__ = ("floor", "left", "part")

    def __init__(self) -> None:
        self.left = self.part = INFINITE
        self.floor = 0.0

    @property
    def over(self) -> bool:
        """Whether the query that runs has used up its part."""
        return self.left <= self.floor

    @property
    def seconds(self) -> float:
        """The seconds that the query that runs may still take."""
        return (self.left - self.floor) / TRIES

    def begin(self) -> None:
        """Begin a query."""
        self.floor = max(0.0, self.left - self.part) if self.part < INFINITE else 0.0

    def share(self, queries: int) -> None:
        """Let a query to come not use up what is left, when there are so many.

        The first ones may use more: what they find often decides those after them.
        """
        self.part = max(0.0, self.left) / max(1, min(queries, _PARTS))

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Let the queries inside take so many seconds together, None for no bound; within another bound that one."""
        if seconds is None or self.left < INFINITE:
            yield
            return
        self.left = self.part = seconds * TRIES
        try:
            yield
        finally:
            self.left = self.part = INFINITE
            self.floor = 0.0
