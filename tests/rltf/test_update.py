"""An update: what goes into it, what it leaves, and that an error changes nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm import Planner, Task
from formal_llm.errors import RewardError, TrainingError
from formal_llm.planning import Plan
from formal_llm.rltf.distributed import Processes
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.setup import TrainingSetup
from formal_llm.rltf.update import Learner, explain_error
from tests.rltf import training_runs as runs


def learner(reward: Any = runs.wanted_tool, **settings: Any) -> Learner:
    how = Settings.of({"samples": 4, "tasks_per_update": 3, "learning_rate": 3e-3, **settings})
    planner = Planner(runs.RULES, "test:first")
    return Learner(TrainingSetup(planner, runs.tiny_policy(), Reward(reward, name="wanted"), tuple(runs.TASKS), how))


def weights(made: Learner) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in made.setup.policy.parameters]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_an_update_changes_the_weights_and_tells_what_it_measured() -> None:
    made = learner(kl=0.1)
    before = weights(made)
    figures = made.update()
    assert made.step == 1
    assert made.whole
    assert not same(before, weights(made))
    assert list(figures) == [
        "reward", "reward_spread", "failed", "samples", "loss", "entropy", "gradient_norm", "learning_rate",
        "questions", "gradients", "kl",
    ]  # fmt: skip
    assert figures["samples"] == 12
    assert figures["learning_rate"] == 3e-3
    assert set(made.memory.baselines.values) == {"0", "1", "2"}


def test_an_update_depends_on_its_number_the_weights_and_the_memory_alone() -> None:
    one, other = learner(advantage="rloo", dropout=0.2), learner(advantage="rloo", dropout=0.2)
    torch.manual_seed(7)  # whoever drew from torch before does not matter
    assert [one.update(), one.update()] == [other.update(), other.update()]
    assert same(weights(one), weights(other))


def test_a_warm_start_imitates_all_tasks_and_leaves_the_memory_empty() -> None:
    made = learner(warm_start=1, tasks_per_update=1, updates=1)
    warm, first = made.update(), made.update()
    assert warm["warm"] == 1.0
    assert "reward" not in warm
    assert "warm" not in first
    assert set(made.memory.baselines.values) < {"0", "1", "2"}
    assert not learner(warm_start=1, updates=0).memory.baselines.values


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_reward_that_is_no_number_changes_nothing(value: float) -> None:
    def reward(task: Task, plan: Plan) -> float:
        return value

    made = learner(reward)
    before, memory = weights(made), made.memory
    with pytest.raises(RewardError, match="not a finite number"):
        made.update()
    assert same(before, weights(made))
    assert (made.step, made.memory, made.whole, made.told_all) == (0, memory, True, True)


def test_a_gradient_that_is_not_finite_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = runs.small_trainer(tmp_path, updates=2)
    monkeypatch.setattr(Processes, "sum_gradients", lambda _, parameters: parameters[0].grad.fill_(math.nan))
    before = weights(trainer.learner)
    with pytest.raises(TrainingError, match=r"the gradient in step 1 is nan, not finite .*make it"):
        trainer.run()
    assert same(before, weights(trainer.learner))


def test_what_another_process_could_not_do_is_an_error_here(monkeypatch: pytest.MonkeyPatch) -> None:
    made = learner()
    before = weights(made)
    monkeypatch.setattr(Processes, "gather", lambda _, mine: {**mine, 1: "no such luck"})
    with pytest.raises(TrainingError, match="process 1 failed: no such luck"):
        made.update()
    assert made.told_all
    assert same(before, weights(made))


def test_memory_that_ran_out_is_told_apart_from_other_errors() -> None:
    other = ValueError("hm")
    assert explain_error(other, 3) is other
    cause = MemoryError()
    told = explain_error(cause, 3)
    assert isinstance(told, TrainingError)
    assert "memory ran out in step 3, though as little as can be was computed together" in str(told)
    assert told.__cause__ is cause
