"""The published tables: their columns and the conversion of their lines to rows, with the places of errors.

A line with a missing value is left out, as in the published tools, and reported. A value of the wrong type is an
error: the file is probably a different one.
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
#: The value of a cell: a text from a CSV file, or a JSON value.
Value: TypeAlias = "str | int | float | None"
#: The texts that denote a missing value.
MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A", "None"})
_CLOCK = re.compile(r"(?:[01]?\d|2[0-4]):[0-5]\d")
_KILOMETRES = re.compile(r"(\d{1,3}(?:,\d{3})*|\d+)(\.\d+)? km")
_METRES = re.compile(r"(\d+) m")


@dataclass(frozen=True)
class RowProblem:
    """An unusual line of a table.

    Attributes:
        source: the file, or the table of the reference information.
        line: its line in the file, or its number in the table, from 1.
        column: the unusual column; None for the whole line.
        problem: a description of what is unusual.
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
    """A required cell is empty."""

    def __init__(self, column: str) -> None:
        self.column = column
        super().__init__(column)


class WrongValue(Exception):
    """A cell contains a value that does not fit its column."""

    def __init__(self, column: str, value: Value, expected: str) -> None:
        self.column, self.value, self.expected = column, value, expected
        super().__init__(column)


class Cells:
    """The cells of one line, by the names of their columns."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def read_value(self, column: str) -> Value:
        """Return the value of a cell; None if the table lacks the column.

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

    def read_text(self, column: str) -> str:
        """Read a text unchanged: plans keep the blanks around names."""
        value = self.read_value(column)
        if value is None:
            raise MissingValue(column)
        return str(value)

    def text_or_none(self, column: str) -> str | None:
        """Read a text; None if the table lacks the column."""
        value = self.read_value(column)
        return None if value is None else str(value)

    def read_number(self, column: str) -> float:
        """Read a finite number."""
        value = self.read_value(column)
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
        """Read a number; None if the table lacks the column."""
        return None if self.read_value(column) is None else self.read_number(column)

    def read_whole(self, column: str, least: int) -> int:
        """Read a whole number, which may be written as ``2.0``."""
        number = self.read_number(column)
        if number != int(number) or number < least:
            raise WrongValue(column, self._values[column], f"a whole number of at least {least}")
        return int(number)

    def read_money(self, column: str) -> Money:
        """Read a price, which must not be negative."""
        self.read_number(column)
        return read_money(self._values[column], column)

    def read_day(self, column: str) -> date:
        """Read a date, such as ``2022-03-16``."""
        text = self.read_text(column)
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise WrongValue(column, text, "a day of the calendar such as 2022-03-16") from None

    def read_clock(self, column: str) -> str:
        """Read a time of day, such as ``15:40``."""
        text = self.read_text(column)
        if not _CLOCK.fullmatch(text):
            raise WrongValue(column, text, "a clock time such as 15:40")
        return text


def read_money(value: Value, column: str) -> Money:
    """Read a price in dollars, as an ``int`` if it is whole.

    Raises:
        WrongValue: it is not a number, or is negative.
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
        name: a name for its contents.
        columns: its columns, in the order of the published tools.
        needed: the required columns.
        make: converts the cells of a line to a row.
    """

    name: str
    columns: tuple[str, ...]
    needed: tuple[str, ...]
    make: Callable[[Cells], R_co]

    def check_header(self, header: Iterable[str], source: str, line: int = 1) -> None:
        """Check that no required column is missing.

        Raises:
            NotationError: a column is missing; the error names the file, the existing columns, and the nearest name.
        """
        present = [name for name in header if name]
        missing = [name for name in self.needed if name not in present]
        if not missing:
            return
        known = [column for column in self.columns if column in present]
        nearest = did_you_mean(missing[0], [name for name in present if name not in self.columns])
        suggestion = (
            f"is {nearest!r} that column? Then rename it."
            if nearest
            else f"is this the table of {self.name}? Its columns are: {', '.join(self.columns)}."
            if not known
            else f"give the table that column; it has: {', '.join(present)}."
        )
        listed = ", ".join(repr(name) for name in missing)
        raise NotationError(
            f"the table of {self.name} has no column {listed}", file=source, line=line, suggestion=suggestion
        )

    def read_rows(
        self, lines: Iterable[tuple[int, Mapping[str, Value]]], source: str, problems: list[RowProblem]
    ) -> Iterator[R_co]:
        """Convert the lines of a table to rows, and record the lines that are left out in ``problems``.

        Raises:
            NotationError: a value has the wrong type; the error names line and column.
        """
        for line, values in lines:
            try:
                yield self.make(Cells(values))
            except MissingValue as missing:
                problems.append(RowProblem(source, line, missing.column, "there is no value"))
            except WrongValue as wrong:
                raise wrong_value(wrong, source, line) from None


