"""Trips with wishes of one's own beside an oracle: an integer program (OR-tools) that shares no code with the planner.

Queries are made in small worlds. For each the least cost is compared, and a trip is planned with random answers: a dead
end would be an error or a trip that the oracle's rules refuse.

Run::

    python benchmarks/travel_wishes.py [--queries 500]
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import combinations, pairwise, permutations, product
from typing import NamedTuple

from ortools.sat.python import cp_model

from benchmarks.travel_lookahead import START
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.planning import NoTrip, plan_trip, wishes_of, without
from formal_llm.packs.travel.query import Constraints, TravelQuery, TripWish, WishKind
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Restaurant, Road
from formal_llm.packs.travel.trip import Trip

FOOD = ("Indian", "French", "Tea")
MEALS = ("breakfast", "lunch", "dinner")
CITIES = ("C0", "C1", "C2")


def made_world(rng: random.Random) -> World:
    """A state of three cities, whose names are all different."""
    roads: list[Road] = []
    flights: list[Flight] = []
    far = rng.random() < 0.6  # drives take most of a day, so that what flights leave time for matters
    for origin, destination in permutations(("Home", *CITIES), 2):
        km = rng.randrange(600, 1200) if far else rng.randrange(20, 400)
        roads.append(Road(origin, destination, f"{km // 60} hours {km % 60} mins", f"{km} km", float(km)))
        for day in range(5):
            for _ in range(rng.choice([1, 2, 4] if far else [0, 1, 2])):
                leaving, hours = rng.randrange(24 * 60), rng.randrange(1, 7)
                begin, end = (f"{at // 60 % 24:02}:{at % 60:02}" for at in (leaving, leaving + 60 * hours))
                flights.append(Flight(
                    f"F{len(flights)}", origin, destination, START + timedelta(day), begin, end, rng.randrange(5, 200),
                    f"{hours} hours",
                ))  # fmt: skip
    beds, tables, sights = [], [], []
    for city in CITIES:
        for number in range(4):
            kind = rng.choice(["Entire home/apt", "Private room", "Shared room"])
            rules = tuple(f"No {rule}" for rule in ("pets", "smoking") if rng.random() < 0.4)
            beds.append(Accommodation(
                f"bed {number} {city}", city, rng.randrange(10, 90), kind, rules, rng.choice([1, 1, 2]), 2,
                rng.randrange(2, 6),
            ))  # fmt: skip
        for number in range(rng.randrange(8, 15)):
            offers = tuple(one for one in FOOD if rng.random() < 0.4)
            tables.append(
                Restaurant(f"Inn {number:02} {city}", city, rng.randrange(1, 40), offers, rng.randrange(2, 6))
            )
        sights += [Attraction(f"sight {number} {city}", city) for number in range(rng.randrange(3, 8))]
    return World(flights, roads, beds, tables, sights, {"Somewhere": CITIES, "Elsewhere": ["Home"]})


def made_wish(rng: random.Random, kind: WishKind, days: int) -> TripWish:
    """A wish of a kind."""
    city, day = rng.choice(CITIES), rng.choice([(), (rng.randrange(1, days + 1),)])
    place = rng.choice([f"sight {rng.randrange(3)} {city}", f"Inn {rng.randrange(8):02} {city}, {city}",
                        f"bed {rng.randrange(4)} {city}", city])  # fmt: skip
    minute = rng.randrange(8, 22) * 60
    match kind:
        case WishKind.visit:
            return TripWish(kind, (place,), day)
        case WishKind.never:
            return TripWish(kind, (place,))
        case WishKind.sights:
            return TripWish(kind, (), (rng.choice([2, 2, 3]),))
        case WishKind.day_meal:
            return TripWish(kind, (rng.choice(FOOD), *rng.choice([(), (rng.choice(MEALS),)])), day)
        case WishKind.every_meal | WishKind.no_meal:
            return TripWish(kind, (rng.choice(FOOD),))
        case WishKind.some_meal:
            return TripWish(kind, (rng.choice(FOOD),))
        case WishKind.no_flight:
            return TripWish(kind, (), (minute, (minute + 600) % 1440))
        case WishKind.arrive_by | WishKind.home_by | WishKind.leave_after:
            return TripWish(kind, (), (minute,))
        case WishKind.travel_hours:
            return TripWish(kind, (), (rng.randrange(2, 6),))
        case WishKind.no_mode:
            return TripWish(kind, (rng.choice(["flight", "taxi", "self-driving"]),))
        case WishKind.only_modes:
            return TripWish(kind, tuple(rng.sample(["flight", "taxi", "self-driving"], 2)))
        case WishKind.rooms:
            return TripWish(kind, ("private room", "shared room"))
        case WishKind.allows | WishKind.forbids:
            return TripWish(kind, (rng.choice(["pets", "smoking"]),))
        case WishKind.rating:
            return TripWish(kind, (rng.choice(["bed", "restaurant"]),), (3,))
        case WishKind.at_most:
            names, most = rng.choice([
                (("bed", "night"), 60), (("bed", "trip"), 150), (("meals", "meal"), 40), (("meals", "trip"), 200),
                (("ways", "day"), 60), (("ways", "trip"), 120), (("trip", "trip"), 500),
            ])  # fmt: skip
            return TripWish(kind, names, (rng.randrange(most // 3, 2 * most),))
        case WishKind.stay:
            return TripWish(kind, rng.choice([(), (city,)]), (rng.randrange(1, 4),))
        case _:
            return TripWish(WishKind.free_evening, (), day)


def made_query(rng: random.Random) -> TravelQuery:
    """A query with one to five wishes."""
    cities, days = rng.choice([(1, 3), (1, 4), (2, 4), (2, 5), (2, 5)])
    kinds = rng.choices(list(WishKind), k=rng.randrange(1, 6))
    wishes = [made_wish(rng, kind, days) for kind in kinds]
    if rng.random() < 0.6:  # a meal on a day of travel
        day = rng.choice([1, days])
        wishes.append(TripWish(WishKind.day_meal, (rng.choice(FOOD), *rng.choice([(), (rng.choice(MEALS),)])), (day,)))
    daily = [wish for wish in wishes if wish.kind == WishKind.day_meal and not wish.numbers]
    kept = tuple(wish for wish in wishes if wish not in daily[2:])
    cuisines = tuple(rng.sample(FOOD, rng.choice([0, 0, 1, 2])))
    dates = tuple(START + timedelta(day) for day in range(days))
    return TravelQuery("Home", "Somewhere", days, cities, dates, 1, None, Constraints(cuisines=cuisines), "", kept)


def numbers_of(query: TravelQuery, *kinds: WishKind) -> list[TripWish]:
    """The wishes of some kinds."""
    return [wish for wish in query.wishes if wish.kind in kinds]


#: What an own table says of hours: the last meals and sights that a departure, and the first that an arrival allows.
LEAVING, ARRIVING = {"breakfast": 8.5, "lunch": 13.5, "dinner": 19.5, "sight": 13}, {
    "breakfast": 9, "lunch": 13.5, "dinner": 20, "sight": 15,
}  # fmt: skip


class Way(NamedTuple):
    """A way on a leg; of a drive there are several, by the number of meals before it."""

    text: str
    cost: int
    driven: bool
    meals: int | None
    before: frozenset[str]
    after: frozenset[str]


def least_by_program(
    query: TravelQuery, world: World, plan: Sequence[Day] | None = None, *, sensible: bool = True
) -> int | None:
    """The least cost in dollars over all cities and days, the rest by an integer program; of one plan if given."""
    best: int | None = None
    for cities in permutations(CITIES, query.visiting_city_number):
        for cuts in combinations(range(1, query.days - 1), len(cities) - 1):
            begins = (0, *cuts, query.days - 1)
            if nights_fit(query, cities, begins) and (plan is None or stays_of(plan) == (cities, begins)):
                found = Program(query, world, cities, begins, plan, sensible).solve()
                best = found if best is None or (found is not None and found < best) else best
    return best


def stays_of(plan: Sequence[Day]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The cities of a plan, and the days of travel."""
    begins = tuple(at for at, day in enumerate(plan) if day.current_city.startswith("from "))
    return tuple(plan[at].current_city.split(" to ")[1] for at in begins[:-1]), begins


