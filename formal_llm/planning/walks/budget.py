"""The budget of a walk, and a meter of what it has used."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from time import perf_counter

from formal_llm.llms.usage import NO_TOKENS, Prices, TokenUsage
from formal_llm.planning.plans.usage import Usage, Verdicts

#: The maximum number of questions that a planner without a budget asks for one plan.
QUESTIONS = 200


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds on what one walk, or many together, may use; None for no bound.

    A planner without a budget asks at most 200 questions for a plan (:data:`QUESTIONS`). An explicit budget bounds
    what it names, and the steps.

    Requests, tokens and cost are known only after an answer, so the last answer may exceed them; after it no more
    questions are asked.

    Attributes:
        questions: questions asked; for a best-first search, those of all its branches.
        steps: moves of the automaton in the plan. With lookahead only plans within this bound are offered.
        backtracks: dead ends left; for a best-first search, those of all its branches.
        requests: requests to a provider, including retries after invalid answers.
        tokens: tokens read and written.
        cost: money, in the currency of the planner's prices.
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
        """Return whether another question may be asked, if only questions are bounded; False if anything else is."""
        return self.requests is self.tokens is self.cost is None and (
            self.questions is None or questions < self.questions
        )

    def check(self, prices: Prices | None) -> None:
        """Raise ``ValueError`` if the cost is bounded but the prices of tokens are unknown."""
        if self.cost is not None and prices is None:
            raise ValueError("a budget of cost needs prices: Planner(prices=Prices(input=..., output=...))")

    def spent(self, usage: Usage) -> tuple[str, float] | None:
        """Return the first bound (questions, requests, tokens, cost) that is used up, by name and amount; or None."""
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
    """A meter of what a walk uses, including its cost if prices are given.

    Attributes:
        questions, forced, backtracks, drafts, drafted: as in :class:`Usage`.
        tokens: the tokens of the answers.
        verdicts: how many options were decided by what, packed (see :meth:`Verdicts.unpack`).
        capped: whether a branch was abandoned because it did not end within the step budget.
        searched: the seconds of search of questions that got more time after dead ends.
    """

    __slots__ = (
        "_begun", "_prices", "_seconds", "backtracks", "capped", "drafted", "drafts", "forced", "questions",
        "searched", "tokens", "verdicts",
    )  # fmt: skip

    def __init__(self, prices: Prices | None = None) -> None:
        self.questions = self.forced = self.backtracks = self.verdicts = self.drafts = self.drafted = 0
        self.tokens = NO_TOKENS
        self.capped, self.searched = False, 0.0
        self._prices = prices
        self._begun = perf_counter()
        self._seconds: float | None = None

    def stop_clock(self) -> None:
        """Stop the clock."""
        self._seconds = perf_counter() - self._begun

    def resume_clock(self) -> None:
        """Resume the clock as if it had never been stopped."""
        self._seconds = None

    def copy(self) -> Meter:
        """Return an independent copy."""
        return copy(self)

    def count_usage(self, kept: int, besides: TokenUsage | None = None) -> Usage:
        """Return the usage; ``kept`` answers are still part of the plan, ``besides`` is added."""
        seconds = self._seconds if self._seconds is not None else perf_counter() - self._begun
        tokens = self.tokens if besides is None else self.tokens + besides
        return Usage(
            self.questions, self.forced, self.backtracks, self.questions - kept,
            tokens.requests, tokens.input_tokens, tokens.output_tokens, seconds,
            tokens.cached_tokens, tokens.cache_write_tokens, self.price_tokens(tokens), Verdicts.unpack(self.verdicts),
            self.drafts, self.drafted, tokens.estimated,
        )  # fmt: skip

    def price_tokens(self, tokens: TokenUsage) -> float | None:
        """Return the cost of tokens; None without prices."""
        return None if self._prices is None else self._prices.cost(tokens)

    def restore_usage(self, usage: Usage) -> None:
        """Set the counters to this usage."""
        self.questions, self.forced, self.backtracks = usage.questions, usage.forced, usage.backtracks
        self.tokens, self.verdicts = usage.token_usage, usage.verdicts.pack()
        self.drafts, self.drafted = usage.drafts, usage.drafted
        self._begun = perf_counter() - usage.seconds
        if self._seconds is not None:
            self._seconds = usage.seconds
