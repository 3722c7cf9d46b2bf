from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations, product

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.fronts import find_front
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.planning import days_of
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.resolved import resolve_plan
from formal_llm.packs.travel.routes import limit_stays
from formal_llm.packs.travel.rows import Accommodation, Restaurant
from formal_llm.packs.travel.slots import list_slots
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.trip import Trip
from tests.packs.travel.small_worlds import small_case
from tests.strategies import examples

Figures = tuple[int, int, int, int]
SIZES = ((1, 2), (1, 3), (2, 3))


def rated_case(seed: int) -> tuple[TravelQuery, World]:
    query, world = small_case(seed, SIZES)
    beds = [
        replace(row, rating=float(1 + row.price % 5)) for city in world.cities() for row in world.accommodations(city)
    ]
    tables = [
        replace(row, rating=int(row.cost) % 7 * 0.7) for city in world.cities() for row in world.restaurants(city)
    ]
    sights = [row for city in world.cities() for row in world.attractions(city)]
    states = {state: world.cities(state) for state in world.states}
    return query, World(world.all_flights(), world.all_roads(), beds, tables, sights, states)


def try_all(trip: Trip) -> Iterator[Figures]:
    """The figures of all trips: each way, each bed, each set of restaurants, as many sights as there is time for."""
    for cities, nominal in product(permutations(trip.routes.cities, trip.routes.count), trip.routes.shapes):
        legs = [trip.routes.list_ways(*trip.find_leg(cities, nominal, number)) for number in range(len(cities) + 1)]
        for ways in product(*legs):
            if len({way.driven for way in ways}) > 1:
                continue
            shape = nominal
            for number, way in enumerate(ways):
                shape = limit_stays(shape, number, trip.routes.find_able(way, nominal, number))
            towns = [trip.candidates.find_city(city) for city in cities]
            if any(len(town.sights) < stay.nights - 1 for town, stay in zip(towns, shape, strict=True)):
                continue
            slots = [slot for slot in list_slots(shape) if slot.open]
            sights = sum(
                min(len(town.sights), sum(slot.kind == "sight" and slot.stay == number for slot in slots))
                for number, town in enumerate(towns)
            )
            options = [
                [
                    (stay.nights, bed, eaten)
                    for bed in town.beds if bed.nights <= stay.nights
                    for size in range(stay.meals, stay.meals + stay.more_meals + 1)
                    for eaten in combinations(town.eateries.values(), size)
                ]
                for town, stay in zip(towns, shape, strict=True)
            ]  # fmt: skip
            for stays in product(*options):
                covered, stars = 0, []
                cost = sum(way.cost for way in ways)
                for nights, bed, eaten in stays:
                    cost += nights * bed.cost + sum(one.cost for one in eaten)
                    stars += [round(10 * (bed.row.rating or 0))] * nights
                    for one in eaten:
                        covered |= one.offers
                        stars.append(round(10 * (one.row.rating or 0)))
                if covered == trip.candidates.wanted and cost <= trip.most:
                    rating = int(sum(stars) / len(stars) + 0.5)
                    yield cost, rating, sum(round(60 * way.hours) for way in ways), sights


def front_of(figures: set[Figures]) -> set[Figures]:
    return {
        one
        for one in figures
        if not any(
            other != one and other[0] <= one[0] and other[1] >= one[1] and other[2] <= one[2] and other[3] >= one[3]
            for other in figures
        )
    }


@given(st.integers(0, 10**6))
@examples(60)
def test_the_front_is_that_of_trying_all_trips(seed: int) -> None:
    query, world = rated_case(seed)
    trip = Trip(query, world, every_meal=seed % 5 == 0, sensible=seed % 4 != 0)
    found = find_front(trip)
    assert len({one[:4] for one in found}) == len(found)
    assert {one[:4] for one in found} == front_of(set(try_all(trip)))
    for one in found:
        assert trip.accepts(one.word)
        chosen, days = trip.follow_word(one.word), days_of(trip, one.word)
        assert chosen is not None
        assert chosen.spent == one.cost
        resolved = resolve_plan(days, query, world)
        assert sum(len(day.sights) for day in resolved) == one.sights
        rows = [
            row for day in resolved for stop in (*day.meals, *([day.bed] if day.bed else [])) for row in stop.rows[:1]
        ]
        stars = [round(10 * (row.rating or 0)) for row in rows if isinstance(row, Accommodation | Restaurant)]
        assert int(sum(stars) / len(stars) + 0.5) == one.rating
        assert official(days, query, world).final
        assert strict(days, query, world).final


def test_some_fronts_have_many_trips_and_some_have_none() -> None:
    sizes = {min(3, len(find_front(Trip(*rated_case(seed), sensible=True)))) for seed in range(40)}
    assert sizes == {0, 1, 2, 3}
