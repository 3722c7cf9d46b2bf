"""The Pareto front of a query: the trips that no other trip surpasses in costs, ratings, travel time and sights.

It is exact. Stays and ways are combined step by step, and of those that leave the same possibilities only the ones
that none surpasses are kept: costs, ratings and minutes are sums, and the rest of a trip depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, reduce
from itertools import permutations, product
from typing import NamedTuple

from formal_llm.errors import InputError
from formal_llm.packs.travel.candidates import City
from formal_llm.packs.travel.routes import limit_stays, nights_of
from formal_llm.packs.travel.slots import Shape, list_slots
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

    def add(self, cost: int, sum_: int, *names: str) -> _Part:
        """Return the part with another one."""
        return _Part(self.cost + cost, self.sum + sum_, (*self.names, *names))


#: Parts by cuisines that they cover, perhaps with others, and by the number of their ratings.
_Parts = dict[tuple[int, int], list[_Part]]
_NONE = _Part(0, 0, ())


def find_front(trip: Trip) -> list[FrontTrip]:
    """Find the Pareto front of the trips of a query, the cheapest trip first.

    Of trips that are equal in costs, ratings, travel time and sights the front contains one. Wishes about single beds,
    restaurants and ways are kept, and one for the sum of the trip.

    Raises:
        InputError: the query has a wish about several choices together, as for places to visit or food on each day.
    """
    if joint := trip.candidates.demands.joint:
        raise InputError(f"the front of trips cannot be found with the wish {str(joint[0])!r}; leave it out")
    best: dict[tuple[int, int, int], tuple[int, tuple[str, ...], Shape, _Part, _Part]] = {}
    for cities, shape, sights, ways, stays in _list_trips(trip):
        cost, place = ways.cost + stays.cost, (-stays.sum, ways.sum, -sights)
        if cost <= trip.most and (place not in best or cost < best[place][0]):
            best[place] = cost, cities, shape, ways, stays
    found: list[FrontTrip] = []
    for place, (cost, cities, shape, ways, stays) in sorted(best.items(), key=lambda one: (one[1][0], one[0])):
        if not any(-one.rating <= place[0] and one.minutes <= place[1] and -one.sights <= place[2] for one in found):
            word = _fill_slots(trip, shape, (*cities, nights_of(shape), *ways.names), list(stays.names))
            found.append(FrontTrip(cost, -place[0], place[1], -place[2], word))
    return found


def _list_trips(trip: Trip) -> Iterator[tuple[tuple[str, ...], Shape, int, _Part, _Part]]:
    """List trips so that each other one is surpassed by one of them, or equal to it: with sights, ways and stays."""
    routes, find_city = trip.routes, trip.candidates.find_city
    most = max(3 * stay.nights + 3 for shape in routes.shapes for stay in shape)
    wanted = trip.candidates.wanted
    meals = {city: _list_meals(find_city(city), most, wanted) for city in routes.cities}

    @cache
    def list_stays(stays: tuple[tuple[str, int, int], ...]) -> list[_Part]:
        *every, last = (_list_stays(find_city(city), meals[city], nights, more) for city, nights, more in stays)
        parts = _combine_parts(reduce(_combine_parts, every, {(0, 0): [_NONE]}), last, wanted)
        rounded = [
            part._replace(sum=(2 * part.sum + count) // (2 * count))
            for (_, count), found in parts.items()
            for part in found
        ]
        return _keep_best(rounded, more=True)

    for cities, nominal in product(permutations(routes.cities, routes.count), routes.shapes):
        for shape, ways in _list_ways(trip, cities, nominal).items():
            stays = list(zip(cities, shape, strict=True))
            sights = sum(
                min(
                    len(find_city(city).sights), sum(slot.open and slot.kind == "sight" for slot in list_slots((stay,)))
                )
                for city, stay in stays
            )
            for way, rest in product(
                ways, list_stays(tuple((city, one.nights, one.more_meals) for city, one in stays))
            ):
                yield cities, shape, sights, way, rest


def _keep_best(parts: Iterable[_Part], *, more: bool) -> list[_Part]:
    """Return the parts that none surpasses in costs and in the sum, of which more or less is better."""
    kept: list[_Part] = []
    for part in sorted(parts, key=lambda one: (one.cost, -one.sum if more else one.sum)):
        if not kept or (part.sum > kept[-1].sum if more else part.sum < kept[-1].sum):
            kept.append(part)
    return kept


def _list_meals(city: City, most: int, wanted: int) -> _Parts:
    """List the best sets of different restaurants of a city."""
    found: dict[tuple[int, int], dict[int, _Part]] = {(0, 0): {0: _NONE}}
    for one in city.eateries.values():
        for (covers, count), parts in sorted(found.items(), key=lambda item: -item[0][1]):  # so each is taken once
            into = found.setdefault((covers | one.offers, count + 1), {}) if count < most else {}
            for part in parts.values():
                added = part.add(one.cost, round(10 * (one.row.rating or 0)), one.name)
                if added.sum not in into or added.cost < into[added.sum].cost:
                    into[added.sum] = added
    return {
        (cover, count): _keep_best(
            (
                part
                for key, parts in found.items()
                if key[1] == count and not cover & ~key[0]
                for part in parts.values()
            ),
            more=True,
        )
        for cover, count in product(range(wanted + 1), range(most + 1))
    }


def _list_stays(city: City, meals: _Parts, nights: int, more: int) -> _Parts:
    """List the best stays in a city, each as its bed and its restaurants."""
    beds = [
        _NONE.add(bed.cost * nights, round(10 * (bed.row.rating or 0)) * nights, bed.name)
        for bed in city.beds
        if bed.nights <= nights <= len(city.sights) + 1
    ]
    able = {key: parts for key, parts in meals.items() if 0 <= key[1] - 3 * (nights - 1) <= more}
    return _combine_parts({(0, nights): beds}, able)


def _combine_parts(one: _Parts, other: _Parts, wanted: int | None = None) -> _Parts:
    """Combine two stays, with each cuisine covered in one of them; if given, only what covers all wanted ones."""
    found: _Parts = {}
    for ((covers, count), parts), ((covers_2, count_2), parts_2) in product(one.items(), other.items()):
        key = covers | covers_2, count + count_2
        if covers & covers_2 or wanted not in (None, key[0]):
            continue
        both = [a.add(b.cost, b.sum, *b.names) for a in parts for b in parts_2]
        found[key] = _keep_best([*found.get(key, ()), *both], more=True)
    return found


def _list_ways(trip: Trip, cities: tuple[str, ...], nominal: Shape) -> dict[Shape, list[_Part]]:
    """List the best ways for all legs, by the stays with what the ways leave time for."""
    found: dict[Shape, list[_Part]] = {}
    for driven in (False, True):
        ways = {nominal: [_NONE]}
        for number in range(len(cities) + 1):
            longer: dict[Shape, list[_Part]] = {}
            for way in trip.routes.list_ways(*trip.find_leg(cities, nominal, number)):
                able = trip.routes.find_able(way, nominal, number)
                for shape, parts in ways.items() if way.driven == driven else ():
                    added = [part.add(way.cost, round(60 * way.hours), way.name) for part in parts]
                    longer.setdefault(limit_stays(shape, number, able), []).extend(added)
            ways = {shape: _keep_best(parts, more=False) for shape, parts in longer.items()}
        for shape, parts in ways.items():
            found[shape] = _keep_best([*found.get(shape, ()), *parts], more=False)
    return found


def _fill_slots(trip: Trip, shape: Shape, word: tuple[str, ...], rest: list[str]) -> tuple[str, ...]:
    """Complete a word with beds and restaurants, and with the first sights that are possible."""
    now = trip.follow_word(word)
    assert now is not None
    more = 0
    for slot in list_slots(shape):
        if slot.kind == "bed":
            eateries = trip.candidates.find_city(now.cities[slot.stay]).eateries
            more = sum(name in eateries for name in rest) - 3 * (shape[slot.stay].nights - 1)
        name = NOTHING
        if slot.kind == "sight":
            able = (move.read for move in trip.moves(now) if trip.to_end(trip.step(now, move)) is not None)
            name = next(able) or NOTHING
        elif slot.must or (slot.open and more > 0):
            name, more = rest.pop(0), more - (not slot.must)
        now, word = trip.apply_choice(now, name), (*word, name)
    return word
