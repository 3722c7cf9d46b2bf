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

from ortools.sat.python import cp_model

from benchmarks.travel_lookahead import START
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.planning import NoTrip, plan_trip
from formal_llm.packs.travel.query import Constraints, TravelQuery, TripWish, WishKind
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Money, Restaurant, Road
from formal_llm.packs.travel.trip import Trip

FOOD = ("Indian", "French", "Tea")
MEALS = ("breakfast", "lunch", "dinner")
CITIES = ("C0", "C1", "C2")


def made_world(rng: random.Random) -> World:
    """A state of three cities, whose names are all different."""
    roads: list[Road] = []
    flights: list[Flight] = []
    for origin, destination in permutations(("Home", *CITIES), 2):
        km = rng.randrange(20, 400)
        roads.append(Road(origin, destination, f"{km // 60} hours {km % 60} mins", f"{km} km", float(km)))
        for day in range(5):
            for _ in range(rng.choice([0, 1, 2])):
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
    wishes = [made_wish(rng, kind, days) for kind in rng.choices(list(WishKind), k=rng.randrange(1, 6))]
    daily = [wish for wish in wishes if wish.kind == WishKind.day_meal and not wish.numbers]
    kept = tuple(wish for wish in wishes if wish not in daily[2:])
    cuisines = tuple(rng.sample(FOOD, rng.choice([0, 0, 1, 2])))
    dates = tuple(START + timedelta(day) for day in range(days))
    return TravelQuery("Home", "Somewhere", days, cities, dates, 1, None, Constraints(cuisines=cuisines), "", kept)


def numbers_of(query: TravelQuery, *kinds: WishKind) -> list[TripWish]:
    """The wishes of some kinds."""
    return [wish for wish in query.wishes if wish.kind in kinds]


def least_by_program(query: TravelQuery, world: World) -> int | None:
    """The least cost in dollars over all cities, days and ways, the rest by an integer program."""
    best: int | None = None
    for cities in permutations(CITIES, query.visiting_city_number):
        for cuts in combinations(range(1, query.days - 1), len(cities) - 1):
            begins = (0, *cuts, query.days - 1)
            ways = least_ways(query, world, cities, begins)
            if ways is None or not nights_fit(query, cities, begins):
                continue
            if best is not None and ways >= best:
                continue
            rest = least_rest(query, world, cities, begins)
            if rest is not None and (best is None or ways + rest < best):
                best = ways + rest
    sums = [int(one.numbers[0]) for one in numbers_of(query, WishKind.at_most) if one.names == ("trip", "trip")]
    return best if best is not None and best <= min(sums, default=best) else None


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


def least_ways(query: TravelQuery, world: World, cities: Sequence[str], begins: Sequence[int]) -> int | None:
    """What the journeys cost at least."""
    route = ("Home", *cities, "Home")
    legs = []
    for at, day in enumerate(begins):
        fits: list[tuple[str, Money, Flight | Road]] = [
            ("flight", f.price, f) for f in world.flights(route[at], route[at + 1], query.dates[day])
        ]
        road = world.road(route[at], route[at + 1])
        assert road is not None and road.kilometres is not None
        fits += [("self-driving", int(road.kilometres * 0.05), road), ("taxi", int(road.kilometres), road)]
        legs.append([(mode, int(cost)) for mode, cost, row in fits if way_fits(query, mode, int(cost), row, day)])
    costs = [
        sum(cost for _, cost in chosen)
        for chosen in product(*legs)
        if len({mode for mode, _ in chosen} - {"flight", "taxi"}) in (0, len({mode for mode, _ in chosen}))
    ]
    least = min(costs, default=None)
    return least if least is not None and least <= sum_bound(query, "ways", "trip") else None


