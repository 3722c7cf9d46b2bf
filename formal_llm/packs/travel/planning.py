"""Planning a trip: an ordinary planner over the trips that keep all wishes.

::

    trip = plan_trip(query, World.from_folder("database"), "openai:...")
    for day in trip.days: print(day.current_city, day.dinner)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Unpack, cast

from formal_llm.llms.driven import adriven, driven
from formal_llm.llms.llm import LLMLike, answered, attempts
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.itinerary import days_of
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.rows import Money
from formal_llm.packs.travel.telling import summary
from formal_llm.packs.travel.trip import Chosen, Trip
from formal_llm.packs.travel.wishes import no_trip
from formal_llm.planning.drivers.driving import Steps, answer_while_pondering
from formal_llm.planning.drivers.planner import Planner, PlannerSettings
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.walks.pages import Offer, Pages
from formal_llm.planning.walks.walk import Walk
from formal_llm.planning.walks.wording import Wording

#: Short: a trip takes some thirty questions, and each of them stands alone. ``{task}`` becomes the query in a line.
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


def tastes_of(query: TravelQuery) -> str:
    """What of a query is a matter of taste, as the task of its plan: ``"Indian and French food"``."""
    return " and ".join(f"{cuisine} food" for cuisine in query.constraints.cuisines)


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

    Its plans are for the task :func:`tastes_of`. Nothing else of the query is compared with what is offered: what is
    called "Room 7" is not better for a query of 7 days.

    Args:
        trip: the trips.
        llm: who answers.
        settings: those of a :class:`~formal_llm.Planner`.
    """
    told = summary(trip.query).replace("{", "(").replace("}", ")")
    wording = settings.get("wording") or WORDING
    parts = {name: getattr(wording, name).replace("{task}", told) for name in ("prompt", "follow_up", "draft")}
    settings["wording"] = replace(wording, **parts)
    settings.setdefault("pages", PAGES)
    return Planner(trip, llm, **settings)


def plan_trip(
    query: TravelQuery, world: World, llm: LLMLike = "builtin", **settings: Unpack[PlannerSettings]
) -> PlannedTrip:
    """Plan a trip: it keeps all wishes and the budget, whatever the model answers.

    With ``search="draft"`` the names of all that a trip may be made of are shown in one request. Where more cities are
    open than are visited, the model is asked for the cities first, so that these are the names of their houses alone.

    Args:
        query: what is wanted.
        world: what there is.
        llm: who answers; ``"builtin"`` takes the cuisines that are wished for, and what is rated best.
        settings: those of a :class:`~formal_llm.Planner`.

    Raises:
        NoTrip: no trip keeps all wishes; before the first question is asked.
        InputError: the query is none.
        InvalidAnswer, BudgetExceeded, LLMError: as :meth:`Planner.plan`.
    """
    making = _Making(trips_of(query, world), llm, settings)
    if making.cities is not None:
        driven(making.steps(making.cities), partial(answered, making.planner.llm))
    return making.made(making.then().plan(making.task))


async def aplan_trip(
    query: TravelQuery, world: World, llm: LLMLike = "builtin", **settings: Unpack[PlannerSettings]
) -> PlannedTrip:
    """As :func:`plan_trip`, letting others go on while the model is waited for."""
    making = _Making(trips_of(query, world), llm, settings)
    if making.cities is not None:
        await adriven(making.steps(making.cities), partial(answer_while_pondering, making.planner.llm, making.cities))
    return making.made(await making.then().aplan(making.task))


class _Making:
    """A trip being planned: its cities first, where a draft would have to know too many names; then all the rest."""

    def __init__(self, trip: Trip, llm: LLMLike, settings: PlannerSettings) -> None:
        self.task = tastes_of(trip.query)
        self.planner = trip_planner(trip, llm, **settings)
        self._trip, self._settings = trip, settings
        wide = self.planner.search == "draft" and len(trip.routes.cities) > trip.routes.count
        #: The walk to the cities; None where they are asked for like all the rest.
        self.cities = self.planner.start(self.task) if wide else None

    def steps(self, walk: Walk) -> Steps:
        """The questions for the cities."""
        while (question := walk.question) is not None and not self._named(walk):
            walk.answer((yield from attempts(question, self.planner.tries)))

    def _named(self, walk: Walk) -> bool:
        return len(cast("Chosen", walk.configuration).cities) == self._trip.routes.count

    def then(self) -> Planner:
        """The planner for all that is still to be planned."""
        if self.cities is None:
            return self.planner
        cities = cast("Chosen", self.cities.configuration).cities
        trip = self._trip
        self._trip = Trip(trip.query, trip.world, every_meal=trip.every_meal, cities=cities)
        return trip_planner(self._trip, self.planner.llm, **self._settings)

    def made(self, plan: Plan) -> PlannedTrip:
        """The trip of the plan, with all that it took."""
        before = self.cities.usage if self.cities is not None else None
        return planned(self._trip, plan if before is None else plan.with_usage(before + plan.usage))


def planned(trip: Trip, plan: Plan) -> PlannedTrip:
    """A plan as the trip that it is.

    Raises:
        ValueError: it is no plan of these trips.
    """
    days, chosen = days_of(trip, plan.word), trip.chosen(plan.word)
    assert chosen is not None  # or it would have no days
    whole, rest = divmod(chosen.spent, 100)
    return PlannedTrip(trip.query, days, Decimal(chosen.spent) / 100 if rest else whole, plan)
