"""Routes: cities, their order and their nights; and the exact cost of the cheapest trip along each route.

A trip leaves on its first day and returns on its last. Arrival in a city and departure from it are on different days;
so the nights determine the days, and the days of travel are those on which a stay begins or ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import combinations, permutations, product

import numpy as np

from formal_llm.errors import InputError
from formal_llm.packs.travel.candidates import Candidates, TravelOption
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.meals import NEVER, Costs, nothing, together, together_at
from formal_llm.packs.travel.plan_days import MEALS, NOTHING
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.slots import Shape, Stay, left_of, list_slots

#: The maximum number of cities for which all ways between them are listed.
_FEW = 6


@lru_cache(maxsize=256)
def list_shapes(days: int, cities: int, *, every_meal: bool, sights: int = 1) -> tuple[Shape, ...]:
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
            found.append(tuple(Stay(begin, end - begin, meals[0], meals[1], sights) for begin, end, *meals in stays))
    return tuple(sorted(found, key=lambda shape: sum(stay.nights**2 for stay in shape)))


def nights_of(shape: Shape) -> str:
    """Return the name of a shape: ``"2 + 2 + 2 nights"``; with the meals before departures if their number varies."""
    nights = " + ".join(str(stay.nights) for stay in shape) + " nights"
    if shape[0].before == 1:
        return nights
    return nights + "".join(f", {stay.after} meals" for stay in shape[:-1])


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

    Attributes:
        cities: those of the cities that satisfy the needs of some stay.
        shapes: the ways to distribute the days.
        demands: what the wishes demand.
        tried: the number of legs examined so far, a measure of the work.
    """

    def __init__(self, candidates: Candidates, cities: Collection[str], count: int, *, every_meal: bool) -> None:
        self.candidates = candidates
        self.count = count
        self.demands = demands = candidates.demands
        every = list_shapes(candidates.query.days, count, every_meal=every_meal, sights=demands.sights)
        fit = tuple(filter(demands.fits_shape, every))
        self.shapes = fit or every
        self.tried = 0
        self._stays: dict[tuple[str, tuple[int, ...]], Costs] = {}
        self._legs: dict[tuple[str, str, int, bool], int] = {}
        self._open: dict[Shape, tuple[list[list[str]], list[Costs]]] = {}
        stays = dict.fromkeys(stay for shape in self.shapes for stay in shape)
        self.cities = tuple(
            city
            for city in cities
            if fit
            and demands.allows_place(city)
            and any(self.find_stay_costs(city, stay).min() < NEVER for stay in stays)
        )

    @cached_property
    def by_cost(self) -> tuple[str, ...]:
        """The cities, those with the cheapest stays first."""
        return tuple(sorted(self.cities, key=lambda city: self.find_stay_costs(city, self.shapes[0][0]).min()))

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

    def find_leg_cost(self, origin: str, destination: str, day: int, *, driven: bool) -> int:
        """Return the minimum cost of a leg by self-driving, or by other transport; :data:`NEVER` if there is no way."""
        key = (origin, destination, day, driven)
        cost = self._legs.get(key)
        if cost is None:
            self.tried += 1
            ways = self.list_ways(origin, destination, day)
            cost = self._legs[key] = min((way.cost for way in ways if way.driven == driven), default=NEVER)
        return cost

    def find_stay_costs(self, city: str, stay: Stay) -> Costs:
        """Return the minimum cost of a stay, with bed and meals, for each set of needs to cover there."""
        # Without wishes for certain days only their number counts.
        key = (city, stay if self.demands else (stay.nights, stay.before + stay.after))
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
        """Return the minimum cost of the remaining meals of a stay, for each set of needs to cover there.

        Args:
            city: the city.
            stay: the stay.
            picks: the names chosen for its first slots; the first of them is the bed.
            missing: the needs that may have to be covered.

        Returns:
            the costs; :data:`NEVER` also if too few sights are left, or a wish for the stay cannot be satisfied.
        """
        here, demands, slots = self.candidates.find_city(city), self.demands, list_slots((stay,))
        done, left = list(zip(slots, picks, strict=False)), slots[len(picks) :]
        must, may, sights = left_of((stay,), len(picks)) if left else (0, 0, 0)
        used = {here.place[name] for slot, name in done if slot.kind in MEALS and name != NOTHING}
        found = nothing(self.candidates.wanted, NEVER)
        if sights > len(here.sights) - sum(slot.kind == "sight" for slot, _ in done):
            return found
        if not demands:
            return here.kitchen.find_least_costs(used, must, may, missing)
        forced = demands.find_forced(city)
        if not (
            forced <= here.place.keys()
            and demands.fits_stay(city, stay)
            and demands.fits_sights(city, here.sights, done, left)
        ):
            return found
        rest, cuisines = {here.place[name] for name in forced} - used, np.arange(1 << len(demands.cuisines))
        for covers, must, may, special in demands.list_courses(city, stay, done, left, here.offers):
            costs = here.kitchen.find_least_costs(used, must, may, missing, special, rest)
            found[cuisines | covers] = np.minimum(found[cuisines | covers], costs[cuisines])
        return found

    def keeps_sums(self, ways: int, beds: int, meals: int) -> bool:
        """Return whether the costs of the parts of a trip are within their bounds."""
        parts = zip(("ways", "bed", "meals"), (ways, beds, meals), strict=True)
        return all(cost <= self.demands.find_most(part, "trip") for part, cost in parts)

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
                # The minimum is not that of no needs: a free evening saves a dinner.
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
        self._extend_route(0, self._home, (), nothing(self._wanted), 0, 0)
        return self._best

    def _extend_route(
        self, place: int, last: str, visited: tuple[str, ...], costs: Costs, legs: int, beds: int
    ) -> None:
        routes, wanted = self._routes, self._wanted
        if place == len(self._shape):
            legs += routes.find_leg_cost(last, self._home, self._shape[-1].leaving, driven=self._driven)
            cost = int(costs[wanted])
            if legs + cost < self._best and routes.keeps_sums(legs, beds, cost - beds):
                self._best = legs + cost
                self._done = self._some
            return
        stay = self._shape[place]
        rest = self._rests[place + 1]
        fixed = place < len(self._chosen)
        for city in self._chosen[place : place + 1] if fixed else self._orders[place]:
            if city in visited or city in self._chosen[place + 1 :]:
                continue
            if len(routes.demands.cities.difference(visited, (city,))) >= len(self._shape) - place:
                continue
            here = routes.find_stay_costs(city, stay)
            if legs + costs.min() + here.min() + rest.min() >= self._best:
                break  # the remaining cities are more expensive
            after = together(costs, here)
            if legs + together_at(after, rest, wanted) >= self._best:
                continue
            leg = routes.find_leg_cost(last, city, stay.arrival, driven=self._driven)
            slept = beds + routes.find_bed_cost(city, stay)
            cheap = legs + leg + together_at(after, rest, wanted) < self._best
            if cheap and routes.keeps_sums(legs + leg, slept, int(after.min()) - slept):
                self._extend_route(place + 1, city, (*visited, city), after, legs + leg, slept)
            if self._done:
                return
