"""Values that conditions compare."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.guard.data import Unsaid, equal, less, number, read_duration, span, written


@given(st.decimals(-(10**6), 10**6, places=6))
def test_numbers_as_they_are_written(value: object) -> None:
    assert number(str(value)) == Fraction(str(value))
    assert Fraction(written(Fraction(str(value)))) == Fraction(str(value))


@given(st.integers(0, 10**6))
def test_durations_are_read_back(seconds: int) -> None:
    length = timedelta(seconds=seconds)
    assert read_duration(written(length)) == length


@pytest.mark.parametrize("value", ["x", "1e5", "nan", float("inf"), True, None, [1], "9" * 200, 10**200])
def test_no_numbers(value: object) -> None:
    with pytest.raises(Unsaid):
        number(value)


def test_comparisons() -> None:
    assert equal("5", 5)
    assert not equal("05x", "05")
    assert less("2026-01-01", "2026-01-02")
    assert span("90") == timedelta(seconds=90)
    for one, other in (("a", "b"), ([1], [2]), (True, 2)):
        with pytest.raises(Unsaid):
            less(one, other)
