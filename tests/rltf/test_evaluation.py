"""Evaluations: means over the greedy plans of tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from formal_llm import Planner
from formal_llm.rltf.evaluation import evaluate
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.rollout import Start, rollout
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.setup import Setup
from tests.rltf import training_runs as runs


def test_the_figures_are_means_over_greedy_plans() -> None:
    setup = Setup(
        Planner(runs.RULES, "test:first"), runs.tiny_policy(), Reward(runs.wanted_tool), tuple(runs.TASKS), Settings()
    )
    greedy = rollout(setup.planner, setup.policy, [Start(n, task) for n, task in enumerate(runs.TASKS)])
    rewards = [runs.wanted_tool(one.task, one.plan) for one in greedy]
    lengths = Reward(lambda task, plan: len(plan.word))
    found = evaluate(setup, runs.TASKS, {"length": lengths})
    assert found == pytest.approx({"reward": sum(rewards) / 3, "length": sum(len(one.word) for one in greedy) / 3})
    grouped = [replace(task, group="odd" if n % 2 else "even") for n, task in enumerate(runs.TASKS)]
    found = evaluate(setup, grouped, {})
    assert found["reward odd"] == pytest.approx(rewards[1])
    assert found["reward even"] == pytest.approx((rewards[0] + rewards[2]) / 2)
    assert evaluate(setup, [replace(task, group="one") for task in runs.TASKS], {}).keys() == {"reward"}
