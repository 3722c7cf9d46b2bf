import random
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.planning import trips_of
from formal_llm.packs.travel.query import Constraints
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.wishes import DroppableWish, NoTrip, no_trip, remedies, wishes_of, without
from tests.packs.travel.given_cases import large_query, large_world
from tests.packs.travel.small_worlds import least_by_trying, small_case
from tests.strategies import examples


def able(query, world):
    least = least_by_trying(query, world)
    return least if least is not None and (query.budget is None or least <= query.budget) else None


@given(st.integers(0, 10**6))
@examples(60)
def test_the_smallest_sets_are_those_of_trying_all(seed):
    query, world = small_case(seed, ((1, 2), (1, 3), (2, 3)))
    if able(query, world) is not None:
        return
    found = remedies(query, world)
    wishes = wishes_of(query)
    tried = {}
    for size in range(1, len(wishes) + 1):
        tried = {
            dropped: cost
            for dropped in combinations(wishes, size)
            if (cost := able(without(query, dropped), world)) is not None
        }
        if tried:
            break
    assert {remedy.dropped: remedy.cost for remedy in found} == {key: 100 * cost for key, cost in tried.items()}
    assert [remedy.cost for remedy in found] == sorted(remedy.cost for remedy in found)
    for remedy in found:
        judged = strict(remedy.days, without(query, remedy.dropped), world)
        assert judged.final, judged.findings


def test_the_examples_are_of_every_kind():
    sizes = set()
    for seed in range(120):
        query, world = small_case(seed, ((1, 2), (1, 3), (2, 3)))
        if able(query, world) is None:
            found = remedies(query, world)
            sizes.add(len(found[0].dropped) if found else 0)
    assert {0, 1, 2} <= sizes


def test_it_is_said_in_the_travellers_words():
    query, world = large_query(900), large_world()
    with pytest.raises(NoTrip) as caught:
        trips_of(query, world)
    error = caught.value
    assert str(error).startswith("no valid plan: no trip keeps all the wishes. What could be dropped:\n- without a ")
    assert error.remedy == tuple(str(wish) for wish in error.remedies[0].dropped) == ("a bed where pets are allowed",)
    assert "- without a budget of $900 there is a trip for $" in str(error)


def test_all_wishes_have_words():
    query = replace(large_query(), constraints=Constraints("smoking", ("Tea",), "entire room", "no flight"))
    assert [str(wish) for wish in wishes_of(query)] == [
        "a budget of $6,000", "a bed where smoking is allowed", "an entire home", "no flight", "Tea food",
    ]  # fmt: skip
    assert str(DroppableWish("house rule", "pets")) == "a bed where pets are allowed"


def test_where_no_wish_is_to_blame_the_world_is():
    query = large_query(days=3, cities=2)
    assert "no city to visit is known in Somewhere" in str(no_trip(query, World()))
    few = large_world(cities=2)
    only_a = World(
        few.all_flights(), few.all_roads(), few.accommodations("City A"), few.restaurants("City A"),
        few.attractions("City A"), {"Somewhere": ["City A", "City B"]},
    )  # fmt: skip
    assert "only City A has the beds, restaurants and sights that a trip to Somewhere takes, and 2 cities" in str(
        no_trip(query, only_a)
    )
    places = [city for name in ("City A", "City B") for city in few.accommodations(name)]
    nowhere = World(
        (), (), places, few.restaurants("City A"), few.attractions("City A"), {"Somewhere": ["City A", "City B"]}
    )
    assert "there is no way from Home to City A and City B and home again" in str(no_trip(query, nowhere))
    assert not no_trip(query, nowhere).remedies


def test_a_wish_that_is_dropped_leaves_the_others():
    query = large_query()
    rng = random.Random(0)
    for size in range(len(wishes_of(query)) + 1):
        dropped = tuple(rng.sample(wishes_of(query), size))
        assert set(wishes_of(without(query, dropped))) == set(wishes_of(query)) - set(dropped)
