"""Routes: which cities, in which order, for how many nights each; and the cheapest trip along each of them, exactly.

A trip leaves on its first day and is home on its last. A city is arrived at on one day and left on another; so the
nights tell the days, and the days of travel are those on which a stay begins or ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np

from formal_llm.errors import InputError
from formal_llm.packs.travel.candidates import Candidates, TravelOption
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.meals import NEVER, Costs, nothing, together, together_at
from formal_llm.packs.travel.query import TravelQuery


class Stay(NamedTuple):
    """A stay in a city.

    Attributes:
        arrival: the day on which it begins, from 0.
        nights: how many nights it has; so there are ``nights - 1`` whole days between.
        before, after: how many meals may be eaten on the day of arrival, and on that of leaving.
    """

    arrival: int
    nights: int
    before: int
    after: int

    @property
    def leaving(self) -> int:
        """The day on which it ends."""
        return self.arrival + self.nights

    @property
    def meals(self) -> int:
        """How many meals have to be eaten: three on each whole day."""
        return 3 * (self.nights - 1)


#: Of more cities than these not all ways between them are listed.
_FEW = 6
#: The stays of a trip, in their order.
Shape = tuple[Stay, ...]


@lru_cache(maxsize=256)
def shapes(days: int, cities: int, *, every_meal: bool) -> tuple[Shape, ...]:
    """How the days can be spread over the cities, the most even ways first.

    On days of travel there may be dinner where one arrives and breakfast where one leaves. With ``every_meal`` there
    may be three meals: on the first day all in the first city, on the last day all in the last one, and between two
    cities the first ones in the one and the others in the other.
    """
    found: list[Shape] = []
    for cuts in combinations(range(1, days - 1), cities - 1):
        begins = (0, *cuts, days - 1)
        for eaten in product((1, 2, 0, 3), repeat=cities - 1) if every_meal else [(1,) * (cities - 1)]:
            before = (3, *(3 - count for count in eaten)) if every_meal else (1,) * cities
            after = (*eaten, 3 if every_meal else 1)
            stays = zip(begins, begins[1:], before, after, strict=False)
            found.append(tuple(Stay(begin, end - begin, *meals) for begin, end, *meals in stays))
    return tuple(sorted(found, key=lambda shape: sum(stay.nights**2 for stay in shape)))


def nights_of(shape: Shape) -> str:
    """The name of a shape: ``"2 + 2 + 2 nights"``; with the meals before leaving where any number may be."""
    nights = " + ".join(str(stay.nights) for stay in shape) + " nights"
    if shape[0].before == 1:
        return nights
    return nights + "".join(f", {stay.after} meals" for stay in shape[:-1])


def cities_of(query: TravelQuery, world: World) -> tuple[str, ...]:
    """The cities that a trip may visit: the destination, or those of the state that it is.

    Raises:
        InputError: nobody travels, or in fewer days than the cities need, or on no dates.
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
    if not of_state and not world.states:  # the tables of one query: they tell of no states
        of_state = tuple(city for city in world.cities() if world.accommodations(city))
    return tuple(city for city in of_state if city != query.org)


