"""The rows of the database: flights, roads, accommodations, restaurants, attractions; in dollars and kilometres."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, TypeAlias

#: Dollars, as an ``int`` if they are whole.
Money: TypeAlias = "int | Decimal"
#: How a road is travelled.
Mode: TypeAlias = Literal["self-driving", "taxi"]
MODES: tuple[Mode, ...] = ("self-driving", "taxi")
#: The number of people that fit into a car and into a taxi.
SEATS: dict[Mode, int] = {"self-driving": 5, "taxi": 4}


@dataclass(frozen=True, slots=True)
class Flight:
    """A flight on one day.

    Attributes:
        number: ``"F3573659"``.
        origin, destination: its cities.
        day: the date of departure.
        departure, arrival: local times, such as ``"15:40"``.
        price: the price for one person.
        duration: ``"2 hours 24 minutes"``, as printed; None if a table lacks it.
        distance: the distance in miles; None if a table lacks it.
    """

    number: str
    origin: str
    destination: str
    day: date
    departure: str
    arrival: str
    price: Money
    duration: str | None = None
    distance: float | None = None


@dataclass(frozen=True, slots=True)
class Road:
    """The road from one city to another, as in the table of distances.

    Attributes:
        origin, destination: its cities.
        duration: ``"10 hours 55 mins"``, as printed; None if the table lacks it.
        distance: ``"1,144 km"``, as printed; None if the table lacks it.
        kilometres: the same as a number.
    """

    origin: str
    destination: str
    duration: str | None = None
    distance: str | None = None
    kilometres: float | None = None

    @property
    def usable(self) -> bool:
        """Whether it can be driven: its length is known and it takes less than a day."""
        return self.kilometres is not None and self.duration is not None and "day" not in self.duration


@dataclass(frozen=True, slots=True)
class Drive:
    """A road travelled in one mode.

    Attributes:
        mode: ``"self-driving"`` or ``"taxi"``.
        origin, destination: its cities.
        duration, distance: as printed.
        cost: of one car.
    """

    mode: Mode
    origin: str
    destination: str
    duration: str
    distance: str
    cost: int

    def cost_for(self, people: int) -> int:
        """Return the cost for a number of people, who may need several cars."""
        return self.cost * math.ceil(people / SEATS[self.mode])


@dataclass(frozen=True, slots=True)
class Accommodation:
    """An accommodation.

    Attributes:
        name, city: its name in plans.
        price: the price of one room for one night.
        room_type: ``"Entire home/apt"``, ``"Private room"`` or ``"Shared room"``.
        house_rules: what it forbids, such as ``("No pets", "No smoking")``.
        minimum_nights: the minimum number of nights of a stay.
        maximum_occupancy: the maximum number of people in a room.
        rating: from 1 to 5; None if a table lacks it.
    """

    name: str
    city: str
    price: Money
    room_type: str
    house_rules: tuple[str, ...]
    minimum_nights: int
    maximum_occupancy: int
    rating: float | None = None

    def cost_for(self, people: int) -> Money:
        """Return the cost of one night for a number of people, who may need several rooms."""
        return self.price * math.ceil(people / self.maximum_occupancy)

    def allows(self, house_rule: str) -> bool:
        """Return whether it does not forbid ``"smoking"``, ``"pets"`` ..."""
        return f"No {house_rule}" not in self.house_rules

    def is_of(self, room_type: str) -> bool:
        """Return whether it has a room type of queries: ``"entire room"``, ``"private room"``, ``"shared room"`` ...

        Raises:
            KeyError: there is no such type.
        """
        return self.room_type in _ROOMS[room_type]


@dataclass(frozen=True, slots=True)
class Restaurant:
    """A restaurant.

    Attributes:
        name, city: its name in plans.
        cost: the cost of a meal for one person.
        cuisines: its cuisines, such as ``("Tea", "Pizza", "Indian")``.
        rating: from 0 (none) to 5; None if a table lacks it.
    """

    name: str
    city: str
    cost: Money
    cuisines: tuple[str, ...]
    rating: float | None = None


@dataclass(frozen=True, slots=True)
class Attraction:
    """An attraction, which costs nothing.

    Attributes:
        name, city: its name in plans.
        latitude, longitude: in degrees; None if a table lacks them.
        address, phone, website: as printed; None if a table lacks them.
    """

    name: str
    city: str
    latitude: float | None = None
    longitude: float | None = None
    address: str | None = None
    phone: str | None = None
    website: str | None = None

    @property
    def place(self) -> tuple[float, float] | None:
        """Its latitude and longitude; None if they are not known."""
        lat, lon = self.latitude, self.longitude
        return None if lat is None or lon is None or not math.isfinite(lat + lon) else (lat, lon)


_ROOMS = {
    "entire room": ("Entire home/apt",),
    "private room": ("Private room",),
    "shared room": ("Shared room",),
    "not shared room": ("Entire home/apt", "Private room"),
}


def measure_arc(here: tuple[float, float], there: tuple[float, float]) -> float:
    """Compute the kilometres between two places on the globe, given by latitude and longitude."""
    (lat, lon), (lat_2, lon_2) = [(math.radians(x), math.radians(y)) for x, y in (here, there)]
    haversine = math.sin((lat_2 - lat) / 2) ** 2 + math.cos(lat) * math.cos(lat_2) * math.sin((lon_2 - lon) / 2) ** 2
    return 2 * 6_371 * math.asin(math.sqrt(haversine))


def drive_of(road: Road, mode: Mode) -> Drive | None:
    """Return the drive along a road in a mode; None if it cannot be driven.

    A car costs ``int(km * 0.05)``, a taxi ``int(km)``, both in floating point as published.
    """
    if not road.usable or road.kilometres is None or road.duration is None or road.distance is None:
        return None
    cost = int(road.kilometres * 0.05) if mode == "self-driving" else int(road.kilometres)
    return Drive(mode, road.origin, road.destination, road.duration, road.distance, cost)
