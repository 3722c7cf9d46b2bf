"""Numbers: exact where they can be, bounded always, printed as people write them."""

from __future__ import annotations

import time
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.tools import arithmetic
from formal_llm.agents.tools.arithmetic import ArithmeticRefusal, raise_to_power, written

FRACTIONS = st.fractions(max_denominator=10**6)


@given(FRACTIONS, FRACTIONS)
def test_exact_numbers_stay_exact(one: Fraction, other: Fraction) -> None:
    assert arithmetic.add_numbers(one, other) == one + other
    assert arithmetic.subtract_numbers(one, other) == one - other
    assert arithmetic.multiply_numbers(one, other) == one * other
    if other:
        assert arithmetic.divide_numbers(one, other) == one / other
        assert arithmetic.floor_divide(one, other) * other + arithmetic.compute_remainder(one, other) == one


@given(st.fractions(min_value=0, max_value=1000, max_denominator=50), st.integers(2, 7))
def test_a_root_that_comes_out_even_is_exact(value: Fraction, degree: int) -> None:
    assert raise_to_power(value**degree, Fraction(1, degree)) == value


@given(
    st.fractions(min_value=Fraction(1, 10**6), max_denominator=10**6),
    st.fractions(max_denominator=7).map(lambda x: x % 9),
)
def test_powers_are_those_of_floats(base: Fraction, exponent: Fraction) -> None:
    found = raise_to_power(base, exponent)
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


@pytest.mark.parametrize("base", [Fraction(10), Fraction(1, 10), Fraction(10**2000), 1e300, Fraction(-7, 3)])
@pytest.mark.parametrize(
    "exponent", [Fraction(10) ** 2400, -(Fraction(10) ** 9), Fraction(1, 10**9), Fraction(9**9, 7)]
)
def test_huge_powers_are_refused_at_once(base: Fraction | float, exponent: Fraction) -> None:
    begun = time.process_time()
    with suppress(ArithmeticRefusal):
        raise_to_power(base, exponent)
    assert time.process_time() - begun < 1  # a true power of these would fill the memory
