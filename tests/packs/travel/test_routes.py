import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import InputError
from formal_llm.packs.travel.candidates import Candidates
from formal_llm.packs.travel.meals import NEVER
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.routes import Routes, cities_of, list_shapes, nights_of
from tests.packs.travel.small_worlds import START, STATE, small_case, small_world
from tests.strategies import examples

WORLD = small_world(random.Random(1), cities=3, days=5)


def query(days=5, cities=2, people=1, dest=STATE):
    return TravelQuery("Home", dest, days, cities, tuple(START + timedelta(day) for day in range(days)), people)


def test_the_nights_of_all_stays_are_those_of_the_trip():
    found = list_shapes(7, 3, every_meal=False)
    assert [nights_of(shape) for shape in found][:2] == ["2 + 2 + 2 nights", "1 + 2 + 3 nights"]
    assert len(found) == 10
    assert all(sum(stay.nights for stay in shape) == 6 and min(stay.nights for stay in shape) > 0 for shape in found)


def test_meals_on_days_of_travel_are_three_that_two_cities_share():
    for shape in list_shapes(5, 2, every_meal=True):
        first, second = shape
        assert (first.before, second.after, first.after + second.before) == (3, 3, 3)
    assert len({nights_of(shape) for shape in list_shapes(5, 2, every_meal=True)}) == 12


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (query(people=0), "at least one traveller, not 0"),
        (query(days=2), "takes 3 days or more, not 2"),
        (query(cities=0), "at least one city"),
        (TravelQuery("Home", STATE, 3, 1, (START,)), "as many dates"),
    ],
)
def test_a_query_that_is_none(wanted, problem):
    with pytest.raises(InputError, match=problem):
        cities_of(wanted, WORLD)


def test_the_cities_of_a_state_but_home_or_the_one_city():
    assert cities_of(query(), WORLD) == ("C0", "C1", "C2")
    assert cities_of(query(3, 1, dest="C1"), WORLD) == ("C1",)
    assert cities_of(query(3, 1, dest="Home"), WORLD) == ()
    assert cities_of(query(3, 1), WORLD) == ("C0", "C1", "C2")  # one city, whichever of the state


@given(st.integers(0, 10**6))
@examples(100)
def test_some_trip_is_found_where_the_cheapest_is(seed):
    wanted, world = small_case(seed, ((2, 3), (2, 4), (3, 5)))
    candidates = Candidates(wanted, world)
    routes = Routes(candidates, cities_of(wanted, world), wanted.visiting_city_number, every_meal=False)
    least = routes.find_least_cost((), most=NEVER - 1, some=False)
    for most in {max(0, min(least, NEVER) - 1), min(least, NEVER - 1), 40_000}:
        some = routes.find_least_cost((), most=most, some=True)
        assert (some <= most) == (least <= most)
        assert least == NEVER or not some < least
    firsts = [routes.find_least_cost((city,), most=NEVER - 1, some=False) for city in routes.cities]
    assert min(firsts, default=NEVER) == least


def test_of_dear_trips_few_legs_are_looked_at():
    wanted, world = query(), small_world(random.Random(3), cities=3, days=5)
    routes = Routes(Candidates(wanted, world), cities_of(wanted, world), 2, every_meal=False)
    assert routes.find_least_cost((), most=1, some=True) == NEVER
    assert not routes.tried
