"""Unsatisfiable queries: the fewest wishes to drop, in the traveller's words, and the cheapest trip without them.

Sets of wishes are tried in the order of their size, so the result is minimal; the exact cost of the cheapest trip
determines whether a trip satisfies the remaining wishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from formal_llm.errors import NoValidPlan
from formal_llm.packs.travel.candidates import format_dollars
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.itinerary import days_of
from formal_llm.packs.travel.meals import NEVER
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.routes import cities_of
from formal_llm.packs.travel.trip import Trip

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
    found = [] if query.budget is None else [DroppableWish("budget", f"${query.budget:,}")]
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
    return replace(query, budget=None if "budget" in kinds else query.budget, constraints=kept)


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