def way_fits(query: TravelQuery, mode: str, cost: int, row: Flight | Road, day: int) -> bool:
    """Whether a way is as wished for, on its own."""
    words = str(row.duration).split()
    hours = int(words[0]) + (int(words[2]) / 60 if len(words) > 2 else 0)
    first, last = day == 0, day == query.days - 1
    earliest = max([int(w.numbers[0]) for w in numbers_of(query, WishKind.leave_after)] + [0]) if first else 0
    begin, end = float(earliest), earliest + 60 * hours
    if isinstance(row, Flight):
        begin = int(row.departure[:2]) * 60 + int(row.departure[3:])
        end = begin + 60 * hours
    for wish in query.wishes:
        number = int(wish.numbers[0]) if wish.numbers else 0
        match wish.kind:
            case WishKind.no_mode if mode in wish.names:
                return False
            case WishKind.only_modes if mode not in wish.names:
                return False
            case WishKind.travel_hours if hours > number:
                return False
            case WishKind.arrive_by if first and end > number:
                return False
            case WishKind.home_by if last and end > number:
                return False
            case WishKind.free_evening if wish.numbers and number - 1 == day and end > 18 * 60:
                return False
            case WishKind.no_flight if mode == "flight":
                barred = {at % 1440 for at in range(number, number + ((int(wish.numbers[1]) - number) % 1440))}
                if any(at % 1440 in barred for at in range(int(begin), int(end))):
                    return False
    return begin >= earliest and cost <= sum_bound(query, "ways", "day")


def least_rest(query: TravelQuery, world: World, cities: Sequence[str], begins: Sequence[int]) -> int | None:
    """What beds and meals cost at least."""
    model = cp_model.CpModel()
    names = [name for wish in numbers_of(query, WishKind.visit) for name in wish.names]
    never = {name for wish in numbers_of(query, WishKind.never) for name in wish.names}
    bare = {name.split(",")[0] for name in never}
    if bare & set(cities):
        return None
    visits = [(wish.names[0].split(",")[0], int(wish.numbers[0]) - 1 if wish.numbers else None)
              for wish in numbers_of(query, WishKind.visit)]  # fmt: skip
    assert len(visits) == len(names)
    beds_cost, meals_cost = [], []
    eaten: dict[tuple[str, int, str], list[tuple[Restaurant, cp_model.IntVar]]] = {}
    known: dict[str, list[tuple[int, cp_model.IntVar | int]]] = {}
    for at, city in enumerate(cities):
        arrival, leaving = begins[at], begins[at + 1]
        known[city] = [(day, 1) for day in range(arrival, leaving + 1)]
        able = [bed for bed in world.accommodations(city) if bed.minimum_nights <= leaving - arrival]
        beds = [bed for bed in able if bed.name not in bare and bed_fits(query, bed)]
        slept = [model.new_bool_var("") for _ in beds]
        model.add(sum(slept) == 1)
        for bed, var in zip(beds, slept, strict=True):
            beds_cost.append(int(bed.price) * (leaving - arrival) * var)
            known[bed.name] = [(day, var) for day in range(arrival, leaving)]
        slots = [(day, meal, 0 < day - arrival < leaving - arrival) for day in range(arrival, leaving + 1)
                 for meal in MEALS]  # fmt: skip
        tables = [row for row in world.restaurants(city) if row.name not in bare and table_fits(query, row)]
        for row in tables:
            takes = [(day, meal, model.new_bool_var("")) for day, meal, _ in slots]
            model.add(sum(var for *_, var in takes) <= 1)
            known[row.name] = [(day, var) for day, _, var in takes]
            for day, meal, var in takes:
                eaten.setdefault((city, day, meal), []).append((row, var))
                meals_cost.append(int(row.cost) * var)
        sights = [row for row in world.attractions(city) if row.name not in bare]
        seen = {(row.name, day): model.new_bool_var("") for row in sights for day in range(arrival + 1, leaving)}
        for sight in sights:
            known[sight.name] = [(day, seen[sight.name, day]) for day in range(arrival + 1, leaving)]
            model.add(sum(seen[sight.name, day] for day in range(arrival + 1, leaving)) <= 1)
        count = max([1, *(int(wish.numbers[0]) for wish in numbers_of(query, WishKind.sights))])
        for day in range(arrival + 1, leaving):
            model.add(sum(seen[row.name, day] for row in sights) == count)
    for name, on in visits:
        model.add(sum(var for at, var in known.get(name, []) if on in (None, at)) >= 1)
    whole = [day for at in range(len(cities)) for day in range(begins[at] + 1, begins[at + 1])]
    evenings = numbers_of(query, WishKind.free_evening)
    closed = {int(wish.numbers[0]) - 1 for wish in evenings if wish.numbers}
    free = {day: model.new_bool_var("") for day in whole}
    model.add(sum(free.values()) == int(any(not wish.numbers for wish in evenings)))
    for day in range(query.days):
        for meal in MEALS:
            here = [var for (_, at, what), options in eaten.items() if (at, what) == (day, meal) for _, var in options]
            if meal == "dinner" and day in closed:
                model.add(sum(here) == 0)
            elif day in whole:
                model.add(sum(here) == 1 - (free[day] if meal == "dinner" else 0))
            else:
                model.add(sum(here) <= 1)
    order_meals(model, cities, begins, eaten)
    for day in closed & set(whole):  # an evening that is left free anyhow is not the free one of another wish
        model.add(free[day] == 0)
    for wish in numbers_of(query, WishKind.day_meal):
        for day in [int(wish.numbers[0]) - 1] if wish.numbers else whole:
            suiting = (
                var
                for (_, at, meal), options in eaten.items()
                if at == day and meal in (wish.names[1:] or MEALS)
                for row, var in options
                if wish.names[0] in row.cuisines
            )
            model.add(sum(suiting) >= 1)
    for cuisine in query.constraints.cuisines:
        model.add(sum(var for options in eaten.values() for row, var in options if cuisine in row.cuisines) >= 1)
    model.add(sum(beds_cost) <= sum_bound(query, "bed", "trip"))
    model.add(sum(meals_cost) <= sum_bound(query, "meals", "trip"))
    model.minimize(sum(beds_cost) + sum(meals_cost))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return round(solver.objective_value) if solver.solve(model) == cp_model.OPTIMAL else None


