"""Numbers: exact where they can be, bounded always, printed as people write them."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.tools import arithmetic
from formal_llm.agents.tools.arithmetic import FUNCTIONS, MOST_BITS, Refused, apply, power, written

FRACTIONS = st.fractions(max_denominator=10**6)


@given(FRACTIONS, FRACTIONS)
def test_exact_numbers_stay_exact(one: Fraction, other: Fraction) -> None:
    assert arithmetic.add(one, other) == one + other
    assert arithmetic.subtract(one, other) == one - other
    assert arithmetic.multiply(one, other) == one * other
    if other:
        assert arithmetic.divide(one, other) == one / other
        assert arithmetic.whole_quotient(one, other) * other + arithmetic.remainder(one, other) == one


@given(st.fractions(min_value=0, max_value=1000, max_denominator=50), st.integers(2, 7))
def test_a_root_that_comes_out_even_is_exact(value: Fraction, degree: int) -> None:
    assert power(value**degree, Fraction(1, degree)) == value


@given(
    st.fractions(min_value=Fraction(1, 10**6), max_denominator=10**6),
    st.fractions(max_denominator=7).map(lambda x: x % 9),
)
def test_powers_are_those_of_floats(base: Fraction, exponent: Fraction) -> None:
    found = power(base, exponent)
    assert float(found) == pytest.approx(float(base) ** float(exponent), rel=1e-9)


@given(st.one_of(FRACTIONS, st.floats(-1e300, 1e300)))
def test_what_is_written_is_read_back(value: Fraction | float) -> None:
    text = written(value)
    assert float(Fraction(text)) == pytest.approx(float(value), rel=1e-11, abs=1e-300)
    assert not text.endswith(".") and (not text.endswith("0") or "." not in text or "e" in text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1 + 0.2, "0.3"), (Fraction(1, 3), "0.333333333333"), (Fraction(2, 3), "0.666666666667"), (-0.0, "0"),
        (Fraction(-1, 8), "-0.125"), (1e300, "1e300"), (1.5e-9, "1.5e-9"), (2**0.5 * 1e14, "141421356237310"),
        (Fraction(10**30), "1" + "0" * 30), (12345678.9, "12345678.9"),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(value: Fraction | float, text: str) -> None:
    assert written(value) == text


@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(st.one_of(FRACTIONS, st.floats(-1e308, 1e308)), max_size=3))
def test_functions_give_a_number_or_refuse(name: str, values: list[Fraction | float]) -> None:
    try:
        found = apply(name, values)
    except Refused as refused:
        assert refused.problem
    else:
        assert math.isfinite(found) if isinstance(found, float) else found.numerator.bit_length() <= MOST_BITS


@pytest.mark.parametrize("base", [Fraction(10), Fraction(1, 10), Fraction(10**2000), 1e300, Fraction(-7, 3)])
@pytest.mark.parametrize(
    "exponent", [Fraction(10) ** 2400, -(Fraction(10) ** 9), Fraction(1, 10**9), Fraction(9**9, 7)]
)
def test_huge_powers_are_refused_at_once(base: Fraction | float, exponent: Fraction) -> None:
    begun = time.process_time()
    try:
        power(base, exponent)
    except Refused:
        pass
    assert time.process_time() - begun < 1  # a true power of these would fill the memory


def test_angles() -> None:
    assert apply("sin", [math.pi]) == 0
    assert apply("cos", [math.pi / 2]) == 0
    assert apply("sin", [Fraction(10**22)]) == math.sin(1e22)
    assert apply("sin", [1e-30]) == 1e-30
    with pytest.raises(Refused, match="not defined for"):
        apply("tan", [math.pi / 2])


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
    assert apply("round", [Fraction(value), Fraction(digits)]) == Fraction(rounded)


@pytest.mark.parametrize(("base", "exponent"), [(5, 3), (2, 1000), (3, 40), (10, 15)])
def test_logarithms_that_come_out_even_are_exact(base: int, exponent: int) -> None:
    found = apply("log", [Fraction(base**exponent), Fraction(base)])
    assert isinstance(found, Fraction) and found == exponent


@pytest.mark.parametrize(
    ("name", "values"),
    [("sqrt", [-1]), ("ln", [0]), ("log", [10, 1]), ("factorial", [2.5]), ("sqrt", []), ("abs", [1, 2])],
)
def test_what_has_no_value_is_refused_in_words(name: str, values: list[float]) -> None:
    with pytest.raises(Refused):
        apply(name, [Fraction(value) for value in values])
