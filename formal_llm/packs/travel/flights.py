"""Flights by cities, day or number: the protocol, and its implementation in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Protocol, runtime_checkable

from formal_llm.packs.travel.rows import Flight


@runtime_checkable
class FlightTable(Protocol):
    """A table of flights."""

    def find_between(self, origin: str, destination: str, day: date | None) -> tuple[Flight, ...]:
        """Return the flights from one city to another, on a day or on any day, in the order of their table."""
        ...

    def find_numbered(self, number: str) -> tuple[Flight, ...]:
        """Return the flights with a number."""
        ...

    def list_cities(self) -> tuple[str, ...]:
        """Return the cities of departures and arrivals, in order."""
        ...

    def __iter__(self) -> Iterator[Flight]: ...

    def __len__(self) -> int: ...


class FlightList:
    """Flights in memory; :class:`~formal_llm.packs.travel.folder.FlightFile` holds millions in a database file."""

    def __init__(self, flights: Iterable[Flight] = ()) -> None:
        self._all = tuple(flights)
        self._by_way: dict[tuple[str, str], list[Flight]] = {}
        self._by_number: dict[str, list[Flight]] = {}
        for flight in self._all:
            self._by_way.setdefault((flight.origin, flight.destination), []).append(flight)
            self._by_number.setdefault(flight.number, []).append(flight)

    def find_between(self, origin: str, destination: str, day: date | None) -> tuple[Flight, ...]:
        """Return the flights from one city to another, on a day or on any day, in the order of their table."""
        return tuple(
            flight for flight in self._by_way.get((origin, destination), ()) if day is None or flight.day == day
        )

    def find_numbered(self, number: str) -> tuple[Flight, ...]:
        """Return the flights with a number."""
        return tuple(self._by_number.get(number, ()))

    def list_cities(self) -> tuple[str, ...]:
        """Return the cities of departures and arrivals, in order."""
        return tuple(dict.fromkeys(city for way in self._by_way for city in way))

    def __iter__(self) -> Iterator[Flight]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)
