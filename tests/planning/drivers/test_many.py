"""The methods of a planner for many tasks take what the others take."""

import inspect

import pytest

from formal_llm import Planner


@pytest.mark.parametrize("name", ["aplan_all", "plan_each", "aplan_each"])
def test_they_have_the_arguments_of_plan_all(name: str) -> None:
    expected = dict(inspect.signature(Planner.plan_all).parameters)
    if name.endswith("each"):
        del expected["on_outcome"]  # the outcomes are handed out
    found = inspect.signature(getattr(Planner, name)).parameters
    assert [(one.name, one.default) for one in found.values()] == [(o.name, o.default) for o in expected.values()]