class Routes:
    """The routes of a query, and what trips along them cost at least.

    Args:
        candidates: what a trip can be made of.
        cities: the cities that may be visited, as far as the query goes.
        count: how many of them are.
        every_meal: see :func:`shapes`.

    Attributes:
        cities: those that have what some stay takes.
        shapes: how the days can be spread.
        tried: how many legs were looked at so far: the work done.
    """

    def __init__(self, candidates: Candidates, cities: Collection[str], count: int, *, every_meal: bool) -> None:
        self.candidates = candidates
        self.count = count
        self.shapes = shapes(candidates.query.days, count, every_meal=every_meal)
        self.tried = 0
        self._stays: dict[tuple[str, int, int], Costs] = {}
        self._legs: dict[tuple[str, str, int, bool], int] = {}
        self._open: dict[Shape, tuple[list[list[str]], list[Costs]]] = {}
        stays = dict.fromkeys(stay for shape in self.shapes for stay in shape)
        self.cities = tuple(city for city in cities if any(self.stay(city, stay)[0] < NEVER for stay in stays))

    @cached_property
    def by_cost(self) -> tuple[str, ...]:
        """The cities, those first where to stay costs least."""
        return tuple(sorted(self.cities, key=lambda city: self.stay(city, self.shapes[0][0])[0]))

    def ways(self, origin: str, destination: str, day: int) -> tuple[TravelOption, ...]:
        """The ways from a city to another on a day of the trip."""
        return self.candidates.ways(origin, destination, self.candidates.query.dates[day])

    def known_ways(self) -> Iterator[TravelOption]:
        """The ways between the cities, on the days on which they may be taken; none where there are many cities."""
        if len(self.cities) > _FEW:
            return
        home = self.candidates.query.org
        days = {stay.arrival for shape in self.shapes for stay in shape} | {self.candidates.query.days - 1}
        for day in sorted(days):
            for origin, destination in permutations((home, *self.cities), 2):
                yield from self.ways(origin, destination, day)

    def leg(self, origin: str, destination: str, day: int, *, driven: bool) -> int:
        """The cheapest of the ways that one drives oneself, or of the others; :data:`NEVER` where there is none."""
        key = (origin, destination, day, driven)
        found = self._legs.get(key)
        if found is None:
            self.tried += 1
            ways = self.ways(origin, destination, day)
            found = self._legs[key] = min((way.cost for way in ways if way.driven == driven), default=NEVER)
        return found

    def stay(self, city: str, stay: Stay) -> Costs:
        """What a stay costs at least, bed and meals, for each set of cuisines that is covered there."""
        key = (city, stay.nights, stay.before + stay.after)
        found = self._stays.get(key)
        if found is None:
            there, wanted = self.candidates.city(city), self.candidates.wanted
            bed = self.bed(city, stay)
            if bed >= NEVER or len(there.sights) < stay.nights - 1:
                found = nothing(wanted, NEVER)
            else:
                meals = there.kitchen.least((), stay.meals, stay.before + stay.after, wanted)
                found = np.minimum(meals + bed, NEVER)
            self._stays[key] = found
        return found

    def bed(self, city: str, stay: Stay) -> int:
        """The cheapest bed for a stay, all nights together."""
        fits = (bed.cost for bed in self.candidates.city(city).beds if bed.nights <= stay.nights)
        return min(fits, default=NEVER) * stay.nights

    def rest(self, cities: Sequence[str], shape: Shape) -> Costs:
        """What stays in these cities cost together at least, for each set of cuisines; the last ones of a shape."""
        found = nothing(self.candidates.wanted)
        for city, stay in zip(reversed(cities), reversed(shape), strict=False):
            found = together(self.stay(city, stay), found)
        return found

    def least(self, chosen: Sequence[str], shape: Shape | None = None, *, most: int, some: bool) -> int:
        """What a trip costs at least that begins with some cities.

        Args:
            chosen: the first cities, in their order.
            shape: how the days are spread; None where that is open.
            most: dearer trips do not count.
            some: whether any trip will do that costs no more than ``most``, not only a cheapest one.

        Returns:
            the cost, in cents; :data:`NEVER` where there is no such trip.
        """
        best = most + 1
        for one in self.shapes if shape is None else (shape,):
            for driven in (True, False):
                best = _RouteSearch(self, one, chosen, driven, some).run(best)
                if some and best <= most:
                    return best
        return best if best <= most else NEVER

    def open_to(self, shape: Shape) -> tuple[list[list[str]], list[Costs]]:
        """For each stay of a shape the cities, cheapest first; and what it and those after it cost at least."""
        found = self._open.get(shape)
        if found is None:
            orders, rests = [], [nothing(self.candidates.wanted)]
            for stay in reversed(shape):
                costs = {city: self.stay(city, stay) for city in self.cities}
                orders.append(sorted((city for city in costs if costs[city][0] < NEVER), key=lambda c: costs[c][0]))
                anywhere = np.min([*costs.values(), nothing(self.candidates.wanted, NEVER)], axis=0)
                rests.append(together(anywhere, rests[-1]))
            found = self._open[shape] = (orders[::-1], rests[::-1])
        return found


class _RouteSearch:
    """The cheapest trip of a shape in one kind of transport, by depth-first branch and bound."""

    def __init__(self, routes: Routes, shape: Shape, chosen: Sequence[str], driven: bool, some: bool) -> None:
        self._routes, self._shape, self._chosen, self._driven, self._some = routes, shape, chosen, driven, some
        self._orders, self._rests = routes.open_to(shape)
        self._home = routes.candidates.query.org
        self._wanted = routes.candidates.wanted

    def run(self, best: int) -> int:
        """The cost of the cheapest trip that costs less than ``best``; else ``best``."""
        self._best, self._done = best, False
        self._go(0, self._home, (), nothing(self._wanted), 0)
        return self._best

    def _go(self, place: int, last: str, visited: tuple[str, ...], costs: Costs, legs: int) -> None:
        routes, wanted = self._routes, self._wanted
        if place == len(self._shape):
            leg = routes.leg(last, self._home, self._shape[-1].leaving, driven=self._driven)
            if legs + leg + int(costs[wanted]) < self._best:
                self._best = legs + leg + int(costs[wanted])
                self._done = self._some
            return
        stay = self._shape[place]
        rest = self._rests[place + 1]
        fixed = place < len(self._chosen)
        for city in self._chosen[place : place + 1] if fixed else self._orders[place]:
            if city in visited or city in self._chosen[place + 1 :]:
                continue
            here = routes.stay(city, stay)
            if legs + costs[0] + here[0] + rest[0] >= self._best:
                break  # the others are dearer
            after = together(costs, here)
            if legs + together_at(after, rest, wanted) >= self._best:
                continue
            leg = routes.leg(last, city, stay.arrival, driven=self._driven)
            if legs + leg + together_at(after, rest, wanted) < self._best:
                self._go(place + 1, city, (*visited, city), after, legs + leg)
            if self._done:
                return
