"""Print tables as the published tools do (pandas' ``DataFrame.to_string``), with right-aligned columns.

:func:`~formal_llm.packs.travel.reference.printed_lines` reads them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Restaurant
from formal_llm.packs.travel.tables import ACCOMMODATIONS, ATTRACTIONS, FLIGHTS, RESTAURANTS

Cell: TypeAlias = "str | int | float | Decimal | None"


def printed_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], numbers: Sequence[int] | None = None) -> str:
    """Print a table.

    Args:
        columns: the names of the columns.
        rows: the cells of each row. Columns with only None are left out.
        numbers: the row numbers to print before the rows; None for no row numbers.
    """
    parts: list[list[str]] = []
    lead = "" if numbers is None else " "
    for at, name in enumerate(columns):
        cells = [row[at] for row in rows]
        if rows and all(cell is None for cell in cells):
            continue
        numeric = all(isinstance(cell, int | float | Decimal) for cell in cells)
        texts = _format_numbers(cells) if numeric else [_format_text(cell) for cell in cells]
        # The leading blank of a number is reserved for its sign.
        texts = [text if numeric and text.startswith("-") else lead + text for text in texts]
        # The name of a numeric column has a leading blank for the sign, too.
        header = (" " if numeric else "") + name
        width = max(map(len, [header, *texts]))
        parts.append([text.rjust(width) for text in [header, *texts]])
    if numbers is not None:
        width = max((len(str(number)) for number in numbers), default=0)
        parts.insert(0, [" " * width, *(str(number).ljust(width) for number in numbers)])
    return "\n".join(" ".join(line) for line in zip(*parts, strict=True))


def printed_flights(flights: Sequence[Flight]) -> str:
    """Print the output of FlightSearch."""
    rows = [
        (one.number, one.price, one.departure, one.arrival, one.duration, one.day.isoformat(), one.origin,
         one.destination, one.distance)
        for one in flights
    ]  # fmt: skip
    return printed_table(FLIGHTS.columns, rows)


def printed_accommodations(beds: Sequence[Accommodation]) -> str:
    """Print the output of AccommodationSearch; prices and nights have a decimal, as in the published table."""
    rows = [
        (one.name, _convert_price(one.price), one.room_type, " & ".join(one.house_rules), float(one.minimum_nights),
         one.maximum_occupancy, one.rating, one.city)
        for one in beds
    ]  # fmt: skip
    return printed_table(ACCOMMODATIONS.columns, rows)


def printed_restaurants(tables: Sequence[Restaurant], numbers: Sequence[int] | None = None) -> str:
    """Print the output of RestaurantSearch; row numbers are positions in the whole table."""
    rows = [(one.name, one.cost, ", ".join(one.cuisines), one.rating, one.city) for one in tables]
    return printed_table(RESTAURANTS.columns, rows, numbers)


def printed_attractions(sights: Sequence[Attraction]) -> str:
    """Print the output of AttractionSearch."""
    rows = [(one.name, one.latitude, one.longitude, one.address, one.phone, one.website, one.city) for one in sights]
    return printed_table(ATTRACTIONS.columns, rows)


def _convert_price(price: int | Decimal) -> float:
    return float(price)


def _format_text(cell: Cell) -> str:
    """Format a text, with line ends and tabs as escapes."""
    if cell is None:
        return "NaN"
    return str(cell).replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")


def _format_numbers(cells: Sequence[Cell]) -> list[str]:
    """Format the numbers of a column: integers unchanged, others with the decimals that the longest needs (max. 6)."""
    if all(isinstance(cell, int) for cell in cells):
        return [str(cell) for cell in cells]
    texts = [f"{cell:.6f}" for cell in cells]
    while all(text.endswith("0") and not text.endswith(".0") for text in texts):
        texts = [text[:-1] for text in texts]
    return texts
