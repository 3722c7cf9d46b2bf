"""The usage and the cost of answers: tokens, and money."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from operator import add, attrgetter


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The requests and tokens that answers cost.

    Attributes:
        requests: the number of requests, without those that a provider's SDK repeated after temporary failures.
        input_tokens: the tokens read, including those from the provider's cache.
        output_tokens: the tokens written, including the model's thinking.
        cached_tokens: those of ``input_tokens`` that came from the provider's prompt cache.
        cache_write_tokens: those of ``input_tokens`` that were written to the prompt cache.
        estimated: those of ``requests`` whose tokens are estimated: streams that ended before their usage came.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    estimated: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*map(add, _COUNTS(self), _COUNTS(other)))

    @property
    def tokens(self) -> int:
        """All tokens, read and written."""
        return self.input_tokens + self.output_tokens


#: What answers in batches cost, as a share of the price.
BATCH_SHARE = 0.5
#: No tokens.
NO_TOKENS = TokenUsage()
_COUNTS = attrgetter(*TokenUsage.__slots__)


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a model's tokens, in any currency, per million tokens.

    Attributes:
        input: the price of tokens read.
        output: the price of tokens written.
        cached: the price of tokens read from the provider's prompt cache; by default that of ``input``.
        cache_write: the price of tokens written to the prompt cache; by default that of ``input``.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for price in (self.input, self.output, self.cached, self.cache_write):
            if price is not None and not 0 <= price < math.inf:
                raise ValueError(f"a price is a number of 0 or more, not {price}")

    def scaled(self, share: float) -> Prices:
        """Return a share of the prices, such as :data:`BATCH_SHARE`."""
        return Prices(*(None if price is None else price * share for price in astuple(self)))  # type: ignore[arg-type]

    def cost(self, usage: TokenUsage) -> float:
        """Compute the cost of ``usage``."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        plain = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        total = plain * self.input + usage.cached_tokens * cached + usage.cache_write_tokens * written
        return (total + usage.output_tokens * self.output) / 1_000_000
