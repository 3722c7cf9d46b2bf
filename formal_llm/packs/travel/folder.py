"""The folder of the published database: its files, found by their names."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote
from uuid import uuid4

from formal_llm.authored.files import lines_of, read_text
from formal_llm.errors import InputError, NotationError
from formal_llm.packs.travel.csv_lines import Progress, csv_lines
from formal_llm.packs.travel.flights import FlightList, FlightTable
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Money, Restaurant, Road
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

#: The maximum number of left-out lines that are reported individually; the others are counted.
MOST_PROBLEMS = 1_000
_FORMAT = "formal_llm.flights/1"
_BATCH = 20_000
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE problem (id INTEGER PRIMARY KEY, line INTEGER NOT NULL, column TEXT, problem TEXT NOT NULL);
CREATE TABLE flight (id INTEGER PRIMARY KEY, number TEXT NOT NULL, origin INTEGER NOT NULL,
    destination INTEGER NOT NULL, day INTEGER NOT NULL, departure TEXT NOT NULL, arrival TEXT NOT NULL, price NOT NULL,
    duration TEXT, distance REAL);
"""
_INDEXES = """
CREATE INDEX flight_way ON flight (origin, destination, day);
CREATE INDEX flight_number ON flight (number);
"""
_COLUMNS = "flight.number, a.name, b.name, day, departure, arrival, price, duration, distance"
_FROM = f"SELECT {_COLUMNS} FROM flight JOIN city a ON a.id = origin JOIN city b ON b.id = destination"  # noqa: S608


