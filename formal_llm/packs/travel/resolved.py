"""A plan with the rows of the database that its words mean: what is flown, driven, eaten, seen and slept in.

``"Coco Bambu, Rockford"`` becomes the row of that restaurant. A name counts only whole, in its city; blanks and capital
letters of ``self-driving`` make no difference, so that nothing slips by spelled another way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, TypeAlias

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import MEALS, Day, said
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.rows import Accommodation, Attraction, Drive, Flight, Money, Restaurant

#: How one can travel.
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
        city: its name; as it was written where the world has no such city.
        state: the state in parentheses; None where there is none.
    """

    city: str
    state: str | None = None


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place as a plan names it: ``"Coco Bambu, Rockford"``.

    Attributes:
        field: where it stands in the day.
        text: what is written there.
        name, where: the parts.
    """

    field: str
    text: str
    name: str
    where: Where


@dataclass(frozen=True, slots=True)
class Stop:
    """A place of a plan with its rows: several where a city has several of that name, none where it has none."""

    named: NamedPlace
    rows: tuple[Accommodation | Restaurant | Attraction, ...]


@dataclass(frozen=True, slots=True)
class Journey:
    """How one travels on a day.

    Attributes:
        text: what is written.
        mode: flight, self-driving or taxi; None where it is none of them.
        number: of the flight.
        origin, destination: the cities; None where they cannot be read.
        times: the times that are written, by "departure" and "arrival".
        flights: the flights of that number between these cities, on any day.
        drive: the drive; None where there is none.
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
        """What it costs for so many people; None where nobody knows."""
        if self.drive is not None:
            return self.drive.cost_for(people)
        flights = [flight for flight in self.flights if on is None or flight.day == on] or list(self.flights)
        return max(flight.price for flight in flights) * people if flights else None


@dataclass(frozen=True, slots=True)
class ResolvedDay:
    """A day with the rows that it means.

    Attributes:
        day: the day as it was written.
        number: its place in the plan, from 1.
        on: its date; None behind the last day of the query.
        cities: the cities of the day: one, or two on a day of travel; None where they cannot be read.
        journey: how one travels; None where nothing is said.
        meals: the meals that are said.
        sights: the attractions that are said.
        bed: where the night is spent; None where nothing is said.
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
    """A line of the bill.

    Attributes:
        day: the day, from 1.
        field: what it is for, as the field of the day.
        text: what is paid.
        total: for all people, in dollars; None where the database does not know it.
    """

    day: int
    field: str
    text: str
    total: Money | None


def resolve_plan(plan: Sequence[Day], query: TravelQuery, world: World) -> tuple[ResolvedDay, ...]:
    """A plan with the rows that it means.

    Args:
        plan: the days.
        query: what was wanted; tells the date of each day.
        world: the database.
    """
    found = []
    for number, day in enumerate(plan, 1):
        on = query.dates[number - 1] if number <= len(query.dates) else None
        meals = [(field, text) for field, text in day.meals if said(text)]
        sights = [text for text in day.attraction.split(";") if text.strip()] if said(day.attraction) else []
        found.append(
            ResolvedDay(
                day,
                number,
                on,
                _cities(day.current_city, world),
                _journey(day.transportation, world) if said(day.transportation) else None,
                tuple(_stop(field, text, world) for field, text in meals),
                tuple(_stop("attraction", text, world) for text in sights),
                _stop("accommodation", day.accommodation, world) if said(day.accommodation) else None,
            )
        )
    return tuple(found)


def bill(days: Sequence[ResolvedDay], query: TravelQuery) -> tuple[Expense, ...]:
    """What a plan costs, line by line, in the order of the days. Attractions cost nothing."""
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
    """What a bill comes to, as far as it is known."""
    total: Money = 0
    for line in lines:
        total += line.total or 0
    return total


# -- reading -----------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """A text without blanks that make no difference."""
    return " ".join(text.split())


def where_of(text: str, world: World) -> Where:
    """The city that a text names, with its state where that is told."""
    text = plain(text)
    found = _STATE.match(text)
    if found is None or text in world.cities():
        return Where(text)
    return Where(found["city"], plain(found["state"]))


def _cities(text: str, world: World) -> tuple[Where, ...] | None:
    """The city of a day, or the two of a day of travel."""
    text = plain(text)
    if not said(text):
        return None
    if not text.lower().startswith("from "):
        return (where_of(text, world),)
    return _pair(text[5:], world)


def _pair(text: str, world: World) -> tuple[Where, Where] | None:
    """The cities of ``"A to B"``, parted where both are known; a name may hold a "to" of its own."""
    parts = re.split(r"\s+to\s+", text)
    pairs = [
        (where_of(" to ".join(parts[:cut]), world), where_of(" to ".join(parts[cut:]), world))
        for cut in range(1, len(parts))
    ]
    known = set(world.cities())
    return next((pair for pair in pairs if {one.city for one in pair} <= known), pairs[0] if pairs else None)


def _journey(text: str, world: World) -> Journey:
    found = _JOURNEY.match(text)
    if found is None:
        return Journey(text)
    mode: Travelled = "flight" if found["number"] else "taxi" if found["mode"].lower() == "taxi" else "self-driving"
    pair = _pair(plain(found["cities"].split(",")[0]), world)
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


def _stop(field: str, text: str, world: World) -> Stop:
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
