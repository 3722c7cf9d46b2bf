"""The values that conditions compare: exact numbers, texts, dates, times and durations, as JSON and people write them.

Numbers are exact. A JSON number has its written value (0.1 is one tenth), and so does a text that contains a number: a
model cannot evade a limit by sending "500" for 500. Incomparable values are not an error but :class:`Undetermined`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, cast

from formal_llm.planning.json_data import JSON

#: The value of an expression.
Value = object

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(d|days?|h|min|m|s)")
_UNITS = {"d": 86400, "day": 86400, "days": 86400, "h": 3600, "min": 60, "m": 60, "s": 1}
#: The maximum number of digits of a sensible argument.
_DIGITS = 100
_SHOWN = 40


class Undetermined(Exception):
    """The value of an expression is undetermined: an argument is missing, or it is not a number, not a date, ..."""


def format_value(value: Value) -> str:
    """Format a value for messages."""
    if isinstance(value, Fraction | datetime | date | time | timedelta):
        return write_constant(value)
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def write_constant(value: Value) -> str:
    """Write a constant in the notation."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'
    if isinstance(value, Fraction):
        return _format_decimal(value)
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, time):
        return value.isoformat("seconds" if value.second else "minutes")
    return str(value)


def _format_decimal(value: Fraction) -> str:
    """Format a fraction as a decimal, which all written numbers are."""
    places, power = 0, 1
    while power % value.denominator:
        places += 1
        power *= 10
        if places > _DIGITS:
            return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * (power // value.denominator)).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def format_duration(value: timedelta) -> str:
    """Format a duration in the largest unit of which it is a multiple."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if value and value % timedelta(seconds=size) == timedelta():
            return f"{value // timedelta(seconds=size)}{unit}"
    return f"{_format_decimal(Fraction(value // timedelta(microseconds=1), 1_000_000))}s"


def read_duration(text: str) -> timedelta:
    """Read a duration from a text such as ``10min``.

    Raises:
        Undetermined: the text is not a duration.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise Undetermined(f"{format_value(text)} is no duration")
    try:
        return timedelta(microseconds=int(Fraction(found[1]) * _UNITS[found[2]] * 1_000_000))
    except OverflowError:
        raise Undetermined(f"{format_value(text)} is too long") from None


def to_number(value: Value) -> int | Fraction:
    """Convert a value to an exact number.

    Raises:
        Undetermined: it is not a number.
    """
    if type(value) is int:
        if value.bit_length() > 4 * _DIGITS:
            raise Undetermined("a number with too many digits")
        return value
    if isinstance(value, Fraction):
        return value
    if isinstance(value, float) and isfinite(value):
        return Fraction(Decimal(repr(value)))
    if isinstance(value, str) and len(value) <= _DIGITS and _NUMBER.fullmatch(value.strip()):
        return Fraction(value.strip())
    raise Undetermined(f"{format_value(value)} is no number")


def to_moment(value: Value) -> datetime:
    """Convert a value to a point in time, in UTC if it has no time zone.

    Raises:
        Undetermined: it is not a date.
    """
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str):
        try:
            return to_moment(datetime.fromisoformat(value.strip()))
        except ValueError:
            pass
    raise Undetermined(f"{format_value(value)} is no date")


def to_day(value: Value) -> date:
    """Convert a value to the day that it is or belongs to.

    Raises:
        Undetermined: it is not a date.
    """
    return value if type(value) is date else to_moment(value).date()


def to_clock_time(value: Value) -> time:
    """Convert a value to a time of day.

    Raises:
        Undetermined: it is not a time.
    """
    if isinstance(value, time):
        return value
    if isinstance(value, str):
        try:
            return time.fromisoformat(value.strip())
        except ValueError:
            pass
    return to_moment(value).timetz().replace(tzinfo=None)


