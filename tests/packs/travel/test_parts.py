"""What trips are made of: candidates, cities, hours, meals."""

import random
from datetime import date, timedelta
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import InputError
from formal_llm.packs.travel.candidates import Candidates, Preference
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.hours import (
    count_before,
    find_impossible,
    find_times,
    parse_clock,
)
from formal_llm.packs.travel.meals import NEVER, Kitchen, MealOption, together, together_at
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import Constraints, TravelQuery
from formal_llm.packs.travel.resolved import resolve_plan
from formal_llm.packs.travel.routes import cities_of
from formal_llm.packs.travel.rows import Accommodation, Attraction, Drive, Flight, Restaurant, Road
from tests.packs.travel.small_worlds import START, STATE, small_world
from tests.strategies import examples

DAYS = tuple(date(2022, 3, 1) + timedelta(day) for day in range(3))


def bed(name, price=50, kind="Private room", rules=(), nights=1, holds=2, rating=3.0):
    return Accommodation(name, "B", price, kind, rules, nights, holds, rating)


def candidates(world, people=3, budget=500, **wishes):
    return Candidates(TravelQuery("A", "B", 3, 1, DAYS, people, budget, Constraints(**wishes)), world)


def test_beds_fit_the_wishes_and_are_priced_for_all():
    world = World(
        accommodations=[
            bed("cheap", 40, rating=2.0),
            bed("good", 50, rating=5.0),
            bed("shared", kind="Shared room"),
            bed("strict", rules=("No pets",)),
            bed("none", holds=0),
        ]
    )
    found = candidates(world, room_type="not shared room", house_rule="pets").find_city("B").beds
    assert [(one.name, one.cost) for one in found] == [("good, B", 10_000), ("cheap, B", 8_000)]


def test_a_name_that_means_several_rows_counts_as_the_dearest_and_the_strictest():
    world = World(
        accommodations=[
            bed("Loft by the sea", 90, rules=("No pets",)),
            bed("Loft", 40),
            bed("Hut", 10),
            bed("Hut", 20),
        ],
        restaurants=[
            Restaurant("Bar 1", "B", 9, ("Tea", "Indian")),
            Restaurant("Bar", "B", 5, ("Indian",)),
            Restaurant("bar", "B", 7, ("Indian", "Tea")),
        ],
    )
    found = candidates(world, people=1, house_rule="pets", cuisines=("Indian", "Tea")).find_city("B")
    assert [(one.name, one.cost) for one in found.beds] == [("Hut, B", 2_000)]
    assert {one.name: (one.cost, one.offers) for one in found.eateries.values()} == {
        "Bar 1, B": (900, 3),
        "Bar, B": (900, 1),  # "bar" is the same name, "Bar 1" the first that holds it
    }


def test_what_the_published_format_cannot_say_is_left_out():
    world = World(attractions=[Attraction("Tower; old", "B"), Attraction("-", "B"), Attraction("Park", "B")])
    assert candidates(world).find_city("B").sights == {"Park, B": None}


def test_ways_are_those_of_the_day_that_are_wished_for():
    flights = [Flight(f"F{n}", "A", "B", DAYS[n], "10:00", "11:00", 100 + n) for n in range(2)]
    world = World(flights, [Road("A", "B", "5 hours", "100 km", 100.0)])
    ways = candidates(world).list_ways("A", "B", DAYS[0])
    assert {way.name: way.cost for way in ways} == {
        "Flight Number: F0": 30_000,
        "Self-driving": 500,
        "Taxi": 10_000,
    }
    assert [way.name for way in ways if way.driven] == ["Self-driving"]
    names = {way.name for way in candidates(world, transportation="no self-driving").list_ways("A", "B", DAYS[1])}
    assert names == {"Flight Number: F1", "Taxi"}
    names = {way.name for way in candidates(world, transportation="no flight").list_ways("A", "B", DAYS[1])}
    assert names == {"Self-driving", "Taxi"}
    assert (
        candidates(World(roads=[Road("A", "B", "1 day 5 hours", "900 km", 900.0)])).list_ways("A", "B", DAYS[0]) == ()
    )


def test_a_flight_counts_as_the_first_of_its_number_where_that_is_dearer():
    flights = [Flight("F1", "A", "C", DAYS[1], "1:00", "2:00", 90), Flight("F1", "A", "B", DAYS[0], "1:00", "2:00", 50)]
    assert [way.cost for way in candidates(World(flights), people=1).list_ways("A", "B", DAYS[0])] == [9_000]
    dearer = Flight("F1", "A", "D", DAYS[2], "1:00", "2:00", 200)  # of the number too, and not the first of it
    several = World([flights[0], dearer, flights[1]])
    assert [way.cost for way in candidates(several, people=1).list_ways("A", "B", DAYS[0])] == [9_000]


@pytest.mark.parametrize(
    ("text", "preference"),
    [
        ("cheap", Preference(1, 100, 1, 1)),
        ("little-travel", Preference(1, 1, 100, 1)),
        ("rating=2, cheap=1", Preference(2, 1, 0, 0)),
        ("sights=0.5", Preference(0, 0, 0, 0.5)),
    ],
)
def test_a_preference_is_a_name_or_weights(text, preference):
    assert Preference.from_text(text) == preference


@pytest.mark.parametrize("text", ["", "travel", "cheap=-1", "cheap=", "rating=1,luxury=2", "rating=x"])
def test_what_is_no_preference(text):
    with pytest.raises(InputError, match="write rating, cheap, little-travel or sights"):
        Preference.from_text(text)


