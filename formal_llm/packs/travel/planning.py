"""Plan trips: an ordinary planner over the trips that satisfy all wishes.

::

    trip = plan_trip(query, World.from_folder("database"), "openai:...")
    for day in trip.days: print(day.current_city, day.dinner)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from typing import Unpack, cast

from formal_llm.errors import InputError, NoValidPlan
from formal_llm.llms.driven import adriven, driven
from formal_llm.llms.llm import attempts
from formal_llm.llms.providers import LLMLike
from formal_llm.packs.travel.candidates import RATING, Preference, TravelOption, format_dollars
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.meals import NEVER
from formal_llm.packs.travel.plan_days import MEALS, NOTHING, Day
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.routes import cities_of
from formal_llm.packs.travel.rows import Flight, Money
from formal_llm.packs.travel.slots import list_slots
from formal_llm.packs.travel.telling import summarize_query
from formal_llm.packs.travel.trip import Chosen, Trip
from formal_llm.packs.travel.trip_text import format_money
from formal_llm.planning.drivers.driving import Steps
from formal_llm.planning.drivers.planner import Planner, PlannerSettings
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.walks.pages import Offer, Pages
from formal_llm.planning.walks.walk import Walk
from formal_llm.planning.walks.wording import Wording

_ROOMS = {
    "entire room": "an entire home",
    "private room": "a private room",
    "shared room": "a shared room",
    "not shared room": "a room of one's own",
}


@dataclass(frozen=True, slots=True)
class DroppableWish:
    """A wish that can be dropped.

    Attributes:
        kind: ``"budget"``, ``"house rule"``, ``"room type"``, ``"transportation"`` or ``"cuisine"``.
        value: the content of the wish.
    """

    kind: str
    value: str

    def __str__(self) -> str:
        match self.kind:
            case "budget":
                return f"a budget of {self.value}"
            case "house rule":
                return f"a bed where {self.value} {'is' if self.value == 'smoking' else 'are'} allowed"
            case "room type":
                return _ROOMS.get(self.value, self.value)
            case "cuisine":
                return f"{self.value} food"
            case _:
                return self.value


@dataclass(frozen=True, slots=True)
class Remedy:
    """Wishes to drop, and the cheapest trip that satisfies the others.

    Attributes:
        dropped: the wishes.
        cost: the cost of that trip, in cents.
        days: the trip.
    """

    dropped: tuple[DroppableWish, ...]
    cost: int
    days: tuple[Day, ...]

    def __str__(self) -> str:
        return f"without {_join_names(self.dropped)} there is a trip for {format_dollars(self.cost)}"


class NoTrip(NoValidPlan):
    """No trip satisfies all wishes.

    Attributes:
        remedies: the smallest sets of wishes to drop, all of the same size, the one with the cheapest trip first;
            empty if no trip is possible even without all wishes.
    """

    def __init__(self, reason: str, remedies: tuple[Remedy, ...] = ()) -> None:
        self.remedies = remedies
        listed = "".join(f"\n- {remedy}" for remedy in remedies)
        super().__init__(f"{reason}{listed}", remedy=[str(wish) for wish in remedies[0].dropped] if remedies else ())


def wishes_of(query: TravelQuery) -> tuple[DroppableWish, ...]:
    """List the wishes of a query."""
    wishes = query.constraints
    found = [] if query.budget is None else [DroppableWish("budget", format_money(query.budget))]
    single = (
        ("house rule", wishes.house_rule),
        ("room type", wishes.room_type),
        ("transportation", wishes.transportation),
    )
    found += [DroppableWish(kind, value) for kind, value in single if value]
    return (*found, *(DroppableWish("cuisine", cuisine) for cuisine in dict.fromkeys(wishes.cuisines)))


def without(query: TravelQuery, dropped: tuple[DroppableWish, ...]) -> TravelQuery:
    """Return a query without some of its wishes."""
    kinds = {wish.kind for wish in dropped}
    wishes = query.constraints
    kept = replace(
        wishes,
        house_rule=None if "house rule" in kinds else wishes.house_rule,
        room_type=None if "room type" in kinds else wishes.room_type,
        transportation=None if "transportation" in kinds else wishes.transportation,
        cuisines=tuple(one for one in wishes.cuisines if DroppableWish("cuisine", one) not in dropped),
    )
    budget = None if "budget" in kinds else query.budget
    return replace(query, budget=budget, constraints=kept)


def remedies(query: TravelQuery, world: World) -> tuple[Remedy, ...]:
    """Find the smallest sets of wishes to drop, each with the cheapest trip without them; none if no trip is possible.

    Args:
        query: the unsatisfiable query.
        world: the database.
    """
    wishes = wishes_of(query)
    for size in range(1, len(wishes) + 1):
        found = [remedy for dropped in combinations(wishes, size) for remedy in _find_remedy(query, world, dropped)]
        if found:
            return tuple(sorted(found, key=lambda remedy: remedy.cost))
    return ()


def _find_remedy(query: TravelQuery, world: World, dropped: tuple[DroppableWish, ...]) -> Iterator[Remedy]:
    trip = Trip(without(query, dropped), world, every_meal=True)
    cost = trip.routes.find_least_cost((), most=trip.most, some=False)
    if cost < NEVER:
        word = trip.find_cheapest()
        assert word is not None
        yield Remedy(dropped, cost, days_of(trip, word))


def no_trip(query: TravelQuery, world: World) -> NoTrip:
    """Create the error for an unsatisfiable query."""
    found = remedies(query, world)
    if found:
        return NoTrip("no trip keeps all the wishes. What could be dropped:", found)
    return NoTrip(_explain_obstacle(query, world))


def _explain_obstacle(query: TravelQuery, world: World) -> str:
    """Explain why there is no trip even without all wishes."""
    trip, count = Trip(without(query, wishes_of(query)), world, every_meal=True), query.visiting_city_number
    usable = trip.routes.cities
    if not cities_of(query, world):
        return f"no city to visit is known in {query.dest}"
    if len(usable) < count:
        able = f"only {_join_names(usable)} {'has' if len(usable) == 1 else 'have'}" if usable else "nothing there has"
        wanted = "" if count == 1 else f", and {count} cities are to be visited"
        return f"{able} the beds, restaurants and sights that a trip to {query.dest} takes{wanted}"
    cities = _join_names(usable) if len(usable) == count else query.dest
    way = f"there is no way from {query.org} to {cities} and home again on these days"
    return f"{way} that is self-driving all along, or flights and taxis"


def _join_names(parts: Iterable[object]) -> str:
    names = [str(part) for part in parts]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


#: Short, since a trip takes about thirty independent questions. ``{task}`` is replaced by a summary of the query.
WORDING = Wording(
    prompt="{task}\n{target}\n{options}\n{instruction}",
    question_target="{question}",
    instruction="Answer with one number.",
)


def as_listed(_: Offer) -> int:
    """Keep the order of the trip automaton: missing cuisines first, then best rated, then cheapest."""
    return 0


#: Few options per page, so that thirty questions stay small.
PAGES = Pages(options=6, order=as_listed)


@dataclass(frozen=True, slots=True)
class PlannedTrip:
    """A planned trip.

    Attributes:
        query: the query.
        days: the trip, in the published format.
        cost: the cost for all travellers, in dollars.
        plan: the plan, with its word and its usage.
    """

    query: TravelQuery
    days: tuple[Day, ...]
    cost: Money
    plan: Plan


def tastes_of(query: TravelQuery) -> str:
    """Return the task for the plan of a query, its matters of taste: ``"Indian and French food"``."""
    return " and ".join(f"{cuisine} food" for cuisine in query.constraints.cuisines)


def trips_of(query: TravelQuery, world: World, prefer: Preference = RATING) -> Trip:
    """Create the automaton of the trips that satisfy all wishes, with preferred options first.

    Raises:
        NoTrip: there is no such trip; the error names the wishes to drop and the cost of the cheapest trip without.
        InputError: the query is invalid.
    """
    trip = Trip.from_query(query, world, prefer)
    if trip.to_end(trip.start()) is None:
        raise no_trip(query, world)
    return trip


def trip_planner(trip: Trip, llm: LLMLike = "builtin", **settings: Unpack[PlannerSettings]) -> Planner:
    """Create the planner for the trips of a query, with a short wording and short pages.

    The task of its plans is :func:`tastes_of`. Options are compared with nothing else of the query: "Room 7" does not
    suit a query of 7 days better.

    Args:
        trip: the trips.
        llm: the model that answers.
        settings: the settings of :class:`~formal_llm.Planner`, without limits and constraints.

    Raises:
        InputError: there are limits or constraints, which could lead to dead ends.
    """
    if settings.get("limits") or settings.get("constraints"):
        raise InputError("limits and constraints on trips could lead to dead ends; write what is wanted into the query")
    summary = summarize_query(trip.query).replace("{", "(").replace("}", ")")
    wording = settings.get("wording") or WORDING
    parts = {name: getattr(wording, name).replace("{task}", summary) for name in ("prompt", "follow_up", "draft_task")}
    settings["wording"] = replace(wording, **parts)
    settings.setdefault("pages", PAGES)
    return Planner(trip, llm, **settings)


def plan_trip(
    query: TravelQuery, world: World, llm: LLMLike = "builtin", *, prefer: Preference = RATING,
    **settings: Unpack[PlannerSettings],
) -> PlannedTrip:  # fmt: skip
    """Plan a trip that satisfies all wishes and the budget, whatever the model answers.

    With ``search="draft"`` one request shows the names of all candidates. If more cities are possible than are
    visited, the model first chooses the cities, so that the request shows only the candidates in these.

    Args:
        query: the query.
        world: the database.
        llm: the model that answers; ``"builtin"`` takes the wanted cuisines, then what comes first.
        prefer: what comes first among the options, if they can be completed.
        settings: the settings of :class:`~formal_llm.Planner`.

    Raises:
        NoTrip: no trip satisfies all wishes; raised before the first question.
        InputError: the query is invalid.
        InvalidAnswer, BudgetExceeded, LLMError: as in :meth:`Planner.plan`.
    """
    making = _Making(trips_of(query, world, prefer), llm, settings)
    if making.cities is not None:
        driven(making.ask_cities(making.cities), making.planner.llm.ask)
    return making.finish_trip(making.make_rest_planner().plan(making.task))


async def aplan_trip(
    query: TravelQuery, world: World, llm: LLMLike = "builtin", *, prefer: Preference = RATING,
    **settings: Unpack[PlannerSettings],
) -> PlannedTrip:  # fmt: skip
    """Plan a trip asynchronously; see :func:`plan_trip`."""
    making = _Making(trips_of(query, world, prefer), llm, settings)
    if making.cities is not None:
        await adriven(making.ask_cities(making.cities), making.planner.llm.aask)
    return making.finish_trip(await making.make_rest_planner().aplan(making.task))


class _Making:
    """A trip being planned: first its cities, if a draft would contain too many names; then the rest."""

    def __init__(self, trip: Trip, llm: LLMLike, settings: PlannerSettings) -> None:
        self.task = tastes_of(trip.query)
        self.planner = trip_planner(trip, llm, **settings)
        self._trip = trip
        self._settings: PlannerSettings = {**settings}
        wide = self.planner.search == "draft" and len(trip.routes.cities) > trip.routes.count
        #: The walk to the cities; None if they are planned together with the rest.
        self.cities = self.planner.start(self.task) if wide else None

    def ask_cities(self, walk: Walk) -> Steps:
        """Ask the questions for the cities."""
        while (question := walk.question) is not None and not self._has_cities(walk):
            walk.answer((yield from attempts(question, self.planner.tries)))

    def _has_cities(self, walk: Walk) -> bool:
        return len(cast("Chosen", walk.configuration).cities) == self._trip.routes.count

    def make_rest_planner(self) -> Planner:
        """Create the planner for the rest of the trip."""
        if self.cities is None:
            return self.planner
        cities = cast("Chosen", self.cities.configuration).cities
        self._trip = self._trip.restrict_to(cities)
        return trip_planner(self._trip, self.planner.llm, **self._settings)

    def finish_trip(self, plan: Plan) -> PlannedTrip:
        """Create the trip from the plan, with the total usage."""
        before = self.cities.usage if self.cities is not None else None
        return planned(self._trip, plan if before is None else plan.with_usage(before + plan.usage))


def planned(trip: Trip, plan: Plan) -> PlannedTrip:
    """Convert a plan to a trip.

    Raises:
        ValueError: it is not a plan of these trips.
    """
    days, chosen = days_of(trip, plan.word), trip.follow_word(plan.word)
    assert chosen is not None  # else ``days_of`` raises
    whole, rest = divmod(chosen.spent, 100)
    return PlannedTrip(trip.query, days, Decimal(chosen.spent) / 100 if rest else whole, plan)


def days_of(trip: Trip, word: Iterable[str]) -> tuple[Day, ...]:
    """Convert a word of a trip to days.

    Args:
        trip: the automaton of the trips.
        word: the chosen names.

    Raises:
        ValueError: it is not a word of the automaton.
    """
    chosen = trip.follow_word(word)
    if chosen is None or chosen.shape is None or not trip.accepting(chosen):
        raise ValueError("this is no word of the trip: its names are not those that can be chosen, or some are missing")
    cities, shape = chosen.cities, chosen.shape
    fields: list[dict[str, str]] = [{} for _ in trip.query.dates]
    for city, stay in zip(cities, shape, strict=True):
        for day in range(stay.arrival, stay.leaving):
            fields[day]["current_city"] = city
    for number, name in enumerate(chosen.ways):
        origin, destination, day = trip.find_leg(cities, shape, number)
        fields[day]["current_city"] = f"from {origin} to {destination}"
        fields[day]["transportation"] = way_text(trip.find_way(origin, destination, day, name))
    for slot, name in zip(list_slots(shape), chosen.picks, strict=True):
        if slot.kind == "bed":
            for day in range(shape[slot.stay].arrival, shape[slot.stay].leaving):
                fields[day]["accommodation"] = name
        elif slot.kind in MEALS:
            fields[slot.day][slot.kind] = name
        elif name != NOTHING:
            fields[slot.day]["attraction"] = f"{fields[slot.day].get('attraction', '')}{name};"
    return tuple(replace(Day(number, NOTHING), **one) for number, one in enumerate(fields, 1))  # type: ignore[arg-type]


def way_text(way: TravelOption) -> str:
    """Write a way in the published format."""
    row = way.row
    places = f"{way.name}, from {row.origin} to {row.destination}"
    if isinstance(row, Flight):
        return f"{places}, Departure Time: {row.departure}, Arrival Time: {row.arrival}"
    return f"{places}, duration: {row.duration}, distance: {row.distance}, cost: {row.cost}"
