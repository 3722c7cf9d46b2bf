"""What frameworks hold, as the rules and the models read it."""

from __future__ import annotations

import importlib
import math
import sys
from dataclasses import dataclass
from datetime import date

import pytest
from pydantic import BaseModel

from formal_llm.errors import MissingDependency
from formal_llm.guard import Decision, GuardedRun
from formal_llm.guard.adapters.plumbing import (
    append_warning,
    find_legal_tools,
    find_outer_call,
    format_refusal,
    read_arguments,
    to_json_value,
    within_call,
)
from tests.guard.adapters.shop import TOOLS, guard


class Order(BaseModel):
    """An order."""

    number: int
    day: date


@dataclass
class Pair:
    """Two orders."""

    first: Order
    second: object


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ({"a": 1}, {"a": 1}), ('{"a": [1, null]}', {"a": [1, None]}), ("", {}), (" ", {}), (b'{"a": 1}', {"a": 1}),
        ({"order": Order(number=7, day=date(2026, 1, 2))}, {"order": {"number": 7, "day": "2026-01-02"}}),
        ("{", None), ("[1]", None), ("7", None), (None, None), ([1], None), ("[" * 100_000, None),
    ],
)  # fmt: skip
def test_arguments(raw: object, arguments: object) -> None:
    assert read_arguments(raw) == arguments


def test_values_as_json() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    order = Order(number=7, day=date(2026, 1, 2))
    assert to_json_value(Pair(order, Odd())) == {"first": {"number": 7, "day": "2026-01-02"}, "second": "odd"}
    assert to_json_value({1: {2}, "b": (3,)}) == {"1": [2], "b": [3]}
    assert to_json_value("text") == "text"
    assert math.isclose(to_json_value(0.5), 0.5)


def test_tools_with_a_legal_call_and_those_that_the_rules_do_not_know() -> None:
    assert find_legal_tools(GuardedRun(guard()), [*TOOLS, "sing"]) == {"approve", "look", "sing"}


def test_what_runs_within_a_call_belongs_to_its_run() -> None:
    """Only under the same guard, and only as long as the call takes."""
    run, other = GuardedRun(guard()), guard()
    assert find_outer_call(run.guard) is None
    with within_call(run, "1"):
        assert find_outer_call(run.guard) == (run, "1/")
        assert find_outer_call(other) is None
        with within_call(run, "1/2"):
            assert find_outer_call(run.guard) == (run, "1/2/")
        assert find_outer_call(run.guard) == (run, "1/")
    assert find_outer_call(run.guard) is None


def test_what_a_model_reads() -> None:
    block = Decision("block", "order", "draft cannot come now.", ("approve",), ("approve", "pay"))
    assert format_refusal(block) == block.message
    ask = Decision("ask", "care", "A person has to be asked.")
    assert format_refusal(ask) == "A person has to be asked. Nobody could be asked, so the call was not made."
    assert append_warning("paid", Decision("warn", "care", "Mind the amount.")) == "paid\n\nWarning: Mind the amount."
    assert append_warning("paid", Decision("log", "care", "Mind the amount.")) == "paid"


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [("pydantic_ai", "pydantic_ai", "pydantic-ai"), ("langchain", "langchain.agents", "langchain"),
     ("openai_agents", "agents", "openai-agents")],
)  # fmt: skip
def test_a_framework_that_is_not_installed(
    adapter: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"formal_llm.guard.adapters.{adapter}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for found in [found for found in sys.modules if found == package or found.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, found, None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    with pytest.raises(MissingDependency, match=rf"pip install 'formal-llm\[{extra}\]'"):
        importlib.import_module(name)
