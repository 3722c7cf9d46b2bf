"""Read the reference information of a published query: tables and sentences, each under a title.

It is published in three forms, and all can be read: an object of titles and lists of rows (``train_ref_info.jsonl``),
a list of titles and printed tables (the data set; also as the text of a Python list), and either of them as JSON text.

A printed table is parsed by the right edges of its columns, to which it was aligned; so names may contain any number
of blanks. Printing loses blanks before names, and decimals beyond the sixth.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from formal_llm.authored.files import parse_json
from formal_llm.errors import NotationError
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Restaurant, Road
from formal_llm.packs.travel.tables import (
    ACCOMMODATIONS,
    ATTRACTIONS,
    FLIGHTS,
    RESTAURANTS,
    ROADS,
    RowProblem,
    Table,
    Value,
)

#: The maximum number of characters of reference information that is a text.
MOST_CHARACTERS = 20_000_000
_PLACES = re.compile(r"(Attractions|Restaurants|Accommodations) in (.+)")
_WAY = re.compile(r"(Flight|Self-driving|Taxi) from (.+?) to (.+?)(?: on (\d{4}-\d{2}-\d{2}))?")
_DRIVE = re.compile(
    r"(?:self-driving|taxi|driving), from (?P<origin>.+) to (?P<destination>.+), "
    r"duration: (?P<duration>.+), distance: (?P<distance>.+), cost: \S+",
    re.IGNORECASE,
)
_NO_ROAD = re.compile(r"No valid information\.|.*, no valid information\.", re.IGNORECASE)
_NOTHING = re.compile(r"There is no (?:flight|restaurant|attraction|accommodation)\b.*")
_TABLES: dict[str, Table[Accommodation] | Table[Restaurant] | Table[Attraction]] = {
    "Attractions": ATTRACTIONS,
    "Restaurants": RESTAURANTS,
    "Accommodations": ACCOMMODATIONS,
}


@dataclass
class Reference:
    """The contents of reference information.

    Attributes:
        flights, roads, accommodations, restaurants, attractions: its rows, in order.
        problems: its unusual lines.
        cities: the cities that it names, in order.
    """

    flights: list[Flight] = field(default_factory=list)
    roads: list[Road] = field(default_factory=list)
    accommodations: list[Accommodation] = field(default_factory=list)
    restaurants: list[Restaurant] = field(default_factory=list)
    attractions: list[Attraction] = field(default_factory=list)
    problems: list[RowProblem] = field(default_factory=list)
    cities: list[str] = field(default_factory=list)


def read_reference(reference: object) -> Reference:
    """Read reference information.

    Args:
        reference: an object of titles and contents, a list of objects with ``Description`` and ``Content``, or either
            as a text.

    Raises:
        NotationError: it is not reference information, or a table cannot be read; with the title and the line.
    """
    found = Reference()
    for title, content in _list_sections(reference):
        if place := _PLACES.fullmatch(title):
            found.cities.append(place[2])
            _read_places(found, place[1], title, content)
        elif way := _WAY.fullmatch(title):
            found.cities += [way[2], way[3]]
            if way[1] == "Flight":
                found.flights += FLIGHTS.read_rows(_read_lines(content, FLIGHTS, title), title, found.problems)
            else:
                _read_road(found, way[2], way[3], title, content)
        else:
            raise NotationError(
                f"this title is not known: {title[:120]!r}",
                file="reference information",
                expected=("Attractions in CITY", "Flight from A to B on DATE", "Self-driving from A to B", "..."),
            )
    found.cities = list(dict.fromkeys(found.cities))
    return found


def _list_sections(reference: object) -> Iterator[tuple[str, object]]:
    """Iterate over the titles with their contents."""
    if isinstance(reference, str):
        reference = _parse_text(reference)
    if isinstance(reference, Mapping):
        for title, content in reference.items():
            yield str(title), content
        return
    if isinstance(reference, Sequence) and not isinstance(reference, str | bytes):
        for number, section in enumerate(reference, 1):
            if not isinstance(section, Mapping) or "Description" not in section or "Content" not in section:
                raise NotationError(
                    f"section {number} should have a Description and a Content", file="reference information"
                )
            yield str(section["Description"]), section["Content"]
        return
    raise NotationError(
        f"a reference information is a list or an object of tables, not {type(reference).__name__}",
        file="reference information",
    )


def _parse_text(text: str) -> object:
    """Parse a text that is JSON, or a Python list as printed in the data set."""
    if len(text) > MOST_CHARACTERS:
        raise NotationError(f"it has more than {MOST_CHARACTERS:,} characters", file="reference information")
    try:
        return parse_json(text)
    except ValueError as json_trouble:
        try:
            value: object = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise NotationError(
                f"this is neither JSON nor a list of tables: {json_trouble}", file="reference information"
            ) from None
        return value


def _read_places(found: Reference, kind: str, title: str, content: object) -> None:
    lines = list(_read_lines(content, _TABLES[kind], title))
    if kind == "Attractions":
        found.attractions += ATTRACTIONS.read_rows(lines, title, found.problems)
    elif kind == "Restaurants":
        found.restaurants += RESTAURANTS.read_rows(lines, title, found.problems)
    else:
        found.accommodations += ACCOMMODATIONS.read_rows(lines, title, found.problems)


def _read_road(found: Reference, origin: str, destination: str, title: str, content: object) -> None:
    """Read a road. Each occurs twice, by car and by taxi; the first counts, the second must agree with it."""
    text = content.strip() if isinstance(content, str) else ""
    if _NO_ROAD.fullmatch(text):
        road = Road(origin, destination)
    elif drive := _DRIVE.fullmatch(text):
        cells: dict[str, Value] = {"origin": origin, "destination": destination}
        cells |= {name: drive[name] for name in ("duration", "distance")}
        road = next(ROADS.read_rows([(1, cells)], title, found.problems))
        if (drive["origin"], drive["destination"]) != (origin, destination):
            note = f"it tells of the way from {drive['origin']} to {drive['destination']}"
            found.problems.append(RowProblem(title, 1, None, note, kept=True))
    else:
        raise NotationError(
            f"this is no way: {str(content)[:120]!r}",
            file=title,
            expected=("self-driving, from A to B, duration: ..., distance: ..., cost: ...", "No valid information."),
        )
    same = next((one for one in found.roads if (one.origin, one.destination) == (origin, destination)), None)
    if same is None:
        found.roads.append(road)
    elif same != road:
        note = f"it says {road.duration}, {road.distance}; the same way is said to be {same.duration}, {same.distance}"
        found.problems.append(RowProblem(title, 1, None, note))


def _read_lines(content: object, table: Table[object], title: str) -> Iterator[tuple[int, Mapping[str, Value]]]:
    """Iterate over the lines of a table that is a list of rows or a printed table."""
    if isinstance(content, str):
        if not _NOTHING.fullmatch(content.strip()) and content.strip():
            yield from printed_lines(content, table, title)
        return
    if not isinstance(content, Sequence):
        raise NotationError(f"the table of {table.name} should be a list of rows or a text", file=title)
    for number, row in enumerate(content, 1):
        if not isinstance(row, Mapping):
            raise NotationError("a row should be an object with the columns of its table", file=title, line=number)
        table.check_header(row, title, number)
        yield number, row


def printed_lines(text: str, table: Table[object], title: str) -> Iterator[tuple[int, Mapping[str, Value]]]:
    """Iterate over the lines of a printed table with right-aligned columns, with or without row numbers before them.

    Raises:
        NotationError: a column is missing, or a line is not aligned with the columns.
    """
    header, *lines = text.strip("\n").split("\n")
    header = header.rjust(max(map(len, lines), default=0))  # the tools strip the blanks before a table
    places = ((re.search(rf"(?<!\S){re.escape(column)}(?!\S)", header), column) for column in table.columns)
    edges = sorted((found.end(), column) for found, column in places if found)
    table.check_header([column for _, column in edges], title)
    begin = _number_width(lines, edges, title) if _has_row_numbers(lines, edges) else 0
    for number, line in enumerate(lines, 2):
        yield number, _split_line(line, edges, begin, title, number)


def _has_row_numbers(lines: Sequence[str], edges: Sequence[tuple[int, str]]) -> bool:
    """Return whether there are row numbers before the first column.

    With row numbers, each text has a leading blank of its own besides the blank between columns; without, it has not.
    """
    wide = False
    for (left, _), (right, name) in pairwise(edges):
        cells = [line[left:right].lstrip(" ") for line in lines]
        if all(_is_number(cell) for cell in cells):
            continue  # the leading blank of a number may be its sign
        longest = max(map(len, cells))
        if longest == right - left - 1:
            return False
        wide = wide or longest >= len(name)
    if wide:
        return True
    numbers = [found.end() for line in lines if (found := re.match(r"\d+(?=  )", line))]
    return bool(lines) and len(numbers) == len(lines)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number_width(lines: Sequence[str], edges: Sequence[tuple[int, str]], title: str) -> int:
    """Return the width of the row numbers."""
    width = 0
    for number, line in enumerate(lines, 2):
        found = re.match(r"\d+(?= )", line[: edges[0][0]])
        if found is None:
            raise NotationError("there is no row number before this line", file=title, line=number, source_line=line)
        width = max(width, found.end())
    return width


def _split_line(line: str, edges: Sequence[tuple[int, str]], begin: int, title: str, number: int) -> dict[str, Value]:
    cells: dict[str, Value] = {}
    last = edges[-1][0]
    if len(line) != last:
        raise NotationError(
            f"the line has {len(line)} characters; the table is {last} wide",
            file=title,
            line=number,
            source_line=line,
            suggestion="a printed table must be given as it was printed, with all its blanks",
        )
    for edge, column in edges:
        if begin and line[begin] != " ":
            raise NotationError(
                f"the line does not keep to column {column!r}", file=title, line=number, column=begin + 1,
                source_line=line, suggestion="a printed table must be given as it was printed, with all its blanks",
            )  # fmt: skip
        cells[column] = _unescape_cell(line[begin:edge].lstrip(" "))
        begin = edge
    return cells


def _unescape_cell(cell: str) -> str:
    """Restore the line ends and tabs of a cell, which are printed with a backslash."""
    return cell.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")
