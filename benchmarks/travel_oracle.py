"""The cheapest trip of a query by an integer program (OR-tools), without any code of the planner: its oracle.

Every order of cities, every split of the days and both ways of travelling are tried one by one; which beds and
restaurants are cheapest together, with all cuisines, an integer program says. Costs are in cents.

A plan names a house and no more. Where a city has two of a name, it may mean either: then the dearest and strictest of
them counts, in the oracle as in the planner. So a trip to one of them alone may cost less, but no plan can say so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache
from itertools import pairwise, permutations, product
from typing import TypeVar

from ortools.sat.python import cp_model

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.rows import Accommodation, Attraction, Money, Restaurant

R = TypeVar("R", Accommodation, Attraction, Restaurant)
_RULED = {
    "entire room": {"Entire home/apt"}, "private room": {"Private room"}, "shared room": {"Shared room"},
    "not shared room": {"Entire home/apt", "Private room"},
}  # fmt: skip


def cheapest(query: TravelQuery, world: World) -> int | None:
    """What the cheapest trip costs that keeps all wishes but the budget, in cents; None where there is none."""
    if query.visiting_city_number == 1:
        towns = [query.dest]
    else:
        towns = [city for city in world.cities(query.dest) if city != query.org]
    best: int | None = None
    for cities in permutations(towns, query.visiting_city_number):
        for nights in _splits(query.days - 1, len(cities)):
            fixed = _fixed(query, world, cities, nights)
            if fixed is None or (best is not None and fixed >= best):
                continue
            food = _food(query, world, cities, nights, best if best is None else best - fixed)
            if food is not None and (best is None or fixed + food < best):
                best = fixed + food
    return best


def solvable(query: TravelQuery, world: World) -> bool:
    """Whether some trip keeps all wishes and the budget."""
    cost = cheapest(query, world)
    return cost is not None and (query.budget is None or cost <= _cents(query.budget))


def _cents(amount: Money) -> int:
    return math.ceil(Decimal(amount) * 100)


def _splits(nights: int, cities: int) -> Iterator[tuple[int, ...]]:
    """How many nights each city gets."""
    return (one for one in product(range(1, nights + 1), repeat=cities) if sum(one) == nights)


def _fixed(query: TravelQuery, world: World, cities: Sequence[str], nights: Sequence[int]) -> int | None:
    """What journeys and beds cost at least; None where there are none, or too few sights."""
    total, day = 0, 0
    route = (query.org, *cities, query.org)
    legs = []
    for place, (origin, destination) in enumerate(pairwise(route)):
        legs.append((origin, destination, query.dates[day]))
        if place < len(nights):
            day += nights[place]
    driven = [_drive(query, world, *leg[:2], "self-driving") for leg in legs]
    carried = [_carried(query, world, *leg) for leg in legs]
    rule = query.constraints.transportation
    ways = [
        sum(cost for cost in costs if cost is not None)
        for costs, barred in ((driven, rule == "no self-driving"), (carried, False))
        if not barred and None not in costs
    ]
    if not ways:
        return None
    total = min(ways)
    for city, stay in zip(cities, nights, strict=True):
        beds = [
            max(bed.price * math.ceil(query.people / bed.maximum_occupancy) for bed in meant)
            for meant in _named(world.accommodations(city))
            if all(
                bed.minimum_nights <= stay
                and (query.constraints.room_type is None or bed.room_type in _RULED[query.constraints.room_type])
                and f"No {query.constraints.house_rule}" not in bed.house_rules
                for bed in meant
            )
        ]
        if not beds or len(_named(world.attractions(city))) < stay - 1:
            return None
        total += stay * min(map(_cents, beds))
    return total


@cache
def _named(rows: tuple[R, ...]) -> list[set[R]]:
    """For each name what it may mean: all rows of that name, and the first that contains it, as published."""
    by_name: dict[str, list[R]] = {}
    for row in rows:
        by_name.setdefault(" ".join(row.name.lower().split()), []).append(row)
    for meant in by_name.values():
        meant.append(next(row for row in rows if meant[0].name.strip() in row.name))
    return list(map(set, by_name.values()))


def _carried(query: TravelQuery, world: World, origin: str, destination: str, day: object) -> int | None:
    costs = _flight(query, world, origin, destination, day), _drive(query, world, origin, destination, "taxi")
    return min((cost for cost in costs if cost is not None), default=None)


def _drive(query: TravelQuery, world: World, origin: str, destination: str, mode: str) -> int | None:
    row = world.road(origin, destination)
    if row is None or row.kilometres is None or row.duration is None or "day" in row.duration:
        return None
    if mode == "self-driving":
        return 100 * int(row.kilometres * 0.05) * math.ceil(query.people / 5)
    return 100 * int(row.kilometres) * math.ceil(query.people / 4)


def _flight(query: TravelQuery, world: World, origin: str, destination: str, day: object) -> int | None:
    if query.constraints.transportation == "no flight":
        return None
    prices = [one.price for one in world.flights(origin, destination) if one.day == day]
    return min((_cents(price) * query.people for price in prices), default=None)


def _food(
    query: TravelQuery, world: World, cities: Sequence[str], nights: Sequence[int], below: int | None
) -> int | None:
    """What meals cost at least that are all different and cover the cuisines; None where none do, or none so cheap."""
    model = cp_model.CpModel()
    taken: dict[tuple[str, int], cp_model.IntVar] = {}
    extra = []
    for place, (city, stay) in enumerate(zip(cities, nights, strict=True)):
        for number, _ in enumerate(_named(world.restaurants(city))):
            taken[city, number] = model.new_bool_var(f"{city} {number}")
        # On the day of arrival, three meals that may be eaten there or where one comes from; on the last day the same.
        more = model.new_int_var(0, 6, f"more in {city}")
        extra.append(more)
        eaten = sum(var for (where, _), var in taken.items() if where == city)
        model.add(eaten == 3 * (stay - 1) + more)
        model.add(more <= 6)
        if place:
            # Both share the three meals of the day between them; what each has on its other side is three at most.
            model.add(extra[place - 1] + more <= 3 * 3)
    model.add(sum(extra) <= 3 * (len(cities) + 1))
    for cuisine in query.constraints.cuisines:
        model.add_bool_or(
            var
            for (city, number), var in taken.items()
            if all(cuisine in one.cuisines for one in _named(world.restaurants(city))[number])
        )
    cost = sum(
        max(_cents(one.cost) for one in _named(world.restaurants(city))[number]) * query.people * var
        for (city, number), var in taken.items()
    )
    if below is not None:
        model.add(cost < below)
    model.minimize(cost)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if solver.solve(model) != cp_model.OPTIMAL:
        return None
    return round(solver.objective_value)
