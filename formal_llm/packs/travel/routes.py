"""Routes: cities, their order and their nights; and the exact cost of the cheapest trip along each route.

A trip leaves on its first day and returns on its last. Arrival in a city and departure from it are on different days;
so the nights determine the days, and the days of travel are those on which a stay begins or ends.

Why the least cost is exact: once the cities, the days and the ways are fixed, it is known which meals and sights the
ways leave time for, and then beds and meals share nothing but the sum of the trip. So each is as cheap as it can be at
the same time. Ways are tried in all combinations, except
those that a cheaper one undercuts which leaves time for all the same: no wish is harder to satisfy with more time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np

from formal_llm.errors import InputError
from formal_llm.packs.travel.candidates import Candidates, TravelOption
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.hours import count_after, count_before, find_times
from formal_llm.packs.travel.meals import NEVER, Costs, nothing, together, together_at
from formal_llm.packs.travel.plan_days import MEALS, NOTHING
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.slots import Shape, Stay, left_of, list_slots


class Leg(NamedTuple):
    """The cost of a way, and the meals and the sights for which it leaves time before it, and those after it."""

    cost: int
    able: tuple[int, int, int, int] = (3, 1, 3, 1)


#: The maximum number of cities for which all ways between them are listed.
_FEW = 6


@lru_cache(maxsize=256)
def list_shapes(days: int, cities: int, *, every_meal: bool) -> tuple[Shape, ...]:
    """List the ways to distribute the days over the cities, the most even first.

    Days of travel may have a dinner after the arrival and a breakfast before the departure. With ``every_meal`` they
    may have three meals: on the first day all in the first city, on the last day all in the last city, and between
    two cities the first meals in one and the others in the other.
    """
    found: list[Shape] = []
    for cuts in combinations(range(1, days - 1), cities - 1):
        begins = (0, *cuts, days - 1)
        for eaten in product((1, 2, 0, 3), repeat=cities - 1) if every_meal else [(1,) * (cities - 1)]:
            before = (3, *(3 - count for count in eaten)) if every_meal else (1,) * cities
            after = (*eaten, 3 if every_meal else 1)
            stays = zip(begins, begins[1:], before, after, strict=False)
            found.append(tuple(Stay(begin, end - begin, meals[0], meals[1]) for begin, end, *meals in stays))
    return tuple(sorted(found, key=lambda shape: sum(stay.nights**2 for stay in shape)))


def nights_of(shape: Shape) -> str:
    """Return the name of a shape: ``"2 + 2 + 2 nights"``; with the meals before departures if their number varies."""
    nights = " + ".join(str(stay.nights) for stay in shape) + " nights"
    if shape[0].before == 1:
        return nights
    return nights + "".join(f", {stay.after} meals" for stay in shape[:-1])


def limit_stays(shape: Shape, number: int, able: tuple[int, int, int, int]) -> Shape:
    """Return the stays around a leg with the meals and sights for which its way leaves time."""
    stays = list(shape)
    if number:
        stays[number - 1] = stays[number - 1]._replace(able_after=able[0], last=able[1])
    if number < len(stays):
        stays[number] = stays[number]._replace(able_before=able[2], first=able[3])
    return tuple(stays)


def cities_of(query: TravelQuery, world: World) -> tuple[str, ...]:
    """Return the cities that a trip may visit: the destination, or the cities of the destination state.

    Raises:
        InputError: the query has no travellers, too few days for its cities, or not one date per day.
    """
    count = query.visiting_city_number
    if query.people < 1:
        raise InputError(f"a trip needs at least one traveller, not {query.people}")
    if count < 1:
        raise InputError(f"a trip visits at least one city, not {count}")
    if query.days <= count:
        raise InputError(f"to visit {count} and be home again takes {count + 1} days or more, not {query.days}")
    if len(query.dates) != query.days:
        raise InputError(f"a trip of {query.days} days has as many dates, not {len(query.dates)}")
    of_state = world.cities(query.dest)
    if count == 1 and (not of_state or query.dest in world.cities()):
        return (query.dest,) if query.dest != query.org else ()
    if not of_state and not world.states:  # the tables of one query do not specify states
        of_state = tuple(city for city in world.cities() if world.accommodations(city))
    return tuple(city for city in of_state if city != query.org)


class Routes:
    """The routes of a query, and the minimum cost of trips along them.

    Args:
        candidates: the possible components of a trip.
        cities: the cities that the query allows to visit.
        count: the number of cities to visit.
        every_meal: see :func:`list_shapes`.
        sensible: whether the hours of the ways decide which meals and sights are possible.

    Attributes:
        cities: those of the cities where some stay is possible.
        shapes: the ways to distribute the days.
        tried: the number of legs examined so far, a measure of the work.
    """

    def __init__(
        self, candidates: Candidates, cities: Collection[str], count: int, *, every_meal: bool, sensible: bool = False
    ) -> None:
        self.candidates = candidates
        self.count = count
        self.sensible = sensible
        self.shapes = list_shapes(candidates.query.days, count, every_meal=every_meal)
        self.tried = 0
        self._stays: dict[tuple[str, tuple[int, int]], Costs] = {}
        self._legs: dict[tuple[str, str, int, tuple[int, int], bool], tuple[Leg, ...]] = {}
        self._open: dict[Shape, tuple[list[list[str]], list[Costs]]] = {}
        stays = dict.fromkeys(stay for shape in self.shapes for stay in shape)
        self.cities = tuple(
            city for city in cities if any(self.find_stay_costs(city, stay).min() < NEVER for stay in stays)
        )

    def list_next(self, chosen: Sequence[str]) -> list[str]:
        """List the cities that may be visited after others, by the cost of a stay there and by the best way there."""
        last, stay = [self.candidates.query.org, *chosen][-1], self.shapes[0][len(chosen)]

        def rate(city: str) -> float:
            ways = map(self.candidates.rate_way, self.list_ways(last, city, stay.arrival))
            return min(ways, default=NEVER) + self.candidates.rate(int(self.find_stay_costs(city, stay).min()))

        return sorted((city for city in self.cities if city not in chosen), key=rate)

    def list_ways(self, origin: str, destination: str, day: int) -> tuple[TravelOption, ...]:
        """Return the ways from one city to another on a day of the trip."""
        return self.candidates.list_ways(origin, destination, self.candidates.query.dates[day])

    def known_ways(self) -> Iterator[TravelOption]:
        """Iterate over the ways between the cities on all possible days; none if there are many cities."""
        if len(self.cities) > _FEW:
            return
        home = self.candidates.query.org
        days = {stay.arrival for shape in self.shapes for stay in shape} | {self.candidates.query.days - 1}
        for day in sorted(days):
            for origin, destination in permutations((home, *self.cities), 2):
                yield from self.list_ways(origin, destination, day)

    def find_legs(self, origin: str, destination: str, shape: Shape, number: int, *, driven: bool) -> tuple[Leg, ...]:
        """Return the legs between two cities that no other leg undercuts with as many meals and sights.

        Only legs by self-driving if ``driven``, else only those by other transport; ``number`` counts legs from 0.
        """
        day = shape[number].arrival if number < len(shape) else shape[-1].leaving
        most = shape[number - 1].after if number else 0, shape[number].before if number < len(shape) else 0
        key = (origin, destination, day, most, driven)
        found = self._legs.get(key)
        if found is None:
            self.tried += 1
            least: dict[tuple[int, int, int, int], int] = {}
            for way in self.list_ways(origin, destination, day):
                if way.driven == driven:
                    able = self.find_able(way, shape, number) if self.candidates.wanted else (3, 1, 3, 1)
                    able = min(able[0], most[0]), 1, min(able[2], most[1]), 1
                    least[able] = min(way.cost, least.get(able, NEVER))
            legs = [Leg(cost, able) for able, cost in least.items()]
            found = self._legs[key] = tuple(one for one in legs if not any(_undercuts(other, one) for other in legs))
        return found

    def find_able(self, way: TravelOption, shape: Shape, number: int) -> tuple[int, int, int, int]:
        """Return the meals and the sights for which a way leaves time before it, and those after it."""
        if not self.sensible:
            return 3, 1, 3, 1
        meals = None if number == len(shape) else shape[number - 1].after if number else 0
        leaving, arrival = find_times(way.row, meals)
        return (*count_before(leaving), *count_after(arrival))

    def find_stay_costs(self, city: str, stay: Stay) -> Costs:
        """Return the minimum cost of a stay, with bed and meals, for each set of cuisines to cover there."""
        key = (city, (stay.nights, stay.more_meals))
        found = self._stays.get(key)
        if found is None:
            bed = self.find_bed_cost(city, stay)
            if bed >= NEVER:
                found = nothing(self.candidates.wanted, NEVER)
            else:
                found = np.minimum(self.find_meal_costs(city, stay, ("",), self.candidates.wanted) + bed, NEVER)
            self._stays[key] = found
        return found

    def find_meal_costs(self, city: str, stay: Stay, picks: Sequence[str], missing: int) -> Costs:
        """Return the minimum cost of the remaining meals of a stay, for each set of cuisines to cover there.

        Args:
            city: the city.
            stay: the stay.
            picks: the names chosen for its first slots; the first of them is the bed.
            missing: the cuisines that may have to be covered.

        Returns:
            the costs; :data:`NEVER` also if too few sights are left.
        """
        here = self.candidates.find_city(city)
        done = list(zip(list_slots((stay,)), picks, strict=False))
        used = {here.place[name] for slot, name in done if slot.kind in MEALS and name != NOTHING}
        must, may, sights = left_of((stay,), len(picks))
        seen = sum(slot.kind == "sight" and name != NOTHING for slot, name in done)
        if sights > len(here.sights) - seen:
            return nothing(self.candidates.wanted, NEVER)
        return here.kitchen.find_least_costs(used, must, may, missing)

    def find_bed_cost(self, city: str, stay: Stay) -> int:
        """Return the cost of the cheapest bed for all nights of a stay."""
        fits = (bed.cost for bed in self.candidates.find_city(city).beds if bed.nights <= stay.nights)
        return min(fits, default=NEVER) * stay.nights

    def find_rest_costs(self, cities: Sequence[str], shape: Shape) -> Costs:
        """Return the minimum cost of the last stays of a shape, for each set of cuisines to cover there."""
        found = nothing(self.candidates.wanted)
        for city, stay in zip(reversed(cities), reversed(shape), strict=False):
            found = together(self.find_stay_costs(city, stay), found)
        return found

    def find_least_cost(self, chosen: Sequence[str], shape: Shape | None = None, *, most: int, some: bool) -> int:
        """Return the minimum cost of a trip that begins with some cities.

        Args:
            chosen: the first cities, in order.
            shape: the distribution of the days; None for any.
            most: the maximum cost; more expensive trips do not count.
            some: whether the cost of any trip up to ``most`` suffices, instead of that of a cheapest one.

        Returns:
            the cost, in cents; :data:`NEVER` if there is no such trip.
        """
        best = most + 1
        for one in self.shapes if shape is None else (shape,):
            for driven in (True, False):
                best = _RouteSearch(self, one, chosen, driven, some).improve_cost(best)
                if some and best <= most:
                    return best
        return best if best <= most else NEVER

    def open_to(self, shape: Shape) -> tuple[list[list[str]], list[Costs]]:
        """Return for each stay of a shape the cities, cheapest first, and the minimum cost from that stay on."""
        found = self._open.get(shape)
        if found is None:
            orders, rests = [], [nothing(self.candidates.wanted)]
            for stay in reversed(shape):
                costs = {city: self.find_stay_costs(city, stay) for city in self.cities}
                least = {city: costs[city].min() for city in costs}
                orders.append(sorted((city for city in costs if least[city] < NEVER), key=lambda city: least[city]))
                anywhere = np.min([*costs.values(), nothing(self.candidates.wanted, NEVER)], axis=0)
                rests.append(together(anywhere, rests[-1]))
            found = self._open[shape] = (orders[::-1], rests[::-1])
        return found


class _RouteSearch:
    """A search for the cheapest trip of a shape with one kind of transport, by depth-first branch and bound."""

    def __init__(self, routes: Routes, shape: Shape, chosen: Sequence[str], driven: bool, some: bool) -> None:
        self._routes, self._shape, self._chosen, self._driven, self._some = routes, shape, chosen, driven, some
        self._orders, self._rests = routes.open_to(shape)
        self._home = routes.candidates.query.org
        self._wanted = routes.candidates.wanted

    def improve_cost(self, best: int) -> int:
        """Return the cost of the cheapest trip if it is less than ``best``; else ``best``."""
        self._best, self._done = best, False
        none = nothing(self._wanted)
        self._extend_route(0, self._home, (), (none, none), Leg(0))
        return self._best

    def _extend_route(
        self, place: int, last: str, visited: tuple[str, ...], stays: tuple[Costs, Costs], legs: Leg
    ) -> None:
        """Extend a route; ``stays`` are the costs without the last stay, and those with every meal in it."""
        routes, wanted, costs = self._routes, self._wanted, stays[1]
        if place == len(self._shape):
            for leg in routes.find_legs(last, self._home, self._shape, place, driven=self._driven):
                cost = legs.cost + leg.cost + int(self._close_stay(place - 1, last, stays, legs, leg)[wanted])
                if cost < self._best:
                    self._best = cost
                    self._done = self._some
            return
        stay = self._shape[place]
        rest = self._rests[place + 1]
        fixed = place < len(self._chosen)
        for city in self._chosen[place : place + 1] if fixed else self._orders[place]:
            if city in visited or city in self._chosen[place + 1 :]:
                continue
            here = routes.find_stay_costs(city, stay)
            if legs.cost + costs.min() + here.min() + rest.min() >= self._best:
                break  # the remaining cities are more expensive
            after = together(costs, here)
            if legs.cost + together_at(after, rest, wanted) >= self._best:
                continue
            for leg in routes.find_legs(last, city, self._shape, place, driven=self._driven):
                closed = self._close_stay(place - 1, last, stays, legs, leg)
                now = after if closed is costs else together(closed, here)
                if legs.cost + leg.cost + together_at(now, rest, wanted) < self._best:
                    both = leg._replace(cost=legs.cost + leg.cost)
                    self._extend_route(place + 1, city, (*visited, city), (closed, now), both)
                if self._done:
                    return

    def _close_stay(self, place: int, city: str, stays: tuple[Costs, Costs], before: Leg, after: Leg) -> Costs:
        """Return the costs of all stays, the last one with the meals for which the legs around it leave time."""
        stay = self._shape[place]
        (_, _, able_before, first), (able_after, last, _, _) = before.able, after.able
        if place < 0 or (able_before >= stay.before and able_after >= stay.after and first and last):
            return stays[1]
        able = stay._replace(able_before=able_before, able_after=able_after, first=first, last=last)
        return together(stays[0], self._routes.find_stay_costs(city, able))


def _undercuts(one: Leg, other: Leg) -> bool:
    """Return whether one leg is cheaper than another, or leaves more time, and is not worse in anything."""
    no_worse = one.cost <= other.cost and all(mine >= its for mine, its in zip(one.able, other.able, strict=True))
    return no_worse and one != other
