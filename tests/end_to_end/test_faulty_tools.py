"""Broken tools cost a detour, not the task: random faults over hundreds of runs, and what must come of them."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from formal_llm import CFG, Limits, Planner, RandomLLM
from formal_llm.errors import NoPlanWorked, NoValidPlan, ToolError
from formal_llm.tools import IMAGE, TEXT, Executor, Tool, Toolkit
from tests.tools.picture_tools import PACK, functions, picture

FAULTS = ("fails", "hangs", "wrong kind", "memory", "too much")
INPUTS = {"input_image": picture(1, 8), "input_text": "some words"}


#: For how many seconds tools do not answer that have a hundredth of a second for it.
HANGING = {"hangs": 0.3, "hangs long": 5.0}


def broken(name: str, inputs: Any, output: Any, fault: str) -> Tool:
    def function(*_values: Any) -> Any:
        if fault == "fails":
            raise RuntimeError("broken on purpose")
        if fault in HANGING:
            time.sleep(HANGING[fault])
        if fault == "wrong kind":
            return 3.5
        if fault == "memory":
            raise MemoryError
        if fault == "too much":
            return "x" * 200_000 if output == TEXT else picture(0, 256)
        return None

    return Tool(name, inputs, output, function, version=fault, timeout=0.01 if fault in HANGING else None, pure=True)


def flaky(name: str, inputs: Any, output: Any, function: Any, rng: random.Random) -> Tool:
    """Fails at every second call or so; a retry helps."""

    def sometimes(*values: Any) -> Any:
        if rng.random() < 0.3:
            raise ConnectionError("not now")
        return function(*values)

    return Tool(name, inputs, output, sometimes, retries=12, version="flaky", pure=True)


def faulty(seed: int) -> tuple[Toolkit, set[str], set[str]]:
    """A toolkit in which some tools are missing, some broken for good, some flaky; the names of the first two."""
    rng = random.Random(seed)
    share = rng.choice((0.1, 0.3, 0.6, 0.9))
    absent = rng.choice((0.05, 0.05, 0.6))
    tools, gone, bad = [], set(), set()
    for name, (inputs, output, function) in functions().items():
        if rng.random() < absent:
            gone.add(name)
        elif rng.random() < share:
            bad.add(name)
            tools.append(broken(name, inputs, output, rng.choice(FAULTS)))
        elif rng.random() < 0.1:
            tools.append(flaky(name, inputs, output, function, rng))
        else:
            tools.append(Tool(name, inputs, output, function, version="1"))
    return Toolkit(tools), gone, bad


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_over_500_runs_every_task_that_has_a_plan_gets_one_executed(part: int) -> None:
    outcomes = {"solved": 0, "detours": 0, "no plan worked": 0, "no valid plan": 0}
    for seed in range(125 * part, 125 * part + 125):
        tools, gone, bad = faulty(seed)
        task = PACK.tasks[random.Random(seed).randrange(len(PACK.tasks))]
        given = {PACK.data["inputs"][name]["terminal"]: None for name in task.inputs}
        inputs = {name: INPUTS[name] for name in given}
        planner = Planner(PACK.cfg, RandomLLM(seed))
        executor = Executor(tools, workers=2, max_bytes=100_000, max_hung=1000)
        # What an oracle that knows the broken tools says: is there a plan without them?
        without = task.limits & Limits(dict.fromkeys(gone | bad, 0))
        try:
            Planner(PACK.cfg, "test:first").start(type(task)(task.description, task.goal, without))
            possible = True
        except NoValidPlan:
            possible = False
        try:
            solution = planner.solve(task, inputs, executor)
        except NoPlanWorked as error:
            assert not possible, f"seed {seed}: {error}"
            assert error.replans is None
            assert error.tools
            assert set(error.tools) <= bad
            assert all(name in str(error) for name in error.tools)
            outcomes["no plan worked"] += 1
        except NoValidPlan as error:
            assert not possible, f"seed {seed}"
            assert error.limits or error.symbols
            assert gone, "nothing was broken that planning knew of"
            outcomes["no valid plan"] += 1
        else:
            assert possible, f"seed {seed}: {solution.plan.call} worked with {bad}"
            assert not set(solution.plan.word) & (gone | bad)
            assert PACK.cfg.accepts(solution.plan.word) or task.goal is not None
            assert {error.tool for error in solution.failures} <= bad
            assert solution.result.error is None
            outcomes["solved"] += 1
            outcomes["detours"] += bool(solution.failures)
    assert min(outcomes.values()) >= 5, outcomes


def test_a_detour_in_detail() -> None:
    cfg = CFG.from_string("%order prefix\n%limit 1\n%limit * photo\nI -> A I | photo\nA -> one | two | three")

    def add(number: int) -> Any:
        return lambda image: image.rotate(90 * number)

    tools = [Tool(name, (IMAGE,), IMAGE, add(n), version=name, pure=True) for n, name in enumerate(("one", "three"))]
    executor = Executor(Toolkit([*tools, broken("two", (IMAGE,), IMAGE, "fails")]))
    # First two(one(photo)); then, where "two" was chosen, one(photo).
    solution = Planner(cfg, "test:script=2,1,2,1,3").solve("t", {"photo": picture()}, executor)
    assert solution.plan.word == ("one", "photo")
    assert [(error.tool, error.reason, error.position) for error in solution.failures] == [("two", "failed", 0)]
    assert solution.usage.questions == 5
    # What worked on the way to the failure is not computed again.
    stats = executor.stats
    assert (stats.executed, stats.from_memory) == (1, 0)


def test_a_tool_that_fails_on_some_inputs_only_is_used_on_others() -> None:
    cfg = CFG.from_string("%order prefix\nT -> D T | doc\nD -> shout | crop")

    def shout(text: str) -> str:
        if len(text) > 5:
            raise ValueError("too long to shout")
        return text.upper()

    kit = Toolkit([Tool("shout", (TEXT,), TEXT, shout), Tool("crop", (TEXT,), TEXT, lambda text: text[:4])])
    # First: shout(doc) fails. Then: shout(shout ... is another branch; the third answer crops before.
    answers = iter([2, 1, 3, 2, 1, 2, 3])
    solution = Planner(cfg, lambda question: next(answers)).solve("t", {"doc": "a long text"}, kit)
    assert "crop" in solution.plan.word
    assert [error.position for error in solution.failures] == [1]


def test_the_budget_of_replans() -> None:
    cfg = CFG.from_string("%order prefix\nT -> one doc | two doc | three doc")
    tools = [broken(name, (TEXT,), TEXT, "fails") for name in ("one", "two")]
    kit = Toolkit([*tools, Tool("three", (TEXT,), TEXT, str.title)])
    planner = Planner(cfg, "test:first")
    with pytest.raises(NoPlanWorked, match="budget of 1 replans") as caught:
        planner.solve("t", {"doc": "x"}, kit, replans=1)
    assert caught.value.tools == ("one", "two")
    assert caught.value.replans == 1
    assert isinstance(caught.value.__cause__, ToolError)
    assert planner.solve("t", {"doc": "x"}, kit).result.output == "X"
    with pytest.raises(NoPlanWorked, match="no other plan is left: one failed: RuntimeError: broken on purpose"):
        planner.solve("t", {"doc": "x"}, Toolkit(tools))
    for wrong in ({"replans": -1}, {"patience": 0}):
        with pytest.raises(ValueError, match="counts from"):
            planner.solve("t", {"doc": "x"}, kit, **wrong)  # type: ignore[arg-type]


def test_planning_goes_around_what_is_not_installed_or_not_given() -> None:
    cfg = CFG.from_string("%order prefix\nT -> one doc | two doc | two query")
    kit = Toolkit([Tool("two", (TEXT,), TEXT, str.title)])
    solution = Planner(cfg, "test:first").solve("t", {"query": "x"}, kit)
    assert solution.plan.word == ("two", "query")
    with pytest.raises(NoValidPlan) as caught:
        Planner(cfg, "test:first").solve("t", {}, kit)
    assert "%limit 0 doc" in caught.value.limits


def test_solving_awaited() -> None:
    import asyncio

    cfg = CFG.from_string("%order prefix\nT -> one doc | two doc | three doc")
    kit = Toolkit([broken("one", (TEXT,), TEXT, "hangs long"), Tool("three", (TEXT,), TEXT, str.title)])
    solution = asyncio.run(Planner(cfg, "test:first").asolve("t", {"doc": "x"}, kit))
    assert solution.result.output == "X"
    assert [error.reason for error in solution.failures] == ["timeout"]
    with pytest.raises(NoPlanWorked):
        asyncio.run(Planner(cfg, "test:first").asolve("t", {"doc": "x"}, kit.without("three")))