def nights_fit(query: TravelQuery, cities: Sequence[str], begins: Sequence[int]) -> bool:
    """Whether the nights are those that are wished for."""
    nights = {city: begins[at + 1] - begins[at] for at, city in enumerate(cities)}
    return all(
        int(wish.numbers[0]) in ([nights.get(city) for city in wish.names] or nights.values())
        for wish in numbers_of(query, WishKind.stay)
    )


def sum_bound(query: TravelQuery, part: str, unit: str) -> int:
    """The bound on a sum."""
    found = [int(one.numbers[0]) for one in numbers_of(query, WishKind.at_most) if one.names == (part, unit)]
    return min(found, default=10**9)


def ways_of(query: TravelQuery, world: World, origin: str, destination: str, day: int) -> Iterator[Way]:
    """The ways of a leg that are as wished for, each with the meals and sights for which it leaves time."""
    road = world.road(origin, destination)
    assert road is not None and road.kilometres is not None
    rows: list[tuple[str, str, int, Flight | Road]] = [
        ("flight", f"Flight Number: {row.number},", int(row.price), row)
        for row in world.flights(origin, destination, query.dates[day])
    ]
    rows += [("self-driving", "Self-driving", int(road.kilometres * 0.05), road)]
    rows += [("taxi", "Taxi", int(road.kilometres), road)]
    first, last = day == 0, day == query.days - 1
    for mode, text, cost, row in rows:
        words = str(row.duration).split()
        minutes = int(words[0]) * 60 + (int(words[2]) if len(words) > 2 else 0)
        earliest = max(
            [0, *(number for wish in query.wishes for number in bound_of(wish, WishKind.leave_after) if first)]
        )
        latest = min([10**6, *(
            number
            for wish in query.wishes
            for number in (
                *(bound_of(wish, WishKind.arrive_by) if first else ()),
                *(bound_of(wish, WishKind.home_by) if last else ()),
                *([18 * 60] if bound_of(wish, WishKind.free_evening) == [day + 1] else ()),
            )
        )])  # fmt: skip
        if not way_fits(query, mode, cost, row, minutes) or latest - earliest < minutes:
            continue
        if isinstance(row, Flight):
            leaving = int(row.departure[:2]) * 60 + int(row.departure[3:])
            if earliest <= leaving and leaving + minutes <= latest:
                yield Way(text, cost, False, None, *open_around(leaving, leaving + minutes))
            continue
        for meals in [0] if first else [None] if last else range(4):
            usual = [7 * 60, 510, 810, 1170][meals] if meals is not None else min(max(1200 - minutes, 510), 960)
            moved = min(max(usual, earliest), latest - minutes)
            able = open_around(min(usual, moved), max(usual, moved) + minutes)
            yield Way(text, cost, mode == "self-driving", None if first or last else meals, *able)


