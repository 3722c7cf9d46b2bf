"""Worlds small enough to try all trips in, queries about them, and the trying: an oracle that knows no automaton."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import combinations, permutations, product

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import Constraints, TravelQuery
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Restaurant, Road

HOME, STATE = "Home", "Somewhere"
CUISINES = ("Indian", "French", "Tea")
RULES = ("smoking", "pets")
START = date(2022, 3, 1)


def small_world(rng: random.Random, *, cities: int, days: int, eateries: int = 7) -> World:
    """A world of one state."""
    names = [f"C{number}" for number in range(cities)]
    dates = [START + timedelta(day) for day in range(days)]
    flights, roads = [], []
    for origin, destination in permutations([HOME, *names], 2):
        if rng.random() < 0.95:
            km = rng.randrange(20, 400)
            roads.append(
                Road(
                    origin,
                    destination,
                    rng.choice(["5 hours"] * 6 + ["13 hours"] * 3 + ["1 day 2 hours"]),
                    f"{km} km",
                    float(km),
                )
            )
        for day in dates:
            if rng.random() < 0.3:
                number = f"F{len(flights) + 1}"
                when = rng.choice(["6:00", "10:00", "19:00"]), rng.choice(["8:30", "12:00", "23:54"])
                flights.append(Flight(number, origin, destination, day, *when, rng.randrange(5, 200)))
    beds, tables, sights, rate = [], [], [], rng.choice([0.15, 0.3, 0.5])
    for city in names:
        for number in range(rng.choice([0, 1, 2, 3, 3, 3])):
            kind = rng.choice(["Entire home/apt", "Private room", "Shared room"])
            rules = tuple(f"No {rule}" for rule in RULES if rng.random() < 0.2)
            nights, holds = rng.choice([1, 1, 1, 2, 3]), rng.randrange(1, 4)
            beds.append(Accommodation(f"bed {number}", city, rng.randrange(10, 90), kind, rules, nights, holds))
        for number in range(rng.choice([2, 4, eateries, eateries, eateries])):
            offers = tuple(one for one in CUISINES if rng.random() < rate)
            name = rng.choice(
                ["Inn", f"Inn {number}", f"Bar {number}", f"Bar {number}", f"Bar {number}"]
            )  # one name within another, and two alike
            tables.append(Restaurant(name, city, rng.randrange(1, 40), offers))
        sights += [
            Attraction(f"{rng.choice(['Bar', 'sight'])} {number}", city)
            for number in range(rng.choice([0, 2, 3, 4, 5, 6]))
        ]
    return World(flights, roads, beds, tables, sights, {STATE: names, "Elsewhere": [HOME]})


def small_query(rng: random.Random, *, cities: int, days: int) -> TravelQuery:
    """A query about a small world, with wishes and without."""
    wishes = Constraints(
        house_rule=rng.choice([None] * 4 + [*RULES]),
        cuisines=tuple(rng.sample(CUISINES, rng.choice([0, 0, 1, 2, 3, 3]))),
        room_type=rng.choice([None] * 4 + ["private room", "not shared room"]),
        transportation=rng.choice([None] * 4 + ["no flight", "no self-driving"]),
    )
    dates = tuple(START + timedelta(day) for day in range(days))
    budget = rng.choice([None, rng.randrange(50, 500), rng.randrange(200, 1500)])
    dest = STATE if cities > 1 or days > 3 else "C0"  # longer trips go to a state, as the published checks have it
    return TravelQuery(HOME, dest, days, cities, dates, rng.randrange(1, 4), budget, wishes)


def small_case(
    seed: int, sizes: tuple[tuple[int, int], ...] = ((1, 3), (1, 2), (1, 4), (2, 3), (2, 4))
) -> tuple[TravelQuery, World]:
    """A query and its world."""
    rng = random.Random(seed)
    cities, days = rng.choice(sizes)
    return small_query(rng, cities=cities, days=days), small_world(
        rng, cities=max(cities, rng.choice([1, 2, 3])), days=days
    )


def least_by_trying(query: TravelQuery, world: World) -> int | None:
    """What the cheapest trip costs in dollars, the budget aside; None where there is none. All trips are tried."""
    best = None
    k, days = query.visiting_city_number, query.days
    names = world.cities(STATE) if query.dest == STATE else (query.dest,)
    for cities in permutations(names, k):
        for cuts in combinations(range(1, days - 1), k - 1):
            begins = (0, *cuts, days - 1)
            legs = _legs(query, world, (query.org, *cities, query.org), begins)
            if legs is None:
                continue
            for cost in _stays(query, world, cities, begins):
                best = cost + legs if best is None else min(best, cost + legs)
    return best


def _legs(query: TravelQuery, world: World, places: tuple[str, ...], begins: tuple[int, ...]) -> int | None:
    choices: list[list[tuple[str, int]]] = []
    for origin, destination, day in zip(places[:-1], places[1:], begins, strict=True):
        there = [("flight", int(f.price) * query.people) for f in world.flights(origin, destination, query.dates[day])]
        road = world.road(origin, destination)
        if road is not None and road.kilometres is not None and "day" not in str(road.duration):
            there.append(("self-driving", int(road.kilometres * 0.05) * math.ceil(query.people / 5)))
            there.append(("taxi", int(road.kilometres) * math.ceil(query.people / 4)))
        choices.append([one for one in there if query.constraints.transportation != f"no {one[0]}"])
    costs = []
    for way in product(*choices):
        modes = {mode for mode, _ in way}
        if "self-driving" not in modes or len(modes) == 1:
            costs.append(sum(cost for _, cost in way))
    return min(costs, default=None)


def _stays(query: TravelQuery, world: World, cities: tuple[str, ...], begins: tuple[int, ...]) -> Iterator[int]:
    wanted, people = set(query.constraints.cuisines), query.people
    options: list[list[tuple[int, int, set[str]]]] = []  # cost, meals beyond those of whole days, what is offered
    for city, begin, end in zip(cities, begins[:-1], begins[1:], strict=True):
        nights = end - begin
        beds = [
            int(bed.price) * math.ceil(people / bed.maximum_occupancy) * nights
            for bed in world.accommodations(city)
            if bed.minimum_nights <= nights and _suits(bed, query.constraints)
        ]
        if not beds or len(world.attractions(city)) < nights - 1:
            return
        tables = _tables(world, city)
        must = 3 * (nights - 1)
        options.append([
            (min(beds) + sum(cost for cost, _ in eaten) * people, size - must, set().union(*(o for _, o in eaten)))
            for size in range(must, min(must + 6, len(tables)) + 1)
            for eaten in combinations(tables, size)
        ])  # fmt: skip
    for stays in product(*options):
        if wanted <= set().union(*(offers for *_, offers in stays)) and _fits([more for _, more, _ in stays]):
            yield sum(cost for cost, *_ in stays)


def _fits(more: list[int]) -> bool:
    """Whether days of travel have room for so many meals in each city: three a day, which two cities share."""
    left = 3
    for number, count in enumerate(more):
        if number == len(more) - 1:
            return count <= left + 3
        if count > left + 3:
            return False
        left = 3 - max(0, count - left)
    return True


def _suits(bed: Accommodation, wishes: Constraints) -> bool:
    types = {
        None: True,
        "private room": bed.room_type == "Private room",
        "not shared room": bed.room_type != "Shared room",
    }
    return types[wishes.room_type] and f"No {wishes.house_rule}" not in bed.house_rules


def _tables(world: World, city: str) -> list[tuple[int, set[str]]]:
    """The restaurants: of one name the dearest, and what all of that name offer; what is looked up loosely, too."""
    rows = world.restaurants(city)
    found = []
    for name in dict.fromkeys(row.name for row in rows):
        meant = [row for row in rows if row.name == name] + [next(row for row in rows if name in row.name)]
        found.append((max(int(row.cost) for row in meant), set.intersection(*(set(row.cuisines) for row in meant))))
    return found


def wild_plan(rng: random.Random, query: TravelQuery, world: World) -> tuple[Day, ...]:
    """Days as they come, in the right places more often than not: what no rule has made."""
    k, days = query.visiting_city_number, query.days
    cities = (
        rng.sample(list(world.cities(STATE)), min(k, len(world.cities(STATE)))) if query.dest == STATE else [query.dest]
    )
    cuts = sorted(rng.sample(range(1, days - 1), min(k - 1, days - 2)))
    begins = dict(zip((0, *cuts, days - 1), zip((query.org, *cities), (*cities, query.org), strict=True), strict=False))
    here, found, ways = query.org, [], rng.choice([["Self-driving"], ["Taxi", "Flight"]])
    eaten: set[str] = set()
    for day in range(days):
        places, fields = [here], {}
        if day in begins:
            origin, here = begins[day]
            places = [origin, here]
            flights = world.flights(origin, here, query.dates[day])
            number = f"Flight Number: {rng.choice(flights).number}" if flights and "Flight" in ways else ways[0]
            fields = {"transportation": f"{number}, from {origin} to {here}"}
        for meal in ("breakfast", "lunch", "dinner"):
            there = [f"{row.name}, {place}" for place in places for row in world.restaurants(place)]
            there = [one for one in there if one not in eaten]
            if there and (day not in begins or rng.random() < 0.4):
                fields[meal] = rng.choice(there)
                eaten.add(fields[meal])
        beds = world.accommodations(here)
        if beds and day < days - 1:
            fields["accommodation"] = f"{beds[days % len(beds)].name}, {here}"
        sights = [f"{row.name}, {here};" for row in world.attractions(here)]
        if day not in begins and sights:
            fields["attraction"] = sights[day % len(sights)]
        city = here if day not in begins else f"from {places[0]} to {here}"
        found.append(Day(day + 1, city, **fields))
    return tuple(found)
