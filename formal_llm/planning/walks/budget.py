"""What a walk may use, and what it has used."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from time import perf_counter

from formal_llm.llms.usage import NO_TOKENS, Prices, TokenUsage
from formal_llm.planning.plans.usage import Usage, Verdicts

#: The most questions that a planner asks for one plan by default.
QUESTIONS = 200


@dataclass(frozen=True, slots=True)
class Budget:
    """What one walk may use, or many together; None for no bound.

    A planner without a budget asks at most 200 questions for a plan (:data:`QUESTIONS`). A budget that is given bounds
    what it names, and the steps.

    Requests, tokens and cost are known when an answer has come, so the last answer may go beyond them; after it nothing
    more is asked.

    Attributes:
        questions: questions asked; of a best-first search, those of all its branches.
        steps: moves of the automaton in the plan. With lookahead only such plans are offered as keep it.
        backtracks: dead ends left; of a best-first search, those of all its branches.
        requests: requests to a provider, tries after a bad answer among them.
        tokens: tokens read and written.
        cost: money, in the currency of the prices that the planner is given.
    """

    questions: int | None = None
    steps: int | None = 10_000
    backtracks: int | None = None
    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None

    @property
    def metered(self) -> bool:
        """Whether anything but steps and backtracks is bounded."""
        return not (self.questions is self.requests is self.tokens is self.cost is None)

    def allows_question(self, questions: int) -> bool:
        """Whether the number of questions asked alone decides that another one may be asked."""
        return self.requests is self.tokens is self.cost is None and (
            self.questions is None or questions < self.questions
        )

    def check(self, prices: Prices | None) -> None:
        """Raise ``ValueError`` where the cost is bounded and no prices are known."""
        if self.cost is not None and prices is None:
            raise ValueError("a budget of cost needs prices: Planner(prices=Prices(input=..., output=...))")

    def spent(self, usage: Usage) -> tuple[str, float] | None:
        """The first of questions, requests, tokens and cost that leaves nothing for another question, and its bound."""
        used = (
            ("questions", self.questions, usage.questions),
            ("requests", self.requests, usage.requests),
            ("tokens", self.tokens, usage.input_tokens + usage.output_tokens),
            ("cost", self.cost, usage.cost),
        )
        return next(
            ((kind, most) for kind, most, have in used if most is not None and have is not None and have >= most), None
        )


class Meter:
    """Counts what a walk uses; determines its cost where prices are given.

    Attributes:
        questions, forced, backtracks, drafts, drafted: as in :class:`Usage`.
        tokens: what the answers cost.
        verdicts: what decided what was offered, packed (see :meth:`Verdicts.unpack`).
        capped: whether a branch was given up because it did not end within the step budget.
    """

    __slots__ = (
        "_begun", "_prices", "_seconds", "backtracks", "capped", "drafted", "drafts", "forced", "questions", "tokens",
        "verdicts",
    )  # fmt: skip

    def __init__(self, prices: Prices | None = None) -> None:
        self.questions = self.forced = self.backtracks = self.verdicts = self.drafts = self.drafted = 0
        self.tokens = NO_TOKENS
        self.capped = False
        self._prices = prices
        self._begun = perf_counter()
        self._seconds: float | None = None

    def stop_clock(self) -> None:
        """Stop the clock."""
        self._seconds = perf_counter() - self._begun

    def resume_clock(self) -> None:
        """Let the clock run on as if it had never been stopped."""
        self._seconds = None

    def copy(self) -> Meter:
        """A meter that continues from here by itself."""
        return copy(self)

    def count_usage(self, kept: int, besides: TokenUsage | None = None) -> Usage:
        """What was used; ``kept`` answers are still part of the plan, ``besides`` comes on top."""
        seconds = self._seconds if self._seconds is not None else perf_counter() - self._begun
        tokens = self.tokens if besides is None else self.tokens + besides
        return Usage(
            self.questions, self.forced, self.backtracks, self.questions - kept,
            tokens.requests, tokens.input_tokens, tokens.output_tokens, seconds,
            tokens.cached_tokens, tokens.cache_write_tokens, self.price_tokens(tokens), Verdicts.unpack(self.verdicts),
            self.drafts, self.drafted,
        )  # fmt: skip

    def price_tokens(self, tokens: TokenUsage) -> float | None:
        """What tokens cost; None without prices."""
        return None if self._prices is None else self._prices.cost(tokens)

    def restore_usage(self, usage: Usage) -> None:
        """Count as if this had been used so far."""
        self.questions, self.forced, self.backtracks = usage.questions, usage.forced, usage.backtracks
        self.tokens, self.verdicts = usage.token_usage, usage.verdicts.pack()
        self.drafts, self.drafted = usage.drafts, usage.drafted
        self._begun = perf_counter() - usage.seconds
        if self._seconds is not None:
            self._seconds = usage.seconds