def bound_of(wish: TripWish, kind: WishKind) -> list[int]:
    """The number of a wish if it is of a kind."""
    return [int(number) for number in wish.numbers[:1]] if wish.kind == kind else []


def open_around(leaving: float, arrival: float) -> tuple[frozenset[str], frozenset[str]]:
    """What is possible before a departure, and after an arrival."""
    before = frozenset(name for name, hour in LEAVING.items() if leaving >= 60 * hour)
    return before, frozenset(name for name, hour in ARRIVING.items() if arrival <= 60 * hour)


def way_fits(query: TravelQuery, mode: str, cost: int, row: Flight | Road, minutes: int) -> bool:
    """Whether a way is as wished for, apart from the hours of its day."""
    for wish in query.wishes:
        number = int(wish.numbers[0]) if wish.numbers else 0
        match wish.kind:
            case WishKind.no_mode if mode in wish.names:
                return False
            case WishKind.only_modes if mode not in wish.names:
                return False
            case WishKind.travel_hours if minutes > 60 * number:
                return False
            case WishKind.no_flight if isinstance(row, Flight):
                begin = int(row.departure[:2]) * 60 + int(row.departure[3:])
                barred = {at % 1440 for at in range(number, number + ((int(wish.numbers[1]) - number) % 1440))}
                if any(at % 1440 in barred for at in range(begin, begin + minutes)):
                    return False
    return cost <= sum_bound(query, "ways", "day")


