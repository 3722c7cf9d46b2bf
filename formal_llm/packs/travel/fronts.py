"""The Pareto front of a query: the trips that no other trip surpasses in costs, ratings, travel time and sights.

It is exact. Stays and ways are combined step by step, and of those that leave the same possibilities only the ones
that none surpasses are kept: costs, ratings and minutes are sums, and the rest of a trip depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, reduce
from itertools import permutations, product
from typing import NamedTuple

from formal_llm.packs.travel.candidates import City
from formal_llm.packs.travel.routes import Shape, Stay, limit_stays, nights_of
from formal_llm.packs.travel.slots import MEALS, left_of, list_slots
from formal_llm.packs.travel.telling import NOTHING
from formal_llm.packs.travel.trip import Trip


class FrontTrip(NamedTuple):
    """A trip of the front.

    Attributes:
        cost: the cost for all travellers, in cents.
        rating: the mean rating of its restaurants and nights, in tenths of a star, rounded; without rating it is 0.
        minutes: the travel time.
        sights: the number of sights.
        word: the word of the trip.
    """

    cost: int
    rating: int
    minutes: int
    sights: int
    word: tuple[str, ...]


class _Part(NamedTuple):
    """A part of a trip: its costs in cents, the sum of its ratings or of its minutes, and its names."""

    cost: int
    sum: int
    names: tuple[str, ...]


class _Trip(NamedTuple):
    """A trip: cities, stays with what is possible, ways with their minutes, beds and meals with their rating."""

    cities: tuple[str, ...]
    shape: Shape
    ways: _Part
    stays: _Part
    sights: int

    @property
    def cost(self) -> int:
        """The cost for all travellers, in cents."""
        return self.ways.cost + self.stays.cost


#: Parts by the cuisines that they cover and the number of their ratings.
_Parts = dict[tuple[int, int], list[_Part]]


def find_front(trip: Trip) -> list[FrontTrip]:
    """Find the Pareto front of the trips of a query, the cheapest trip first.

    Of trips that are equal in costs, ratings, travel time and sights the front contains one.
    """
    best: dict[tuple[int, int, int], _Trip] = {}
    for one in _list_trips(trip):
        place = one.stays.sum, one.ways.sum, one.sights
        if one.cost <= trip.most and (place not in best or one.cost < best[place].cost):
            best[place] = one
    found: list[FrontTrip] = []
    for one in sorted(best.values(), key=lambda one: (one.cost, -one.stays.sum, one.ways.sum, -one.sights)):
        rating, minutes = one.stays.sum, one.ways.sum
        if not any(
            other.rating >= rating and other.minutes <= minutes and other.sights >= one.sights for other in found
        ):
            word = (*one.cities, nights_of(one.shape), *one.ways.names, *_fill_slots(trip, one))
            found.append(FrontTrip(one.cost, rating, minutes, one.sights, word))
    return found


def _list_trips(trip: Trip) -> Iterator[_Trip]:
    """List trips so that each other one is surpassed by one of them, or equal to it."""
    routes, wanted, find_city = trip.routes, trip.candidates.wanted, trip.candidates.find_city

    @cache
    def list_meals(city: str) -> _Parts:
        return _list_meals(find_city(city), max(3 * stay.nights + 3 for shape in routes.shapes for stay in shape))

    @cache
    def list_stays(stays: tuple[tuple[str, int, int], ...]) -> list[_Part]:
        every = (_list_stays(find_city(city), list_meals(city), nights, more) for city, nights, more in stays)
        found: dict[int, _Part] = {}
        for (covers, count), parts in reduce(_combine_stays, every).items():
            for part in parts if covers == wanted else ():
                rating = (2 * part.sum + count) // (2 * count)
                if rating not in found or part.cost < found[rating].cost:
                    found[rating] = part._replace(sum=rating)
        return _keep_best(found.values(), more=True)

    for cities in permutations(routes.cities, routes.count):
        for nominal in routes.shapes:
            for shape, ways in _list_ways(trip, cities, nominal).items():
                sights = sum(map(_count_sights, map(find_city, cities), shape))
                key = tuple((city, stay.nights, stay.more_meals) for city, stay in zip(cities, shape, strict=True))
                for way, stays in product(ways, list_stays(key)):
                    yield _Trip(cities, shape, way, stays, sights)


def _keep_best(parts: Iterable[_Part], *, more: bool) -> list[_Part]:
    """Return the parts that none surpasses in costs and in the sum, of which more or less is better."""
    kept: list[_Part] = []
    for part in sorted(parts, key=lambda one: (one.cost, -one.sum if more else one.sum)):
        if not kept or (part.sum > kept[-1].sum if more else part.sum < kept[-1].sum):
            kept.append(part)
    return kept


def _list_meals(city: City, most: int) -> _Parts:
    """List the best sets of different restaurants of a city."""
    found: dict[tuple[int, int], dict[int, _Part]] = {(0, 0): {0: _Part(0, 0, ())}}
    for one in city.eateries.values():
        stars = round(10 * (one.row.rating or 0))
        for (covers, count), parts in sorted(found.items(), key=lambda item: -item[0][1]):  # so each is taken once
            into = found.setdefault((covers | one.offers, count + 1), {}) if count < most else {}
            for part in parts.values() if count < most else ():
                added = _Part(part.cost + one.cost, part.sum + stars, (*part.names, one.name))
                if added.sum not in into or added.cost < into[added.sum].cost:
                    into[added.sum] = added
    return {key: _keep_best(parts.values(), more=True) for key, parts in found.items()}


def _list_stays(city: City, meals: _Parts, nights: int, more: int) -> _Parts:
    """List the best stays in a city, each as its bed and its restaurants."""
    found: _Parts = {}
    for (covers, count), parts in meals.items():
        if 0 <= count - 3 * (nights - 1) <= more and len(city.sights) >= nights - 1:
            found[covers, count + nights] = _keep_best(
                (
                    _Part(
                        part.cost + bed.cost * nights,
                        part.sum + round(10 * (bed.row.rating or 0)) * nights,
                        (bed.name, *part.names),
                    )
                    for bed in city.beds
                    if bed.nights <= nights
                    for part in parts
                ),
                more=True,
            )
    return found


def _combine_stays(one: _Parts, other: _Parts) -> _Parts:
    found: _Parts = {}
    for (covers, count), parts in one.items():
        for (covers_2, count_2), parts_2 in other.items():
            both = (_Part(a.cost + b.cost, a.sum + b.sum, a.names + b.names) for a in parts for b in parts_2)
            key = covers | covers_2, count + count_2
            found[key] = _keep_best([*found.get(key, ()), *both], more=True)
    return found


def _list_ways(trip: Trip, cities: tuple[str, ...], shape: Shape) -> dict[Shape, list[_Part]]:
    """List the best ways for all legs, by the stays with what the ways leave time for."""
    found: dict[Shape, list[_Part]] = {}
    for driven in (False, True):
        ways = {shape: [_Part(0, 0, ())]}
        for number in range(len(cities) + 1):
            longer: dict[Shape, list[_Part]] = {}
            for way in trip.routes.list_ways(*trip.find_leg(cities, shape, number)):
                if way.driven == driven:
                    able = trip.routes.find_able(way, shape, number)
                    for stays, parts in ways.items():
                        added = [
                            _Part(a.cost + way.cost, a.sum + round(60 * way.hours), (*a.names, way.name)) for a in parts
                        ]
                        longer.setdefault(limit_stays(stays, number, able), []).extend(added)
            ways = {stays: _keep_best(parts, more=False) for stays, parts in longer.items()}
        for stays, parts in ways.items():
            found[stays] = _keep_best([*found.get(stays, ()), *parts], more=False)
    return found


def _count_sights(city: City, stay: Stay) -> int:
    """Return the maximum number of sights of a stay."""
    return min(len(city.sights), sum(slot.open and slot.kind == "sight" for slot in list_slots((stay,))))


def _fill_slots(trip: Trip, chosen: _Trip) -> Iterator[str]:
    """Distribute beds and restaurants over the slots, and choose sights that lie close to each other."""
    rest, shape = list(chosen.stays.names), chosen.shape
    for place, slot in enumerate(list_slots(shape)):
        city = trip.candidates.find_city(chosen.cities[slot.stay])
        if slot.kind == "bed":
            yield rest.pop(0)
            count = next((at for at, name in enumerate(rest) if name not in city.eateries), len(rest))
            more, today, seen = count - shape[slot.stay].meals, -1, [NOTHING]
        elif slot.kind in MEALS:
            taken = slot.must or (slot.open and more > 0)
            more -= taken and not slot.must
            yield rest.pop(0) if taken else NOTHING
        else:
            left = city.list_sights(seen[-1] if slot.day == today else NOTHING, seen)
            if slot.must or (slot.open and len(left) > left_of(shape, place)[2]):
                seen.append(left[0][0])
                today = slot.day
                yield left[0][0]
            else:
                yield NOTHING
