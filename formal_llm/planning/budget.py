"""What one walk may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """What one walk may use; None for no bound.

    Attributes:
        questions: questions asked.
        steps: moves of the automaton in the plan. With lookahead only such plans are offered as keep it.
        backtracks: dead ends left.
    """

    questions: int | None = None
    steps: int | None = 10_000
    backtracks: int | None = None
