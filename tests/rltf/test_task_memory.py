"""The memory of tasks: a value that an update makes a new one of."""

from __future__ import annotations

import json

import pytest

from formal_llm.rltf.baselines import Baselines
from formal_llm.rltf.task_memory import TaskMemory, TaskOutcome


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
