"""The functions and constants of the calculator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from formal_llm.agents.tools.arithmetic import (
    MOST_BITS,
    Number,
    Refused,
    add,
    bounded,
    divide,
    factorial,
    inexact,
    power,
    whole,
    whole_power,
    written,
)


class Function(NamedTuple):
    """A function of the calculator: what it does, and how many numbers it takes at least and at most."""

    of: Callable[..., Number]
    least: int = 1
    most: int = 1


def _rough(function: Callable[..., float], needs: str = "") -> Callable[..., Number]:
    """A function of floats, whose errors are told in words."""

    def call(*values: Number) -> Number:
        floats = [inexact(value) for value in values]
        try:
            result = function(*floats)
        except OverflowError:
            raise Refused("the result is too large") from None
        except ValueError:
            raise Refused(f"not defined for {', '.join(map(written, values))}", needs or None) from None
        return bounded(result)

    return call


def _turning(function: Callable[[float], float]) -> Callable[[float], float]:
    """What lies nearer to zero than the float of an angle is fine, is zero; of huge angles nothing is made zero."""

    def call(angle: float) -> float:
        result = function(angle)
        return 0.0 if abs(result) <= min(2**-52 * abs(angle), 1e-9) else result

    return call


_sin, _cos = _turning(math.sin), _turning(math.cos)


def _tan(angle: float) -> float:
    if _cos(angle) == 0:
        raise ValueError
    return _turning(math.tan)(angle)


def _log(value: Number, base: Number = Fraction(10)) -> Number:
    """A logarithm, exact where the result is a whole number."""
    if value <= 0 or base <= 0 or base == 1:
        raise Refused("a logarithm is of a positive number, to a positive base other than 1")
    result = _ln(value) / _ln(base)
    if isinstance(value, Fraction) and isinstance(base, Fraction) and math.isfinite(result):
        near = round(result)
        if abs(result - near) < 1e-9 and whole_power(base, near) == value:
            return Fraction(near)
    return bounded(result)


def _ln(value: Number) -> float:
    if value <= 0:
        raise Refused("a logarithm is of a positive number")
    if isinstance(value, Fraction) and not 1e-9 < value < 1e9:  # floats do not reach as far, and logarithms do
        return math.log(value.numerator) - math.log(value.denominator)
    return math.log(value)


def _round(value: Number, digits: Number = Fraction(0)) -> Number:
    """Rounded as people do it: a half goes away from zero."""
    places = whole(digits, "the count of digits of round")
    if abs(places) > 1000:
        raise Refused("round keeps at most 1,000 digits")
    scale = Fraction(10) ** places
    scaled = abs(Fraction(value)) * scale + Fraction(1, 2)
    return bounded(Fraction(scaled.numerator // scaled.denominator) / scale * (-1 if value < 0 else 1))


def _cbrt(value: Number) -> Number:
    root = power(-value if value < 0 else value, Fraction(1, 3))
    return -root if value < 0 else root


def _sqrt(value: Number) -> Number:
    if value < 0:
        raise Refused("the square root of a negative number is no real number")
    return power(value, Fraction(1, 2))


def _sum(*values: Number) -> Number:
    total: Number = Fraction(0)
    for value in values:
        total = add(total, value)
    return total


def _mean(*values: Number) -> Number:
    return divide(_sum(*values), Fraction(len(values)))


def _whole_of(function: Callable[..., int], what: str) -> Callable[..., Number]:
    def call(*values: Number) -> Number:
        return bounded(Fraction(function(*(whole(value, what) for value in values))))

    return call


def _choose(n: int, k: int) -> int:
    if not 0 <= n <= MOST_BITS or k < 0:
        raise Refused(f"choose(n, k) is for whole numbers from 0 to {MOST_BITS:,}")
    return math.comb(n, k)


_MANY = 1_000
_FINITE = "the number lies outside of what the function is defined for"
FUNCTIONS: dict[str, Function] = {
    "abs": Function(abs),
    "sqrt": Function(_sqrt),
    "cbrt": Function(_cbrt),
    "min": Function(lambda *values: min(values), 1, _MANY),
    "max": Function(lambda *values: max(values), 1, _MANY),
    "sum": Function(_sum, 1, _MANY),
    "mean": Function(_mean, 1, _MANY),
    "average": Function(_mean, 1, _MANY),
    "round": Function(_round, 1, 2),
    "floor": Function(lambda value: Fraction(math.floor(value))),
    "ceil": Function(lambda value: Fraction(math.ceil(value))),
    "trunc": Function(lambda value: Fraction(math.trunc(value))),
    "factorial": Function(factorial),
    "choose": Function(_whole_of(_choose, "choose"), 2, 2),
    "gcd": Function(_whole_of(math.gcd, "gcd"), 1, _MANY),
    "lcm": Function(_whole_of(math.lcm, "lcm"), 1, 20),
    "log": Function(_log, 1, 2),
    "log10": Function(_log),
    "log2": Function(lambda value: _log(value, Fraction(2))),
    "ln": Function(lambda value: _ln(value)),
    "exp": Function(_rough(math.exp)),
    "sin": Function(_rough(_sin)),
    "cos": Function(_rough(_cos)),
    "tan": Function(_rough(_tan, "tan has no value at a quarter turn")),
    "asin": Function(_rough(math.asin, _FINITE)),
    "acos": Function(_rough(math.acos, _FINITE)),
    "atan": Function(_rough(math.atan)),
    "sinh": Function(_rough(math.sinh)),
    "cosh": Function(_rough(math.cosh)),
    "tanh": Function(_rough(math.tanh)),
    "degrees": Function(_rough(math.degrees)),
    "radians": Function(_rough(math.radians)),
}
CONSTANTS: dict[str, Number] = {"pi": math.pi, "π": math.pi, "tau": math.tau, "τ": math.tau, "e": math.e}


def apply(name: str, values: Sequence[Number]) -> Number:
    """The value of a function, by its name in :data:`FUNCTIONS`.

    Raises:
        Refused: it takes another count of numbers, or has no value for these.
    """
    function = FUNCTIONS[name]
    if not function.least <= len(values) <= function.most:
        wanted = {(1, 1): "one number", (2, 2): "two numbers", (1, 2): "one or two numbers"}.get(
            (function.least, function.most), f"{function.least} to {function.most:,} numbers"
        )
        raise Refused(f"{name} takes {wanted}, not {len(values)}", "a number inside has no commas: write 1234")
    return bounded(function.of(*values))
