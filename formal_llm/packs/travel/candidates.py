"""Candidates for the components of a trip: the rows of a world that satisfy the wishes, with costs for all travellers.

In a plan ``"Coco Bambu, Rockford"`` denotes all rows of this name in the city, and the published checks take the first
row whose name *contains* it. If there are several, the name counts as the most expensive and the strictest of them:
then every interpretation of the plan satisfies the wishes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar

from formal_llm.errors import InputError
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.hours import count_after, count_before, find_times, parse_hours
from formal_llm.packs.travel.meals import Kitchen, MealOption
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.rows import MODES, Accommodation, Drive, Flight, Money, Restaurant, measure_arc

#: The values of a star, of an hour of travel and of a sight in the order of options, in cents per traveller.
_STAR, _HOUR, _SIGHT = 1000, 1500, 1500
#: The stars that a restaurant counts less if all of its cuisines have been tried in its city.
_CHANGE = 0.3
#: The assumed hours of a flight whose duration is not in the table.
_FLIGHT_HOURS = 3.0
SELF_DRIVING, TAXI = "Self-driving", "Taxi"


class Preference(NamedTuple):
    """What counts how much in the order of options: weights of ratings, costs, hours of travel and sights."""

    rating: float = 0
    cheap: float = 0
    travel: float = 0
    sights: float = 0

    @classmethod
    def from_text(cls, text: str) -> Preference:
        """Read ``"cheap"``, which counts more than all others, or weights such as ``"rating=2, cheap=1"``.

        Raises:
            InputError: a name is unknown, or a weight is no number of at least 0.
        """
        found = {}
        for part in text.split(","):
            name, weight = (one.strip() for one in (part if "=" in part else f"{part}=100").split("=", 1))
            field = name.removeprefix("little-")
            if field not in cls._fields or name == "travel" or not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", weight):
                raise InputError(
                    f"no preference is {part.strip()!r}; write rating, cheap, little-travel or sights, or weights "
                    "such as rating=2,cheap=1"
                )
            found[field] = float(weight)
        return cls(**found) if "=" in text else cls(1, 1, 1, 1)._replace(**found)


#: Ratings first of all.
RATING = Preference(100, 1, 1, 1)


class _Named(Protocol):
    @property
    def name(self) -> str:
        """The name."""


N = TypeVar("N", bound=_Named)


@dataclass(frozen=True, slots=True)
class Bed:
    """An accommodation that satisfies the wishes.

    Attributes:
        name: ``"Name, City"``, as in plans.
        cost: the cost of one night for all travellers, in cents.
        nights: the minimum number of nights.
        row: the row of the database.
    """

    name: str
    cost: int
    nights: int
    row: Accommodation


@dataclass(frozen=True, slots=True)
class Eatery:
    """A restaurant.

    Attributes:
        name: ``"Name, City"``, as in plans.
        cost: the cost of a meal for all travellers, in cents.
        offers: what it has of the wanted cuisines, one bit each.
        row: the row of the database.
    """

    name: str
    cost: int
    offers: int
    row: Restaurant


@dataclass(frozen=True, slots=True)
class TravelOption:
    """A way from one city to another on one day.

    Attributes:
        name: ``"Flight Number: F3573659"``, ``"Self-driving"`` or ``"Taxi"``.
        cost: the cost for all travellers, in cents.
        hours: the approximate duration.
        row: the row of the database.
    """

    name: str
    cost: int
    hours: float
    row: Flight | Drive

    @property
    def driven(self) -> bool:
        """Whether it is self-driving, which excludes all other modes."""
        return self.name == SELF_DRIVING


@dataclass(frozen=True)
class City:
    """The candidates in a city.

    Attributes:
        name: the city.
        beds: the accommodations, preferred ones first.
        eateries: the restaurants by name, preferred ones first.
        sights: the names of the attractions, in the order of the table, with their positions if they are known.
        kitchen: the restaurants in the order of cost.
        place: the position of each restaurant in the kitchen.
    """

    name: str
    beds: tuple[Bed, ...]
    eateries: dict[str, Eatery]
    sights: dict[str, tuple[float, float] | None]
    kitchen: Kitchen
    place: dict[str, int]

    def list_sights(self, last: str, seen: Collection[str]) -> list[tuple[str, float | None]]:
        """List the other attractions, the nearest to the last one first, with their distances in kilometres."""
        here = self.sights.get(last)
        away = {
            name: None if here is None or place is None else measure_arc(here, place)
            for name, place in self.sights.items()
            if name not in seen
        }
        return sorted(away.items(), key=lambda one: math.inf if one[1] is None else one[1])

    @cached_property
    def beds_by_name(self) -> dict[str, Bed]:
        """The accommodations by name."""
        return {bed.name: bed for bed in self.beds}


class Candidates:
    """The candidates of a query.

    Args:
        query: the query.
        world: the database.
        prefer: what comes first among the options.

    Attributes:
        cuisines: the wanted cuisines, each once, in the order of their bits in sets.
        wanted: the set of all wanted cuisines.
        budget: the budget in cents, rounded down; None for no bound.
    """

    def __init__(self, query: TravelQuery, world: World, prefer: Preference = RATING) -> None:
        self.query = query
        self.world = world
        self.prefer = prefer
        self.cuisines = tuple(dict.fromkeys(query.constraints.cuisines))
        self.wanted = (1 << len(self.cuisines)) - 1
        self.budget = None if query.budget is None else convert_to_cents(query.budget, ROUND_FLOOR)
        self._cities: dict[str, City] = {}
        self._ways: dict[tuple[str, str, date], tuple[TravelOption, ...]] = {}

    def find_city(self, name: str) -> City:
        """Return the candidates in a city."""
        found = self._cities.get(name)
        if found is None:
            found = self._cities[name] = self._build_city(name)
        return found

    def _build_city(self, name: str) -> City:
        beds = map(self._make_bed, _group_by_name(self.world.accommodations(name)))
        eateries = [self._make_eatery(group) for group in _group_by_name(self.world.restaurants(name))]
        sights = [group[0] for group in _group_by_name(self.world.attractions(name))]
        by_cost = sorted(eateries, key=lambda one: (one.cost, one.name))
        return City(
            name,
            tuple(sorted((one for one in beds if one is not None), key=self._rate_place)),
            {one.name: one for one in sorted(eateries, key=self._rate_place)},
            {f"{one.name.strip()}, {name}": one.place for one in sights if ";" not in one.name},
            Kitchen([MealOption(one.cost, one.offers) for one in by_cost], self.wanted),
            {one.name: place for place, one in enumerate(by_cost)},
        )

    def rate(self, cost: int, *, rating: float | None = None, hours: float = 0, sights: int = 0) -> float:
        """Rate an option by its cost for all travellers, in cents, and its other qualities; the best have the least."""
        prefer = self.prefer
        value = prefer.rating * _STAR * (rating or 0) + prefer.sights * _SIGHT * sights
        return prefer.cheap * cost / self.query.people + prefer.travel * _HOUR * hours - value

    def rate_way(self, way: TravelOption) -> float:
        """Rate a way; the best have the least."""
        leaving, arrival = find_times(way.row, 1)
        return self.rate(way.cost, hours=way.hours, sights=count_before(leaving)[1] + count_after(arrival)[1])

    def rate_meal(self, one: Eatery, tried: Collection[str]) -> float:
        """Rate a restaurant; the share of its cuisines that have been tried counts like some missing stars."""
        share = sum(cuisine in tried for cuisine in one.row.cuisines) / max(len(one.row.cuisines), 1)
        return self.rate(one.cost, rating=(one.row.rating or 0) - _CHANGE * share)

    def _rate_place(self, one: Bed | Eatery) -> tuple[float, float, int]:
        return self.rate(one.cost, rating=one.row.rating), -(one.row.rating or 0), one.cost

    def _make_bed(self, meant: Sequence[Accommodation]) -> Bed | None:
        """Create the candidate for rows of one name; None if any of the rows violates the wishes."""
        people, wishes = self.query.people, self.query.constraints
        for row in meant:
            if row.maximum_occupancy < 1:
                return None
            if wishes.room_type is not None and not row.is_of(wishes.room_type):
                return None
            if wishes.house_rule is not None and not row.allows(wishes.house_rule):
                return None
        cost = max(convert_to_cents(row.cost_for(people)) for row in meant)
        row = meant[0]
        return Bed(f"{row.name.strip()}, {row.city}", cost, max(row.minimum_nights for row in meant), row)

    def _make_eatery(self, meant: Sequence[Restaurant]) -> Eatery:
        """Create the candidate for rows of one name."""
        row = meant[0]
        cost = max(convert_to_cents(one.cost * self.query.people) for one in meant)
        offers = sum(
            1 << bit for bit, cuisine in enumerate(self.cuisines) if all(cuisine in one.cuisines for one in meant)
        )
        return Eatery(f"{row.name.strip()}, {row.city}", cost, offers, row)

    def list_ways(self, origin: str, destination: str, day: date) -> tuple[TravelOption, ...]:
        """List the ways from one city to another that satisfy the wishes, preferred ones first."""
        key = (origin, destination, day)
        options = self._ways.get(key)
        if options is None:
            people, wish = self.query.people, self.query.constraints.transportation
            ways: list[TravelOption] = []
            if wish != "no flight":
                for row in self.world.flights(origin, destination, day):
                    # The published checks take the first flight of a number, on any day.
                    price = max(one.price for one in (row, *self.world.flights_numbered(row.number)[:1]))
                    name = f"Flight Number: {row.number}"
                    ways.append(
                        TravelOption(
                            name, convert_to_cents(price * people), parse_hours(row.duration) or _FLIGHT_HOURS, row
                        )
                    )
            for mode in MODES:
                drive = self.world.distance(origin, destination, mode)
                if drive is not None and wish != f"no {mode}":
                    name = SELF_DRIVING if mode == "self-driving" else TAXI
                    ways.append(
                        TravelOption(name, convert_to_cents(drive.cost_for(people)), parse_hours(drive.duration), drive)
                    )
            ways.sort(key=lambda way: (self.rate_way(way), way.cost, way.name))
            options = self._ways[key] = tuple({way.name: way for way in reversed(ways)}.values())[::-1]
        return options


def convert_to_cents(money: Money, rounding: str = ROUND_CEILING) -> int:
    """Convert dollars to cents, rounded up so that nothing costs more than announced."""
    return int((Decimal(money) * 100).to_integral_value(rounding))


def format_dollars(amount: int) -> str:
    """Format cents as dollars: ``"$1,204"`` or ``"$12.50"``."""
    whole, rest = divmod(abs(amount), 100)
    return f"{'-' if amount < 0 else ''}${whole:,}" + (f".{rest:02}" if rest else "")


def _group_by_name(rows: Sequence[N]) -> list[list[N]]:
    """Group rows by their names in plans; each group contains all rows that the name may denote, the default first."""
    exact: dict[str, list[N]] = {}
    for row in rows:
        if row.name.strip() not in ("", "-"):
            exact.setdefault(" ".join(row.name.split()).casefold(), []).append(row)
    found = []
    for group in exact.values():
        loose = next(row for row in rows if group[0].name.strip() in row.name)
        found.append(group if loose in group else [*group, loose])
    return found
