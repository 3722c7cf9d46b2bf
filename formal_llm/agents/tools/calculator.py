"""A calculator for what people and models write: ``50% of 80``, ``10^2``, ``1,234.5 × 2``, ``2(3 + 4)``, ``√16``.

It reads with a small operator-precedence parser (Pratt, 1973) and calculates as it reads; nothing is ever executed.
From loose to tight: sums; products, ``mod``, ``//`` and factors written side by side, from left to right; ``x% of y``;
the sign; powers, from right to left (``-2^2`` is -4, ``2^3^2`` is 512); ``!``, ``%`` and ``²``; the sign ``√``.

A percentage behind ``+`` or ``-`` is one of what comes before it, as on pocket calculators: ``80 + 10%`` is 88. In
brackets it is a number: ``80 + (10%)`` is 80.1. Elsewhere ``%`` divides by 100; it is no remainder: that is ``mod``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, NoReturn

from formal_llm.agents.tools import arithmetic
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
from formal_llm.errors import NotationError, did_you_mean


class CalculatorFunction(NamedTuple):
    """A function of the calculator: what it does, and how many numbers it takes at least and at most."""

    of: Callable[..., Number]
    least: int = 1
    most: int = 1


def _wrap_float_function(function: Callable[..., float], needs: str = "") -> Callable[..., Number]:
    """A function of floats, whose errors are reported in words."""

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


#: How long an expression may be, and how deeply nested.
MOST_CHARACTERS, MOST_NESTED = 2_000, 60

_SPACES = " \u00a0\u2009\u202f"
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<number>(?:[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9]) | [0-9]{{1,3}}(?:[{_SPACES}][0-9]{{3}})+(?![0-9]) | [0-9]+)
        (?:\.[0-9]+|\.(?![0-9.]))? (?:[eE][+-]?[0-9]+)? | \.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[A-Za-zπτ_µΩ][A-Za-z_0-9]*)
    | (?P<raised>[⁺⁻]?[⁰¹²³⁴-⁹]+)
    | (?P<sign>\*\*|//|[-+*/^()!,=%√×·⋅∙÷∕⁄−–])
    )""",
    re.VERBOSE,
)
_SAME = {"**": "^", "×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "∕": "/", "⁄": "/", "−": "-", "–": "-"}
_RAISED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_WORDS = {"mod": "mod", "of": "of", "x": "*", "X": "*"}
_UNIT_WORDS = """
    m km cm mm um nm mi mile miles ft foot feet in inch inches yd yard yards kg g mg t ton tons lb lbs oz pound pounds s
    sec second seconds min minute minutes h hr hour hours day days week weeks month months year years l ml liter liters
    litre litres gal gallon gallons N J W kW kWh V A Hz K C F kB MB GB TB USD EUR GBP dollar dollars cent cents euro
    euros meter meters metre metres kilometer kilometers kilometre kilometres kilogram kilograms gram grams mph kmh
"""
_UNITS = frozenset(_UNIT_WORDS.split())
_SUM, _PRODUCT, _SHARE, _SIGN, _POWER, _BEHIND, _ROOT = 10, 20, 25, 30, 40, 50, 60
_BINARY: Mapping[str, tuple[int, Callable[[Number, Number], Number]]] = {
    "+": (_SUM, arithmetic.add_numbers),
    "-": (_SUM, arithmetic.subtract_numbers),
    "*": (_PRODUCT, arithmetic.multiply_numbers),
    "/": (_PRODUCT, arithmetic.divide_numbers),
    "//": (_PRODUCT, arithmetic.floor_divide),
    "mod": (_PRODUCT, arithmetic.compute_remainder),
    "of": (_PRODUCT, arithmetic.multiply_numbers),
    "^": (_POWER, arithmetic.raise_to_power),
}


@dataclass(frozen=True)
class Calculation:
    """An expression and its value.

    Attributes:
        expression: what was calculated.
        value: its value: a fraction where it is exact.
        text: the value as people write it; see :func:`~formal_llm.agents.tools.arithmetic.written`.
    """

    expression: str
    value: Number
    text: str

    @property
    def exact(self) -> bool:
        """Whether the text is the value, no digit left out."""
        return (
            isinstance(self.value, Fraction)
            and (arithmetic.count_decimals(self.value) or 0) <= 20
            and (arithmetic.count_decimals(self.value) is not None)
        )

    def __str__(self) -> str:
        return self.text


def calculate(expression: str) -> Calculation:
    """The value of an expression, as in ``calculate("50% of 80").text == "40"``.

    A logarithm ``log`` is to the base 10, ``log(8, 2)`` to any other, ``ln`` the natural one; angles are in radians;
    ``round`` takes a half away from zero.

    Raises:
        NotationError: it cannot be read, has units or a currency, has no value, or is too long or too large; with
            the place and the way out.
    """
    return _ExpressionReader(expression).read_expression()


class _Token(NamedTuple):
    kind: str  # number, name, raised, sign, end
    text: str
    at: int


class _Operand(NamedTuple):
    """A value while it is read, and whether it is a percentage and nothing else."""

    value: Number
    percent: bool = False


class _ExpressionReader:
    def __init__(self, expression: str) -> None:
        # Each blank stays one, so that places stay what they are.
        self.expression = re.sub(r"\s", " ", expression)
        self.place = 0
        self.depth = 0
        self.token = _Token("end", "", 0)

    def read_expression(self) -> Calculation:
        if len(self.expression) > MOST_CHARACTERS:
            self.raise_error(
                f"the expression has {len(self.expression):,} characters", None, f"at most {MOST_CHARACTERS:,} are read"
            )
        self.take_token()
        if self.token.kind == "end":
            self.raise_error("there is nothing to calculate", None, "write an expression, such as 2 + 3")
        value = self.read_operand(0).value
        if self.token.text == "=":  # "2 + 3 =", as it is typed on a calculator
            self.take_token()
            if self.token.kind != "end":
                self.raise_error("equations are not solved", self.token, "write only what is to be calculated")
        if self.token.kind != "end":
            self.reject_token(self.token)
        return Calculation(self.expression, value, written(value))

    # -- tokens ---------------------------------------------------------------------------------------------------

    def take_token(self) -> _Token:
        """Advance to the next token; returns the one that was there."""
        before, found = self.token, _TOKEN.match(self.expression, self.place)
        if found is not None:
            kind = str(found.lastgroup)
            text = found[kind]
            self.token = _Token(kind, _SAME.get(text, text), found.start(kind))
            self.place = found.end()
        else:
            rest = self.expression[self.place :]
            at = self.place + len(rest) - len(rest.lstrip())
            self.token = _Token("end" if not rest.strip() else "strange", self.expression[at : at + 1], at)
            self.place = at
        return before

    def raise_error(self, problem: str, token: _Token | None, suggestion: str | None = None) -> NoReturn:
        raise NotationError(
            problem,
            file="expression",
            line=None if token is None else 1,
            column=None if token is None else token.at + 1,
            source_line=None if token is None else self.expression,
            suggestion=suggestion,
        ) from None

    def reject_token(self, token: _Token) -> NoReturn:
        """Raise for a token that cannot be where it is."""
        sign = token.text
        if token.kind == "end":
            self.raise_error("the expression ends too early", token, "a number is missing here")
        if token.kind == "strange":
            if unicodedata.category(sign) == "Sc":
                self.raise_error(
                    f"amounts of money are not calculated with: {sign}", token, "write numbers without currency"
                )
            if sign == "°":
                self.raise_error("angles are in radians here", token, "write sin(radians(30)) for 30 degrees")
            if sign in "[]{}":
                self.raise_error(f"{sign} is no bracket here", token, "use ( and )")
            self.raise_error(f"the sign {sign!r} means nothing here", token)
        if token.kind == "name" and sign not in _WORDS:
            self.reject_name(token)
        if token.kind == "number":
            self.raise_error("two numbers stand side by side", token, "write an operator between them, as in 2 * 3")
        if sign == ",":
            hint = "a comma parts thousands (1,234.5) and what a function takes; decimals have a point: 1.5"
            self.raise_error("this comma parts nothing", token, hint)
        if sign == ")":
            self.raise_error("there is no opening bracket for this one", token)
        self.raise_error(f"{sign} cannot stand here", token, "a number is missing before it")

    def reject_name(self, token: _Token) -> NoReturn:
        name = token.text
        if name in _UNITS:
            self.raise_error(
                f"units are not calculated with: {name}", token, "write numbers without units: 5 + 3, not 5 km + 3 km"
            )
        near = did_you_mean(name, [*FUNCTIONS, *CONSTANTS])
        self.raise_error(
            f"unknown name: {name}", token, f"did you mean {near}?" if near else "write numbers without names and units"
        )

    # -- expressions ----------------------------------------------------------------------------------------------

    def read_operand(self, least: int) -> _Operand:
        """The operand here, as far as its operators bind more tightly than that."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            self.raise_error(
                "the expression is nested too deeply", self.token, f"at most {MOST_NESTED} levels are read"
            )
        left = self.read_first_operand()
        while (more := self.apply_next_operator(left, least)) is not None:
            left = more
        self.depth -= 1
        return left

    def read_first_operand(self) -> _Operand:
        """A number, a constant, a function, a bracket, or one of these behind a sign or a root."""
        token = self.token
        if token.kind == "number":
            self.take_token()
            return _Operand(self.read_number(token))
        if token.kind == "name" and (token.text in FUNCTIONS or token.text in CONSTANTS):
            self.take_token()
            if token.text in CONSTANTS:
                return _Operand(CONSTANTS[token.text])
            return _Operand(self.call_function(token))
        if token.text == "(":
            self.take_token()
            inner = self.read_operand(0).value
            self.expect_closing(token)
            return _Operand(inner)
        if token.text in ("+", "-"):
            self.take_token()
            signed = self.read_operand(_SIGN)
            return signed if token.text == "+" else _Operand(-signed.value, signed.percent)
        if token.text == "√":
            self.take_token()
            return _Operand(self.compute_value(token, lambda: apply_function("sqrt", [self.read_operand(_ROOT).value])))
        if token.text == ")":
            self.raise_error("a number is missing before this bracket", token)
        return self.reject_token(token)

    def apply_next_operator(self, left: _Operand, least: int) -> _Operand | None:
        """What the next operator makes of what comes before it; None where it does not bind tightly enough."""
        token = self.token
        sign = _WORDS.get(token.text, token.text)
        if token.kind == "raised" and least < _BEHIND:
            self.take_token()
            exponent = Fraction(token.text.translate(_RAISED))
            return _Operand(self.compute_value(token, lambda: arithmetic.raise_to_power(left.value, exponent)))
        if sign == "!" and least < _BEHIND:
            self.take_token()
            if self.token.text == "!":
                self.raise_error(
                    "!! can be read in two ways", self.token, "write (3!)! for the factorial of a factorial"
                )
            return _Operand(self.compute_value(token, lambda: arithmetic.compute_factorial(left.value)))
        if sign == "%" and least < _BEHIND:
            self.take_token()
            if self.starts_operand():
                hint = "write 7 mod 3 for the remainder, 7% of 3 or 7% * 3 for the percentage"
                self.raise_error("% can be read in two ways here", token, hint)
            return _Operand(
                self.compute_value(token, lambda: arithmetic.divide_numbers(left.value, Fraction(100))), percent=True
            )
        if sign in _BINARY:
            binds, function = _BINARY[sign]
            binds = _SHARE if sign == "of" and left.percent else binds
            if binds <= least:
                return None
            self.take_token()
            right = self.read_operand(binds - 1 if sign == "^" else binds)
            return self.join_operands(token, sign, left, right, function)
        if self.starts_operand() and token.kind != "number" and least < _PRODUCT:
            right = self.read_operand(_PRODUCT)
            return _Operand(self.compute_value(token, lambda: arithmetic.multiply_numbers(left.value, right.value)))
        return None

    def join_operands(
        self, token: _Token, sign: str, left: _Operand, right: _Operand, function: Callable[[Number, Number], Number]
    ) -> _Operand:
        """Two operands with a sign between them."""
        percent = sign in "+-" and right.percent
        if percent and not left.percent:  # 80 + 10%
            share = self.compute_value(token, lambda: arithmetic.multiply_numbers(left.value, right.value))
            return _Operand(self.compute_value(token, lambda: function(left.value, share)))
        return _Operand(self.compute_value(token, lambda: function(left.value, right.value)), percent)

    def starts_operand(self) -> bool:
        token = self.token
        return token.kind == "number" or token.text in ("(", "√") or (token.kind == "name" and token.text not in _WORDS)

    def read_number(self, token: _Token) -> Number:
        """The value of a number as it is written."""
        text = re.sub(rf"[,{_SPACES}]", "", token.text)
        _, _, exponent = text.lower().partition("e")
        if len(exponent) > 5 or (exponent and abs(int(exponent)) > arithmetic.MOST_BITS // 4):
            self.raise_error("the number is too large", token)
        return self.compute_value(token, lambda: arithmetic.check_bounds(Fraction(text)))

    def call_function(self, name: _Token) -> Number:
        """The value of a function, whose name was read."""
        opening = self.token
        if opening.text != "(":
            if name.text in _UNITS:  # min
                self.reject_name(name)
            self.raise_error(f"{name.text} needs brackets", opening, f"write {name.text}(...)")
        self.take_token()
        values: list[Number] = []
        while values or self.token.text != ")":
            if "," in self.token.text and self.token.kind == "number" and FUNCTIONS[name.text].most > 1:
                shown = self.token.text
                hint = f"write {shown.replace(',', '')} for one number, {shown.replace(',', ', ')} for several"
                self.raise_error(f"{shown} can be read as one number or as several here", self.token, hint)
            values.append(self.read_operand(0).value)
            if self.token.text != ",":
                break
            self.take_token()
        self.expect_closing(opening)
        return self.compute_value(name, lambda: apply_function(name.text, values))

    def expect_closing(self, opening: _Token) -> None:
        if self.token.kind == "end":
            self.raise_error("this bracket is not closed", opening)
        if self.token.text != ")":
            self.reject_token(self.token)
        self.take_token()

    def compute_value(self, token: _Token, function: Callable[[], Number]) -> Number:
        """What a function of numbers gives; what it refuses is reported with the place."""
        try:
            return function()
        except ArithmeticRefusal as refused:
            self.raise_error(refused.problem, token, refused.suggestion)