def order_meals(
    model: cp_model.CpModel, cities: Sequence[str], begins: Sequence[int],
    eaten: dict[tuple[str, int, str], list[tuple[Restaurant, cp_model.IntVar]]],
) -> None:  # fmt: skip
    """On a day between two cities the first meals are eaten in one, the others in the other."""
    for one, other, day in zip(cities, cities[1:], begins[1:], strict=False):
        cut = [model.new_bool_var("") for _ in MEALS]  # whether the meal is in the second city
        for before, after in pairwise(cut):
            model.add(before <= after)
        for meal, var in zip(MEALS, cut, strict=True):
            model.add(sum(taken for _, taken in eaten.get((one, day, meal), [])) <= 1 - var)
            model.add(sum(taken for _, taken in eaten.get((other, day, meal), [])) <= var)


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


def left_of(world: World, days: Sequence[Day]) -> World:
    """The world with nothing but the places of a plan: the wishes can be satisfied with them alone."""
    names = {text for day in days for text in (day.accommodation, day.breakfast, day.lunch, day.dinner)}
    names |= {name for day in days for name in day.attraction.split(";")}
    flights = [one for one in world.all_flights() if any(one.number + "," in day.transportation for day in days)]
    beds = [one for city in CITIES for one in world.accommodations(city) if f"{one.name}, {city}" in names]
    tables = [one for city in CITIES for one in world.restaurants(city) if f"{one.name}, {city}" in names]
    sights = [one for city in CITIES for one in world.attractions(city) if f"{one.name}, {city}" in names]
    return World(flights, world.all_roads(), beds, tables, sights, {"Somewhere": CITIES, "Elsewhere": ["Home"]})


def found_wrong(seeds: Sequence[int]) -> Iterator[tuple[int, str, float]]:
    """For each query its verdict and the seconds of CPU of its plan."""
    for seed in seeds:
        rng = random.Random(seed)
        world, query = made_world(rng), made_query(rng)
        trip = Trip(query, world, every_meal=True)
        least = trip.find_least_cost(trip.start())
        tried, begun = least_by_program(query, world), time.process_time()
        most = trip.most
        if (least // 100 if least <= most else None) != tried:
            yield seed, f"wrong: {least / 100} for {tried}", 0
            continue
        try:
            days = plan_trip(query, world, f"test:random={seed}").days
            kept = tried is not None and least_by_program(query, left_of(world, days)) is not None
            verdict = "planned" if kept else "wrong: planned"
        except NoTrip:
            verdict = "no trip" if tried is None else "wrong: no trip"
        yield seed, verdict, time.process_time() - begun


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
