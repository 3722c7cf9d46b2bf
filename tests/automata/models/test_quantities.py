"""Amounts, times and money: what is printed is read back the same."""

from __future__ import annotations

import copy
import pickle
from datetime import time, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.models.quantities import (
    TIME,
    Amount,
    amount,
    clock_text,
    format_amount,
    read_amount,
    read_clock,
    seconds_since_midnight,
    unit_of,
    unit_problem,
)

plain = st.integers(0, 10**9) | st.decimals(0, 10**6, places=2)
money = st.builds(
    Amount, st.integers(0, 999) | st.decimals(0, 10**6, places=2), st.sampled_from(["€", "$", "EUR", "CHF"])
)
durations = st.integers(0, 10**6).map(lambda seconds: Amount(seconds, TIME))


@given(plain | money | durations)
def test_what_is_printed_is_read_back(value: Decimal) -> None:
    again = read_amount(format_amount(value))
    assert again == value
    assert (unit_of(again), format_amount(again)) == (unit_of(value), format_amount(value))
    for same in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert (same, unit_of(same)) == (value, unit_of(value))


@pytest.mark.parametrize(
    ("text", "seconds", "printed"),
    [
        ("1h30", 5400, "1h30"), ("1h30min", 5400, "1h30"), ("90min", 5400, "1h30"), ("1.5h", 5400, "1h30"),
        ("1h05", 3900, "1h05"), ("2h", 7200, "2h"), ("45s", 45, "45s"), ("1h30s", 3630, "1h30s"), ("0min", 0, "0min"),
        ("90m", 5400, "1h30"), ("1h30m", 5400, "1h30"), ("1.5m", 90, "1min30s"), ("5m10s", 310, "5min10s"),
    ],
)  # fmt: skip
def test_durations_are_seconds_and_print_as_times(text: str, seconds: int, printed: str) -> None:
    value = read_amount(text)
    assert (value, str(value)) == (Amount(seconds, TIME), printed)


def test_money_is_exact_and_keeps_its_cents() -> None:
    assert format_amount(read_amount("12.50")) == "12.50"
    assert sum([Decimal(amount("0.10"))] * 3) == Decimal("0.3")
    assert format_amount(read_amount("12.50€")) == "€12.50" == str(amount("€12.50"))
    assert amount(0.1) == Decimal("0.1")
    assert Amount(1, "€") != Amount(1, "$") != Decimal(1)
    assert len({Amount(1, "€"), Amount(1, "€"), Amount(1, TIME)}) == 2


def test_times_of_python_are_taken() -> None:
    assert amount(timedelta(hours=1, minutes=5)) == read_amount("1h05")
    assert seconds_since_midnight(time(9, 5)) == seconds_since_midnight("9:05") == read_clock("9:05") == 9 * 3600 + 300
    with pytest.raises(ValueError, match="fraction of a second"):
        amount(timedelta(milliseconds=1))


@given(st.integers(0, 100 * 3600 - 1))
def test_times_of_day_are_read_back(seconds: int) -> None:
    assert read_clock(clock_text(seconds)) == seconds


@pytest.mark.parametrize("text", ["1,5", "9:15", "-1", "", "1h75", "5k", "nan", "inf", "1e999", "x", "1..2", "1.3333s"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|time|comma|hour|second"):
        read_amount(text)


@pytest.mark.parametrize("text", ["9", "9.15", "9:60", "9h15", "", "noon"])
def test_what_is_no_time_of_day(text: str) -> None:
    with pytest.raises(ValueError, match="no time of day"):
        read_clock(text)


def test_one_quantity_has_one_unit() -> None:
    assert unit_problem("t", [("a", amount("1h")), ("b", 0), ("c", amount("5min"))]) is None
    assert "1h (a) and 5 (b)" in str(unit_problem("t", [("a", amount("1h")), ("b", 5)]))
