from datetime import date, timedelta

import pytest

from formal_llm.llms import resolve
from formal_llm.llms.question import Answer
from formal_llm.packs.travel.benchmark.collecting import collect
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.planning import plan_trip
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.tools import MOST_STEPS
from tests.packs.travel.trips import shipped


def query(org, dest, cities):
    dates = tuple(date(2022, 3, 10) + timedelta(day) for day in range(2 * cities + 1))
    return TravelQuery(org, dest, len(dates), cities, dates, 2, 50_000)


@pytest.mark.parametrize("wanted", [query("Lindhaven", "Port Serin", 1), query("Lindhaven", "Belloro", 2),
                                    query("Lindhaven", "North Corvale", 3)])  # fmt: skip
def test_whatever_is_answered_there_is_enough_for_a_plan(wanted):
    world = shipped()
    found = collect("Please plan a trip", wanted, world, resolve("test:random"))
    cities, legs = wanted.visiting_city_number, wanted.visiting_city_number + 1
    assert 3 * cities + 2 * legs + (cities > 1) <= found.steps <= MOST_STEPS
    assert found.stopped in ("", "30 steps were taken")
    assert len(found.transcripts) >= cities + legs
    made = plan_trip(wanted, found.world, "test:random")
    assert official(made.days, wanted, world).final
    assert strict(made.days, wanted, world).final


def test_the_planner_has_nothing_but_the_notebook():
    found = collect("Please plan a trip", query("Lindhaven", "Port Serin", 1), shipped(), resolve("builtin"))
    assert {city for city in shipped().cities() if found.world.restaurants(city)} == {"Port Serin"}
    assert found.world.restaurants("Port Serin") == shipped().restaurants("Port Serin")
    assert found.world.distance("Lindhaven", "Port Serin", "taxi") == shipped().distance(
        "Lindhaven", "Port Serin", "taxi"
    )


def test_the_model_chooses_the_cities():
    """One that takes the last option visits others than one that takes the first."""

    def taking(place):
        return lambda question: Answer((len(question.options) if place else 1,))

    wanted = query("Lindhaven", "North Corvale", 2)
    worlds = [collect("", wanted, shipped(), resolve(taking(place))).world for place in (0, 1)]
    first, last = ({city for city in shipped().cities() if world.restaurants(city)} for world in worlds)
    assert len(first) == len(last) == 2
    assert first != last


def test_cities_without_a_way_or_a_bed_are_left_out():
    """Whatever chance answers: of three cities only two can be visited, and these are."""
    world = shipped()
    names = world.cities("North Corvale")
    left, bare = names[0], names[1]
    made = World(
        roads=[one for one in world.all_roads() if left not in (one.origin, one.destination)],
        accommodations=[one for city in names if city != bare for one in world.accommodations(city)],
        restaurants=[one for city in names for one in world.restaurants(city)],
        attractions=[one for city in names for one in world.attractions(city)],
        cities={state: world.cities(state) for state in world.states},
    )
    wanted = query("Lindhaven", "North Corvale", 2)
    for seed in range(5):
        found = collect("Please plan a trip", wanted, made, resolve(f"test:random={seed}"))
        assert found.steps <= MOST_STEPS
        assert strict(plan_trip(wanted, found.world, "test:random").days, wanted, made).final


def test_where_nothing_can_be_reached_the_search_ends():
    world = World(cities={"Arvenia": ("Lindhaven",), "Far": ("A", "B", "C")})
    found = collect("Please plan a trip", query("Lindhaven", "Far", 2), world, resolve("test:random"))
    assert 0 < found.steps <= MOST_STEPS
    assert found.world.flights("Lindhaven", "A") == ()
