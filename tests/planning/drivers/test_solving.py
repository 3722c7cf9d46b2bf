"""Solving a task with whatever carries plans out: rule out, go on, leave out, give up."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from formal_llm import CFG, Limits, Plan, Planner, Task
from formal_llm.errors import NoPlanWorked, NoValidPlan, ToolError

TRAVEL = CFG.from_string("""
    Trip -> train Trip | bus Trip | walk home
    train "Train"
    bus "Bus"
    walk "Walk"
""")


class World:
    """Carries plans out, as far as nothing is broken."""

    def __init__(self, *broken: str, without: Collection[str] = ()) -> None:
        self.broken = broken
        self.without = without
        self.plans: list[tuple[str, ...]] = []

    def limits(self, source: Any, given: Collection[str] | None = None) -> Limits:
        assert source is TRAVEL
        assert given == ["home"]
        return Limits(dict.fromkeys(self.without, 0))

    def run(self, plan: Plan, inputs: Mapping[str, Any]) -> str:
        self.plans.append(plan.word)
        for position, name in enumerate(plan.word):
            if name in self.broken:
                raise ToolError(name, "is on strike", position=position)
        return " ".join(plan.word)


def test_the_first_plan_may_work() -> None:
    world = World()
    solution = Planner(TRAVEL, "test:script=1,2,3").solve("go", {"home": 1}, world)
    assert solution.result == "train bus walk home"
    assert solution.failures == ()
    assert solution.usage == solution.plan.usage


def test_a_failure_rules_out_its_branch_and_the_answers_before_it_stand() -> None:
    world = World("bus")
    asked: list[int] = []
    answers = iter([1, 1, 2, 3, 2])

    def llm(question: Any) -> int:
        asked.append(len(question.options))
        return next(answers)

    solution = Planner(TRAVEL, llm).solve("go", {"home": 1}, world)
    assert world.plans == [("train", "train", "bus", "walk", "home"), ("train", "train", "walk", "home")]
    assert asked == [3, 3, 3, 3, 2]
    assert solution.result == "train train walk home"
    assert [error.position for error in solution.failures] == [2]
    assert solution.usage.questions == 5
    assert solution.usage.backtracks == 1


def test_a_tool_that_fails_twice_is_planned_without() -> None:
    world = World("bus")
    answers = iter([2, 3, 1, 2, 3, 1, 2])
    asked: list[list[str]] = []

    def llm(question: Any) -> int:
        asked.append([option.text for option in question.options])
        return next(answers)

    solution = Planner(TRAVEL, llm).solve("go", {"home": 1}, world)
    assert [plan.count("bus") for plan in world.plans] == [1, 1, 0]
    assert not any("Bus" in text for text in asked[-1])
    assert len(solution.failures) == 2
    assert solution.usage.questions == 7


def test_nothing_left() -> None:
    with pytest.raises(NoPlanWorked) as caught:
        Planner(TRAVEL, "test:script=1,3,2,3,3").solve("go", {"home": 1}, World("walk"), patience=1)
    assert caught.value.tools == ("walk",)
    assert str(caught.value) == "no plan could be carried out, and no other plan is left: walk is on strike"
    assert isinstance(caught.value.__cause__, NoValidPlan)
    with pytest.raises(NoValidPlan, match="limit 0 walk"):
        Planner(TRAVEL).solve("go", {"home": 1}, World(without=["walk"]))


def test_what_the_world_cannot_do_is_not_offered() -> None:
    world = World(without=["bus", "train"])
    assert Planner(TRAVEL, "test:script=1").solve(Task("go"), {"home": 1}, world).result == "walk home"


def test_an_error_without_a_place_is_passed_on() -> None:
    class Odd(World):
        def run(self, plan: Plan, inputs: Mapping[str, Any]) -> str:
            raise ToolError("bus", "is late")

    with pytest.raises(ToolError, match="bus is late"):
        Planner(TRAVEL, "test:script=3").solve("go", {"home": 1}, Odd())