def wrong_value(wrong: WrongValue, source: str, line: int) -> NotationError:
    """Create the error for a value of the wrong type: its place, its column, and what it should be."""
    return NotationError(
        f"column {wrong.column!r} should be {wrong.expected}, not {str(wrong.value)[:80]!r}",
        file=source,
        line=line,
        suggestion="correct the value, or leave it empty: then the line is left out",
    )


def read_kilometres(cells: Cells) -> tuple[str | None, float | None]:
    """Read a distance, as printed and as a number.

    Raises:
        WrongValue: it is not a distance in kilometres.
    """
    try:
        text = cells.read_text("distance")
    except MissingValue:
        return None, None
    if _METRES.fullmatch(text):
        return text, int(text[:-2]) / 1000
    if not _KILOMETRES.fullmatch(text):
        raise WrongValue("distance", text, "a distance such as 1,144 km")
    return text, float(text[:-3].replace(",", ""))


def _read_flight(cells: Cells) -> Flight:
    return Flight(
        cells.read_text("Flight Number"),
        cells.read_text("OriginCityName"),
        cells.read_text("DestCityName"),
        cells.read_day("FlightDate"),
        cells.read_clock("DepTime"),
        cells.read_clock("ArrTime"),
        cells.read_money("Price"),
        cells.text_or_none("ActualElapsedTime"),
        cells.number_or_none("Distance"),
    )


def _read_accommodation(cells: Cells) -> Accommodation:
    return Accommodation(
        cells.read_text("NAME"),
        cells.read_text("city"),
        cells.read_money("price"),
        cells.read_text("room type"),
        tuple(cells.read_text("house_rules").split(" & ")),
        cells.read_whole("minimum nights", 0),
        cells.read_whole("maximum occupancy", 1),
        cells.number_or_none("review rate number"),
    )


def _read_restaurant(cells: Cells) -> Restaurant:
    return Restaurant(
        cells.read_text("Name"),
        cells.read_text("City"),
        cells.read_money("Average Cost"),
        tuple(cells.read_text("Cuisines").split(", ")),
        cells.number_or_none("Aggregate Rating"),
    )


def _read_attraction(cells: Cells) -> Attraction:
    return Attraction(
        cells.read_text("Name"),
        cells.read_text("City"),
        cells.number_or_none("Latitude"),
        cells.number_or_none("Longitude"),
        cells.text_or_none("Address"),
        cells.text_or_none("Phone"),
        cells.text_or_none("Website"),
    )


def _read_road(cells: Cells) -> Road:
    distance, length = read_kilometres(cells)
    try:
        duration = cells.text_or_none("duration")
    except MissingValue:
        duration = None
    return Road(cells.read_text("origin"), cells.read_text("destination"), duration, distance, length)


FLIGHTS: Table[Flight] = Table(
    "flights",
    ("Flight Number", "Price", "DepTime", "ArrTime", "ActualElapsedTime", "FlightDate", "OriginCityName",
     "DestCityName", "Distance"),
    ("Flight Number", "Price", "DepTime", "ArrTime", "FlightDate", "OriginCityName", "DestCityName"),
    _read_flight,
)  # fmt: skip
ACCOMMODATIONS: Table[Accommodation] = Table(
    "accommodations",
    ("NAME", "price", "room type", "house_rules", "minimum nights", "maximum occupancy", "review rate number", "city"),
    ("NAME", "price", "room type", "house_rules", "minimum nights", "maximum occupancy", "city"),
    _read_accommodation,
)
RESTAURANTS: Table[Restaurant] = Table(
    "restaurants",
    ("Name", "Average Cost", "Cuisines", "Aggregate Rating", "City"),
    ("Name", "Average Cost", "Cuisines", "City"),
    _read_restaurant,
)
ATTRACTIONS: Table[Attraction] = Table(
    "attractions",
    ("Name", "Latitude", "Longitude", "Address", "Phone", "Website", "City"),
    ("Name", "City"),
    _read_attraction,
)
ROADS: Table[Road] = Table(
    "distances",
    ("origin", "destination", "cost", "duration", "distance"),
    ("origin", "destination", "duration", "distance"),
    _read_road,
)