class FlightFile:
    """Flights in a database file. It is thread-safe and pickled as its path.

    Args:
        path: a file created by :func:`build_flights`.

    Raises:
        InputError: there is no such file, or it has a different format.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self._lock = threading.Lock()
        try:
            uri = f"file:{quote(str(self.path))}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            weakref.finalize(self, self._connection.close)
            meta = dict(self._connection.execute("SELECT name, value FROM meta"))
        except sqlite3.Error as error:
            raise InputError(f"{path}: this is no database file of flights ({error}); make it again") from error
        if meta.get("format") != _FORMAT:
            raise InputError(f"{path}: this database file of flights is of another version; make it again")
        self._count, self._source, self._left_out = int(meta["flights"]), str(meta["source"]), int(meta["left_out"])
        self._city_id = {name: id_ for id_, name in self._connection.execute("SELECT id, name FROM city ORDER BY id")}

    def find_between(self, origin: str, destination: str, day: date | None) -> tuple[Flight, ...]:
        """Return the flights from one city to another, on a day or on any day, in the order of their table."""
        way = (self._city_id.get(origin), self._city_id.get(destination))
        if None in way:
            return ()
        on_day = "" if day is None else " AND day = ?"
        values = way if day is None else (*way, day.toordinal())
        return self._fetch_rows(f"{_FROM} WHERE origin = ? AND destination = ?{on_day} ORDER BY flight.id", values)

    def find_numbered(self, number: str) -> tuple[Flight, ...]:
        """Return the flights with a number."""
        return self._fetch_rows(f"{_FROM} WHERE number = ? ORDER BY flight.id", (number,))

    def list_cities(self) -> tuple[str, ...]:
        """Return the cities of departures and arrivals, in order."""
        return tuple(self._city_id)

    def list_problems(self) -> list[RowProblem]:
        """Return the lines that were left out: the first :data:`MOST_PROBLEMS`, and the number of the others."""
        with self._lock:
            rows = self._connection.execute("SELECT line, column, problem FROM problem ORDER BY id").fetchall()
        found = [RowProblem(self._source, *row) for row in rows]
        if self._left_out > len(found):
            last = found[-1].line
            found.append(RowProblem(self._source, last, None, f"{self._left_out - len(found)} more lines after it"))
        return found

    def __iter__(self) -> Iterator[Flight]:
        after, rows = 0, self._read_page(0)
        while rows:
            yield from rows
            after += _BATCH
            rows = self._read_page(after)

    def __len__(self) -> int:
        return self._count

    def __reduce__(self) -> tuple[type[FlightFile], tuple[Path]]:
        return FlightFile, (self.path,)

    def _read_page(self, after: int) -> tuple[Flight, ...]:
        query = f"{_FROM} WHERE flight.id > ? AND flight.id <= ? ORDER BY flight.id"
        return self._fetch_rows(query, (after, after + _BATCH))

    def _fetch_rows(self, asked: str, values: tuple[object, ...]) -> tuple[Flight, ...]:
        with self._lock:
            found = self._connection.execute(asked, values).fetchall()
        return tuple(
            Flight(
                number, origin, destination, date.fromordinal(day), departure, arrival,
                price if isinstance(price, int) else Decimal(price), duration, distance,
            )
            for number, origin, destination, day, departure, arrival, price, duration, distance in found
        )  # fmt: skip


def flight_file(
    table: str | Path, cache: str | os.PathLike[str] | None = None, progress: Progress | None = None
) -> FlightFile:
    """Open the flights of a CSV file through a database file, which is built if it does not exist yet.

    Args:
        table: the CSV file.
        cache: the folder of database files; by default the user's cache (``$XDG_CACHE_HOME/formal-llm``, else
            ``~/.cache/formal-llm``).
        progress: called with the progress.

    Raises:
        NotationError: the CSV file cannot be read; the error names the place.
        InputError: the cache cannot be written.
    """
    table = Path(table).absolute()
    status = table.stat()
    key = hashlib.sha256(f"{_FORMAT} {table} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:16]
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "formal-llm"
    folder = Path(cache) if cache is not None else user
    place = folder / f"flights-{key}.sqlite"
    try:
        return FlightFile(place)
    except InputError:  # missing or damaged
        build_flights(table, place, progress)
        return FlightFile(place)


def build_flights(table: str | Path, out: str | Path, progress: Progress | None = None) -> None:
    """Build the database file of a CSV file of flights.

    Raises:
        NotationError: the CSV file cannot be read; the error names the place.
        InputError: the database file cannot be written.
    """
    out = Path(out)
    temporary = out.with_name(f"{uuid4().hex}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            _fill_database(connection, table, progress)
        temporary.replace(out)
    except (sqlite3.OperationalError, OSError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{out} cannot be written: {cause}; name another folder for caches: XDG_CACHE_HOME") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _fill_database(connection: sqlite3.Connection, table: str | Path, progress: Progress | None) -> None:
    # Readers never see an incomplete file, so no protection against power failures is needed.
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.executescript(_TABLES)
    problems: list[RowProblem] = []
    noted, left_out, count = 0, 0, 0
    cities: dict[str, int] = {}

    def make_row(flight: Flight) -> tuple[object, ...]:
        price: Money | str = flight.price if isinstance(flight.price, int) else str(flight.price)
        origin = cities.setdefault(flight.origin, len(cities) + 1)
        destination = cities.setdefault(flight.destination, len(cities) + 1)
        return (
            flight.number, origin, destination, flight.day.toordinal(), flight.departure, flight.arrival, price,
            flight.duration, flight.distance,
        )  # fmt: skip

    rows = FLIGHTS.read_rows(csv_lines(table, FLIGHTS, progress), str(table), problems)
    while batch := [make_row(flight) for flight in islice(rows, _BATCH)]:
        count += len(batch)
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO flight VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", batch)
        noted += _insert_problems(connection, problems[: MOST_PROBLEMS - noted])
        connection.execute("COMMIT")
        left_out += len(problems)
        problems.clear()
    noted += _insert_problems(connection, problems[: MOST_PROBLEMS - noted])
    left_out += len(problems)
    connection.executemany("INSERT INTO city VALUES (?, ?)", [(id_, name) for name, id_ in cities.items()])
    connection.executescript(_INDEXES)
    meta = {"format": _FORMAT, "source": str(table), "flights": count, "left_out": left_out}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())


def _insert_problems(connection: sqlite3.Connection, problems: list[RowProblem]) -> int:
    statement = "INSERT INTO problem (line, column, problem) VALUES (?, ?, ?)"
    connection.executemany(statement, [(one.line, one.column, one.problem) for one in problems])
    return len(problems)


R = TypeVar("R")
P = TypeVar("P", Accommodation, Restaurant, Attraction)
#: The maximum size of a CSV file of flights in memory; larger ones are read into a database file.
MOST_IN_MEMORY = 20_000_000
#: The published path of each file in the folder.
FILES = {
    "flights": "flights/clean_Flights_2022.csv",
    "distances": "googleDistanceMatrix/distance.csv",
    "accommodations": "accommodations/clean_accommodations_2022.csv",
    "restaurants": "restaurants/clean_restaurant_2022.csv",
    "attractions": "attractions/attractions.csv",
    "cities": "background/citySet_with_states.txt",
}


@dataclass
class Folder:
    """The contents of a folder: rows, the cities of each state, unusual lines, and the files by table."""

    flights: FlightTable = field(default_factory=FlightList)
    roads: list[Road] = field(default_factory=list)
    accommodations: list[Accommodation] = field(default_factory=list)
    restaurants: list[Restaurant] = field(default_factory=list)
    attractions: list[Attraction] = field(default_factory=list)
    cities: dict[str, list[str]] = field(default_factory=dict)
    problems: list[RowProblem] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the files."""
        found = hashlib.sha256()
        for name, path in sorted(self.files.items()):
            with path.open("rb") as file:
                found.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
        return found.hexdigest()[:16]


