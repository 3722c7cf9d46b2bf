import asyncio
import json
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.doubles import TEXTS, FunctionLLM, WeightedLLM
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.plan_days import read_plan, to_text
from formal_llm.packs.travel.planning import (
    NoTrip,
    aplan_trip,
    days_of,
    no_trip,
    plan_trip,
    planned,
    remedies,
    tastes_of,
    trip_planner,
    trips_of,
    wishes_of,
    without,
)
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.telling import summarize_query
from formal_llm.packs.travel.trip import Trip
from formal_llm.planning.walks.events import Asked
from tests.packs.travel.given_cases import CUISINES, large_query, large_world
from tests.packs.travel.small_worlds import least_by_trying, small_case
from tests.strategies import examples

WORLD = large_world()


def valid(made, world=WORLD):
    for judged in (official(made.days, made.query, world), strict(made.days, made.query, world)):
        assert judged.final, judged.findings
        assert judged.cost == made.cost
    return True


@pytest.mark.parametrize("llm", ["builtin", *(f"test:random={seed}" for seed in range(6))])
def test_a_trip_of_a_week_is_valid_whatever_is_answered_and_its_questions_are_few_and_small(llm):
    asked = []
    made = plan_trip(large_query(), WORLD, llm, on_event=lambda event: asked.append(event))
    prompts = [event.question.prompt for event in asked if isinstance(event, Asked)]
    assert valid(made)
    assert len(prompts) == made.plan.usage.questions <= 45
    assert max(map(len, prompts)) < 900
    assert all(prompt.startswith(summarize_query(large_query())) for prompt in prompts)


def test_what_is_wished_for_is_taken_first():
    made = plan_trip(large_query(None), WORLD, "builtin")
    offers = {f"{row.name}, {row.city}": row.cuisines for city in WORLD.cities() for row in WORLD.restaurants(city)}
    first = [meal for day in made.days for _, meal in day.meals if meal != "-"][:2]
    assert set(CUISINES) <= {cuisine for meal in first for cuisine in offers[meal]}


def test_nothing_is_asked_where_there_is_no_trip():
    with pytest.raises(NoTrip, match=r"a budget of \$10"):
        plan_trip(large_query(10), WORLD, lambda _: pytest.fail("asked"))


def test_a_plan_is_made_while_others_go_on():
    made = asyncio.run(aplan_trip(large_query(), WORLD, "test:random=3"))
    assert (
        made == plan_trip(large_query(), WORLD, "test:random=3")
        or made.days == plan_trip(large_query(), WORLD, "test:random=3").days
    )


def test_best_first_finds_a_trip_that_the_model_likes_more():
    query = large_query(days=3, cities=1)
    trip, llm = trips_of(query, WORLD), WeightedLLM(4, sharpness=12)
    greedy = trip_planner(trip, llm).plan(tastes_of(query))
    best = trip_planner(trip, llm, search="best-first").plan(tastes_of(query))
    assert best.log_probability >= greedy.log_probability
    assert valid(planned(trip, best))


class Drafts:
    """Writes a cheapest trip through the cities that are named to it, with some slips."""

    def __init__(self, query, world, slips, seed=0):
        self.rng, self.query, self.world, self.slips, self.prompts = random.Random(seed), query, world, slips, []

    def __call__(self, asked):
        self.prompts.append("\n".join(message.content for message in asked.messages))
        names = {line[2:].split(":")[0] for line in self.prompts[-1].splitlines() if line.startswith("- ")}
        cities = [city for city in self.world.cities("Somewhere") if city in names]
        word = list(Trip(self.query, self.world, cities=cities, sensible=True).find_cheapest())
        for place in self.rng.sample(range(10, len(word)), self.slips):
            word[place] = self.rng.choice([*word[10:], "The Unknown Inn, Nowhere"])
        return "\n".join(f"{number}. {name}" for number, name in enumerate(word, 1))


@pytest.mark.parametrize(("slips", "requests"), [(0, 1), (1, 2), (3, 6)])
def test_a_draft_saves_the_questions(slips, requests):
    query = large_query()
    for seed in range(4):
        drafts = Drafts(query, WORLD, slips, seed)
        made = plan_trip(query, WORLD, FunctionLLM(drafts, can=TEXTS, choose=lambda _: 1), search="draft")
        assert valid(made)
        assert made.plan.usage.drafts == len(drafts.prompts) == 1
        assert made.plan.usage.questions + made.plan.usage.drafts <= requests


def test_where_there_are_many_cities_they_are_asked_for_before_a_draft():
    world = large_world(cities=8)
    query = large_query(days=5, cities=2)
    drafts = Drafts(query, world, 0)
    made = plan_trip(query, world, FunctionLLM(drafts, can=TEXTS, choose=lambda _: 1), search="draft")
    assert valid(made, world)
    assert made.plan.usage.questions <= 4
    assert len({name for name in world.cities("Somewhere") if f"- {name}: a city" in drafts.prompts[0]}) == 2
    again = asyncio.run(
        aplan_trip(query, world, FunctionLLM(Drafts(query, world, 0), can=TEXTS, choose=lambda _: 1), search="draft")
    )
    assert again.days == made.days


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


def test_it_is_said_in_the_travellers_words():
    query, world = large_query(900), large_world()
    with pytest.raises(NoTrip) as caught:
        trips_of(query, world)
    error = caught.value
    assert str(error).startswith("no valid plan: no trip keeps all the wishes. What could be dropped:\n- without a ")
    assert error.remedy == tuple(str(wish) for wish in error.remedies[0].dropped) == ("a bed where pets are allowed",)
    assert "- without a budget of $900 there is a trip for $" in str(error)


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


TRIP_OF_TWO = Trip(large_query(days=5, cities=2), large_world())
TRIP_WORD = TRIP_OF_TWO.find_cheapest() or ()


def test_the_days_are_those_of_the_word():
    days = days_of(TRIP_OF_TWO, TRIP_WORD)
    first, second, ways = TRIP_WORD[0], TRIP_WORD[1], TRIP_WORD[3:6]
    assert [day.days for day in days] == [1, 2, 3, 4, 5]
    nights = int(TRIP_WORD[2][0])
    cities = [f"from Home to {first}", *[first] * (nights - 1), f"from {first} to {second}"]
    cities += [second] * (4 - nights - 1) + [f"from {second} to Home"]
    assert [day.current_city for day in days] == cities
    travelled = [day.transportation for day in days if day.transportation != "-"]
    assert [text.split(",")[0] for text in travelled] == list(ways)
    named = {day.breakfast for day in days} | {day.lunch for day in days} | {day.dinner for day in days}
    named |= {day.accommodation for day in days} | {
        name for day in days for name in day.attraction.rstrip(";").split(";")
    }
    assert named == {*TRIP_WORD[6:], "-"}
    assert days[-1].accommodation == "-"
    assert len({day.accommodation for day in days[:nights]}) == 1


def test_what_is_written_is_read_back():
    days = days_of(TRIP_OF_TWO, TRIP_WORD)
    assert read_plan(json.loads(to_text(days))) == days


@pytest.mark.parametrize("word", [(), TRIP_WORD[:-1], (*TRIP_WORD[:-1], "Nowhere"), (*TRIP_WORD, "-")])
def test_no_days_of_what_is_no_trip(word):
    with pytest.raises(ValueError, match="no word of the trip"):
        days_of(TRIP_OF_TWO, word)