def test_what_is_preferred_comes_first():
    world = World(
        accommodations=[bed("cheap", 40, rating=2.0), bed("good", 50, rating=5.0)],
        attractions=[Attraction(name, "B", 1.0, place) for name, place in (("far", 9.0), ("here", 1.0), ("near", 1.1))],
    )
    query = candidates(world).query
    for prefer, first in (("rating", "good, B"), ("cheap", "cheap, B")):
        city = Candidates(query, world, Preference.from_text(prefer)).find_city("B")
        assert city.beds[0].name == first
    found = city.list_sights("here, B", {"here, B"})
    assert [name for name, _ in found] == ["near, B", "far, B"]
    assert found[0][1] == pytest.approx(11.1, abs=0.1)
    assert city.list_sights("-", {"here, B"}) == [("far, B", None), ("near, B", None)]


ROUTED = small_world(random.Random(1), cities=3, days=5)


def routed(days=5, cities=2, people=1, dest=STATE):
    return TravelQuery("Home", dest, days, cities, tuple(START + timedelta(day) for day in range(days)), people)


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (routed(people=0), "at least one traveller, not 0"),
        (routed(days=2), "takes 3 days or more, not 2"),
        (routed(cities=0), "at least one city"),
        (TravelQuery("Home", STATE, 3, 1, (START,)), "as many dates"),
    ],
)
def test_a_query_that_is_none(wanted, problem):
    with pytest.raises(InputError, match=problem):
        cities_of(wanted, ROUTED)


def test_the_cities_of_a_state_but_home_or_the_one_city():
    assert cities_of(routed(), ROUTED) == ("C0", "C1", "C2")
    assert cities_of(routed(3, 1, dest="C1"), ROUTED) == ("C1",)
    assert cities_of(routed(3, 1, dest="Home"), ROUTED) == ()
    assert cities_of(routed(3, 1), ROUTED) == ("C0", "C1", "C2")  # one city, whichever of the state


DAY_ONE = date(2022, 3, 1)


def flight(departure, arrival, duration=None):
    return Flight("F1", "A", "B", DAY_ONE, departure, arrival, 1, duration)


@pytest.mark.parametrize(
    ("row", "arrival"),
    [
        (flight("22:00", "01:30", "3 hours 30 minutes"), 25.5),
        (flight("22:00", "01:30"), 25.5),
        (flight("12:30", "12:25", "55 minutes"), 12 + 25 / 60),  # to the west
        (flight("10:00", "19:00", "6 hours"), 19),  # to the east
    ],
)
def test_a_flight_arrives_on_the_day_that_its_duration_tells(row, arrival):
    assert find_times(row, 1) == pytest.approx((parse_clock(row.departure), arrival))


def test_who_drives_leaves_after_the_meals_and_is_home_in_the_evening():
    drive = Drive("taxi", "A", "B", "5 hours", "400 km", 400)
    for meals in (1, 2, 3):
        leaving, arrival = find_times(drive, meals)
        assert count_before(leaving)[0] == meals
        assert arrival == leaving + 5
    assert find_times(drive, None) == (15, 20)


def test_meals_without_time_are_found():
    tables = [Restaurant(name, city, 1, ()) for city in "AB" for name in ("Inn", "Bar")]
    world = World([flight("05:32", "21:54", "16 hours 22 minutes")], restaurants=tables, cities={"S": "AB"})
    query = TravelQuery("A", "B", 1, 1, (DAY_ONE,))
    plan = [Day(1, "from A to B", "Flight Number: F1, from A to B", "Inn, A", "Bar, A", "Inn, B")]
    found = list(find_impossible(resolve_plan(plan, query, world)))
    assert found == [(1, "breakfast"), (1, "lunch"), (1, "dinner")]


WANTED = 7
tables = st.lists(st.builds(MealOption, st.integers(1, 30), st.integers(0, WANTED)), max_size=7).map(sorted)


def tried(found, used, must, may, cover):
    """All sets of restaurants."""
    left = [table for place, table in enumerate(found) if place not in used]
    best = NEVER
    for size in range(must, must + may + 1):
        for eaten in combinations(left, size):
            offered = 0
            for table in eaten:
                offered |= table.offers
            if not cover & ~offered:
                best = min(best, sum(table.cost for table in eaten))
    return best


@given(tables, st.sets(st.integers(0, 6)), st.integers(0, 4), st.integers(0, 3), st.integers(0, WANTED))
@examples(300)
def test_the_least_cost_is_that_of_trying_all_sets(found, used, must, may, missing):
    costs = Kitchen(found, WANTED).find_least_costs(used, must, may, missing)
    for cover in range(WANTED + 1):
        if not cover & ~missing:
            assert costs[cover] == tried(found, used, must, may, cover)
        else:
            assert costs[cover] == NEVER


costs = st.lists(st.integers(0, 50), min_size=8, max_size=8)


@given(costs, costs)
def test_two_places_share_the_cuisines(one, other):
    one, other = np.array(one), np.array(other)
    found = together(one, other)
    for cover in range(8):
        parts = [(a, cover & ~a) for a in range(8) if not a & ~cover]
        assert found[cover] == min(one[a] + other[b] for a, b in parts) == together_at(one, other, cover)


def test_the_tables_have_to_be_sorted():
    with pytest.raises(ValueError, match="sorted by their cost"):
        Kitchen([MealOption(2, 0), MealOption(1, 0)], 0)
