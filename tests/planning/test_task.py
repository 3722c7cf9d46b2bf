"""Tasks: values, and what is none."""

from __future__ import annotations

import copy
import pickle

import pytest

from formal_llm import CFG, Limits, Task


def test_a_text_is_a_task_and_a_task_is_one() -> None:
    task = Task("sort the mail", goal="S", limits=Limits({"stamp": 2}), inputs=("mail",), group="office")
    assert Task.of(task) is task
    assert Task.of("sort the mail") == Task("sort the mail") != task


def test_tasks_are_values() -> None:
    task = Task("sort the mail", limits=Limits({"stamp": 2}, {"stamp": 1}), inputs=("mail",))
    for same in (pickle.loads(pickle.dumps(task)), copy.deepcopy(task), copy.copy(task)):
        assert same == task
        assert {same: 1}[task] == 1


@pytest.mark.parametrize("wrong", [None, 3, b"text", ["one", "two"], CFG.from_string("S -> a")])
def test_what_is_no_task_is_told_with_its_class(wrong: object) -> None:
    with pytest.raises(TypeError, match=rf"Task\('\.\.\.'\), not by {type(wrong).__name__}"):
        Task.of(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="described by a text"):
        Task(Task("twice"))  # type: ignore[arg-type]
