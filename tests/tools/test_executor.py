"""The executor: plans run from the inside out, in parallel, once for equal inputs, and failures are told in full."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from formal_llm import Planner, RandomLLM
from formal_llm.errors import InputError, ToolError
from formal_llm.tools import DiskCache, Executor, Toolkit, tool
from tests.tools.picture_tools import PACK, Log, nested, picture, plan_of, toolkit
from tests.tools.text_tools import TEXTS, TOOLS, turned


def test_equal_sub_plans_of_one_plan_run_once() -> None:
    executor = Executor(TOOLS)
    executor.run(plan_of(TEXTS, "join", "upper", "doc", "turned", "upper", "doc"), {"doc": "abc"})
    assert executor.stats.executed == 3
    executor.run(plan_of(TEXTS, "turned", "upper", "doc"), {"doc": "abc"})
    assert (executor.stats.executed, executor.stats.from_memory) == (3, 2)
    assert executor.stats.calls == 6


def test_many_random_plans_give_what_the_nested_calls_give() -> None:
    planner = Planner(PACK.cfg, RandomLLM(3))
    plans = [planner.plan(task) for task in PACK.tasks[::5] for _ in range(3)]
    inputs = [{"input_image": picture(n % 3), "input_text": "a b c"} for n in range(len(plans))]
    log = Log()
    results = Executor(toolkit(log), window=20).run_many(plans, inputs, keep=True)
    for plan, row, result in zip(plans, inputs, results, strict=True):
        assert result.plan is plan
        expected = nested(plan, row)
        assert result.output == expected if isinstance(expected, str) else result.output.tobytes() == expected.tobytes()
    assert max(log.calls.values()) == 1


def test_one_failure_among_many_touches_no_other() -> None:
    @tool("upper")
    def picky(text: str) -> str:
        if text == "bad":
            raise ValueError("bad text")
        return text.upper()

    plan = plan_of(TEXTS, "turned", "upper", "doc")
    rows = [{"doc": "bad" if n % 3 == 1 else f"good {n}"} for n in range(9)]
    results = Executor(Toolkit([picky, turned])).run_many(plan, rows)
    assert [result.error is None for result in results] == [n % 3 != 1 for n in range(9)]
    assert results[0].output == "0 DOOG"
    with pytest.raises(ToolError, match="bad text"):
        _ = results[1].output
    with pytest.raises(ValueError, match="run"):
        Executor(TOOLS).run_many(plan, {"doc": "x"})
    with pytest.raises(ValueError, match="zip"):
        Executor(TOOLS).run_many([plan], [{"doc": "x"}] * 2)


def test_an_error_before_the_run_names_the_plan_if_there_are_several() -> None:
    plan, executor = plan_of(TEXTS, "doc"), Executor(TOOLS)
    with pytest.raises(InputError) as of_two:
        executor.run_many([plan, plan], [{"doc": "x"}, {}])
    assert of_two.value.__notes__ == ["in plan 1 (counted from 0)"]
    with pytest.raises(InputError) as of_one:
        executor.run_many([plan], [{}])
    assert not hasattr(of_one.value, "__notes__")


def test_results_come_one_by_one_and_plans_are_taken_as_places_become_free() -> None:
    taken: list[int] = []

    def rows() -> Any:
        for number in range(10):
            taken.append(number)
            yield {"doc": f"{number}"}

    results = Executor(TOOLS, window=3).iterate(plan_of(TEXTS, "upper", "doc"), rows())
    assert next(results).output == "0"
    assert taken == [0, 1, 2]
    assert [result.output for result in results] == [f"{n}" for n in range(1, 10)]


@pytest.mark.slow
def test_two_thousand_plans_of_one_group_execute_each_distinct_sub_plan_once(tmp_path: Path) -> None:
    tasks = [task for task in PACK.tasks if task.group == "Task X"]
    planner = Planner(PACK.cfg, RandomLLM(11))
    rng = random.Random(5)
    plans = [planner.plan(rng.choice(tasks)) for _ in range(2000)]
    inputs = {"input_image": picture(), "input_text": "What do you see?"}
    log = Log()
    executor = Executor(toolkit(log), cache=DiskCache(tmp_path))
    results = executor.run_many(plans, inputs)
    assert all(result.error is None for result in results)
    distinct = {str(call).split(" = ")[-1] for plan in plans for call in plan.call.walk() if call.arguments}
    assert max(log.calls.values()) == 1
    # Sub-plans with equal content (two that give the same picture) are one call, so at most one for each.
    assert executor.stats.executed == log.calls.total() <= len(distinct)
    # Another process, or another day: everything is on the disk.
    again = Executor(toolkit(log), cache=DiskCache(tmp_path))
    for old, new in zip(results[:200], again.run_many(plans[:200], inputs), strict=True):
        assert old.value is not None
        assert new.value is not None
        assert old.value.key == new.value.key
    assert again.stats.executed == 0
