"""Baselines and the memory of tasks: moving averages, and what comes back from JSON."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import InputError, ResourceNotFound
from formal_llm.rltf.baselines import Baseline, Baselines
from formal_llm.rltf.task_memory import TaskMemory, TaskOutcome

rewards_of = st.floats(-2, 2)


def test_the_moving_average_by_hand() -> None:
    begin = Baseline.start(0.5)
    after = begin.updated([1.0]).updated([0.0, 1.0])
    assert after.value == pytest.approx(0.8 * (0.8 * 0.5 + 0.2 * 1.0) + 0.2 * 0.5)
    assert after.groups == 2
    assert begin == Baseline(0.5, 0)
    assert begin.updated([]) is begin
    assert begin.updated([1.0], decay=0.5).value == 0.75
    with pytest.raises(ValueError, match="between 0 and 1"):
        begin.updated([1.0], decay=1.5)


@given(rewards_of, st.lists(st.lists(rewards_of, min_size=1, max_size=4), max_size=6))
def test_the_moving_average_is_the_weighted_sum_of_all_groups(start: float, groups: list[list[float]]) -> None:
    baseline = Baseline.start(start)
    for rewards in groups:
        baseline = baseline.updated(rewards)
    count = len(groups)
    right = 0.8**count * start + sum(
        0.2 * 0.8 ** (count - 1 - place) * sum(rewards) / len(rewards) for place, rewards in enumerate(groups)
    )
    assert baseline.value == pytest.approx(right, abs=1e-12)
    assert baseline.groups == count


def test_the_order_of_a_group_does_not_matter() -> None:
    groups = itertools.permutations([0.1, 0.7, 0.3, 1e-9])
    assert len({Baseline.start(0.3).updated(group) for group in groups}) == 1


def test_baselines_are_values() -> None:
    empty = Baselines()
    begun = empty.started("t1", 0.25).started("t2", 1.0)
    after = begun.updated("t1", [1.0, 0.0])
    assert empty.values == {}
    assert begun.get("t1") == Baseline(0.25)
    assert after.get("t1") == Baseline(0.8 * 0.25 + (1 - 0.8) * 0.5, 1)
    assert after.get("t2") == Baseline(1.0)
    assert begun.started("t1", 9.0) is begun
    assert after.get("t3") is None
    with pytest.raises(ResourceNotFound, match="'t3'"):
        after.updated("t3", [1.0])


@given(st.dictionaries(st.text(max_size=5), st.builds(Baseline, rewards_of, st.integers(0, 9)), max_size=4))
def test_baselines_come_back_from_json_bit_by_bit(values: dict[str, Baseline]) -> None:
    baselines = Baselines(values, 0.7)
    assert Baselines.from_data(json.loads(json.dumps(baselines.to_data()))) == baselines


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        {"values": {}},
        {"decay": 0.8, "values": {"t": 3}},
        {"decay": 0.8, "values": {"t": ["x", 0]}},
        {"decay": 0.8, "values": {"t": [math.nan, 0]}},
        {"decay": None, "values": {}},
        None,
    ],
)
def test_damaged_baselines(data: Any) -> None:
    with pytest.raises(InputError, match="no baselines of tasks"):
        Baselines.from_data(data)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number(bad: float) -> None:
    with pytest.raises(ValueError, match="the reward of the greedy plan is"):
        Baseline.start(bad)
    with pytest.raises(ValueError, match="the reward of sample 1 of 1 is"):
        Baseline(0.0).updated([bad])


# -- what is known of tasks ------------------------------------------------------------------------------------------


def test_memory_is_a_value_and_survives_json() -> None:
    memory = TaskMemory(Baselines(decay=0.5))
    happened = TaskOutcome(1, (1.0, 0.0), 0.5, greedy=0.25, known=(((1, 2), 1.0), ((), 0.5)))
    later = memory.with_outcomes([happened, TaskOutcome(2, (), 0.0)])
    assert memory == TaskMemory(Baselines(decay=0.5))
    assert later.baselines.values["1"].value == pytest.approx(0.375)
    assert TaskMemory.from_data(json.loads(json.dumps(later.to_data()))) == later


def test_a_baseline_is_of_its_task_and_known_plans_stay_until_others_are_told() -> None:
    first = TaskMemory().with_outcomes([TaskOutcome(0, (1.0,), 1.0, greedy=0.5, known=(((1,), 1.0),))])
    later = first.with_outcomes([TaskOutcome(0, (0.0,), 0.0), TaskOutcome(1, (1.0,), 1.0)])
    assert later.known == first.known == {0: (((1,), 1.0),)}
    assert later.baselines.values.keys() == {"0"}  # nobody started one for the second task
    assert later.with_outcomes([TaskOutcome(0, (), 0.0, known=())]).known == {0: ()}
