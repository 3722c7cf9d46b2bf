"""A world: the cities of some states, and what flies, drives, sleeps and eats there.

An example::

    world = World.from_folder("database")          # the published CSV files
    world.flights("Las Vegas", "Denver", date(2022, 3, 12))
    world.distance("Las Vegas", "Denver", "taxi")
    world.restaurants("Denver")

Whoever looks up gets frozen rows, in the order of their tables. A city without rows has none; it is no error.
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
    """What can be travelled. Rows keep the order of their tables.

    Args:
        flights: the flights.
        roads: the roads, each in one direction; where one is there twice, the first counts, as in the published tools.
        accommodations, restaurants, attractions: the places.
        cities: the cities of each state.
        problems: what was unusual where the rows come from.

    Attributes:
        problems: the lines that were left out, or kept though they are unusual, each with its place.
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
        """The world that a folder of CSV files holds, laid out as the published one.

        Args:
            folder: the folder ``database`` of TravelPlanner, or one like it. Flights may be missing, and so may any
                other table but that of cities.
            progress: is told, now and then, how many bytes of how many have been read, where flights are many.
            cache: where a large table of flights is kept as a database file; the user's cache where left out.

        Raises:
            NotationError: no such folder, a missing column, a value of the wrong kind: with file, line and column.
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
        """The world that the reference information of a query holds.

        Args:
            reference: an object or a list of tables, as JSON value or as text.
            cities: the cities of each state, which a reference information does not tell.

        Raises:
            NotationError: it cannot be read; with the table and the line.
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
        """The small world of our own: invented states and cities, and a few hundred rows."""
        return cls.from_folder(authored.find("tasks", "travel") / "world")

    # -- looking up ----------------------------------------------------------------------------------------------------

    def flights(self, origin: str, destination: str, day: date | None = None) -> tuple[Flight, ...]:
        """The flights from a city to another on a day; without one, on any day."""
        return self._flights.between(origin, destination, day)

    def flights_numbered(self, number: str) -> tuple[Flight, ...]:
        """The flights of that number, on any day."""
        return self._flights.numbered(number)

    def road(self, origin: str, destination: str) -> Road | None:
        """The row of the table of distances; None where there is none."""
        return self._roads.get((origin, destination))

    def distance(self, origin: str, destination: str, mode: Mode) -> Drive | None:
        """The way from a city to another by car or taxi; None where there is none."""
        road = self.road(origin, destination)
        return drive_of(road, mode) if road is not None else None

    def accommodations(self, city: str) -> tuple[Accommodation, ...]:
        """The beds in a city."""
        return self._accommodations.get(city, ())

    def restaurants(self, city: str) -> tuple[Restaurant, ...]:
        """The restaurants in a city."""
        return self._restaurants.get(city, ())

    def restaurant_numbers(self, city: str) -> tuple[int, ...]:
        """The places of the restaurants of a city in their whole table, from 0; the published tool prints them."""
        return tuple(self._numbers.get(city, ()))

    def attractions(self, city: str) -> tuple[Attraction, ...]:
        """The sights in a city."""
        return self._attractions.get(city, ())

    def cities(self, state: str | None = None) -> tuple[str, ...]:
        """The cities of a state; without one, all that any table knows: those of states first, in their order."""
        return self._known if state is None else self._cities.get(state, ())

    @cached_property
    def cuisines(self) -> tuple[str, ...]:
        """The cuisines that can be eaten, in alphabetical order."""
        return tuple(sorted({name for places in self._restaurants.values() for one in places for name in one.cuisines}))

    @property
    def states(self) -> tuple[str, ...]:
        """The states, in order."""
        return tuple(self._cities)

    def state_of(self, city: str) -> str | None:
        """The state of a city; None where no table tells."""
        return self._state.get(city)

    # -- all of it -----------------------------------------------------------------------------------------------------

    def all_flights(self) -> Iterable[Flight]:
        """All flights, one at a time."""
        return iter(self._flights)

    def all_roads(self) -> tuple[Road, ...]:
        """All roads."""
        return tuple(self._roads.values())

    def __repr__(self) -> str:
        beds, tables, sights = (sum(map(len, by.values())) for by in self._places())
        return (
            f"<World: {len(self._known)} cities in {len(self._cities)} states, {len(self._flights)} flights, "
            f"{len(self._roads)} roads, {beds} beds, {tables} restaurants, {sights} attractions>"
        )

    def _places(self) -> tuple[Mapping[str, Sequence[object]], ...]:
        return self._accommodations, self._restaurants, self._attractions

    def _all_cities(self) -> tuple[str, ...]:
        names = dict.fromkeys(self._state)
        for places in self._places():
            names.update(dict.fromkeys(places))
        for way in self._roads:
            names.update(dict.fromkeys(way))
        names.update(dict.fromkeys(self._flights.cities()))
        return tuple(names)


def _by_city(rows: Iterable[R]) -> dict[str, tuple[R, ...]]:
    found: dict[str, list[R]] = {}
    for row in rows:
        found.setdefault(row.city, []).append(row)
    return {city: tuple(there) for city, there in found.items()}
