"""The rows of the database: flights, roads, beds, restaurants, sights. Money is in dollars, distance in kilometres."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, TypeAlias

#: Dollars: a whole number where they are whole.
Money: TypeAlias = "int | Decimal"
#: How a road is travelled.
Mode: TypeAlias = Literal["self-driving", "taxi"]
MODES: tuple[Mode, ...] = ("self-driving", "taxi")
#: How many people a car and a taxi hold.
SEATS: dict[Mode, int] = {"self-driving": 5, "taxi": 4}


@dataclass(frozen=True, slots=True)
class Flight:
    """A flight on one day.

    Attributes:
        number: ``"F3573659"``.
        origin, destination: its cities.
        day: when it leaves.
        departure, arrival: clock times, ``"15:40"``, each of its own city.
        price: for one person.
        duration: ``"2 hours 24 minutes"``, as it is printed; None where a table lacks it.
        distance: in miles; None where a table lacks it.
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
    """The way from a city to another, as the table of distances has it.

    Attributes:
        origin, destination: its cities.
        duration: ``"10 hours 55 mins"``, as it is printed; None where the table lacks it.
        distance: ``"1,144 km"``, as it is printed; None where the table lacks it.
        kilometres: the same as a number.
    """

    origin: str
    destination: str
    duration: str | None = None
    distance: str | None = None
    kilometres: float | None = None

    @property
    def usable(self) -> bool:
        """Whether it can be driven: its length is known, and it takes less than a day."""
        return self.kilometres is not None and self.duration is not None and "day" not in self.duration


@dataclass(frozen=True, slots=True)
class Drive:
    """A road that is travelled in one mode.

    Attributes:
        mode: ``"self-driving"`` or ``"taxi"``.
        origin, destination: its cities.
        duration, distance: as they are printed.
        cost: of one car.
    """

    mode: Mode
    origin: str
    destination: str
    duration: str
    distance: str
    cost: int

    def cost_for(self, people: int) -> int:
        """What it costs for so many people, who need one car or several."""
        return self.cost * math.ceil(people / SEATS[self.mode])


@dataclass(frozen=True, slots=True)
class Accommodation:
    """A bed for the night.

    Attributes:
        name, city: how plans name it.
        price: of one room for one night.
        room_type: ``"Entire home/apt"``, ``"Private room"`` or ``"Shared room"``.
        house_rules: what it forbids: ``("No pets", "No smoking")``.
        minimum_nights: how many nights one must stay at least.
        maximum_occupancy: how many people a room holds.
        rating: from 1 to 5; None where a table lacks it.
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
        """What one night costs for so many people, who need one room or several."""
        return self.price * math.ceil(people / self.maximum_occupancy)

    def allows(self, house_rule: str) -> bool:
        """Whether it does not forbid ``"smoking"``, ``"pets"`` ..."""
        return f"No {house_rule}" not in self.house_rules

    def is_of(self, room_type: str) -> bool:
        """Whether it is what a query calls ``"entire room"``, ``"private room"``, ``"shared room"`` and so on.

        Raises:
            KeyError: no such type.
        """
        return self.room_type in _ROOMS[room_type]


@dataclass(frozen=True, slots=True)
class Restaurant:
    """A place to eat.

    Attributes:
        name, city: how plans name it.
        cost: of a meal for one person.
        cuisines: ``("Tea", "Pizza", "Indian")``.
        rating: from 0 (none) to 5; None where a table lacks it.
    """

    name: str
    city: str
    cost: Money
    cuisines: tuple[str, ...]
    rating: float | None = None


@dataclass(frozen=True, slots=True)
class Attraction:
    """A sight; it costs nothing.

    Attributes:
        name, city: how plans name it.
        latitude, longitude: in degrees; None where a table lacks them.
        address, phone, website: as they are printed; None where a table lacks them.
    """

    name: str
    city: str
    latitude: float | None = None
    longitude: float | None = None
    address: str | None = None
    phone: str | None = None
    website: str | None = None


_ROOMS = {
    "entire room": ("Entire home/apt",),
    "private room": ("Private room",),
    "shared room": ("Shared room",),
    "not shared room": ("Entire home/apt", "Private room"),
}


def drive_of(road: Road, mode: Mode) -> Drive | None:
    """The road travelled in a mode; None where it cannot be.

    A car costs ``int(km * 0.05)``, a taxi ``int(km)``; both as they are published, in floating point.
    """
    if not road.usable or road.kilometres is None or road.duration is None or road.distance is None:
        return None
    cost = int(road.kilometres * 0.05) if mode == "self-driving" else int(road.kilometres)
    return Drive(mode, road.origin, road.destination, road.duration, road.distance, cost)
