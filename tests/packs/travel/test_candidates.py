from datetime import date, timedelta
from decimal import ROUND_FLOOR, Decimal

import pytest

from formal_llm.errors import InputError
from formal_llm.packs.travel.candidates import Candidates, Preference, convert_to_cents, format_dollars
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import Constraints, TravelQuery
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Restaurant, Road

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


@pytest.mark.parametrize(("amount", "shown"), [(120_400, "$1,204"), (1_250, "$12.50"), (-5, "-$0.05"), (0, "$0")])
def test_money_in_print(amount, shown):
    assert format_dollars(amount) == shown


def test_what_is_finer_than_a_cent_is_never_cheaper():
    assert convert_to_cents(Decimal("1.001")) == 101
    assert convert_to_cents(Decimal("1.009"), ROUND_FLOOR) == 100
    assert convert_to_cents(7) == 700


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


def test_of_equal_restaurants_those_with_other_cuisines_count_more():
    rows = [Restaurant(name, "B", 10, (food,), 4.0) for name, food in (("one", "Tea"), ("two", "Pizza"))]
    found = candidates(World(restaurants=rows))
    one, two = found.find_city("B").eateries.values()
    assert found.rate_meal(one, {"Tea"}) > found.rate_meal(two, {"Tea"})
    assert found.rate_meal(one, ()) == found.rate_meal(two, ())
