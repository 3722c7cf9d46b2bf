import pickle
import random
from collections.abc import Hashable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Lookahead, Planner
from formal_llm.automata import Transition
from formal_llm.packs.travel.hours import find_impossible
from formal_llm.packs.travel.meals import NEVER
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.planning import days_of
from formal_llm.packs.travel.resolved import resolve_plan
from formal_llm.packs.travel.slots import list_slots
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.trip import Chosen, Trip
from tests.packs.travel.small_worlds import least_by_trying, small_case, wild_plan
from tests.strategies import examples

seeds = st.integers(0, 10**6)


class Bare:
    """The same automaton, whose end is looked for by a search."""

    def __init__(self, trip: Trip) -> None:
        self._trip = trip

    def start(self) -> Chosen:
        return self._trip.start()

    def moves(self, configuration: Chosen) -> Sequence[Transition]:
        return self._trip.moves(configuration)

    def step(self, configuration: Chosen, move: Transition) -> Chosen:
        return self._trip.step(configuration, move)

    def accepting(self, configuration: Chosen) -> bool:
        return self._trip.accepting(configuration)


def wander(trip: Trip, rng: random.Random, steps: int) -> Hashable:
    now = trip.start()
    for _ in range(steps):
        moves = trip.moves(now)
        if not moves:
            break
        now = trip.step(now, rng.choice(moves))
    return now


class TestCost:
    @given(seeds)
    @examples(150)
    def test_the_least_cost_is_that_of_trying_all_trips(self, seed: int) -> None:
        query, world = small_case(seed)
        trip = Trip(query, world, every_meal=True)
        found, tried = trip.find_least_cost(trip.start()), least_by_trying(query, world)
        assert (found if found < NEVER else None) == (tried and 100 * tried)

    @given(seeds)
    @examples(150)
    def test_a_query_is_solvable_where_trying_finds_a_trip_within_its_budget(self, seed: int) -> None:
        query, world = small_case(seed)
        trip, tried = Trip.from_query(query, world), least_by_trying(query, world)
        able = tried is not None and (query.budget is None or tried <= query.budget)
        assert (trip.to_end(trip.start()) is not None) == able

    @given(seeds)
    @examples(200)
    def test_the_least_cost_is_that_of_the_best_next_choice(self, seed: int) -> None:
        query, world = small_case(seed, ((1, 3), (2, 3), (2, 4), (2, 5)))
        trip, rng = Trip(query, world, every_meal=bool(seed % 2), sensible=True), random.Random(seed)
        now = trip.start()
        while moves := trip.moves(now):
            nexts = [trip.step(now, move) for move in moves]
            costs = [trip.find_least_cost(one) for one in nexts]
            assert trip.find_least_cost(now) == min(costs)
            now = rng.choice([one for one, cost in zip(nexts, costs, strict=True) if cost < NEVER] or nexts)
        whole = now.shape is not None and len(now.picks) == len(list_slots(now.shape))
        assert trip.find_least_cost(now) == (now.spent if whole and not now.missing else NEVER)

    @given(seeds)
    @examples(100)
    def test_no_meal_is_where_a_journey_leaves_no_time_for_it(self, seed: int) -> None:
        query, world = small_case(seed)
        trip = Trip.from_query(query, world)
        if trip.routes.sensible and trip.to_end(trip.start()) is not None:
            days = days_of(trip, Planner(trip, f"test:random={seed}").plan("").word)
            assert not list(find_impossible(resolve_plan(days, query, world)))

    @given(seeds, st.integers(0, 12))
    @examples(150)
    def test_what_can_be_completed_is_what_a_search_completes(self, seed: int, steps: int) -> None:
        query, world = small_case(seed, ((1, 2), (1, 3), (2, 3)))
        trip = Trip(query, world, every_meal=bool(seed % 2), sensible=bool(seed % 3))
        now = wander(trip, random.Random(seed), max(steps, trip.length - 5))
        verdict = Lookahead(Bare(trip), max_states=40_000).completable(now)
        found = trip.to_end(now)
        if verdict.value != "unknown":
            assert (verdict.value == "yes") == (found is not None)
            assert verdict.steps in (None, found)

    @given(seeds)
    @examples(100)
    def test_the_cheapest_trip_costs_the_least_and_is_accepted(self, seed: int) -> None:
        query, world = small_case(seed)
        query = replace(query, budget=None)
        trip = Trip(query, world, every_meal=True)
        word = trip.find_cheapest()
        if word is None:
            assert least_by_trying(query, world) is None
            return
        chosen = trip.follow_word(word)
        assert chosen is not None
        days = days_of(trip, word)
        assert chosen.spent == trip.find_least_cost(trip.start())
        for judged in (official(days, query, world), strict(days, query, world)):
            assert judged.final, judged.findings
            assert judged.cost is not None
            assert 100 * judged.cost <= chosen.spent  # less where a name means several rows


class TestLanguage:
    @given(seeds)
    @examples(150)
    def test_both_evaluators_accept_every_word(self, seed: int) -> None:
        query, world = small_case(seed)
        trip = Trip.from_query(query, world)
        if trip.to_end(trip.start()) is None:
            return
        days = days_of(trip, Planner(trip, f"test:random={seed}").plan("").word)
        for judged in (official(days, query, world), strict(days, query, world)):
            assert judged.final, judged.findings

    @given(seeds)
    @examples(300)
    def test_no_plan_that_both_evaluators_accept_is_of_a_query_without_trips(self, seed: int) -> None:
        query, world = small_case(seed)
        days = wild_plan(random.Random(seed), query, world)
        if strict(days, query, world).final and official(days, query, world).final:
            trip = Trip.from_query(query, world)
            assert trip.to_end(trip.start()) is not None


def test_wild_plans_are_accepted_now_and_then() -> None:
    accepted = 0
    for seed in range(400):
        query, world = small_case(seed)
        days = wild_plan(random.Random(seed), query, world)
        accepted += strict(days, query, world).final
    assert accepted > 3


def test_what_is_read_back_from_a_pickle_goes_on() -> None:
    query, world = next(
        case
        for case in map(small_case, range(100))
        if Trip.from_query(*case).to_end(Trip.from_query(*case).start()) is not None
    )
    trip = Trip.from_query(query, world)
    walk = Planner(trip, "builtin").start("")
    again = pickle.loads(pickle.dumps(trip))
    assert again.fingerprint == trip.fingerprint
    assert again.moves(again.start()) == trip.moves(trip.start())
    assert walk.table.automaton is trip


@pytest.mark.parametrize("seed", range(3))
def test_a_word_is_a_word_and_half_of_it_is_none(seed: int) -> None:
    query, world = small_case(seed)
    trip = Trip(replace(query, budget=None), world, every_meal=True)
    word = trip.find_cheapest()
    if word is not None:
        assert trip.accepts(word)
        assert not trip.accepts(word[:-1])
        assert not trip.accepts((*word[:-1], "Nowhere, Nowhere"))
