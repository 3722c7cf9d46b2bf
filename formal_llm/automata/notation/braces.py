"""What stands in braces, and the ranges that it runs over.

``{t+1}``, ``{t/4:02}``, ``{t+1h30}``; ``1..3``, ``8:00..20:00 by 15min``. Whole numbers are computed with ``+``, ``-``,
``*``, ``/`` (rounded down) and ``%``. Times of day and durations keep what they are: a time of day and a duration make
a time of day, two times of day a duration, two durations a number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from operator import add, floordiv, mod, mul, sub

from formal_llm.automata.models.quantities import TIME, Amount, clock_text, read_amount, read_clock

#: How many values a range may have.
MOST = 100_000

_CLOCK = r"\d{1,2}:\d\d"
_DURATION = r"\d+h\d\d|\d+h|\d+m(?:in)?|\d+s"
#: Nothing is multiplied or divided by a time of day: the end of {n/4:02} is a width.
_LITERAL = re.compile(rf"(?<![\w:.])(?:(?<![*/%])(?<![*/%] ){_CLOCK}|{_DURATION})(?![\w:])")
_FORMAT = re.compile(r"(.*\S)\s*:\s*(0?[0-9]{1,2})\s*")
_RANGE = re.compile(rf"(-?\d{{1,9}}|{_CLOCK})\.\.(-?\d{{1,9}}|{_CLOCK})")


class Time(int):
    """A time of day, or a duration, in seconds."""

    is_clock: bool

    @classmethod
    def from_seconds(cls, seconds: int, *, is_clock: bool) -> Time:
        """So many seconds."""
        made = cls(seconds)
        made.is_clock = is_clock
        return made

    def __str__(self) -> str:
        if self < 0:
            raise ValueError("before midnight" if self.is_clock else "a negative time")
        return clock_text(int(self)) if self.is_clock else str(Amount(int(self), TIME))

    __repr__ = __str__


#: What a name in braces stands for.
Value = int | str


def parse_literal(text: str) -> Value:
    """A number, a time of day, a duration, or a name."""
    if re.fullmatch(r"-?\d{1,9}", text):
        return int(text)
    if re.fullmatch(_CLOCK, text):
        return Time.from_seconds(read_clock(text), is_clock=True)
    if re.fullmatch(_DURATION, text):
        return Time.from_seconds(int(read_amount(text)), is_clock=False)
    return text


def compute_expression(text: str, values: Mapping[str, Value]) -> str:
    """The text that an expression stands for.

    Raises:
        KeyError: an unknown name.
        TypeError: it computes with a name that is no number, or with times that do not fit.
        ZeroDivisionError: it divides by zero.
        ValueError, SyntaxError, RecursionError, MemoryError: it is no expression.
    """
    times: dict[str, Value] = {}

    def name_time(found: re.Match[str]) -> str:
        times[f"_time{len(times)}"] = parse_literal(found[0])
        return f" _time{len(times) - 1} "

    plain = _LITERAL.sub(name_time, text.strip())
    form = _FORMAT.fullmatch(plain)
    value = _evaluate_node(ast.parse((form[1] if form else plain).strip(), mode="eval").body, {**values, **times})
    if form is None:
        return str(value)
    if isinstance(value, (str, Time)):
        raise TypeError("only whole numbers have a width")
    return format(value, form[2])


def parse_range(text: str, step: str | None) -> Sequence[Value] | None:
    """The values of a range such as ``1..3`` or ``8:00..20:00``, with a step such as ``15min``; None for no range.

    Raises:
        ValueError: it is empty or too long, its ends do not fit, or its step; says so.
    """
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    low, high = parse_literal(found[1]), parse_literal(found[2])
    by = 1 if step is None else parse_literal(step)
    clocks = isinstance(low, Time), isinstance(high, Time)
    if clocks[0] != clocks[1]:
        raise ValueError(f"the ends of {text} are a time of day and a number")
    if clocks[0] and not isinstance(by, Time):
        raise ValueError(f"the range {text} needs a step; write, for instance: {text} by 15min")
    if isinstance(by, str) or (isinstance(by, Time) and (by.is_clock or not clocks[0])) or by <= 0:
        raise ValueError(f"{step} is no step for {text}")
    assert isinstance(low, int)
    assert isinstance(high, int)
    if low > high:
        raise ValueError(f"the range {text} is empty; write {found[2]}..{found[1]}")
    if (high - low) // by >= MOST:
        raise ValueError(f"this range stands for more than {MOST:,} numbers")
    if clocks[0]:
        return [Time.from_seconds(seconds, is_clock=True) for seconds in range(low, high + 1, by)]
    return range(low, high + 1, by)


_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: floordiv, ast.FloorDiv: floordiv, ast.Mod: mod,
}  # fmt: skip

#: What calculating with times makes of what: None is a number, True a time of day, False a duration.
_Kind = bool | None
_MADE: Mapping[Callable[[int, int], int], Mapping[tuple[_Kind, _Kind], _Kind]] = {
    add: {(True, False): True, (False, True): True, (False, False): False},
    sub: {(True, False): True, (True, True): False, (False, False): False},
    mul: {(None, False): False, (False, None): False},
    floordiv: {(False, None): False, (False, False): None},
    mod: {(False, False): False, (True, False): False},
}


def _evaluate_node(node: ast.expr, values: Mapping[str, Value]) -> Value:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _calculate(sub, 0, _evaluate_node(inner, values))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _calculate(_OPERATORS[type(sign)], _evaluate_node(left, values), _evaluate_node(right, values))
    raise ValueError("not covered")


def _calculate(operator: Callable[[int, int], int], one: Value, other: Value) -> int:
    if isinstance(one, str) or isinstance(other, str):
        raise TypeError("it computes with a name that is no number")
    value = operator(int(one), int(other))
    if not isinstance(one, Time) and not isinstance(other, Time):
        return value
    kinds = one.is_clock if isinstance(one, Time) else None, other.is_clock if isinstance(other, Time) else None
    made = _MADE[operator]
    if kinds not in made:
        raise TypeError("it computes with times that do not fit: 9:15 + 30min, 10:00 - 9:15, 2 * 15min, 1h / 15min do")
    kind = made[kinds]
    return value if kind is None else Time.from_seconds(value, is_clock=kind)
