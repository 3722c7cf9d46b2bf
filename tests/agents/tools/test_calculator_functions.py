"""The functions of the calculator."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.tools.arithmetic import MOST_BITS, ArithmeticRefusal
from formal_llm.agents.tools.calculator import FUNCTIONS, apply_function

FRACTIONS = st.fractions(max_denominator=10**6)


@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(st.one_of(FRACTIONS, st.floats(-1e308, 1e308)), max_size=3))
def test_functions_give_a_number_or_refuse(name: str, values: list[Fraction | float]) -> None:
    try:
        found = apply_function(name, values)
    except ArithmeticRefusal as refused:
        assert refused.problem
    else:
        assert math.isfinite(found) if isinstance(found, float) else found.numerator.bit_length() <= MOST_BITS


def test_angles() -> None:
    assert apply_function("sin", [math.pi]) == 0
    assert apply_function("cos", [math.pi / 2]) == 0
    assert apply_function("sin", [Fraction(10**22)]) == math.sin(1e22)
    assert apply_function("sin", [1e-30]) == 1e-30
    with pytest.raises(ArithmeticRefusal, match="not defined for"):
        apply_function("tan", [math.pi / 2])


@pytest.mark.parametrize(
    ("value", "digits", "rounded"),
    [
        ("2.5", 0, "3"),
        ("-2.5", 0, "-3"),
        ("2.675", 2, "2.68"),
        ("1250", -2, "1300"),
        ("1.005", 2, "1.01"),
        ("-0.4", 0, "0"),
    ],
)
def test_a_half_goes_away_from_zero(value: str, digits: int, rounded: str) -> None:
    assert apply_function("round", [Fraction(value), Fraction(digits)]) == Fraction(rounded)


@pytest.mark.parametrize(("base", "exponent"), [(5, 3), (2, 1000), (3, 40), (10, 15)])
def test_logarithms_that_come_out_even_are_exact(base: int, exponent: int) -> None:
    found = apply_function("log", [Fraction(base**exponent), Fraction(base)])
    assert isinstance(found, Fraction) and found == exponent


@pytest.mark.parametrize(
    ("name", "values"),
    [("sqrt", [-1]), ("ln", [0]), ("log", [10, 1]), ("factorial", [2.5]), ("sqrt", []), ("abs", [1, 2])],
)
def test_what_has_no_value_is_refused_in_words(name: str, values: list[float]) -> None:
    with pytest.raises(ArithmeticRefusal):
        apply_function(name, [Fraction(value) for value in values])


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("choose", [4], "choose takes two numbers, not 1"),
        ("choose", [4, 2, 1], "choose takes two numbers, not 3"),
        ("round", [], "round takes one or two numbers, not 0"),
        ("log", [8, 2, 1], "log takes one or two numbers, not 3"),
        ("sqrt", [1, 2], "sqrt takes one number, not 2"),
        ("lcm", [], "lcm takes 1 to 20 numbers, not 0"),
    ],
)
def test_how_many_numbers_a_function_takes(name: str, values: list[int], wanted: str) -> None:
    with pytest.raises(ArithmeticRefusal) as refused:
        apply_function(name, [Fraction(value) for value in values])
    assert refused.value.problem == wanted
