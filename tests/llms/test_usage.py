"""What answers cost."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms import TokenUsage
from formal_llm.llms.usage import BATCH_SHARE, Prices


def test_token_usage_adds_up() -> None:
    assert TokenUsage(1, 10, 2) + TokenUsage(1, 5, 1) == TokenUsage(2, 15, 3)


COUNTS = st.builds(TokenUsage, *[st.integers(0, 10**6)] * 5)


@given(COUNTS, COUNTS)
def test_usage_is_a_value_that_adds_up_field_by_field(one: TokenUsage, other: TokenUsage) -> None:
    both = one + other
    assert astuple(both) == tuple(a + b for a, b in zip(astuple(one), astuple(other), strict=True))
    assert both == other + one and hash(both) == hash(other + one)
    assert both.tokens == one.tokens + other.tokens
    assert pickle.loads(pickle.dumps(both)) == copy.deepcopy(both) == both


def test_what_tokens_cost() -> None:
    usage = TokenUsage(1, 1_000_000, 100_000, cached_tokens=600_000, cache_write_tokens=200_000)
    assert Prices(2, 10).cost(usage) == pytest.approx(2 + 1)
    # 200 thousand plainly read, 600 from the cache, 200 into it.
    assert Prices(2, 10, cached=0.2, cache_write=2.5).cost(usage) == pytest.approx(0.4 + 0.12 + 0.5 + 1)
    assert Prices(2, 10, cached=0).cost(usage) == pytest.approx(0.8 + 1)
    assert pickle.loads(pickle.dumps(Prices(2, 10))) == Prices(2, 10)


@pytest.mark.parametrize("price", [-1, math.inf, math.nan])
def test_what_is_no_price(price: float) -> None:
    with pytest.raises(ValueError, match="a price is a number of 0 or more"):
        Prices(1, 1, cached=price)


def test_a_share_of_the_prices() -> None:
    assert Prices(2, 8, cached=0.5).scaled(BATCH_SHARE) == Prices(1, 4, cached=0.25)
    usage = TokenUsage(1, 1_000_000, 1_000_000, 500_000)
    assert Prices(2, 8, 1, 4).scaled(0.5).cost(usage) == Prices(2, 8, 1, 4).cost(usage) / 2
