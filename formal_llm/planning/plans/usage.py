"""What making a plan took."""

from __future__ import annotations

from dataclasses import dataclass, fields

from formal_llm.llms.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class Usage:
    """What a plan took.

    Attributes:
        questions: questions answered.
        forced: choices that the grammar leaves open and the rules do not: taken without a question.
        backtracks: dead ends from which the walk went back.
        wasted: answers that going back undid.
        requests, input_tokens, output_tokens, cached_tokens, cache_write_tokens: as the answerers reported them (see
                :class:`TokenUsage`).
        seconds: wall-clock time from the start of the walk to its end.
        cost: what the tokens cost, in the currency of the prices; None where no prices are given.
    """

    questions: int = 0
    forced: int = 0
    backtracks: int = 0
    wasted: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Both together; the cost is that of those that have one."""
        costs = [usage.cost for usage in (self, other) if usage.cost is not None]
        names = [field.name for field in fields(self) if field.name != "cost"]
        summed = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Usage(**summed, cost=sum(costs) if costs else None)

    @property
    def token_usage(self) -> TokenUsage:
        """What the answers took."""
        return TokenUsage(
            self.requests, self.input_tokens, self.output_tokens, self.cached_tokens, self.cache_write_tokens
        )
