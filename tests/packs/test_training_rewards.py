"""Rewards by the names of recipes, and what is known of a pack's tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from formal_llm import Limits, Plan, Task, TaskPack
from formal_llm.errors import ResourceNotFound, ToolError, TrainingError
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.packs.training import Ingredients
from formal_llm.packs.training_rewards import exact_metric, exact_tools, format_tasks, judge_of, reward_for
from formal_llm.rltf.reference_tools import tools_of
from formal_llm.rltf.rewards import ExecutedReward
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.warm_start import reference_plans


@pytest.fixture(scope="module")
def pack() -> TaskPack:
    return TaskPack.load("openagi")


def test_the_references_are_the_plans_with_just_the_right_tools(pack: TaskPack) -> None:
    parts = Ingredients.of(Settings())
    assert parts.references is not None
    for task, (first, second) in zip(
        parts.tasks, reference_plans(parts.planner, parts.tasks, 2, references=parts.references), strict=True
    ):
        for episode in (first, second):
            assert tools_of(episode.plan) == tools_called_for(task)
            assert parts.reward(task, episode.plan) == 1.0
            assert parts.metrics["exact"](task, episode.plan) == 1.0
    for task in pack.tasks:  # each task has one
        limits = exact_tools(pack)(task)
        pack.planner().start(replace(task, limits=task.limits & limits))


def failing(task: Task, plan: Plan) -> float:
    raise ToolError("denoising", "broke")


@pytest.mark.parametrize("stated", [0.0, -1.0])
def test_a_plan_that_fails_gets_the_stated_reward(stated: float) -> None:
    parts = Ingredients.of(Settings(reward=f"{__name__}:failing", failed_reward=stated))
    judged = parts.reward.judge(parts.tasks[0], parts.planner.plan(parts.tasks[0]))
    assert judged.value == stated
    assert "broke" in judged.failed


def test_rewards_that_are_not_there() -> None:
    with pytest.raises(ResourceNotFound, match="Did you mean 'references'") as caught:
        Ingredients.of(Settings(reward="reference"))
    assert caught.value.known == ("references", "executed", "MODULE:FUNCTION")
    with pytest.raises(ResourceNotFound, match="module of rewards"):
        Ingredients.of(Settings(reward="no_such_module:f"))
    for name in ("references", "executed"):
        with pytest.raises(TrainingError, match="for the pack openagi"):
            Ingredients.of(Settings(pack="cooking", train="all", held_out="", reward=name))


def test_executing_needs_data_and_tools() -> None:
    with pytest.raises(TrainingError, match="make_data"):
        Ingredients.of(Settings(reward="executed"))
    with pytest.raises(ResourceNotFound, match="Did you mean 'classical'"):
        Ingredients.of(Settings(reward="executed", data="nowhere", toolkit="clasical"))


def test_a_reward_that_says_itself_what_failures_get_is_left_alone(pack: TaskPack) -> None:
    assert reward_for(Settings(reward=f"{__name__}:STRICT", failed_reward=-1.0), pack) is STRICT
    wrapped = reward_for(Settings(reward=f"{__name__}:failing", failed_reward=-1.0), pack)
    assert isinstance(wrapped, ExecutedReward)
    assert wrapped.failed == -1.0
    assert wrapped.identity == {"reward": f"{__name__}:failing", "invalid": 0.0, "failed": -1.0}


def test_the_metric_is_1_for_just_the_right_tools(pack: TaskPack) -> None:
    task = pack.task(7)
    planner = pack.planner("test:first")
    right, other = (
        planner.plan(replace(task, limits=task.limits & limits(task))) for limits in (exact_tools(pack), wrong)
    )
    exact = exact_metric()["exact"]
    assert (exact(task, right), exact(task, other)) == (1.0, 0.0)


def test_tasks_are_named_by_their_numbers(pack: TaskPack) -> None:
    assert format_tasks(pack, [pack.task(20)]) == "task 20 is"
    assert format_tasks(pack, [pack.task(3), Task("mine")]) == "tasks 3, 'mine' are"


def test_only_openagi_has_a_judge() -> None:
    with pytest.raises(TrainingError, match="whose tools and scores are known"):
        judge_of(TaskPack.load("cooking"), Settings(reward="executed"), None)


STRICT = ExecutedReward(failing, -0.5)


def wrong(task: Task) -> Limits:
    """Without one of the tools that the task calls for."""
    return Limits(at_most={min(tools_called_for(task)): 0})
