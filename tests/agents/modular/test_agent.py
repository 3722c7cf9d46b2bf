"""Making agents: models, rules that leave nothing, asynchronous runs."""

from __future__ import annotations

import asyncio
import random

import pytest

from formal_llm import Limits, constraint
from formal_llm.agents.modular import ModularAgent, RunBudget, respond
from formal_llm.agents.modular.agent import resolve_writer
from formal_llm.errors import NoValidPlan, UnknownProvider, WritesNoText
from formal_llm.llms.doubles import FunctionLLM
from tests.agents.modular.doubles import Held, letters, script


def test_who_may_be_a_model() -> None:
    text = FunctionLLM(lambda _: "", can={"write"})
    assert resolve_writer(text) is text
    assert resolve_writer(lambda _: {}).can == {"object"}
    with pytest.raises(UnknownProvider):
        resolve_writer("nobody:x")
    with pytest.raises(WritesNoText, match="cannot plan or call tools"):
        resolve_writer("builtin")
    with pytest.raises(TypeError):
        resolve_writer(3)  # type: ignore[arg-type]


def test_each_has_a_model_of_its_own() -> None:
    planner, caller = script(), script()
    one = ModularAgent(planner, modules=letters()).setup.llms
    assert one["planner"] is one["caller"] is one["summarizer"] is planner
    two = ModularAgent(planner, caller, modules=letters()).setup.llms
    assert two["planner"] is planner and two["caller"] is two["summarizer"] is caller


def test_rules_that_leave_nothing() -> None:
    llm = script()
    with pytest.raises(NoValidPlan, match="nothing keeps the rules"):
        ModularAgent(llm, modules=letters(), limits=Limits(at_most={"a": 0}), rules=constraint(
            "(next a respond)", ["a", "b", "c", "respond"]
        ))  # fmt: skip
    long = constraint("(next a b a b respond)", ["a", "b", "c", "respond"])
    with pytest.raises(NoValidPlan, match="within 4 steps"):
        ModularAgent(llm, modules=letters(), rules=long, budget=RunBudget(steps=4))
    agent = ModularAgent(llm, modules=letters(), rules=long, budget=RunBudget(steps=5))
    with pytest.raises(NoValidPlan, match="within 4 steps"):
        agent.run("x", budget=RunBudget(steps=4))


def test_runs_at_the_same_time() -> None:
    agent = ModularAgent(Held(random.Random(1), 0), modules=letters())

    async def many() -> list[bool]:
        runs = await asyncio.gather(*(agent.arun(f"request {number}") for number in range(5)))
        return [run.complete for run in runs]

    assert asyncio.run(many()) == [True] * 5
    assert "respond" in repr(agent) and respond().name == "respond"