def read_folder(
    folder: str | os.PathLike[str], *, progress: Progress | None = None, cache: str | os.PathLike[str] | None = None
) -> Folder:
    """Read the published database.

    Args:
        folder: the folder; the files may be in it or in the published folders inside.
        progress: called with the progress if flights are read into a database file.
        cache: the folder of such files.

    Raises:
        NotationError: the folder or all tables are missing, or one cannot be read; with file, line and column.
        InputError: the cache cannot be written.
    """
    root = Path(folder)
    if not root.is_dir():
        raise NotationError(
            "there is no such folder", file=str(folder), suggestion="name the folder with the published CSV files"
        )
    places = {name: _find_file(root, place) for name, place in FILES.items()}
    paths = {name: path for name, path in places.items() if path is not None}
    if not paths.keys() - {"cities"}:
        raise NotationError(
            "none of the published tables is in this folder", file=str(folder), expected=tuple(FILES.values()),
            suggestion="name the folder that holds them",
        )  # fmt: skip
    found = Folder(files=paths)
    problems = found.problems
    if path := paths.get("cities"):
        found.cities = read_cities(path)
    if path := paths.get("distances"):
        found.roads = _read_roads(path, problems)
    if path := paths.get("accommodations"):
        found.accommodations = _read_places(path, ACCOMMODATIONS, problems)
    if path := paths.get("restaurants"):
        found.restaurants = _read_places(path, RESTAURANTS, problems)
    if path := paths.get("attractions"):
        found.attractions = _read_places(path, ATTRACTIONS, problems)
    if path := paths.get("flights"):
        if path.stat().st_size > MOST_IN_MEMORY:
            flights = flight_file(path, cache, progress)
            problems += flights.list_problems()
            found.flights = flights
        else:
            found.flights = FlightList(FLIGHTS.read_rows(csv_lines(path, FLIGHTS), str(path), problems))
    return found


def read_cities(path: str | Path) -> dict[str, list[str]]:
    """Read the cities of each state from lines of city and state, separated by a tab.

    Raises:
        NotationError: it cannot be read; the error names the line.
    """
    found: dict[str, list[str]] = {}
    for number, line in enumerate(lines_of(read_text(path)), 1):
        if not line.strip():
            continue
        city, tab, state = line.partition("\t")
        if not (tab and city.strip() and state.strip()) or "\t" in state:
            raise NotationError(
                "a line should have a city and its state, with a tab between them", file=str(path), line=number,
                source_line=line,
            )  # fmt: skip
        found.setdefault(state.strip(), []).append(city.strip())
    return found


def _find_file(root: Path, place: str) -> Path | None:
    """Find a file at its published path, or by its published name in the folder or one inside."""
    name = Path(place).name
    for candidate in (root / place, root / name, *sorted(root.glob(f"*/{name}"))):
        if candidate.is_file():
            return candidate
    return None


def _number_rows(path: Path, table: Table[R], problems: list[RowProblem]) -> Iterator[tuple[int, R]]:
    """Iterate over the rows of a file with their line numbers."""
    at = [0]

    def track_lines() -> Iterator[tuple[int, Mapping[str, Value]]]:
        for at[0], cells in csv_lines(path, table):
            yield at[0], cells

    for row in table.read_rows(track_lines(), str(path), problems):
        yield at[0], row


def _read_roads(path: Path, problems: list[RowProblem]) -> list[Road]:
    """Read the roads of a table, and record duplicates with different values; the first counts."""
    first: dict[tuple[str, str], Road] = {}
    for line, road in _number_rows(path, ROADS, problems):
        same = first.setdefault((road.origin, road.destination), road)
        if same != road:
            problem = (
                f"the way from {road.origin} to {road.destination} is there twice, and the first one counts: "
                f"{same.distance} and not {road.distance}, {same.duration} and not {road.duration}"
            )
            problems.append(RowProblem(str(path), line, None, problem))
    return list(first.values())


def _read_places(path: Path, table: Table[P], problems: list[RowProblem]) -> list[P]:
    """Read the places of a table, and record those that plans cannot name, or name only in part; they are kept."""
    found: list[P] = []
    first: dict[tuple[str, str], int] = {}
    for line, place in _number_rows(path, table, problems):
        found.append(place)
        same = first.setdefault((place.city, place.name), line)
        if same != line:
            problem = f"{place.name!r} in {place.city} is in line {same}, too: a plan that names it means that one"
            problems.append(RowProblem(str(path), line, None, problem, kept=True))
        elif place.name != " ".join(place.name.split("\n")).strip():
            problems.append(
                RowProblem(str(path), line, None, f"the name {place.name!r} has blanks or line ends", kept=True)
            )
    return found
