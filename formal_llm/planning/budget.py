"""What one walk may use, and what it has used."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from time import perf_counter

from formal_llm.llms.question import TokenUsage
from formal_llm.planning.plan import Usage


@dataclass(frozen=True, slots=True)
class Budget:
    """What one walk may use; None for no bound.

    Attributes:
        questions: questions asked; of a best-first search, those of all its branches.
        steps: moves of the automaton in the plan. With lookahead only such plans are offered as keep it.
        backtracks: dead ends left; of a best-first search, those of all its branches.
    """

    questions: int | None = None
    steps: int | None = 10_000
    backtracks: int | None = None


class Meter:
    """Counts what a walk uses.

    Attributes:
        questions, forced, backtracks: as in :class:`Usage`.
        tokens: what the answers cost.
    """

    __slots__ = ("_begun", "_seconds", "backtracks", "forced", "questions", "tokens")

    def __init__(self) -> None:
        self.questions = self.forced = self.backtracks = 0
        self.tokens = TokenUsage()
        self._begun = perf_counter()
        self._seconds: float | None = None

    def stop(self) -> None:
        """Stop the clock."""
        self._seconds = perf_counter() - self._begun

    def go_on(self) -> None:
        """Let the clock run on as if it had never been stopped."""
        self._seconds = None

    def copy(self) -> Meter:
        """A meter that goes on from here by itself."""
        return copy(self)

    def usage(self, kept: int) -> Usage:
        """What was used; ``kept`` answers are still part of the plan."""
        seconds = self._seconds if self._seconds is not None else perf_counter() - self._begun
        return Usage(
            self.questions, self.forced, self.backtracks, self.questions - kept,
            self.tokens.requests, self.tokens.input_tokens, self.tokens.output_tokens, seconds,
        )  # fmt: skip

    def set(self, usage: Usage) -> None:
        """Count as if this had been used so far."""
        self.questions, self.forced, self.backtracks = usage.questions, usage.forced, usage.backtracks
        self.tokens = TokenUsage(usage.requests, usage.input_tokens, usage.output_tokens)
        self._begun = perf_counter() - usage.seconds
        if self._seconds is not None:
            self._seconds = usage.seconds
