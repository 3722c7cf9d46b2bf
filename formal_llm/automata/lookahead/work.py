"""How much searching a question may cost: a bound on work, so that it does not depend on the machine.

Work is counted in *tries*: the states that a search looks at, decided or not. A time in seconds is turned into tries at
a fixed rate, measured once on one core. So the same question is decided in the same way on every machine, on a slow one
as on a busy one; only how long that takes differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

#: Tries in a second of search, on the core that the rate was measured on (``benchmarks/strain_cases/clock.py``).
TRIES = 100_000
#: What the start of a plan may take, in times of a question.
START = 20


class Work:
    """What queries may still cost.

    Attributes:
        left: the tries that are left to all queries of a question; infinite outside of one.
        floor: one query ends when no more than this is left.
    """

    __slots__ = ("floor", "left")

    def __init__(self) -> None:
        self.left = float("inf")
        self.floor = 0.0

    @property
    def over(self) -> bool:
        """Whether the query that runs has used up its share."""
        return self.left <= self.floor

    @property
    def seconds(self) -> float:
        """The seconds that the query that runs may still take."""
        return (self.left - self.floor) / TRIES

    def share(self, queries: int) -> None:
        """Let each of so many queries to come have the same part of what is left; call it before each of them."""
        self.floor = self.left - self.left / queries if self.left < float("inf") else 0.0

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Let the queries inside take so many seconds together; None for no bound."""
        self.left = float("inf") if seconds is None else seconds * TRIES
        self.floor = 0.0
        try:
            yield
        finally:
            self.left, self.floor = float("inf"), 0.0
