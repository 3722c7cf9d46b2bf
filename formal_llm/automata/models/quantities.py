"""Quantities: exact numbers, money and times, as people write them.

``15`` and ``12.50`` are plain numbers, ``1h30``, ``90min`` or ``90m``, and ``45s`` are durations, ``€12.50`` and
``12.50EUR`` are money. All are exact: whole numbers or decimals, never binary fractions. An amount keeps its unit, so
it is printed as it was meant: ``90min`` is shown as ``1h30``. One quantity has one unit; see :func:`unit_problem`.

A time of day, ``9:15``, is no amount: it is a point on a clock, here the seconds since midnight. ``25:00`` is one
o'clock of the next day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Self

#: The unit of durations; their value is in seconds.
TIME = "time"
#: Longer numbers are refused: nothing is that much.
DIGITS = 100

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+)s)?|(\d+)h(\d\d)")
_PART = re.compile(r"(\d+\.\d+)(h|min|m|s)")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_MONEY = re.compile(r"([€$£¥])(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)(?:([€$£¥])|([A-Z]{3}))")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_SECONDS = {"h": 3600, "min": 60, "m": 60, "s": 1}
#: Days on one clock: its hours have two digits.
_LAST = 100 * 3600


class Amount(Decimal):
    """A decimal with a unit: the seconds of a duration, or money. Equal to what has the same value and unit.

    Attributes:
        unit: ``"time"`` of a duration, else the sign or the three letters of a currency.
    """

    __slots__ = ("unit",)
    unit: str

    def __new__(cls, value: int | str | Decimal, unit: str) -> Self:
        """A number as an amount of this unit."""
        made = super().__new__(cls, value)
        made.unit = unit
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Amount):
            return False
        return self.unit == other.unit and Decimal.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.unit, Decimal.__hash__(self)))

    def __str__(self) -> str:
        return _format_duration(self) if self.unit == TIME else _format_money(self)

    def __format__(self, spec: str, /) -> str:  # type: ignore[override]  # a Decimal's has a private parameter more
        return super().__format__(spec) if spec else str(self)

    def __repr__(self) -> str:
        return f"amount({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Amount, (format(Decimal(self), "f"), self.unit)


#: What a terminal may carry, and a sum be bounded by.
Number = int | float | Decimal
#: What can be made a number: see :func:`amount`.
NumberLike = Number | str | timedelta


def amount(value: NumberLike) -> int | Decimal:
    """An amount as it is kept: whole numbers as ``int``, all others as exact decimals, with their unit.

    Args:
        value: a number, a ``timedelta``, or a text such as ``"1h30"``, ``"12.50"`` or ``"€12.50"``.

    Raises:
        ValueError: it is no amount; the message suggests what to write.
        TypeError: it is neither a number nor a text nor a duration.
    """
    if isinstance(value, str):
        return read_amount(value)
    if isinstance(value, timedelta):
        return _make_seconds(Decimal(value // timedelta(microseconds=1)) / 1_000_000, str(value))
    if isinstance(value, Amount) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float):
        return _plain_number(Decimal(repr(value)))
    if isinstance(value, Decimal):
        return _plain_number(value)
    raise TypeError(f"an amount is a number, a duration or a text such as '1h30', not {value!r}")


def is_finite(value: Number) -> bool:
    """Whether a number is one that can be summed and kept to: finite, and from 0."""
    value = Decimal(value)
    return value.is_finite() and value >= 0


def _plain_number(value: Decimal) -> int | Decimal:
    """A plain decimal; a whole one is an ``int`` unless it shows its cents, as 12.00 does."""
    if not value.is_finite():
        return value
    return int(value) if value == value.to_integral_value() and int(value.as_tuple().exponent) >= 0 else value


def read_amount(text: str) -> int | Decimal:
    """The amount that a text writes: ``15``, ``12.50``, ``1h30``, ``90min``, ``€12.50``.

    Raises:
        ValueError: it is none; the message suggests what was meant, where that can be guessed.
    """
    if len(text) > DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    if text.isascii() and text.isdigit():
        return int(text)
    if _PLAIN.fullmatch(text) and text.isascii():
        return Decimal(text)
    if (found := _DURATION.fullmatch(text)) is not None and text:
        hours, minutes, seconds, full, rest = (Decimal(part or 0) for part in found.groups())
        if found[5] is not None and rest >= 60:
            raise ValueError(f"{text!r} has {found[5]} minutes in an hour; there are 60")
        return Amount((hours + full) * 3600 + (minutes + rest) * 60 + seconds, TIME)
    if (part := _PART.fullmatch(text)) is not None:
        return _make_seconds(Decimal(part[1]) * _SECONDS[part[2]], text)
    if (money := _MONEY.fullmatch(text)) is not None:
        return Amount(money[2] or money[3], money[1] or money[4] or money[5])
    return _read_odd_amount(text)


def _read_odd_amount(text: str) -> int | Decimal:
    """What is no amount as people write them: another way to write a number, or an error."""
    if re.fullmatch(r"\d+,\d+(?:h|min|s|€)?", text):
        raise ValueError(f"{text!r} has a comma for a decimal point; write {text.replace(',', '.')}")
    if _CLOCK.fullmatch(text):
        hours, minutes, *_ = text.split(":")
        raise ValueError(f"{text!r} is a time of day; how long something takes is written {hours}h{minutes}")
    if re.fullmatch(r"-\S*\d\S*", text):
        raise ValueError(f"{text} is not a number from 0")
    try:
        value = Decimal(text)
    except InvalidOperation:
        unit = re.fullmatch(r"(\d+(?:\.\d+)?)([^\W\d_]+)", text)
        message = f"{text!r} is not a number"
        if unit and unit[2].casefold().startswith(("h", "m", "s")):
            message += f"; times are written 1h30, {unit[1]}h, {unit[1]}min or {unit[1]}s"
        raise ValueError(message) from None
    if not value.is_finite() or abs(value.adjusted()) > DIGITS:
        raise ValueError(f"{text} is not a number from 0")
    return int(value) if value == value.to_integral_value() else value


def _make_seconds(value: Decimal, text: str) -> Amount:
    if value != value.to_integral_value():
        raise ValueError(f"{text!r} has a fraction of a second; times are in whole seconds")
    return Amount(int(value), TIME)


# -- writing ----------------------------------------------------------------------------------------------------------


def format_amount(value: Number) -> str:
    """An amount as it is written: what :func:`read_amount` reads back as an equal one."""
    if isinstance(value, Amount):
        return str(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _format_duration(value: Decimal) -> str:
    seconds = int(value)
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    if rest:
        return (f"{hours}h" if hours else "") + (f"{minutes}min" if minutes else "") + f"{rest}s"
    if hours:
        return f"{hours}h{minutes:02}" if minutes else f"{hours}h"
    return f"{minutes}min"


def _format_money(value: Amount) -> str:
    number = format(Decimal(value), "f")
    return f"{number}{value.unit}" if value.unit.isalpha() else f"{value.unit}{number}"


# -- times of day -----------------------------------------------------------------------------------------------------


def read_clock(text: str) -> int:
    """The seconds since midnight of a time of day, such as ``9:15``.

    Raises:
        ValueError: it is no time of day, or has a time zone.
    """
    found = _CLOCK.fullmatch(text)
    if found is None:
        zone = re.fullmatch(r"(\d{1,2}:\d\d(?::\d\d)?) ?(?:Z|[A-Z]{3,4}|[+-]\d\d(?::?\d\d)?)", text)
        if zone is not None:
            raise ValueError(f"{text!r} has a time zone; all times are those of one clock: write {zone[1]}")
        near = re.fullmatch(r"(\d{1,2})(?:[.h](\d\d)|h)?", text)
        hint = f"; write {near[1]}:{near[2] or '00'}" if near else "; write, for instance, 9:15"
        raise ValueError(f"{text!r} is no time of day{hint}")
    if int(found[2]) >= 60 or int(found[3] or 0) >= 60:
        raise ValueError(f"{text!r} is no time of day: an hour has 60 minutes, from 00 to 59")
    return int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)


def seconds_since_midnight(value: str | time | int) -> int:
    """A time of day in seconds since midnight.

    Args:
        value: a text such as ``"9:15"``, a ``datetime.time``, or the seconds themselves.

    Raises:
        ValueError: it is no time of day.
    """
    if isinstance(value, str):
        return read_clock(value)
    if isinstance(value, time):
        if value.microsecond or value.tzinfo is not None:
            raise ValueError(f"{value} is no time of day in whole seconds, without a time zone")
        return (value.hour * 60 + value.minute) * 60 + value.second
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LAST:
        raise ValueError(f"a time of day is a text such as '9:15', not {value!r}")
    return value


def clock_text(seconds: int) -> str:
    """A time of day: ``9:15``; with seconds where there are any, ``9:15:30``."""
    text = f"{seconds // 3600}:{seconds // 60 % 60:02}"
    return f"{text}:{seconds % 60:02}" if seconds % 60 else text


# -- one unit for a quantity ------------------------------------------------------------------------------------------


def unit_of(value: Number) -> str:
    """The unit of an amount; empty for a plain number."""
    return value.unit if isinstance(value, Amount) else ""


def unit_problem(quantity: str, amounts: Iterable[tuple[str, Number]]) -> str | None:
    """What is wrong where the amounts of one quantity have several units; None where they have one.

    Args:
        quantity: its name.
        amounts: who has it, and how much; 0 has every unit.
    """
    first: tuple[str, Number] | None = None
    for who, value in amounts:
        if not value:
            continue
        if first is None:
            first = who, value
        elif unit_of(value) != unit_of(first[1]):
            one, other = (f"{format_amount(number)} ({name})" for name, number in (first, (who, value)))
            return f"{quantity} is given in two units: {one} and {other}; write both in the same"
    return None


def amounts_by_quantity(numbers: Mapping[str, Mapping[str, Number]]) -> dict[str, list[tuple[str, Number]]]:
    """For each quantity who carries it, and how much."""
    found: dict[str, list[tuple[str, Number]]] = {}
    for name, amounts in numbers.items():
        for quantity, value in amounts.items():
            found.setdefault(quantity, []).append((name, value))
    return found
