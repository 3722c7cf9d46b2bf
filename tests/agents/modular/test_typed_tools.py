"""Tools of many signatures through a modular agent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from formal_llm.agents.modular import ModularAgent, Module, function_call, respond
from formal_llm.errors import ToolkitError
from formal_llm.tools import tool
from formal_llm.tools.tool import Tool
from tests.agents.modular.doubles import script
from tests.llms.test_schemas import PLAIN, write_closed
from tests.tools.typed_tools import Person, add, area, birthday, depth, greet, mix, now, search, total

STEP = {"context_summary": "", "thoughts": "", "task": "do it"}
ANSWER = {"answer": "done"}


def agent_of(of: Tool | Module, *called: Any, more: tuple[Tool, ...] = (), **settings: Any) -> ModularAgent:
    module = of if isinstance(of, Module) else Module(of)
    planned = [{**STEP, "tool": module.name}, {**STEP, "tool": "respond"}]
    return ModularAgent(script(*planned), script(*called, ANSWER), modules=[module, *more, respond()], **settings)


@pytest.mark.parametrize("row", PLAIN, ids=[row[0].name for row in PLAIN])
def test_a_modular_agent_calls_tools_of_any_signature(
    row: tuple[Tool, dict[str, Any], str, dict[str, Any], str],
) -> None:
    of, good, expected, wrong, _ = row
    written = write_closed(good, of.schema, of.schema.get("$defs", {}))  # type: ignore[arg-type]
    asks = bool(of.signature.parameters)
    for awaited in (False, True):
        agent = agent_of(of, *([wrong, written] if asks else []))
        run = asyncio.run(agent.arun("q")) if awaited else agent.run("q")
        assert [(call.output, call.ok) for call in run.calls] == [(expected, True), ("done", True)]
        assert len(run.corrections) == asks  # what does not fit was corrected, and the tool was not called with it


def test_what_pydantic_alone_objects_to_is_told_in_its_words() -> None:
    agent = agent_of(mix, {"first": "red", "second": None, "size": 3}, {"first": "red", "second": None, "size": 2})
    assert "size" in agent.run("q").corrections[0].reason
    agent = agent_of(area, {"shape": {"shape": "circle", "radius": 2}})
    assert agent.run("q").calls[0].output == "12.0"
    tree = {"tree": {"label": "a", "children": ['{"label": 3}']}}
    better = {"tree": {"label": "a", "children": ['{"label": "b"}']}}
    run = agent_of(depth, tree, better).run("q")
    assert "children.0.label: Input should be a valid string" in run.corrections[0].reason
    assert run.calls[0].output == "2"


def test_calls_are_arguments_where_their_kinds_fit() -> None:
    inner = {"tool": "total", "arguments": {"numbers": [1, 2, 3]}}
    run = agent_of(add, {"a": 1, "b": inner}, more=(total,)).run("q")
    assert [call.output for call in run.calls] == ["6", "7", "done"]
    assert run.calls[1].input == "add(1, total([1,2,3]))"
    # For a parameter with a default, too.
    run = agent_of(search, {"query": "tea", "limit": inner, "exact": None}, more=(total,)).run("q")
    assert [call.output for call in run.calls] == ["6", "tea 6 False", "done"]
    assert run.calls[1].input == 'search("tea", limit=total([1,2,3]))'

    @tool
    def find(name: str) -> Person:
        return Person(name=name, age=36)

    found = {"tool": "find", "arguments": {"name": "Ada"}}
    run = agent_of(birthday, {"person": found}, more=(find,)).run("q")
    assert run.calls[1].output == '{"name":"Ada","age":37,"email":null}'


def test_a_table_is_no_call() -> None:
    @tool
    def count(words: dict[str, int]) -> int:
        return len(words)

    written = {"words": [{"key": "tool", "value": 1}, {"key": "arguments", "value": 2}]}
    assert agent_of(count, written).run("q").calls[0].output == "2"


def test_what_was_left_out_is_part_of_the_journal(tmp_path: Path) -> None:
    where = tmp_path / "run.jsonl"
    called: list[int] = []

    @tool
    def scale(value: int, factor: int = 2) -> int:
        called.append(factor)
        return value * factor

    for factor, outputs in ((3, ["6", "done"]), (3, ["6", "done"])):
        run = agent_of(scale, {"value": 2, "factor": factor}).run("q", journal=where)
        assert [call.output for call in run.calls] == outputs
    assert called == [3]  # the second run took it from the journal


def test_plain_functions_run_in_a_process_of_their_own() -> None:
    module = function_call("tests.agents.modular.isolated_tools:seat")
    assert module.name == "seat" and module.tool.description == "Seat guests at tables."
    guests = [{"name": "Ada", "age": 36}, {"name": "Abe", "age": 12}, {"name": "Bea", "age": 50}]
    run = agent_of(module, {"guests": guests, "tables": None, "by": "age"}).run("q")
    assert json.loads(run.calls[0].output) == {"1": ["Abe", "Bea"], "2": ["Ada"]}
    waiting = function_call("tests.agents.modular.isolated_tools:wait")
    assert agent_of(waiting, {"seconds": 0.25}).run("q").calls[0].output == "waited 0.25"
    with pytest.raises(ToolkitError, match="the parameter text has no type hint"):
        function_call("tests.agents.modular.isolated_tools:untyped")


def test_parameters_with_defaults_alone_are_asked_for() -> None:
    assert agent_of(greet, {"name": "Ada"}).run("q").calls[0].output == "hello Ada"
    assert agent_of(now).run("q").calls[0].output == "noon"
