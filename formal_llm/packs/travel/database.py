"""A world: the cities of some states, and what flies, drives, sleeps and eats there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from os import PathLike
from typing import Protocol

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

__all__ = [
    "Accommodation", "Attraction", "Drive", "Flight", "FlightTable", "Mode", "Money", "Restaurant", "Road", "World",
]  # fmt: skip


class FlightTable(Protocol):
    """Where flights are looked up: in memory, or in a database file where they are millions."""

    def between(self, origin: str, destination: str, day: date | None) -> tuple[Flight, ...]:
        """The flights from a city to another, on a day or on any, in the order of their table."""
        ...

    def numbered(self, number: str) -> tuple[Flight, ...]:
        """The flights of that number."""
        ...

    def __len__(self) -> int: ...


class World:
    """What can be travelled. Rows keep the order of their tables.

    Args:
        flights: the flights.
        roads: the roads, each in one direction.
        accommodations, restaurants, attractions: the places.
        cities: the cities of each state.
    """

    def __init__(
        self,
        flights: Iterable[Flight] | FlightTable = (),
        roads: Iterable[Road] = (),
        accommodations: Iterable[Accommodation] = (),
        restaurants: Iterable[Restaurant] = (),
        attractions: Iterable[Attraction] = (),
        cities: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        raise NotImplementedError

    @classmethod
    def from_folder(cls, folder: str | PathLike[str]) -> World:
        """The world that a folder of CSV files holds, laid out as the published one."""
        raise NotImplementedError

    @classmethod
    def from_reference(cls, reference: object) -> World:
        """The world that the reference information of a query holds: the JSON value, or the text it is printed as."""
        raise NotImplementedError

    def flights(self, origin: str, destination: str, day: date | None = None) -> tuple[Flight, ...]:
        """The flights from a city to another on a day; without one, on any day."""
        raise NotImplementedError

    def flights_numbered(self, number: str) -> tuple[Flight, ...]:
        """The flights of that number, on any day."""
        raise NotImplementedError

    def road(self, origin: str, destination: str) -> Road | None:
        """The row of the table of distances; None where there is none."""
        raise NotImplementedError

    def distance(self, origin: str, destination: str, mode: Mode) -> Drive | None:
        """The way from a city to another by car or taxi; None where there is none."""
        road = self.road(origin, destination)
        return drive_of(road, mode) if road is not None else None

    def accommodations(self, city: str) -> tuple[Accommodation, ...]:
        """The beds in a city."""
        raise NotImplementedError

    def restaurants(self, city: str) -> tuple[Restaurant, ...]:
        """The restaurants in a city."""
        raise NotImplementedError

    def attractions(self, city: str) -> tuple[Attraction, ...]:
        """The sights in a city."""
        raise NotImplementedError

    def cities(self, state: str | None = None) -> tuple[str, ...]:
        """The cities of a state; without one, all that any table knows."""
        raise NotImplementedError

    @property
    def states(self) -> tuple[str, ...]:
        """The states."""
        raise NotImplementedError

    def state_of(self, city: str) -> str | None:
        """The state of a city."""
        raise NotImplementedError
