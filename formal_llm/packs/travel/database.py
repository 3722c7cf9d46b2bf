"""A world: the cities of some states, their flights, roads, accommodations, restaurants and attractions.

An example::

    world = World.from_folder("database")          # the published CSV files
    world.flights("Las Vegas", "Denver", date(2022, 3, 12))
    world.distance("Las Vegas", "Denver", "taxi")
    world.restaurants("Denver")

Lookups return frozen rows in the order of their tables. A city without rows is not an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from os import PathLike
from typing import TypeVar

from formal_llm import authored
from formal_llm.packs.travel.csv_lines import Progress
from formal_llm.packs.travel.flights import FlightList, FlightTable
from formal_llm.packs.travel.folder import read_folder
from formal_llm.packs.travel.reference import read_reference
from formal_llm.packs.travel.rows import (
    Accommodation,
    Attraction,
    Drive,
    Flight,
    Mode,
    Money,
    Restaurant,
    Road,
    drive_of,
)
from formal_llm.packs.travel.tables import RowProblem

__all__ = [
    "Accommodation", "Attraction", "Drive", "Flight", "FlightTable", "Mode", "Money", "Restaurant", "Road",
    "RowProblem", "World",
]  # fmt: skip

R = TypeVar("R", Accommodation, Restaurant, Attraction)


class World:
    """The tables of a world. Rows keep the order of their tables.

    Args:
        flights: the flights.
        roads: the roads, each in one direction; of duplicates the first counts, as in the published tools.
        accommodations, restaurants, attractions: the places.
        cities: the cities of each state.
        problems: unusual lines in the source of the rows.

    Attributes:
        problems: the lines that were left out, or kept although they are unusual, each with its place.
    """

    def __init__(
        self,
        flights: Iterable[Flight] | FlightTable = (),
        roads: Iterable[Road] = (),
        accommodations: Iterable[Accommodation] = (),
        restaurants: Iterable[Restaurant] = (),
        attractions: Iterable[Attraction] = (),
        cities: Mapping[str, Sequence[str]] | None = None,
        problems: Iterable[RowProblem] = (),
    ) -> None:
        self.problems = tuple(problems)
        self._flights: FlightTable = flights if isinstance(flights, FlightTable) else FlightList(flights)
        self._roads: dict[tuple[str, str], Road] = {}
        for road in roads:
            self._roads.setdefault((road.origin, road.destination), road)
        self._accommodations = _by_city(accommodations)
        restaurants = tuple(restaurants)
        self._restaurants = _by_city(restaurants)
        self._numbers: dict[str, list[int]] = {}
        for number, restaurant in enumerate(restaurants):
            self._numbers.setdefault(restaurant.city, []).append(number)
        self._attractions = _by_city(attractions)
        self._cities = {state: tuple(dict.fromkeys(names)) for state, names in (cities or {}).items()}
        self._state = {city: state for state, names in self._cities.items() for city in names}
        self._known = self._all_cities()

    @classmethod
    def from_folder(
        cls, folder: str | PathLike[str], *, progress: Progress | None = None, cache: str | PathLike[str] | None = None
    ) -> World:
        """Read a world from a folder of CSV files with the published layout.

        Args:
            folder: the folder ``database`` of TravelPlanner, or one like it. Flights may be missing, and so may any
                other table except that of cities.
            progress: called now and then with the bytes read and their total, if the table of flights is large.
            cache: where a large table of flights is kept as a database file; by default the user's cache.

        Raises:
            NotationError: the folder or a column is missing, or a value has the wrong type; with file, line, column.
        """
        tables = read_folder(folder, progress=progress, cache=cache)
        return cls(
            tables.flights,
            tables.roads,
            tables.accommodations,
            tables.restaurants,
            tables.attractions,
            tables.cities,
            tables.problems,
        )

    @classmethod
    def from_reference(cls, reference: object, cities: Mapping[str, Sequence[str]] | None = None) -> World:
        """Read a world from the reference information of a query.

        Args:
            reference: an object or a list of tables, as a JSON value or as text.
            cities: the cities of each state, which reference information does not include.

        Raises:
            NotationError: it cannot be read; the error names the table and the line.
        """
        found = read_reference(reference)
        return cls(
            found.flights,
            found.roads,
            found.accommodations,
            found.restaurants,
            found.attractions,
            cities,
            found.problems,
        )

    @classmethod
    def shipped(cls) -> World:
        """Return the small world that ships with the library: invented states and cities, and a few hundred rows."""
        return cls.from_folder(authored.find("tasks", "travel") / "world")

    # -- lookups -------------------------------------------------------------------------------------------------------

    def flights(self, origin: str, destination: str, day: date | None = None) -> tuple[Flight, ...]:
        """Return the flights from one city to another on a day, or on any day if none is given."""
        return self._flights.find_between(origin, destination, day)

    def flights_numbered(self, number: str) -> tuple[Flight, ...]:
        """Return the flights with a number, on any day."""
        return self._flights.find_numbered(number)

    def road(self, origin: str, destination: str) -> Road | None:
        """Return the row of the table of distances; None if there is none."""
        return self._roads.get((origin, destination))

    def distance(self, origin: str, destination: str, mode: Mode) -> Drive | None:
        """Return the drive from one city to another by car or taxi; None if there is none."""
        road = self.road(origin, destination)
        return drive_of(road, mode) if road is not None else None

    def accommodations(self, city: str) -> tuple[Accommodation, ...]:
        """Return the accommodations in a city."""
        return self._accommodations.get(city, ())

    def restaurants(self, city: str) -> tuple[Restaurant, ...]:
        """Return the restaurants in a city."""
        return self._restaurants.get(city, ())

    def restaurant_numbers(self, city: str) -> tuple[int, ...]:
        """Return the row numbers of a city's restaurants in the whole table, from 0; the published tool prints them."""
        return tuple(self._numbers.get(city, ()))

    def attractions(self, city: str) -> tuple[Attraction, ...]:
        """Return the attractions in a city."""
        return self._attractions.get(city, ())

    def cities(self, state: str | None = None) -> tuple[str, ...]:
        """Return the cities of a state; without one, all cities of any table: those of states first, in their order."""
        return self._known if state is None else self._cities.get(state, ())

    @cached_property
    def cuisines(self) -> tuple[str, ...]:
        """The cuisines of all restaurants, in alphabetical order."""
        return tuple(sorted({name for places in self._restaurants.values() for one in places for name in one.cuisines}))

    @property
    def states(self) -> tuple[str, ...]:
        """The states, in order."""
        return tuple(self._cities)

    def state_of(self, city: str) -> str | None:
        """Return the state of a city; None if no table specifies it."""
        return self._state.get(city)

    # -- whole tables --------------------------------------------------------------------------------------------------

    def all_flights(self) -> Iterable[Flight]:
        """Iterate over all flights."""
        return iter(self._flights)

    def all_roads(self) -> tuple[Road, ...]:
        """Return all roads."""
        return tuple(self._roads.values())

    def __repr__(self) -> str:
        beds, tables, sights = (sum(map(len, by.values())) for by in self._list_places())
        return (
            f"<World: {len(self._known)} cities in {len(self._cities)} states, {len(self._flights)} flights, "
            f"{len(self._roads)} roads, {beds} beds, {tables} restaurants, {sights} attractions>"
        )

    def _list_places(self) -> tuple[Mapping[str, Sequence[object]], ...]:
        return self._accommodations, self._restaurants, self._attractions

    def _all_cities(self) -> tuple[str, ...]:
        names = dict.fromkeys(self._state)
        for places in self._list_places():
            names.update(dict.fromkeys(places))
        for way in self._roads:
            names.update(dict.fromkeys(way))
        names.update(dict.fromkeys(self._flights.list_cities()))
        return tuple(names)


def _by_city(rows: Iterable[R]) -> dict[str, tuple[R, ...]]:
    found: dict[str, list[R]] = {}
    for row in rows:
        found.setdefault(row.city, []).append(row)
    return {city: tuple(places) for city, places in found.items()}
