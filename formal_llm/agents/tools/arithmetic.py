"""Arithmetic that is exact where it can be: fractions as long as they stay small, floats for the rest.

A number is a :class:`~fractions.Fraction` or, where it comes from a root, a logarithm or the like, a finite float. No
operation here can take long: what would have more than :data:`MOST_BITS` bits is refused, or becomes a float.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

#: An exact number, or a finite float.
Number: TypeAlias = "Fraction | float"
#: How many bits a numerator or denominator may have: about 3,000 digits.
MOST_BITS = 10_000
#: The largest number with a factorial of fewer bits than that.
MOST_FACTORIAL = 1_000
#: Digits that are shown of a number that has no end, and of a float.
DIGITS = 12
#: The significant digits of a float, about.
_FLOAT_DIGITS = 15
_MOST_ROOT = 100


class ArithmeticRefusal(ArithmeticError):
    """An operation without a result here.

    Attributes:
        problem: why, in words.
        suggestion: what to do about it.
    """

    def __init__(self, problem: str, suggestion: str | None = None) -> None:
        self.problem = problem
        self.suggestion = suggestion
        super().__init__(problem)


def check_bounds(value: Number) -> Number:
    """The number, if it is none too large.

    Raises:
        Refused: it is too large, infinite or no number.
    """
    if isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
            raise ArithmeticRefusal("the number is too long to be exact", "round in between, as in round(1/3, 10)")
    elif not math.isfinite(value):
        raise ArithmeticRefusal("the number is too large")
    return value


def to_float(value: Number) -> float:
    """The number as a float.

    Raises:
        Refused: it is too large for one.
    """
    try:
        return float(value)
    except OverflowError:
        raise ArithmeticRefusal("the number is too large to be calculated with other than exactly") from None


def _apply_exact_first(
    one: Number, other: Number, exact: Callable[..., Fraction], rough: Callable[..., float]
) -> Number:
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return check_bounds(exact(one, other))
    return check_bounds(rough(to_float(one), to_float(other)))


def add_numbers(one: Number, other: Number) -> Number:
    """The sum."""
    return _apply_exact_first(one, other, Fraction.__add__, float.__add__)


def subtract_numbers(one: Number, other: Number) -> Number:
    """The difference."""
    return _apply_exact_first(one, other, Fraction.__sub__, float.__sub__)


def multiply_numbers(one: Number, other: Number) -> Number:
    """The product."""
    return _apply_exact_first(one, other, Fraction.__mul__, float.__mul__)


def divide_numbers(one: Number, other: Number) -> Number:
    """The quotient."""
    return _apply_exact_first(one, _check_divisor(other), Fraction.__truediv__, float.__truediv__)


def floor_divide(one: Number, other: Number) -> Number:
    """The quotient, rounded down."""
    return _apply_exact_first(one, _check_divisor(other), lambda a, b: Fraction(a // b), float.__floordiv__)


def compute_remainder(one: Number, other: Number) -> Number:
    """What is left when the quotient is rounded down: it has the sign of the divisor, as in mathematics."""
    return _apply_exact_first(one, _check_divisor(other), Fraction.__mod__, float.__mod__)


def _check_divisor(value: Number) -> Number:
    if value == 0:
        raise ArithmeticRefusal("division by zero")
    return value


def raise_to_power(base: Number, exponent: Number) -> Number:
    """A power; exact for whole exponents and for roots that come out even, as in ``(4/9)^(1/2)``.

    Raises:
        Refused: it is too large or too small, or no real number, as ``(-8)^(1/2)``.
    """
    if base == 0 and exponent < 0:
        raise ArithmeticRefusal("division by zero: zero has no negative powers")
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            if (exact := compute_exact_power(base, exponent.numerator)) is not None:
                return exact
        elif base >= 0 and (even := _find_exact_root(base, exponent.denominator)) is not None:
            return raise_to_power(even, Fraction(exponent.numerator))
    if base < 0 and exponent != math.floor(exponent):
        raise ArithmeticRefusal("a root of a negative number is no real number", "a cube root is cbrt(-8)")
    try:
        result = to_float(base) ** to_float(exponent)
    except OverflowError:
        raise ArithmeticRefusal("the power is too large") from None
    if result == 0 != base:
        raise ArithmeticRefusal("the power is too small to be distinguished from zero")
    return check_bounds(result)


def compute_exact_power(base: Fraction, exponent: int) -> Fraction | None:
    """The exact power; None where it has too many bits."""
    if abs(base) in (0, 1):
        return Fraction(base ** (2 - exponent % 2)) if exponent else Fraction(1)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if (bits - 1) * abs(exponent) > MOST_BITS:
        return None
    found = Fraction(base**exponent)
    return found if max(found.numerator.bit_length(), found.denominator.bit_length()) <= MOST_BITS else None


def _find_exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The exact root of a number that is not negative; None where it does not come out even."""
    if degree > _MOST_ROOT:
        return None
    over, under = _find_whole_root(value.numerator, degree), _find_whole_root(value.denominator, degree)
    return None if over is None or under is None else Fraction(over, under)


