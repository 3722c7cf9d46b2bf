"""Trips: what it takes to know that a trip can still be paid for, and how that grows.

Three tables, on invented worlds of any size:

- the same choices (beds, meals and sights of a trip whose route is settled) as a grammar with limits and sums, decided
  by the general lookahead, and as the trips' own automaton, which foresees its end: seconds of CPU for a plan with
  random answers, and options of which nothing was decided in time. The budget leaves so much above the cheapest trip;
- plans of a week through three cities by the trips' own automaton, for more cities and more houses in each;
- the same where the budget is a dollar too small: how long it takes to say so, with what could be dropped.

Run::

    python benchmarks/travel_lookahead.py [--quick]
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from functools import partial

from formal_llm import CFG, Planner
from formal_llm.errors import FormalLLMError
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.planning import PAGES, plan_trip
from formal_llm.packs.travel.query import CUISINES, Constraints, TravelQuery
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Restaurant, Road
from formal_llm.packs.travel.slots import list_slots
from formal_llm.packs.travel.trip import Chosen, Trip
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.walks.pages import Pages

START, DAYS = date(2022, 3, 1), 7
LEEWAY = (0, 2_000, 20_000, 200_000)


def invented(cities: int, houses: int, flights: int = 10, seed: int = 0) -> World:
    """A state of cities with so many beds and restaurants each, and so many flights between any two each day."""
    rng = random.Random(seed)
    names = ["Home", *(f"City {number}" for number in range(cities))]
    roads, beds, tables, sights = [], [], [], []
    flown: list[Flight] = []
    for origin in names:
        for destination in names:
            km = float(rng.randrange(100, 900))
            roads.append(Road(origin, destination, f"{km // 90:g} hours", f"{km:g} km", km))
            for day in range(DAYS):
                for _ in range(flights):
                    when, price = START + timedelta(day), rng.randrange(50, 300)
                    flown.append(Flight(f"F{len(flown)}", origin, destination, when, "8:00", "10:30", price))
    for city in names[1:]:
        for number in range(houses):
            kind = rng.choice(["Entire home/apt", "Private room", "Shared room"])
            rules = tuple(f"No {rule}" for rule in ("pets", "smoking") if rng.random() < 0.4)
            nights, holds, rating = rng.choice([1, 1, 2, 3]), rng.randrange(1, 5), rng.randrange(10, 51) / 10
            price = rng.randrange(40, 400)
            beds.append(Accommodation(f"Bed {number}", city, price, kind, rules, nights, holds, rating))
            offers = tuple(one for one in (*CUISINES, "Tea", "Pizza") if rng.random() < 0.15)
            price, rating = rng.randrange(8, 100), rng.randrange(0, 50) / 10
            tables.append(Restaurant(f"Table {number}", city, price, offers, rating))
        sights += [Attraction(f"Sight {number}", city) for number in range(20)]
    return World(flown, roads, beds, tables, sights, {"Somewhere": names[1:], "Elsewhere": names[:1]})


def wanted(days: int = DAYS, cities: int = 3, cuisines: int = 4) -> TravelQuery:
    """Two travellers with a dog who want to eat well."""
    dates = tuple(START + timedelta(day) for day in range(days))
    wishes = Constraints("pets", CUISINES[:cuisines], "not shared room", None)
    return TravelQuery("Home", "Somewhere", days, cities, dates, 2, None, wishes)


def as_grammar(trip: Trip, chosen: Chosen, most: int) -> str:
    """The choices that are left where the route and the ways are settled, as a grammar with limits and sums."""
    assert chosen.shape is not None
    terminals: dict[str, str] = {}
    rules = []
    for number, slot in enumerate(list_slots(chosen.shape)):
        city, nights = trip.candidates.find_city(chosen.cities[slot.stay]), chosen.shape[slot.stay].nights
        if slot.kind == "bed":
            costs = {f"bed {one.name}": (one.cost * nights, 0) for one in city.beds if one.nights <= nights}
        elif slot.kind == "sight":
            costs = {f"sight {name}": (0, 0) for name in city.sights}
        else:
            costs = {f"meal {one.name}": (one.cost, one.offers) for one in city.eateries.values()}
        for label, (cost, offers) in costs.items():
            numbers = "".join(f" c{bit}=1" for bit in range(len(trip.candidates.cuisines)) if offers >> bit & 1)
            terminals.setdefault(label, f't{len(terminals)} "{label}" cost={cost / 100:g}{numbers}')
        names = [terminals[label].split()[0] for label in costs]
        rules.append(f"K{number} -> {' | '.join([*names, *([] if slot.must else ['ε'])])}")
    limits = [f"%limit c{bit} >= 1" for bit in range(len(trip.candidates.cuisines))]
    start = f"S -> {' '.join(f'K{number}' for number in range(len(rules)))}"
    return "\n".join(
        ["%start S", "%limit 1", f"%limit cost <= {most / 100:g}", *limits, start, *rules, *terminals.values()]
    )


def planned(query: TravelQuery, world: World, pages: Pages | None = PAGES) -> Plan:
    """A plan with random answers."""
    return plan_trip(query, world, "test:random", pages=pages).plan


def planned_by_grammar(text: str) -> Plan:
    """The same, of a grammar."""
    return Planner(CFG.from_string(text), "test:random").plan("")


def timed(make: Callable[[], Plan]) -> tuple[float, Plan | FormalLLMError]:
    """Seconds of CPU, and what was made or why not."""
    begun = time.process_time()
    try:
        made: Plan | FormalLLMError = make()
    except FormalLLMError as error:
        made = error
    return time.process_time() - begun, made


def told(seconds: float, made: Plan | FormalLLMError) -> str:
    """A cell of a table."""
    if isinstance(made, Plan):
        return f"{seconds:8.2f} s, {made.usage.questions:3} questions, {made.usage.verdicts.unknown:3} undecided"
    return f"{seconds:8.2f} s, {type(made).__name__}"


def side_by_side(world: World, sizes: list[tuple[int, int]]) -> None:
    """The first table."""
    print(f"{'days':>4} {'above the cheapest':>18}  {'general lookahead':45} own foresight")
    for days, cities in sizes:
        query = wanted(days, cities)
        trip = Trip(query, world)
        word = trip.find_cheapest() or ()
        chosen = trip.follow_word(word[: 2 * cities + 2])
        assert chosen is not None
        for above in LEEWAY:
            rest, all_ = trip.find_least_cost(chosen) - chosen.spent + above, trip.find_least_cost(trip.start()) + above
            text = as_grammar(trip, chosen, rest)
            general = timed(partial(planned_by_grammar, text))
            bound = replace(query, budget=all_ // 100)
            own = timed(partial(planned, bound, world, pages=None))
            print(f"{days:4} {above / 100:17g}$  {told(*general):45} {told(*own)}")


def growing(sizes: list[tuple[int, int]]) -> None:
    """The second and the third table."""
    print(f"\n{'cities':>6} {'houses':>6}  {'a plan of a week, budget 10 % above the cheapest':50} a dollar too little")
    for cities, houses in sizes:
        world, query = invented(cities, houses, flights=3), wanted(cuisines=7)
        least = Trip(query, world, every_meal=True)
        cost = least.find_least_cost(least.start())
        enough, short = replace(query, budget=cost * 11 // 1000), replace(query, budget=cost // 100 - 1)
        made = timed(partial(planned, enough, world))
        refused = timed(partial(planned, short, world))
        print(f"{cities:6} {houses:6}  {told(*made):50} {told(*refused)}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smaller sizes only")
    quick = parser.parse_args().quick
    side_by_side(invented(3, 30), [(3, 1), (5, 2)] if quick else [(3, 1), (5, 2), (7, 3)])
    growing([(3, 30), (10, 30)] if quick else [(3, 30), (3, 300), (10, 100), (25, 60), (25, 300)])


if __name__ == "__main__":
    main()
