"""What answers cost: tokens, and money."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import add, attrgetter


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What answers cost.

    Attributes:
        requests: requests made; a provider's SDK may have repeated one after passing failures, that is not counted.
        input_tokens: tokens read, those from the provider's cache included.
        output_tokens: tokens written, thinking included.
        cached_tokens: those of ``input_tokens`` that came from the provider's prompt cache.
        cache_write_tokens: those of ``input_tokens`` that were put into it.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*map(add, _COUNTS(self), _COUNTS(other)))

    @property
    def tokens(self) -> int:
        """All tokens, read and written."""
        return self.input_tokens + self.output_tokens


#: Nothing used.
NO_TOKENS = TokenUsage()
_COUNTS = attrgetter(*TokenUsage.__slots__)


@dataclass(frozen=True, slots=True)
class Prices:
    """What a model's tokens cost, in any currency, per million tokens.

    Attributes:
        input: of a token read.
        output: of a token written.
        cached: of a token read from the provider's prompt cache; None: as ``input``.
        cache_write: of a token put into it; None: as ``input``.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for price in (self.input, self.output, self.cached, self.cache_write):
            if price is not None and not 0 <= price < math.inf:
                raise ValueError(f"a price is a number of 0 or more, not {price}")

    def cost(self, usage: TokenUsage) -> float:
        """What ``usage`` costs."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        plain = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        total = plain * self.input + usage.cached_tokens * cached + usage.cache_write_tokens * written
        return (total + usage.output_tokens * self.output) / 1_000_000
