"""Planning a trip: an ordinary planner over the trips that keep all wishes.

::

    trip = plan_trip(query, World.from_folder("database"), "openai:...")
    for day in trip.days: print(day.current_city, day.dinner)
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Unpack

from formal_llm.llms.llm import LLMLike
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.itinerary import days_of
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.rows import Money
from formal_llm.packs.travel.telling import summary
from formal_llm.packs.travel.trip import Trip
from formal_llm.packs.travel.wishes import no_trip
from formal_llm.planning.drivers.planner import Planner, PlannerSettings
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.walks.pages import Offer, Pages
from formal_llm.planning.walks.wording import Wording

#: Short: a trip takes some thirty questions, and each of them stands alone.
WORDING = Wording(
    order="forward",
    prompt="{task}\n{target}\n{options}\n{instruction}",
    question_target="{question}",
    instruction="Answer with one number.",
)


def as_listed(_: Offer) -> int:
    """The order of the trips themselves: what is still wanted first, then the best rated, then the cheapest."""
    return 0


#: So few options that thirty questions stay small.
PAGES = Pages(options=6, order=as_listed)


@dataclass(frozen=True, slots=True)
class PlannedTrip:
    """A trip that was planned.

    Attributes:
        query: what was wanted.
        days: the trip, in the published format.
        cost: what it costs all travellers, in dollars.
        plan: the plan, with the word and what it took to make it.
    """

    query: TravelQuery
    days: tuple[Day, ...]
    cost: Money
    plan: Plan


def trips_of(query: TravelQuery, world: World) -> Trip:
    """The trips that keep all wishes.

    Raises:
        NoTrip: there is none; says which wishes to drop, and what the cheapest trip without them costs.
        InputError: the query is none.
    """
    trip = Trip.of(query, world)
    if trip.to_end(trip.start()) is None:
        raise no_trip(query, world)
    return trip


def trip_planner(trip: Trip, llm: LLMLike = "builtin", **settings: Unpack[PlannerSettings]) -> Planner:
    """The planner for the trips of a query, with a wording of few words and pages of few options.

    Args:
        trip: the trips.
        llm: who answers.
        settings: those of a :class:`~formal_llm.Planner`.
    """
    settings.setdefault("wording", WORDING)
    settings.setdefault("pages", PAGES)
    return Planner(trip, llm, **settings)


def plan_trip(
    query: TravelQuery, world: World, llm: LLMLike = "builtin", **settings: Unpack[PlannerSettings]
) -> PlannedTrip:
    """Plan a trip: it keeps all wishes and the budget, whatever the model answers.

    Args:
        query: what is wanted.
        world: what there is.
        llm: who answers; ``"builtin"`` takes what is rated best.
        settings: those of a :class:`~formal_llm.Planner`.

    Raises:
        NoTrip: no trip keeps all wishes; before the first question is asked.
        InputError: the query is none.
        InvalidAnswer, BudgetExceeded, LLMError: as :meth:`Planner.plan`.
    """
    trip = trips_of(query, world)
    return planned(trip, trip_planner(trip, llm, **settings).plan(summary(query)))


async def aplan_trip(
    query: TravelQuery, world: World, llm: LLMLike = "builtin", **settings: Unpack[PlannerSettings]
) -> PlannedTrip:
    """As :func:`plan_trip`, letting others go on while the model is waited for."""
    trip = trips_of(query, world)
    return planned(trip, await trip_planner(trip, llm, **settings).aplan(summary(query)))


def planned(trip: Trip, plan: Plan) -> PlannedTrip:
    """A plan as the trip that it is."""
    chosen = trip.chosen(plan.word)
    assert chosen is not None
    whole, rest = divmod(chosen.spent, 100)
    cost = whole if not rest else Decimal(chosen.spent) / 100
    return PlannedTrip(trip.query, days_of(trip, plan.word), cost, plan)
