"""The published tables: their columns, and how a line of one becomes a row, with the place of what is wrong.

A value that is missing sets its line aside, as the published tools do, and is reported. A value of the wrong kind is an
error: then the file is probably another one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Generic, TypeAlias, TypeVar

from formal_llm.errors import NotationError, did_you_mean
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Money, Restaurant, Road

R_co = TypeVar("R_co", covariant=True)
#: What a table may hold: texts of a CSV file, values of a JSON text.
Value: TypeAlias = "str | int | float | None"
#: What stands for a value that is missing.
MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A", "None"})
_CLOCK = re.compile(r"(?:[01]?\d|2[0-4]):[0-5]\d")
_KILOMETRES = re.compile(r"(\d{1,3}(?:,\d{3})*|\d+)(\.\d+)? km")
_METRES = re.compile(r"(\d+) m")


@dataclass(frozen=True)
class RowProblem:
    """An unusual line of a table.

    Attributes:
        source: the file, or the table of a reference information.
        line: its line in the file, or its number in the table, from 1.
        column: the column that is unusual; None where it is the whole line.
        problem: what is unusual, in words.
        kept: whether the line is in the world nevertheless.
    """

    source: str
    line: int
    column: str | None
    problem: str
    kept: bool = False

    def __str__(self) -> str:
        where = f", column {self.column!r}" if self.column else ""
        return f"{self.source}:{self.line}{where}: {self.problem}; {'kept' if self.kept else 'left out'}"


class MissingValue(Exception):
    """A cell that a row cannot do without is empty."""

    def __init__(self, column: str) -> None:
        self.column = column
        super().__init__(column)


class WrongValue(Exception):
    """A cell holds something else than its column should."""

    def __init__(self, column: str, value: Value, expected: str) -> None:
        self.column, self.value, self.expected = column, value, expected
        super().__init__(column)


class Cells:
    """The cells of one line, read by the name of their column."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def maybe(self, column: str) -> Value:
        """What stands there; None where the table lacks the column.

        Raises:
            MissingValue: the table has the column, and the cell is empty.
        """
        if column not in self._values:
            return None
        value = self._values[column]
        if value is None or (isinstance(value, str) and value.strip() in MISSING):
            raise MissingValue(column)
        if isinstance(value, float) and math.isnan(value):
            raise MissingValue(column)
        return value

    def text(self, column: str) -> str:
        """A text, as it stands there: names with blanks around them are named so in plans."""
        value = self.maybe(column)
        if value is None:
            raise MissingValue(column)
        return str(value)

    def text_or_none(self, column: str) -> str | None:
        """A text, or None where the table lacks the column."""
        value = self.maybe(column)
        return None if value is None else str(value)

    def number(self, column: str) -> float:
        """A number that is finite."""
        value = self.maybe(column)
        if value is None:
            raise MissingValue(column)
        try:
            number = float(value)
        except ValueError:
            raise WrongValue(column, value, "a number") from None
        if not math.isfinite(number):
            raise WrongValue(column, value, "a number")
        return number

    def number_or_none(self, column: str) -> float | None:
        """A number, or None where the table lacks the column."""
        return None if self.maybe(column) is None else self.number(column)

    def whole(self, column: str, least: int) -> int:
        """A whole number, which may be written ``2.0``."""
        number = self.number(column)
        if number != int(number) or number < least:
            raise WrongValue(column, self._values[column], f"a whole number of at least {least}")
        return int(number)

    def money(self, column: str) -> Money:
        """A price: not below zero."""
        self.number(column)
        return money(self._values[column], column)

    def day(self, column: str) -> date:
        """A day of the calendar, ``2022-03-16``."""
        text = self.text(column)
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise WrongValue(column, text, "a day of the calendar such as 2022-03-16") from None

    def clock(self, column: str) -> str:
        """A clock time, ``15:40``."""
        text = self.text(column)
        if not _CLOCK.fullmatch(text):
            raise WrongValue(column, text, "a clock time such as 15:40")
        return text


def money(value: Value, column: str) -> Money:
    """A price in dollars, a whole number where it is one.

    Raises:
        WrongValue: it is no number, or below zero.
    """
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        raise WrongValue(column, value, "a price in dollars") from None
    if not amount.is_finite() or amount < 0:
        raise WrongValue(column, value, "a price in dollars, not below zero")
    return int(amount) if amount == int(amount) else amount


