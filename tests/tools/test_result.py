"""What an execution gave: every step, or the error and what was computed before it."""

from __future__ import annotations

import pickle

import pytest

from formal_llm.errors import Cancelled, ToolError
from formal_llm.tools import Executor, Result, Toolkit, tool
from tests.tools.picture_tools import plan_of
from tests.tools.text_tools import TEXTS, TOOLS, join, upper


def test_a_chain_and_its_record() -> None:
    plan = plan_of(TEXTS, "join", "upper", "doc", "turned", "upper", "doc")
    result = Executor(TOOLS).run(plan, {"doc": "abc"})
    assert result.output == "ABC|CBA"
    assert result.error is None
    assert [(s.position, s.name, s.state, s.value and s.value.get(), s.inputs) for s in result.steps] == [
        (0, "join", "executed", "ABC|CBA", (1, 3)),
        (1, "upper", "cached", "ABC", (2,)),
        (2, "doc", "given", "abc", ()),
        (3, "turned", "executed", "CBA", (4,)),
        (4, "upper", "executed", "ABC", (5,)),
        (5, "doc", "given", "abc", ()),
    ]
    assert result.cost == 2.5
    assert result.seconds > 0
    assert repr(result) == "<Result of t = join(upper(doc), turned(upper(doc))): done>"


def test_a_failure_says_where_and_keeps_what_was_computed() -> None:
    @tool("turned")
    def broken(text: str) -> str:
        raise RuntimeError(f"no mirror for {text}")

    plan = plan_of(TEXTS, "join", "upper", "doc", "turned", "upper", "doc")
    with pytest.raises(ToolError) as caught:
        Executor(Toolkit([upper, broken, join]), workers=1).run(plan, {"doc": "abc"})
    error = caught.value
    assert (error.tool, error.position, error.reason) == ("turned", 3, "failed")
    assert error.step is not None
    assert error.step.name == "turned"
    assert isinstance(error.cause, RuntimeError)
    assert str(error) == f"turned (step {error.step.number}) failed: RuntimeError: no mirror for ABC"
    states = {step.position: step.state for step in error.result.steps}
    assert states == {0: "not run", 1: "not run", 2: "given", 3: "failed", 4: "executed", 5: "given"}
    assert error.result.steps[4].value.get() == "ABC"
    assert error.result.value is None


def test_the_output_of_what_did_not_end_is_its_error() -> None:
    error = Cancelled()
    result = Result(plan_of(TEXTS, "doc"), (), error)
    assert result.value is None
    with pytest.raises(Cancelled) as caught:
        _ = result.output
    assert caught.value is error


def test_results_are_equal_and_travel() -> None:
    plan = plan_of(TEXTS, "join", "upper", "doc", "doc")
    result = Executor(TOOLS).run(plan, {"doc": "abc"})
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again.output == "ABC|abc"
    assert result != Executor(TOOLS).run(plan, {"doc": "x"})


def test_an_error_travels_with_what_was_computed_before_it() -> None:
    @tool("turned")
    def broken(text: str) -> str:
        raise RuntimeError("no mirror")

    with pytest.raises(ToolError) as caught:
        Executor(Toolkit([upper, broken])).run(plan_of(TEXTS, "turned", "upper", "doc"), {"doc": "a"})
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.position, again.reason) == (str(caught.value), 0, "failed")
    assert again.result.error is again
    assert again.result.steps == caught.value.result.steps
