"""Errors of training say where: the file, the task, the plan."""

from __future__ import annotations

import pickle

from formal_llm.errors import ExecutionError, RewardError, TrainingError


def test_a_reward_error_names_file_task_and_plan() -> None:
    error = RewardError("is not a finite number", task="wash", word=["a", "b"], file="rewards.jsonl")
    assert str(error) == "rewards.jsonl: is not a finite number (task: 'wash'; plan: a b)"
    assert str(RewardError("is empty", task="wash")) == "is empty (task: 'wash'; plan: the empty word)"
    assert str(RewardError("is empty")) == "is empty"


def test_it_is_never_taken_for_a_plan_that_failed() -> None:
    assert not issubclass(RewardError, ExecutionError)
    assert not issubclass(TrainingError, ExecutionError)


def test_they_travel() -> None:
    error = RewardError("wrong", task="t", word=("a",))
    assert pickle.loads(pickle.dumps(error)).__dict__ == error.__dict__
