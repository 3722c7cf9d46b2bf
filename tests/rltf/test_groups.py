"""Groups: what an update knows, what it draws, and what is known after it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from formal_llm import Planner
from formal_llm.rltf.baselines import Baselines
from formal_llm.rltf.groups import Grouping, Happened, Memory
from formal_llm.rltf.objective import log_probabilities_of
from formal_llm.rltf.plan_tree import enumerate_episodes, path
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.settings import Settings
from tests.rltf import training_runs as runs


def grouping(**settings: Any) -> Grouping:
    policy = runs.tiny_policy(temperature=3)
    reward = Reward(runs.wanted_tool)
    return Grouping(
        Planner(runs.RULES, "test:first"), policy, reward, runs.TASKS, Settings.of({"samples": 4, **settings})
    )


def test_the_baseline_starts_from_the_greedy_plan() -> None:
    groups = grouping(advantage="reinforce")
    (first,) = groups.groups(1, [(0, 0)], Memory())
    greedy = first.happened.greedy
    assert greedy is not None
    assert len(first.episodes) == 4  # the greedy plan is no sample
    assert first.weights == pytest.approx([(r - greedy) / 4 for r in first.happened.rewards])
    memory = Memory().after([first.happened])
    mean = sum(first.happened.rewards) / 4
    baseline = memory.baselines.get("0")
    assert baseline is not None
    assert baseline.value == pytest.approx(0.8 * greedy + 0.2 * mean)
    (second,) = groups.groups(2, [(0, 0)], memory)
    assert second.happened.greedy is None
    assert second.weights == pytest.approx([(r - baseline.value) / 4 for r in second.happened.rewards])


def test_an_exact_group_has_all_plans_and_no_sample() -> None:
    groups = grouping(advantage="exact")
    (group,) = groups.groups(1, [(0, 2)], Memory())
    leaves = enumerate_episodes(groups._planner, runs.TASKS[2], 2, 100)
    assert [path(e) for e in group.episodes] == [path(e) for e in leaves]
    chances = [math.exp(log) for log in log_probabilities_of(groups._policy, leaves)]
    rewards = [runs.wanted_tool(e.task, e.plan) for e in leaves]
    expected = sum(c * r for c, r in zip(chances, rewards, strict=True))
    assert group.happened.value == pytest.approx(expected, abs=1e-5)
    assert group.weights == pytest.approx([c * (r - expected) for c, r in zip(chances, rewards, strict=True)], abs=1e-5)
    assert group.happened.rewards == ()
    assert group.happened.known is None  # they are known as long as the run lasts


def test_a_language_too_large_for_all_plans_is_stratified() -> None:
    groups = grouping(advantage="exact", exact_plans=10, known_plans=5)
    places = [(0, 0), (1, 2)]  # 16 plans, and 5
    large, small = groups.groups(1, places, Memory())
    assert len(large.happened.rewards) == 4
    assert small.happened.rewards == ()
    memory = Memory().after([large.happened, small.happened])
    known = memory.known[0]
    assert 0 < len(known) <= 5
    again, _ = groups.groups(2, places, memory)
    assert [path(e) for e in again.episodes[: len(known)]] == [numbers for numbers, _ in known]
    repeated = {numbers for numbers, _ in known}
    for episode, weight in zip(again.episodes[len(known) :], again.weights[len(known) :], strict=True):
        if path(episode) in repeated:
            assert weight == 0  # it is in the sum already
    assert len(Memory().after([again.happened]).known[0]) <= 5


def test_known_plans_are_the_most_probable_ones() -> None:
    groups = grouping(advantage="stratified", known_plans=3, samples=12)
    (group,) = groups.groups(1, [(0, 0)], Memory())
    chances = {path(e): e.log_probability for e in group.episodes}
    best = sorted(chances, key=lambda numbers: -chances[numbers])[:3]
    assert {numbers for numbers, _ in group.happened.known or ()} == set(best)


def test_groups_do_not_depend_on_their_company() -> None:
    groups = grouping(advantage="rloo")
    both = groups.groups(5, [(0, 0), (1, 1)], Memory())
    alone = [groups.groups(5, [place], Memory())[0] for place in ((0, 0), (1, 1))]
    assert [[path(e) for e in g.episodes] for g in both] == [[path(e) for e in g.episodes] for g in alone]
    other = groups.groups(6, [(0, 0)], Memory())
    assert [path(e) for e in other[0].episodes] != [path(e) for e in both[0].episodes]


def test_memory_is_a_value_and_survives_json() -> None:
    memory = Memory(Baselines(decay=0.5))
    happened = Happened(1, (1.0, 0.0), 0.5, greedy=0.25, known=(((1, 2), 1.0), ((), 0.5)))
    later = memory.after([happened, Happened(2, (), 0.0)])
    assert memory == Memory(Baselines(decay=0.5))
    assert later.baselines.values["1"].value == pytest.approx(0.375)
    assert Memory.from_data(json.loads(json.dumps(later.to_data()))) == later


def test_plans_that_nobody_knows_any_more_are_not_kept() -> None:
    groups = grouping(advantage="stratified")
    (first,) = groups.groups(1, [(0, 0)], Memory())
    known = first.happened.known or ()
    assert len(known) > 1
    memory = Memory().after([Happened(0, (), 0.0, known=known[:1])])  # as another process has left it
    groups._begin(0, 0, memory)
    assert list(groups._episodes[0]) == [known[0][0]]