def _find_whole_root(value: int, degree: int) -> int | None:
    if value < 2:
        return value
    found, after = 1 << -(-value.bit_length() // degree), 0  # from above, as Newton's method needs
    while (after := ((degree - 1) * found + value // found ** (degree - 1)) // degree) < found:
        found = after
    return found if found**degree == value else None


def compute_factorial(value: Number) -> Number:
    """The factorial of a whole number from 0 to :data:`MOST_FACTORIAL`."""
    number = to_whole(value, "a factorial")
    if not 0 <= number <= MOST_FACTORIAL:
        raise ArithmeticRefusal(f"a factorial is of a whole number from 0 to {MOST_FACTORIAL:,}")
    return Fraction(math.factorial(number))


def to_whole(value: Number, what: str) -> int:
    """The number as a whole one.

    Raises:
        Refused: it is none.
    """
    if value != math.floor(value):
        raise ArithmeticRefusal(f"{what} needs a whole number, not {written(value)}")
    return int(value)


def count_decimals(value: Fraction) -> int | None:
    """How many digits a number has behind its point; None where they do not end."""
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def written(value: Number) -> str:
    """A number as people write it: ``0.3``, ``40``, ``0.333333333333``, ``6.02214076e23``.

    Exact numbers have all their digits where these end after at most 20; the others have 12 that count.
    """
    if isinstance(value, Fraction):
        places = count_decimals(value)
        if places is not None and places <= 20:
            digits = str(abs(value.numerator) * (10**places // value.denominator)).rjust(places + 1, "0")
            text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
            return f"-{text}" if value < 0 else text
        size = value.numerator.bit_length() - value.denominator.bit_length()
        return _format_decimal(
            _round_number(size, lambda context: context.divide(Decimal(value.numerator), Decimal(value.denominator)))
        )
    return _format_decimal(_round_number(math.frexp(value)[1], lambda context: context.plus(Decimal(value))))


def _round_number(bits: int, make: Callable[[Context], Decimal]) -> Decimal:
    """A number of ``bits`` before its point, rounded, but never within the whole digits of a float."""
    whole_digits = math.ceil(bits * math.log10(2)) if bits > 0 else 0
    digits = max(DIGITS, whole_digits) if whole_digits <= _FLOAT_DIGITS else DIGITS
    return make(Context(prec=digits, rounding=ROUND_HALF_UP))


def _format_decimal(value: Decimal) -> str:
    if value == 0:
        return "0"
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0")
    place = value.adjusted()
    sign = "-" if value < 0 else ""
    if -7 <= place < 21:
        return f"{sign}{Decimal(digits).scaleb(place - len(digits) + 1):f}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{place}"
