"""What stands in the braces of .pda files: numbers, times of day, durations, widths; and ranges with steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import PDA
from formal_llm.automata.notation.braces import Time, compute_expression, parse_literal, parse_range


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("7/2", "3"), ("7//2", "3"), ("7%4", "3"), ("(7/4)*2-1", "1"), ("t", "9:15"), ("t+1h30", "10:45"),
        ("t-15min", "9:00"), ("t+2*15min", "9:45"), ("t-9:00", "15min"), ("n/4:02", "02"), ("n:3", "  9"),
        ("(t-8:00)/15min", "5"), ("t%1h", "15min"), ("1h/2", "30min"), ("m", "lunch"), ("10:00-30min", "9:30"),
    ],
)  # fmt: skip
def test_what_is_computed(text: str, made: str) -> None:
    values = {"t": parse_literal("9:15"), "n": parse_literal("9"), "m": parse_literal("lunch")}
    assert compute_expression(text, values) == made


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("t+1", TypeError), ("t+t", TypeError), ("m+1", TypeError), ("t:02", TypeError), ("1/0", ZeroDivisionError),
        ("x", KeyError), ("9:00-10h", ValueError), ("1.5", ValueError), ("t.real", ValueError), ("1 +", SyntaxError),
        ("2**3", ValueError), ("t*t", TypeError),
    ],
)  # fmt: skip
def test_what_is_not(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        compute_expression(text, {"t": parse_literal("9:15"), "m": "lunch"})


@given(st.integers(-50, 50), st.integers(1, 50))
def test_division_rounds_down_and_the_rest_is_what_is_left(number: int, divisor: int) -> None:
    values = {"a": number, "b": divisor}
    assert int(compute_expression("a/b*b + a%b", values)) == number
    assert 0 <= int(compute_expression("a%b", values)) < divisor


def test_ranges() -> None:
    assert list(parse_range("1..3", None) or ()) == [1, 2, 3]
    assert list(parse_range("0..10", "5") or ()) == [0, 5, 10]
    assert [str(one) for one in parse_range("8:00..9:00", "20min") or ()] == ["8:00", "8:20", "8:40", "9:00"]
    assert all(isinstance(one, Time) for one in parse_range("8:00..9:00", "20min") or ())
    assert parse_range("a..b", None) is None


@pytest.mark.parametrize(
    ("text", "step", "said"),
    [
        ("3..1", None, "write 1..3"), ("8:00..9:00", None, "by 15min"), ("8:00..9:00", "9:00", "no step"),
        ("1..3", "15min", "no step"), ("8:00..9", "1h", "a time of day and a number"), ("1..3", "0", "no step"),
        ("0..100000", None, "more than 100,000"),
    ],
)  # fmt: skip
def test_ranges_that_are_none(text: str, step: str | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_range(text, step)


def test_a_family_over_times_of_day() -> None:
    pda = PDA.from_string(
        '%accept 9:00\n{t}, nap, ε -> {t+30min}, ε "{t} to {t+30min}: nap" for t in 8:00..8:30 by 30min'
    )
    assert list(pda.states) == ["8:00", "8:30", "9:00"]
    assert [t.text for t in pda.transitions] == ["8:00 to 8:30: nap", "8:30 to 9:00: nap"]
