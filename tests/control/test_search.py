"""Looking ahead: both guarantees against an oracle that multiplies everything out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.guard.short_runs import (
    test_some_guards_against_all_short_runs as test_some_guards_against_all_short_runs,
)
from tests.guard.whole_product import RULES, follow


@pytest.mark.parametrize("guarantee", ["some", "whatever"])
@given(rules=RULES, seed=st.integers(0, 1_000_000))
@settings(deadline=None)
def test_as_the_whole_product(guarantee: str, rules: list[tuple[str, str, str, int]], seed: int) -> None:
    follow(guarantee, rules, seed)
