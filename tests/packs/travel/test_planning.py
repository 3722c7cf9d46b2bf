import asyncio
import random
from dataclasses import replace

import pytest

from formal_llm.llms.doubles import WeightedLLM
from formal_llm.llms.text_doubles import FunctionTextLLM
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.planning import PAGES, aplan_trip, plan_trip, planned, tastes_of, trip_planner, trips_of
from formal_llm.packs.travel.query import Constraints
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.telling import summarize_query
from formal_llm.packs.travel.trip import Trip
from formal_llm.packs.travel.wishes import NoTrip
from formal_llm.planning.walks.events import Asked
from formal_llm.planning.walks.pages import Pages
from tests.packs.travel.given_cases import CUISINES, large_query, large_world

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


def test_what_is_rated_best_is_taken_where_nobody_has_a_taste():
    def rating(made):
        rows = {f"{row.name}, {row.city}": row.rating for city in WORLD.cities() for row in WORLD.restaurants(city)}
        rated = [rows[meal] for day in made.days for _, meal in day.meals if meal != "-"]
        return sum(rated) / len(rated)

    query = replace(large_query(None), constraints=Constraints())
    ratings = [rating(plan_trip(query, WORLD, f"test:random={seed}")) for seed in range(5)]
    assert rating(plan_trip(query, WORLD, "builtin")) > max(ratings)


def test_what_is_wished_for_is_taken_first():
    made = plan_trip(large_query(None), WORLD, "builtin")
    offers = {f"{row.name}, {row.city}": row.cuisines for city in WORLD.cities() for row in WORLD.restaurants(city)}
    first = [meal for day in made.days for _, meal in day.meals if meal != "-"][:2]
    assert set(CUISINES) <= {cuisine for meal in first for cuisine in offers[meal]}


def test_a_question_is_as_large_as_one_wants():
    sizes = []

    def seen(event):
        if isinstance(event, Asked):
            sizes.append(len(event.question.options))

    plan_trip(large_query(), WORLD, "builtin", on_event=seen)
    assert max(sizes) == PAGES.options
    sizes.clear()
    plan_trip(large_query(), WORLD, "builtin", on_event=seen, pages=Pages(50, by=("cost",)))
    assert max(sizes) > PAGES.options


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
        self.prompts.append(asked.messages[-1].content)
        names = {line[2:].split(":")[0] for line in self.prompts[-1].splitlines() if line.startswith("- ")}
        cities = [city for city in self.world.cities("Somewhere") if city in names]
        word = list(Trip(self.query, self.world, cities=cities).find_cheapest())
        for place in self.rng.sample(range(10, len(word)), self.slips):
            word[place] = self.rng.choice([*word[10:], "The Unknown Inn, Nowhere"])
        return "\n".join(f"{number}. {name}" for number, name in enumerate(word, 1))


@pytest.mark.parametrize(("slips", "requests"), [(0, 1), (1, 2), (3, 6)])
def test_a_draft_saves_the_questions(slips, requests):
    query = large_query()
    for seed in range(4):
        drafts = Drafts(query, WORLD, slips, seed)
        made = plan_trip(query, WORLD, FunctionTextLLM(drafts), search="draft")
        assert valid(made)
        assert made.plan.usage.drafts == len(drafts.prompts) == 1
        assert made.plan.usage.questions + made.plan.usage.drafts <= requests


def test_where_there_are_many_cities_they_are_asked_for_before_a_draft():
    world = large_world(cities=8)
    query = large_query(days=5, cities=2)
    drafts = Drafts(query, world, 0)
    made = plan_trip(query, world, FunctionTextLLM(drafts), search="draft")
    assert valid(made, world)
    assert made.plan.usage.questions <= 4
    assert len({name for name in world.cities("Somewhere") if f"- {name}: a city" in drafts.prompts[0]}) == 2
    again = asyncio.run(aplan_trip(query, world, FunctionTextLLM(Drafts(query, world, 0)), search="draft"))
    assert again.days == made.days
