"""Plans resolved to rows of the database: flights, drives, restaurants, attractions and accommodations.

``"Coco Bambu, Rockford"`` becomes the row of that restaurant. Only the full name in its city counts; blanks, and the
letter case of ``self-driving``, are ignored, so that no variant spelling passes unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, TypeAlias

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import MEALS, Day, has_content
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.rows import Accommodation, Attraction, Drive, Flight, Money, Restaurant

#: The modes of transport.
Travelled: TypeAlias = Literal["flight", "self-driving", "taxi"]
_JOURNEY = re.compile(
    r"\s*(?:flight\s+number\s*:\s*(?P<number>\w+)|(?P<mode>self-driving|taxi))\s*,\s*from\s+(?P<cities>.+)",
    re.IGNORECASE | re.DOTALL,
)
_TIMES = re.compile(r"(departure|arrival) time\s*:\s*(\d{1,2}:\d{2})", re.IGNORECASE)
_STATE = re.compile(r"^(?P<city>.*\S)\s*\((?P<state>[^()]*)\)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Where:
    """A city as a plan names it: ``"Rockford(Illinois)"``.

    Attributes:
        city: its name; as written if the world has no such city.
        state: the state in parentheses; None if there is none.
    """

    city: str
    state: str | None = None


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place as a plan names it: ``"Coco Bambu, Rockford"``.

    Attributes:
        field: the field of the day that contains it.
        text: the text in the plan.
        name, where: its name and its city.
    """

    field: str
    text: str
    name: str
    where: Where


@dataclass(frozen=True, slots=True)
class Stop:
    """A place of a plan with its rows: several if a city has several places of that name, none if it has none."""

    named: NamedPlace
    rows: tuple[Accommodation | Restaurant | Attraction, ...]


@dataclass(frozen=True, slots=True)
class Journey:
    """The journey of a day.

    Attributes:
        text: the text in the plan.
        mode: flight, self-driving or taxi; None for any other.
        number: the number of the flight.
        origin, destination: the cities; None if they cannot be read.
        times: the times in the text, each after "departure" or "arrival".
        flights: the flights of that number between these cities, on any day.
        drive: the drive; None if there is none.
    """

    text: str
    mode: Travelled | None = None
    number: str = ""
    origin: Where | None = None
    destination: Where | None = None
    times: tuple[tuple[str, str], ...] = ()
    flights: tuple[Flight, ...] = ()
    drive: Drive | None = None

    def cost_for(self, people: int, on: date | None) -> Money | None:
        """Return the cost for a number of people; None if it is unknown."""
        if self.drive is not None:
            return self.drive.cost_for(people)
        flights = [flight for flight in self.flights if on is None or flight.day == on] or list(self.flights)
        return max(flight.price for flight in flights) * people if flights else None


@dataclass(frozen=True, slots=True)
class ResolvedDay:
    """A day resolved to rows.

    Attributes:
        day: the day as written.
        number: its place in the plan, from 1.
        on: its date; None after the last day of the query.
        cities: the cities of the day: one, or two on a day of travel; None if they cannot be read.
        journey: the journey; None if the field is empty.
        meals: the meals whose fields are not empty.
        sights: the attractions.
        bed: the accommodation; None if the field is empty.
    """

    day: Day
    number: int
    on: date | None
    cities: tuple[Where, ...] | None
    journey: Journey | None
    meals: tuple[Stop, ...]
    sights: tuple[Stop, ...]
    bed: Stop | None

    @property
    def travels(self) -> bool:
        """Whether it is a day of travel."""
        return self.cities is not None and len(self.cities) == 2


@dataclass(frozen=True, slots=True)
class Expense:
    """An item of the bill.

    Attributes:
        day: the day, from 1.
        field: the field of the day.
        text: the text of the field.
        total: the cost for all people, in dollars; None if it is not in the database.
    """

    day: int
    field: str
    text: str
    total: Money | None