def to_duration(value: Value) -> timedelta:
    """Convert a value to a duration; a plain number counts as seconds.

    Raises:
        Undetermined: it is not a duration.
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return read_duration(value)
    try:
        return timedelta(microseconds=int(to_number(value) * 1_000_000))
    except OverflowError:
        raise Undetermined(f"{format_value(value)} is too long for a duration") from None


def is_number(value: Value) -> bool:
    """Return whether a value is a number of JSON or of an expression; a text that contains one is not."""
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)


def make_comparable(one: Value, other: Value) -> tuple[Value, Value]:
    """Convert two values to a common type for comparison.

    Raises:
        Undetermined: one cannot be converted to the type of the other.
    """
    if type(one) is int and type(other) is int:
        return to_number(one), to_number(other)
    if isinstance(one, timedelta) or isinstance(other, timedelta):
        return to_duration(one), to_duration(other)
    if is_number(one) or is_number(other):
        return to_number(one), to_number(other)
    if isinstance(one, time) or isinstance(other, time):
        return to_clock_time(one), to_clock_time(other)
    if type(one) is date or type(other) is date:
        return to_day(one), to_day(other)
    if isinstance(one, datetime) or isinstance(other, datetime):
        return to_moment(one), to_moment(other)
    return one, other


def is_equal(one: Value, other: Value) -> bool:
    """Return whether two values are equal.

    Raises:
        Undetermined: their types cannot be compared.
    """
    if one is None or other is None:
        return one is other
    if isinstance(one, bool) or isinstance(other, bool):
        if type(one) is type(other):
            return one is other
        raise Undetermined(f"{format_value(one if not isinstance(one, bool) else other)} is no yes or no")
    first, second = make_comparable(one, other)
    return bool(first == second)


def is_less(one: Value, other: Value) -> bool:
    """Return whether one value is less than another.

    Raises:
        Undetermined: they have no order.
    """
    first, second = make_comparable(one, other)
    if isinstance(first, str) and isinstance(second, str):
        for read in (to_number, to_moment):
            try:
                return bool(read(first) < read(second))  # type: ignore[operator]  # both are numbers, or both moments
            except Undetermined:
                continue
        raise Undetermined(f"{format_value(one)} and {format_value(other)} are texts, which have no order")
    if isinstance(first, bool | list | tuple | dict) or (
        type(first) is not type(second) and not (is_number(first) and is_number(second))
    ):
        raise Undetermined(f"{format_value(one)} and {format_value(other)} have no order")
    try:
        return bool(first < second)  # type: ignore[operator]  # values without an order raise
    except TypeError:
        raise Undetermined(f"{format_value(one)} and {format_value(other)} have no order") from None


def to_text(value: Value) -> str:
    """Return a value that is a text.

    Raises:
        Undetermined: it is not a text.
    """
    if isinstance(value, str):
        return value
    raise Undetermined(f"{format_value(value)} is no text")


#: The kinds of values that JSON does not have: the tag, how one is written, and how it is read.
_TAGGED: Mapping[type, tuple[str, Callable[[Any], str], Callable[[str], Value]]] = {
    Fraction: ("number", str, Fraction),
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    timedelta: (
        "microseconds",
        lambda value: str(value // timedelta.resolution),
        lambda text: timedelta(microseconds=int(text)),
    ),
}
_READERS = {tag: read for tag, _, read in _TAGGED.values()}


def write_value(value: Value) -> JSON:
    """Convert a value to JSON.

    Raises:
        TypeError: it is of no kind that conditions compare.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [write_value(one) for one in value]
    if isinstance(value, Mapping):
        return {"object": {str(name): write_value(one) for name, one in value.items()}}
    if type(value) not in _TAGGED:
        raise TypeError(f"{format_value(value)} is no value of a condition")
    tag, write, _ = _TAGGED[type(value)]
    return {tag: write(value)}


def read_value(data: JSON) -> Value:
    """Read a value that :func:`write_value` has written.

    Raises:
        KeyError, TypeError, ValueError: the data is no such value.
    """
    if isinstance(data, list):
        return [read_value(one) for one in data]
    if not isinstance(data, Mapping):
        return data
    ((tag, inner),) = data.items()
    if isinstance(inner, Mapping) and tag == "object":
        return {name: read_value(one) for name, one in inner.items()}
    return _READERS[tag](cast("str", inner))
