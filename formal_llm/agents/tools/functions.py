"""The functions and constants of the calculator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from formal_llm.agents.tools.arithmetic import (
    MOST_BITS,
    ArithmeticRefusal,
    Number,
    add_numbers,
    check_bounds,
    compute_exact_power,
    compute_factorial,
    divide_numbers,
    raise_to_power,
    to_float,
    to_whole,
    written,
)


class CalculatorFunction(NamedTuple):
    """A function of the calculator: what it does, and how many numbers it takes at least and at most."""

    of: Callable[..., Number]
    least: int = 1
    most: int = 1


def _wrap_float_function(function: Callable[..., float], needs: str = "") -> Callable[..., Number]:
    """A function of floats, whose errors are told in words."""

    def call_function(*values: Number) -> Number:
        floats = [to_float(value) for value in values]
        try:
            result = function(*floats)
        except OverflowError:
            raise ArithmeticRefusal("the result is too large") from None
        except ValueError:
            raise ArithmeticRefusal(f"not defined for {', '.join(map(written, values))}", needs or None) from None
        return check_bounds(result)

    return call_function


def _wrap_angle_function(function: Callable[[float], float]) -> Callable[[float], float]:
    """What lies nearer to zero than the float of an angle is fine, is zero; of huge angles nothing is made zero."""

    def call_function(angle: float) -> float:
        result = function(angle)
        return 0.0 if abs(result) <= min(2**-52 * abs(angle), 1e-9) else result

    return call_function


_sin, _cos = _wrap_angle_function(math.sin), _wrap_angle_function(math.cos)


def _compute_tangent(angle: float) -> float:
    if _cos(angle) == 0:
        raise ValueError
    return _wrap_angle_function(math.tan)(angle)


def _compute_logarithm(value: Number, base: Number = Fraction(10)) -> Number:
    """A logarithm, exact where the result is a whole number."""
    if value <= 0 or base <= 0 or base == 1:
        raise ArithmeticRefusal("a logarithm is of a positive number, to a positive base other than 1")
    result = _compute_natural_logarithm(value) / _compute_natural_logarithm(base)
    if isinstance(value, Fraction) and isinstance(base, Fraction) and math.isfinite(result):
        near = round(result)
        if abs(result - near) < 1e-9 and compute_exact_power(base, near) == value:
            return Fraction(near)
    return check_bounds(result)


def _compute_natural_logarithm(value: Number) -> float:
    if value <= 0:
        raise ArithmeticRefusal("a logarithm is of a positive number")
    if isinstance(value, Fraction) and not 1e-9 < value < 1e9:  # floats do not reach as far, and logarithms do
        return math.log(value.numerator) - math.log(value.denominator)
    return math.log(value)


def _round_half_away(value: Number, digits: Number = Fraction(0)) -> Number:
    """Rounded as people do it: a half goes away from zero."""
    places = to_whole(digits, "the count of digits of round")
    if abs(places) > 1000:
        raise ArithmeticRefusal("round keeps at most 1,000 digits")
    scale = Fraction(10) ** places
    scaled = abs(Fraction(value)) * scale + Fraction(1, 2)
    return check_bounds(Fraction(scaled.numerator // scaled.denominator) / scale * (-1 if value < 0 else 1))


def _compute_cube_root(value: Number) -> Number:
    root = raise_to_power(-value if value < 0 else value, Fraction(1, 3))
    return -root if value < 0 else root


def _compute_square_root(value: Number) -> Number:
    if value < 0:
        raise ArithmeticRefusal("the square root of a negative number is no real number")
    return raise_to_power(value, Fraction(1, 2))


def _sum_numbers(*values: Number) -> Number:
    total: Number = Fraction(0)
    for value in values:
        total = add_numbers(total, value)
    return total


def _average_numbers(*values: Number) -> Number:
    return divide_numbers(_sum_numbers(*values), Fraction(len(values)))


def _wrap_whole_function(function: Callable[..., int], what: str) -> Callable[..., Number]:
    def call_function(*values: Number) -> Number:
        return check_bounds(Fraction(function(*(to_whole(value, what) for value in values))))

    return call_function


def _count_choices(n: int, k: int) -> int:
    if not 0 <= n <= MOST_BITS or k < 0:
        raise ArithmeticRefusal(f"choose(n, k) is for whole numbers from 0 to {MOST_BITS:,}")
    return math.comb(n, k)


_MANY = 1_000
_FINITE = "the number lies outside of what the function is defined for"
FUNCTIONS: dict[str, CalculatorFunction] = {
    "abs": CalculatorFunction(abs),
    "sqrt": CalculatorFunction(_compute_square_root),
    "cbrt": CalculatorFunction(_compute_cube_root),
    "min": CalculatorFunction(lambda *values: min(values), 1, _MANY),
    "max": CalculatorFunction(lambda *values: max(values), 1, _MANY),
    "sum": CalculatorFunction(_sum_numbers, 1, _MANY),
    "mean": CalculatorFunction(_average_numbers, 1, _MANY),
    "average": CalculatorFunction(_average_numbers, 1, _MANY),
    "round": CalculatorFunction(_round_half_away, 1, 2),
    "floor": CalculatorFunction(lambda value: Fraction(math.floor(value))),
    "ceil": CalculatorFunction(lambda value: Fraction(math.ceil(value))),
    "trunc": CalculatorFunction(lambda value: Fraction(math.trunc(value))),
    "factorial": CalculatorFunction(compute_factorial),
    "choose": CalculatorFunction(_wrap_whole_function(_count_choices, "choose"), 2, 2),
    "gcd": CalculatorFunction(_wrap_whole_function(math.gcd, "gcd"), 1, _MANY),
    "lcm": CalculatorFunction(_wrap_whole_function(math.lcm, "lcm"), 1, 20),
    "log": CalculatorFunction(_compute_logarithm, 1, 2),
    "log10": CalculatorFunction(_compute_logarithm),
    "log2": CalculatorFunction(lambda value: _compute_logarithm(value, Fraction(2))),
    "ln": CalculatorFunction(lambda value: _compute_natural_logarithm(value)),
    "exp": CalculatorFunction(_wrap_float_function(math.exp)),
    "sin": CalculatorFunction(_wrap_float_function(_sin)),
    "cos": CalculatorFunction(_wrap_float_function(_cos)),
    "tan": CalculatorFunction(_wrap_float_function(_compute_tangent, "tan has no value at a quarter turn")),
    "asin": CalculatorFunction(_wrap_float_function(math.asin, _FINITE)),
    "acos": CalculatorFunction(_wrap_float_function(math.acos, _FINITE)),
    "atan": CalculatorFunction(_wrap_float_function(math.atan)),
    "sinh": CalculatorFunction(_wrap_float_function(math.sinh)),
    "cosh": CalculatorFunction(_wrap_float_function(math.cosh)),
    "tanh": CalculatorFunction(_wrap_float_function(math.tanh)),
    "degrees": CalculatorFunction(_wrap_float_function(math.degrees)),
    "radians": CalculatorFunction(_wrap_float_function(math.radians)),
}
CONSTANTS: dict[str, Number] = {"pi": math.pi, "π": math.pi, "tau": math.tau, "τ": math.tau, "e": math.e}


def apply_function(name: str, values: Sequence[Number]) -> Number:
    """The value of a function, by its name in :data:`FUNCTIONS`.

    Raises:
        Refused: it takes another count of numbers, or has no value for these.
    """
    function = FUNCTIONS[name]
    if not function.least <= len(values) <= function.most:
        wanted = {(1, 1): "one number", (2, 2): "two numbers", (1, 2): "one or two numbers"}.get(
            (function.least, function.most), f"{function.least} to {function.most:,} numbers"
        )
        raise ArithmeticRefusal(
            f"{name} takes {wanted}, not {len(values)}", "a number inside has no commas: write 1234"
        )
    return check_bounds(function.of(*values))