def resolve_plan(plan: Sequence[Day], query: TravelQuery, world: World) -> tuple[ResolvedDay, ...]:
    """Resolve a plan to rows of the database.

    Args:
        plan: the days.
        query: the query, which determines the date of each day.
        world: the database.
    """
    found = []
    for number, day in enumerate(plan, 1):
        on = query.dates[number - 1] if number <= len(query.dates) else None
        meals = [(field, text) for field, text in day.meals if has_content(text)]
        sights = [text for text in day.attraction.split(";") if text.strip()] if has_content(day.attraction) else []
        found.append(
            ResolvedDay(
                day,
                number,
                on,
                _read_cities(day.current_city, world),
                _resolve_journey(day.transportation, world) if has_content(day.transportation) else None,
                tuple(_resolve_stop(field, text, world) for field, text in meals),
                tuple(_resolve_stop("attraction", text, world) for text in sights),
                _resolve_stop("accommodation", day.accommodation, world) if has_content(day.accommodation) else None,
            )
        )
    return tuple(found)


def bill(days: Sequence[ResolvedDay], query: TravelQuery) -> tuple[Expense, ...]:
    """List the costs of a plan, in the order of the days. Attractions cost nothing."""
    lines: list[Expense] = []
    for day in days:
        if day.journey is not None:
            cost = day.journey.cost_for(query.people, day.on)
            lines.append(Expense(day.number, "transportation", day.journey.text, cost))
        for stop in sorted(day.meals, key=lambda one: MEALS.index(one.named.field)):
            costs = [row.cost for row in stop.rows if isinstance(row, Restaurant)]
            total = max(costs) * query.people if costs else None
            lines.append(Expense(day.number, stop.named.field, stop.named.text, total))
        if day.bed is not None:
            beds = [row.cost_for(query.people) for row in day.bed.rows if isinstance(row, Accommodation)]
            lines.append(Expense(day.number, "accommodation", day.bed.named.text, max(beds) if beds else None))
    return tuple(lines)


def total_of(lines: Sequence[Expense]) -> Money:
    """Return the total of a bill, without unknown costs."""
    total: Money = 0
    for line in lines:
        total += line.total or 0
    return total


# -- reading -----------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Return a text without insignificant blanks."""
    return " ".join(text.split())


def where_of(text: str, world: World) -> Where:
    """Read a city, with its state if the text contains it."""
    text = plain(text)
    found = _STATE.match(text)
    if found is None or text in world.cities():
        return Where(text)
    return Where(found["city"], plain(found["state"]))


def _read_cities(text: str, world: World) -> tuple[Where, ...] | None:
    """Read the city of a day, or both cities of a day of travel."""
    text = plain(text)
    if not has_content(text):
        return None
    if not text.lower().startswith("from "):
        return (where_of(text, world),)
    return _read_pair(text[5:], world)


def _read_pair(text: str, world: World) -> tuple[Where, Where] | None:
    """Read the cities of ``"A to B"``, split where both are known, since a name may contain "to"."""
    parts = re.split(r"\s+to\s+", text)
    pairs = [
        (where_of(" to ".join(parts[:cut]), world), where_of(" to ".join(parts[cut:]), world))
        for cut in range(1, len(parts))
    ]
    known = set(world.cities())
    return next((pair for pair in pairs if {one.city for one in pair} <= known), pairs[0] if pairs else None)


def _resolve_journey(text: str, world: World) -> Journey:
    found = _JOURNEY.match(text)
    if found is None:
        return Journey(text)
    mode: Travelled = "flight" if found["number"] else "taxi" if found["mode"].lower() == "taxi" else "self-driving"
    pair = _read_pair(plain(found["cities"].split(",")[0]), world)
    if pair is None:
        return Journey(text, mode, found["number"] or "")
    origin, destination = pair
    times = tuple((what.lower(), time.zfill(5)) for what, time in _TIMES.findall(text))
    if mode == "flight":
        number = found["number"]
        rows = world.flights_numbered(number) or world.flights_numbered(number.upper())
        flights = tuple(row for row in rows if row.origin == origin.city and row.destination == destination.city)
        return Journey(text, mode, number, origin, destination, times, flights)
    return Journey(text, mode, "", origin, destination, times, (), world.distance(origin.city, destination.city, mode))


def _resolve_stop(field: str, text: str, world: World) -> Stop:
    name, _, city = text.rpartition(",")
    named = NamedPlace(field, plain(text), plain(name), where_of(city, world))
    here = named.where.city
    rows: Sequence[Accommodation | Restaurant | Attraction]
    if field == "accommodation":
        rows = world.accommodations(here)
    elif field == "attraction":
        rows = world.attractions(here)
    else:
        rows = world.restaurants(here)
    return Stop(named, tuple(row for row in rows if plain(row.name) == named.name))
