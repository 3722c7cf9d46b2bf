"""What lookahead answers: yes, no or unknown, and what decided it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something can be completed.

    Attributes:
        value: ``"yes"``, ``"no"`` or ``"unknown"``.
        how: what decided it: ``"filter"`` (no search was needed), ``"search"``, ``"integer program"``, or the
            budget that ran out: ``"state budget"``, ``"step budget"``.
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