class Program:
    """An integer program for the trips through some cities on given days."""

    def __init__(
        self, query: TravelQuery, world: World, cities: Sequence[str], begins: Sequence[int],
        plan: Sequence[Day] | None, sensible: bool,
    ) -> None:  # fmt: skip
        self.query, self.world, self.cities, self.begins, self.sensible = query, world, cities, begins, sensible
        self.model = cp_model.CpModel()
        self.costs: dict[str, list[cp_model.LinearExprT]] = {"ways": [], "bed": [], "meals": []}
        #: The variables of what is in a plan, by the day, the field and the text there.
        self.chosen: dict[tuple[int, str, str], cp_model.IntVar] = {}
        self.known: dict[str, list[tuple[int, cp_model.IntVar | int]]] = {}
        self.eaten: dict[tuple[str, int, str], list[tuple[Restaurant, cp_model.IntVar]]] = {}
        self.never = {name.split(",")[0] for wish in numbers_of(query, WishKind.never) for name in wish.names}
        self.ways = [self._add_ways(leg) for leg in range(len(begins))]
        drives = [sum(var for way, var in leg if way.driven) for leg in self.ways]
        for one, other in pairwise(drives):
            self.model.add(one == other)
        self.whole = [day for at in range(len(cities)) for day in range(begins[at] + 1, begins[at + 1])]
        for at, city in enumerate(cities):
            self._add_stay(at, city)
        self._add_evenings()
        self._cut_days()
        self._add_wishes()
        if plan is not None:
            self._fix_plan(plan)

    def _add_ways(self, leg: int) -> list[tuple[Way, cp_model.IntVar]]:
        route = ("Home", *self.cities, "Home")
        ways = [(way, self.model.new_bool_var("")) for way in ways_of(
            self.query, self.world, route[leg], route[leg + 1], self.begins[leg]
        )]  # fmt: skip
        self.model.add(sum(var for _, var in ways) == 1)
        self.costs["ways"] += [way.cost * var for way, var in ways]
        return ways

    def _is_possible(self, at: int, day: int, what: str) -> cp_model.LinearExprT:
        """Whether the ways around a stay leave time for a meal or a sight on a day."""
        if self.sensible and day == self.begins[at]:
            return sum(var for way, var in self.ways[at] if what in way.after)
        if self.sensible and day == self.begins[at + 1]:
            return sum(var for way, var in self.ways[at + 1] if what in way.before)
        return 1

    def _add_stay(self, at: int, city: str) -> None:
        model, arrival, leaving = self.model, self.begins[at], self.begins[at + 1]
        self.known[city] = [(day, 1) for day in range(arrival, leaving + 1)]
        if city in self.never:
            model.add(sum([self.model.new_constant(0)]) == 1)
        slept: list[cp_model.IntVar] = []
        for bed in self.world.accommodations(city):
            if bed.minimum_nights <= leaving - arrival and bed.name not in self.never and bed_fits(self.query, bed):
                slept.append(model.new_bool_var(""))
                self.costs["bed"].append(int(bed.price) * (leaving - arrival) * slept[-1])
                self.known[bed.name] = [(day, slept[-1]) for day in range(arrival, leaving)]
                self.chosen |= {
                    (day, "accommodation", f"{bed.name}, {city}"): slept[-1] for day in range(arrival, leaving)
                }
        model.add(sum(slept) == 1)
        days = range(arrival, leaving + 1)
        for row in self.world.restaurants(city):
            if row.name not in self.never and table_fits(self.query, row):
                takes = {(day, meal): model.new_bool_var("") for day in days for meal in MEALS}
                model.add(sum(takes.values()) <= 1)
                self.known[row.name] = [(day, var) for (day, _), var in takes.items()]
                for (day, meal), var in takes.items():
                    self.eaten.setdefault((city, day, meal), []).append((row, var))
                    self.costs["meals"].append(int(row.cost) * var)
                    self.chosen[day, meal, f"{row.name}, {city}"] = var
                    model.add(var <= self._is_possible(at, day, meal))
        seen: dict[int, list[cp_model.IntVar]] = {day: [] for day in days}
        for sight in self.world.attractions(city):
            if sight.name not in self.never:
                visits = {day: model.new_bool_var("") for day in days}
                model.add(sum(visits.values()) <= 1)
                self.known[sight.name] = list(visits.items())
                for day, var in visits.items():
                    seen[day].append(var)
                    self.chosen[day, "attraction", f"{sight.name}, {city}"] = var
        count = max([1, *(int(wish.numbers[0]) for wish in numbers_of(self.query, WishKind.sights))])
        for day in days:
            model.add(
                sum(seen[day]) <= (self._is_possible(at, day, "sight") if day in (arrival, leaving) else max(3, count))
            )
            model.add(sum(seen[day]) >= (0 if day in (arrival, leaving) else count))

    def _add_evenings(self) -> None:
        """Three meals on each whole day, but for a free evening."""
        evenings = numbers_of(self.query, WishKind.free_evening)
        closed = {int(wish.numbers[0]) - 1 for wish in evenings if wish.numbers}
        free = {day: self.model.new_bool_var("") for day in self.whole}
        self.model.add(sum(free.values()) == int(bool(evenings) and not closed))
        for day, meal in product(range(self.query.days), MEALS):
            here = [var for (_, *when), options in self.eaten.items() if when == [day, meal] for _, var in options]
            if meal == "dinner" and day in closed:
                self.model.add(sum(here) == 0)
            elif day in self.whole:
                self.model.add(sum(here) == 1 - (free[day] if meal == "dinner" else 0))
            else:
                self.model.add(sum(here) <= 1)

    def _cut_days(self) -> None:
        """On a day between two cities the first meals are in one, the others in the other; drives are in between."""
        for at, (one, other) in enumerate(pairwise(self.cities), 1):
            day = self.begins[at]
            cuts = [self.model.new_bool_var("") for _ in range(4)]  # the number of meals before
            self.model.add(sum(cuts) == 1)
            for number, meal in enumerate(MEALS):
                self.model.add(sum(var for _, var in self.eaten.get((one, day, meal), [])) <= sum(cuts[number + 1 :]))
                self.model.add(sum(var for _, var in self.eaten.get((other, day, meal), [])) <= sum(cuts[: number + 1]))
            for way, var in self.ways[at]:
                if way.meals is not None:
                    self.model.add(var <= cuts[way.meals])

    def _add_wishes(self) -> None:
        query, model = self.query, self.model
        for wish in numbers_of(query, WishKind.visit):
            day = int(wish.numbers[0]) - 1 if wish.numbers else None
            options = self.known.get(wish.names[0].split(",")[0], [])
            model.add(sum(var for at, var in options if day in (None, at)) + model.new_constant(0) >= 1)
        needs = [(wish.names[0], wish.names[1:] or MEALS, [int(wish.numbers[0]) - 1] if wish.numbers else self.whole)
                 for wish in numbers_of(query, WishKind.day_meal)]  # fmt: skip
        for cuisine, meals, days in needs:
            for day in days:
                self._add_food(cuisine, meals, [day])
        for cuisine in (*query.constraints.cuisines, *(one.names[0] for one in numbers_of(query, WishKind.some_meal))):
            self._add_food(cuisine, MEALS, range(query.days))
        for part, costs in self.costs.items():
            model.add(sum(costs) <= sum_bound(query, part, "trip"))
        everything = sum(cost for costs in self.costs.values() for cost in costs)
        model.add(everything <= sum_bound(query, "trip", "trip"))
        model.minimize(everything)

    def _add_food(self, cuisine: str, meals: Sequence[str], days: Sequence[int]) -> None:
        suiting = (
            var
            for (_, day, meal), options in self.eaten.items()
            for row, var in options
            if day in days and meal in meals and cuisine in row.cuisines
        )
        self.model.add(sum(suiting) + self.model.new_constant(0) >= 1)

    def _fix_plan(self, plan: Sequence[Day]) -> None:
        """Fix what a plan has and what it has not."""
        for leg, at in enumerate(self.begins):
            self.model.add(sum(var for way, var in self.ways[leg] if plan[at].transportation.startswith(way.text)) == 1)
        texts = {(at, field, text) for at, day in enumerate(plan) for field in ("accommodation", "attraction", *MEALS)
                 for text in getattr(day, field).split(";") if text not in ("", "-")}  # fmt: skip
        for key, var in self.chosen.items():
            self.model.add(var == int(key in texts))
        if not texts <= self.chosen.keys():
            self.model.add(self.model.new_constant(0) == 1)

    def solve(self) -> int | None:
        """The least cost; None if there is no trip."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        return round(solver.objective_value) if solver.solve(self.model) == cp_model.OPTIMAL else None


def bed_fits(query: TravelQuery, bed: Accommodation) -> bool:
    """Whether a bed is as wished for."""
    types = {"private room": "Private room", "shared room": "Shared room"}
    rated = [wish for wish in numbers_of(query, WishKind.rating) if "bed" in wish.names]
    return (
        bed.price <= sum_bound(query, "bed", "night")
        and all(bed.room_type in map(types.get, wish.names) for wish in numbers_of(query, WishKind.rooms))
        and not any(f"No {wish.names[0]}" in bed.house_rules for wish in numbers_of(query, WishKind.allows))
        and all(f"No {wish.names[0]}" in bed.house_rules for wish in numbers_of(query, WishKind.forbids))
        and all((bed.rating or 0) >= wish.numbers[0] for wish in rated)
    )


def table_fits(query: TravelQuery, row: Restaurant) -> bool:
    """Whether a restaurant is as wished for."""
    rated = [wish for wish in numbers_of(query, WishKind.rating) if "restaurant" in wish.names]
    return (
        row.cost <= sum_bound(query, "meals", "meal")
        and all(wish.names[0] in row.cuisines for wish in numbers_of(query, WishKind.every_meal))
        and all(wish.names[0] not in row.cuisines for wish in numbers_of(query, WishKind.no_meal))
        and all((row.rating or 0) >= wish.numbers[0] for wish in rated)
    )


def found_wrong(seeds: Sequence[int]) -> Iterator[tuple[int, str, float]]:
    """For each query its verdict and the seconds of CPU of its plan."""
    for seed in seeds:
        rng = random.Random(seed)
        world, query = made_world(rng), made_query(rng)
        for sensible in (True, False):
            trip = Trip(query, world, every_meal=True, sensible=sensible)
            least, tried = trip.find_least_cost(trip.start()), least_by_program(query, world, sensible=sensible)
            if (least // 100 if least <= trip.most else None) != tried:
                yield seed, f"wrong: {least / 100} for {tried}, {sensible=}", 0
        begun = time.process_time()
        try:
            days = plan_trip(query, world, f"test:random={seed}").days
            seconds = time.process_time() - begun
            able = Trip.from_query(query, world).routes.sensible
            kept = least_by_program(query, world, days, sensible=able) is not None
            yield seed, "planned" if kept else "wrong: planned", seconds
        except NoTrip as error:
            seconds = time.process_time() - begun
            verdict = "no trip" if tried is None else "wrong: no trip"
            yield seed, check_remedies(query, world, error) or verdict, seconds


def check_remedies(query: TravelQuery, world: World, error: NoTrip) -> str:
    """What is wrong with the wishes to drop: their number and their price."""
    for remedy in error.remedies[:1]:
        if least_by_program(without(query, remedy.dropped), world, sensible=False) != remedy.cost // 100:
            return f"wrong: {remedy}"
    size = len(error.remedies[0].dropped) if error.remedies else len(wishes_of(query)) + 1
    for dropped in combinations(wishes_of(query), 1) if size > 1 else ():
        if least_by_program(without(query, dropped), world, sensible=False) is not None:
            return f"wrong: only {dropped[0]} could be dropped"
    return ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    found: Counter[str] = Counter()
    worst = 0.0
    for seed, verdict, seconds in found_wrong(range(given.first, given.first + given.queries)):
        found[verdict.split(":")[0]] += 1
        worst = max(worst, seconds)
        if verdict.startswith("wrong"):
            print(seed, verdict, flush=True)
    print(dict(found), f"slowest {worst:.2f} s of CPU")


if __name__ == "__main__":
    main()
