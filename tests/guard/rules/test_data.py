"""Values that conditions compare."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard.rules.data import (
    Undetermined,
    is_equal,
    is_less,
    read_duration,
    to_duration,
    to_number,
    write_constant,
)


@given(st.decimals(-(10**6), 10**6, places=6))
def test_numbers_as_they_are_written(value: object) -> None:
    assert to_number(str(value)) == Fraction(str(value))
    assert Fraction(write_constant(Fraction(str(value)))) == Fraction(str(value))


@given(st.integers(0, 10**6))
def test_durations_are_read_back(seconds: int) -> None:
    length = timedelta(seconds=seconds)
    assert read_duration(write_constant(length)) == length


@pytest.mark.parametrize("value", ["x", "1e5", "nan", float("inf"), True, None, [1], "9" * 200, 10**200])
def test_no_numbers(value: object) -> None:
    with pytest.raises(Undetermined):
        to_number(value)


def test_comparisons() -> None:
    assert is_equal("5", 5)
    assert not is_equal("05x", "05")
    assert is_less("2026-01-01", "2026-01-02")
    assert to_duration("90") == timedelta(seconds=90)
    assert is_equal(90, timedelta(seconds=90)) and is_less(timedelta(seconds=90), "2min")
    assert not is_less(1.5, timedelta(seconds=1))
    for one, other in (("a", "b"), ([1], [2]), (True, 2)):
        with pytest.raises(Undetermined):
            is_less(one, other)
