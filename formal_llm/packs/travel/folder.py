"""The folder of the published database: its files, found by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from formal_llm.authored.files import lines_of, read_text
from formal_llm.errors import NotationError
from formal_llm.packs.travel.csv_lines import Progress, csv_lines
from formal_llm.packs.travel.flight_file import flight_file
from formal_llm.packs.travel.flights import FlightList, FlightTable
from formal_llm.packs.travel.rows import Accommodation, Attraction, Restaurant, Road
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
    """The contents of a folder: rows, the cities of each state, and unusual lines."""

    flights: FlightTable = field(default_factory=FlightList)
    roads: list[Road] = field(default_factory=list)
    accommodations: list[Accommodation] = field(default_factory=list)
    restaurants: list[Restaurant] = field(default_factory=list)
    attractions: list[Attraction] = field(default_factory=list)
    cities: dict[str, list[str]] = field(default_factory=dict)
    problems: list[RowProblem] = field(default_factory=list)


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
    found = Folder()
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


def _number_rows(path: Path, table: Table[R], told: list[RowProblem]) -> Iterator[tuple[int, R]]:
    """Iterate over the rows of a file with their line numbers."""
    at = [0]

    def track_lines() -> Iterator[tuple[int, Mapping[str, Value]]]:
        for at[0], cells in csv_lines(path, table):
            yield at[0], cells

    for row in table.read_rows(track_lines(), str(path), told):
        yield at[0], row


def _read_roads(path: Path, told: list[RowProblem]) -> list[Road]:
    """Read the roads of a table, and record duplicates with different values; the first counts."""
    first: dict[tuple[str, str], Road] = {}
    for line, road in _number_rows(path, ROADS, told):
        same = first.setdefault((road.origin, road.destination), road)
        if same != road:
            problem = (
                f"the way from {road.origin} to {road.destination} is there twice, and the first one counts: "
                f"{same.distance} and not {road.distance}, {same.duration} and not {road.duration}"
            )
            told.append(RowProblem(str(path), line, None, problem))
    return list(first.values())


def _read_places(path: Path, table: Table[P], told: list[RowProblem]) -> list[P]:
    """Read the places of a table, and record those that plans cannot name, or name only in part; they are kept."""
    found: list[P] = []
    first: dict[tuple[str, str], int] = {}
    for line, place in _number_rows(path, table, told):
        found.append(place)
        same = first.setdefault((place.city, place.name), line)
        if same != line:
            problem = f"{place.name!r} in {place.city} is in line {same}, too: a plan that names it means that one"
            told.append(RowProblem(str(path), line, None, problem, kept=True))
        elif place.name != " ".join(place.name.split("\n")).strip():
            told.append(
                RowProblem(str(path), line, None, f"the name {place.name!r} has blanks or line ends", kept=True)
            )
    return found
