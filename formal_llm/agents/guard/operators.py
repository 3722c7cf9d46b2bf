"""The operators between two values of a condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction

from formal_llm.agents.guard.data import Unsaid, Value, alike, equal, less, moment, number, shown, span, text


def _add(one: Value, other: Value) -> Value:
    return _timed(one, other, 1)


def _subtract(one: Value, other: Value) -> Value:
    return _timed(one, other, -1)


def _timed(one: Value, other: Value, sign: int) -> Value:
    """A sum or a difference, of numbers or of times."""
    kinds = {type(one).__name__, type(other).__name__}
    try:
        if "timedelta" in kinds and not kinds & {"datetime", "date", "str"}:
            return span(one) + sign * span(other)
        if kinds & {"datetime", "date", "timedelta"}:
            if type(other).__name__ == "timedelta":
                return moment(one) + sign * span(other)
            if sign < 0:
                return moment(one) - moment(other)
            return moment(other) + span(one)
    except OverflowError:
        raise Unsaid("a time out of range") from None
    try:
        return number(one) + sign * number(other)
    except Unsaid:
        if sign < 0 and isinstance(one, str) and isinstance(other, str):
            return moment(one) - moment(other)  # two texts that are dates
        raise


def _divide(one: Value, other: Value) -> Value:
    below = number(other)
    if not below:
        raise Unsaid("a division by zero")
    return Fraction(number(one)) / below


def _multiply(one: Value, other: Value) -> Value:
    if type(one).__name__ == "timedelta" or type(other).__name__ == "timedelta":
        length, factor = (one, other) if type(one).__name__ == "timedelta" else (other, one)
        return span(float(number(factor) * Fraction(span(length).total_seconds())))
    return number(one) * number(other)


def _among(value: Value, values: Value) -> bool:
    if not isinstance(values, list | tuple):
        raise Unsaid(f"{shown(values)} is no list")
    unsaid = None
    for one in values:
        try:
            if equal(value, one):
                return True
        except Unsaid as error:
            unsaid = error
    # Of another kind than all of them is of no kind that could be among them.
    if unsaid is not None and all(_differs(value, one) for one in values):
        raise unsaid
    return False


def _differs(one: Value, other: Value) -> bool:
    try:
        alike(one, other)
    except Unsaid:
        return True
    return False


def _contains(whole: Value, part: Value) -> bool:
    return _among(part, whole) if isinstance(whole, list | tuple) else text(part) in text(whole)


#: The operators between two values, from loose to tight: how tightly, and what they say.
OPERATORS: Mapping[str, tuple[int, Callable[[Value, Value], Value]]] = {
    "==": (4, equal),
    "!=": (4, lambda one, other: not equal(one, other)),
    "<": (4, less),
    "<=": (4, lambda one, other: less(one, other) or equal(one, other)),
    ">": (4, lambda one, other: less(other, one)),
    ">=": (4, lambda one, other: less(other, one) or equal(one, other)),
    "in": (4, _among),
    "contains": (4, _contains),
    "starts with": (4, lambda one, other: text(one).startswith(text(other))),
    "ends with": (4, lambda one, other: text(one).endswith(text(other))),
    "like": (4, lambda one, other: fnmatchcase(text(one), text(other))),
    "+": (5, _add),
    "-": (5, _subtract),
    "*": (6, _multiply),
    "/": (6, _divide),
}
