"""The operators between two values of a condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction

from formal_llm.agents.guard.data import (
    Undetermined,
    Value,
    format_value,
    is_equal,
    is_less,
    make_comparable,
    to_duration,
    to_moment,
    to_number,
    to_text,
)


def _add_values(one: Value, other: Value) -> Value:
    return _add_signed(one, other, 1)


def _subtract_values(one: Value, other: Value) -> Value:
    return _add_signed(one, other, -1)


def _add_signed(one: Value, other: Value, sign: int) -> Value:
    """A sum or a difference, of numbers or of times."""
    kinds = {type(one).__name__, type(other).__name__}
    try:
        if "timedelta" in kinds and not kinds & {"datetime", "date", "str"}:
            return to_duration(one) + sign * to_duration(other)
        if kinds & {"datetime", "date", "timedelta"}:
            if type(other).__name__ == "timedelta":
                return to_moment(one) + sign * to_duration(other)
            if sign < 0:
                return to_moment(one) - to_moment(other)
            return to_moment(other) + to_duration(one)
    except OverflowError:
        raise Undetermined("a time out of range") from None
    try:
        return to_number(one) + sign * to_number(other)
    except Undetermined:
        if sign < 0 and isinstance(one, str) and isinstance(other, str):
            return to_moment(one) - to_moment(other)  # two texts that are dates
        raise


def _divide_numbers(one: Value, other: Value) -> Value:
    below = to_number(other)
    if not below:
        raise Undetermined("a division by zero")
    return Fraction(to_number(one)) / below


def _multiply_values(one: Value, other: Value) -> Value:
    if type(one).__name__ == "timedelta" or type(other).__name__ == "timedelta":
        length, factor = (one, other) if type(one).__name__ == "timedelta" else (other, one)
        return to_duration(float(to_number(factor) * Fraction(to_duration(length).total_seconds())))
    return to_number(one) * to_number(other)


def _is_among(value: Value, values: Value) -> bool:
    if not isinstance(values, list | tuple):
        raise Undetermined(f"{format_value(values)} is no list")
    unsaid = None
    for one in values:
        try:
            if is_equal(value, one):
                return True
        except Undetermined as error:
            unsaid = error
    # Of another kind than all of them is of no kind that could be among them.
    if unsaid is not None and all(_is_incomparable(value, one) for one in values):
        raise unsaid
    return False


def _is_incomparable(one: Value, other: Value) -> bool:
    try:
        make_comparable(one, other)
    except Undetermined:
        return True
    return False


def _has_part(whole: Value, part: Value) -> bool:
    return _is_among(part, whole) if isinstance(whole, list | tuple) else to_text(part) in to_text(whole)


#: The operators between two values, from loose to tight: how tightly, and what they say.
OPERATORS: Mapping[str, tuple[int, Callable[[Value, Value], Value]]] = {
    "==": (4, is_equal),
    "!=": (4, lambda one, other: not is_equal(one, other)),
    "<": (4, is_less),
    "<=": (4, lambda one, other: is_less(one, other) or is_equal(one, other)),
    ">": (4, lambda one, other: is_less(other, one)),
    ">=": (4, lambda one, other: is_less(other, one) or is_equal(one, other)),
    "in": (4, _is_among),
    "contains": (4, _has_part),
    "starts with": (4, lambda one, other: to_text(one).startswith(to_text(other))),
    "ends with": (4, lambda one, other: to_text(one).endswith(to_text(other))),
    "like": (4, lambda one, other: fnmatchcase(to_text(one), to_text(other))),
    "+": (5, _add_values),
    "-": (5, _subtract_values),
    "*": (6, _multiply_values),
    "/": (6, _divide_numbers),
}