@dataclass(frozen=True)
class Table(Generic[R_co]):
    """One of the published tables.

    Attributes:
        name: what it holds, in words.
        columns: its columns, in the order of the published tools.
        needed: the columns without which there is no row.
        make: the row of a line.
    """

    name: str
    columns: tuple[str, ...]
    needed: tuple[str, ...]
    make: Callable[[Cells], R_co]

    def check_header(self, header: Iterable[str], source: str, line: int = 1) -> None:
        """Raise where a column is missing.

        Raises:
            NotationError: with the file, the columns there are, and the nearest name.
        """
        there = [name for name in header if name]
        missing = [name for name in self.needed if name not in there]
        if not missing:
            return
        known = [column for column in self.columns if column in there]
        near = did_you_mean(missing[0], [name for name in there if name not in self.columns])
        way_out = (
            f"is {near!r} that column? Then rename it."
            if near
            else f"is this the table of {self.name}? Its columns are: {', '.join(self.columns)}."
            if not known
            else f"give the table that column; it has: {', '.join(there)}."
        )
        listed = ", ".join(repr(name) for name in missing)
        raise NotationError(
            f"the table of {self.name} has no column {listed}", file=source, line=line, suggestion=way_out
        )

    def rows(
        self, lines: Iterable[tuple[int, Mapping[str, Value]]], source: str, problems: list[RowProblem]
    ) -> Iterator[R_co]:
        """The rows of a table's lines; what is left out is put down in ``problems``.

        Raises:
            NotationError: a value of the wrong kind, with its line and column.
        """
        for line, values in lines:
            try:
                yield self.make(Cells(values))
            except MissingValue as missing:
                problems.append(RowProblem(source, line, missing.column, "there is no value"))
            except WrongValue as wrong:
                raise wrong_value(wrong, source, line) from None


def wrong_value(wrong: WrongValue, source: str, line: int) -> NotationError:
    """The error for a value of the wrong kind: the place, the column, what it should be."""
    return NotationError(
        f"column {wrong.column!r} should be {wrong.expected}, not {str(wrong.value)[:80]!r}",
        file=source,
        line=line,
        suggestion="correct the value, or leave it empty: then the line is left out",
    )


def kilometres(cells: Cells) -> tuple[str | None, float | None]:
    """A distance as it is printed, and as a number.

    Raises:
        WrongValue: it is no distance in kilometres.
    """
    try:
        text = cells.text("distance")
    except MissingValue:
        return None, None
    if _METRES.fullmatch(text):
        return text, int(text[:-2]) / 1000
    if not _KILOMETRES.fullmatch(text):
        raise WrongValue("distance", text, "a distance such as 1,144 km")
    return text, float(text[:-3].replace(",", ""))


def _flight(cells: Cells) -> Flight:
    return Flight(
        cells.text("Flight Number"),
        cells.text("OriginCityName"),
        cells.text("DestCityName"),
        cells.day("FlightDate"),
        cells.clock("DepTime"),
        cells.clock("ArrTime"),
        cells.money("Price"),
        cells.text_or_none("ActualElapsedTime"),
        cells.number_or_none("Distance"),
    )


def _accommodation(cells: Cells) -> Accommodation:
    return Accommodation(
        cells.text("NAME"),
        cells.text("city"),
        cells.money("price"),
        cells.text("room type"),
        tuple(cells.text("house_rules").split(" & ")),
        cells.whole("minimum nights", 0),
        cells.whole("maximum occupancy", 1),
        cells.number_or_none("review rate number"),
    )


def _restaurant(cells: Cells) -> Restaurant:
    return Restaurant(
        cells.text("Name"),
        cells.text("City"),
        cells.money("Average Cost"),
        tuple(cells.text("Cuisines").split(", ")),
        cells.number_or_none("Aggregate Rating"),
    )


def _attraction(cells: Cells) -> Attraction:
    return Attraction(
        cells.text("Name"),
        cells.text("City"),
        cells.number_or_none("Latitude"),
        cells.number_or_none("Longitude"),
        cells.text_or_none("Address"),
        cells.text_or_none("Phone"),
        cells.text_or_none("Website"),
    )


def _road(cells: Cells) -> Road:
    distance, length = kilometres(cells)
    try:
        duration = cells.text_or_none("duration")
    except MissingValue:
        duration = None
    return Road(cells.text("origin"), cells.text("destination"), duration, distance, length)


FLIGHTS: Table[Flight] = Table(
    "flights",
    ("Flight Number", "Price", "DepTime", "ArrTime", "ActualElapsedTime", "FlightDate", "OriginCityName",
     "DestCityName", "Distance"),
    ("Flight Number", "Price", "DepTime", "ArrTime", "FlightDate", "OriginCityName", "DestCityName"),
    _flight,
)  # fmt: skip
ACCOMMODATIONS: Table[Accommodation] = Table(
    "accommodations",
    ("NAME", "price", "room type", "house_rules", "minimum nights", "maximum occupancy", "review rate number", "city"),
    ("NAME", "price", "room type", "house_rules", "minimum nights", "maximum occupancy", "city"),
    _accommodation,
)
RESTAURANTS: Table[Restaurant] = Table(
    "restaurants",
    ("Name", "Average Cost", "Cuisines", "Aggregate Rating", "City"),
    ("Name", "Average Cost", "Cuisines", "City"),
    _restaurant,
)
ATTRACTIONS: Table[Attraction] = Table(
    "attractions",
    ("Name", "Latitude", "Longitude", "Address", "Phone", "Website", "City"),
    ("Name", "City"),
    _attraction,
)
ROADS: Table[Road] = Table(
    "distances",
    ("origin", "destination", "cost", "duration", "distance"),
    ("origin", "destination", "duration", "distance"),
    _road,
)
