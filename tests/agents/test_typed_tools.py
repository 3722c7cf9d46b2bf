"""Tools of many signatures through an agent that writes texts: what a model sets, reads, and reads of its mistakes."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel, computed_field

from formal_llm.agents import Agent
from formal_llm.agents.actions import Action
from formal_llm.agents.decoding.steps import Do
from formal_llm.agents.run_events import ToolCall
from formal_llm.agents.tool_calls import (
    BadArguments,
    acall_tool,
    call_tool,
    check_texts,
    describe_tool,
    parse_arguments,
    read_arguments,
)
from formal_llm.errors import ToolkitError
from formal_llm.llms.doubles import TURNS, ScriptedLLM
from formal_llm.tools import Toolkit, tool
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.tool import Tool
from tests.agents.chats import Scripted
from tests.llms.test_schemas import PLAIN, write_closed
from tests.tools.test_signature import look
from tests.tools.typed_tools import (
    NAMES,
    TYPED,
    add,
    area,
    birthday,
    book,
    depth,
    greet,
    mix,
    move,
    now,
    paint,
    search,
    total,
    weekday,
)

CALLER = Caller(CallLimits(timeout=20))


#: Tools of one argument that any text is.
TAKE_ANY_TEXT = ("kind_of", "forget")


def script(name: str, *inputs: dict[str, Any]) -> Scripted:
    rounds = [f"[Thought] I call it.\n[Action] {name}\n[Action Input] {json.dumps(one)}\n" for one in inputs]
    return Scripted([*rounds, "[Final Thought] I know.\n[Answer] done"])


@pytest.mark.parametrize("row", TYPED, ids=NAMES)
def test_an_agent_calls_tools_of_any_signature(row: tuple[Tool, dict[str, Any], str, dict[str, Any], str]) -> None:
    of, good, expected, wrong, words = row
    words = {"now": "now takes no argument"}.get(of.name, words)
    tries = [good] if of.name in TAKE_ANY_TEXT else [wrong, good]
    for awaited in (False, True):
        run = Agent("react", script(of.name, *tries), [of]).start("q")
        made = asyncio.run(run.arun_to_end()) if awaited else run.run_to_end()
        *failed, called = run.calls
        assert (called.output, called.ok) == (expected, True)
        assert len(failed) == len(tries) - 1
        assert all(not one.ok and words in one.output and one.output.startswith("Error: ") for one in failed)
        assert made.answer == "done"


@pytest.mark.parametrize("row", PLAIN, ids=[row[0].name for row in PLAIN])
def test_a_model_that_calls_tools_by_itself(row: tuple[Tool, dict[str, Any], str, dict[str, Any], str]) -> None:
    of, good, expected, wrong, words = row
    written = write_closed(good, of.schema, of.schema.get("$defs", {}))  # type: ignore[arg-type]
    turns = [("", [(of.name, one)]) for one in (wrong, written, good)]  # not all providers hold it to the closed form
    run = Agent("react", ScriptedLLM(texts=[*turns, "done"], can=TURNS), [of]).start("q")
    made = run.run_to_end()
    failed, *called = run.calls
    assert not failed.ok and words in failed.output
    assert [(call.output, call.ok) for call in called] == [(expected, True)] * 2
    assert (made.answer, made.usage.requests) == ("done", 4)


@pytest.mark.parametrize("row", TYPED, ids=NAMES)
def test_arguments_that_a_model_calls_with(row: tuple[Tool, dict[str, Any], str, dict[str, Any], str]) -> None:
    of, good, expected, wrong, words = row
    assert call_tool(of, partial(read_arguments, of, good), CALLER) == (expected, True)
    assert asyncio.run(acall_tool(of, partial(read_arguments, of, json.dumps(good)), CALLER)) == (expected, True)
    for shown, ok in (
        call_tool(of, partial(read_arguments, of, json.dumps(wrong)), CALLER),
        asyncio.run(acall_tool(of, partial(read_arguments, of, wrong), CALLER)),
    ):
        assert not ok and words in shown and shown.startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [("{", "are no JSON"), ("[1, 2]", "are a JSON object"), ("3", "are a JSON object"), ("", "no value for a, b")],
)
def test_what_is_no_object_of_arguments(arguments: str, words: str) -> None:
    shown, ok = call_tool(add, partial(read_arguments, add, arguments), CALLER)
    assert not ok and words in shown and shown.startswith("Error: ")
    assert call_tool(now, partial(read_arguments, now, ""), CALLER) == ("noon", True)


@pytest.mark.parametrize(
    ("of", "text", "expected"),
    [
        (search, "green tea", "green tea 3 False"),
        (search, '{"query": "tea", "limit": 1}', "tea 1 False"),
        (search, '["tea", 2, true]', '["tea", 2, true] 3 False'),
        (search, '{"other": "tea"}', '{"other": "tea"} 3 False'),
        (total, "[1, 2]", "3"),
        (total, "[[1, 2]]", "3"),
        (total, '{"numbers": [1, 2]}', "3"),
        (weekday, "2026-11-25", "Wednesday"),
        (weekday, '"2026-11-25"', "Wednesday"),
        (weekday, '["2026-11-25", "12:00"]', "Wednesday 12:00"),
        (mix, "red", "red"),
        (paint, "red", "red x1"),
        (greet, "", "hello you"),
        (greet, '{"name": "Ada"}', "hello Ada"),
        (greet, '["Ada"]', "hello Ada"),
        (greet, "Ada", "hello Ada"),
        (birthday, '{"name": "Ada", "age": 36}', '{"name":"Ada","age":37,"email":null}'),
        (area, '{"shape": "circle", "radius": 1}', "3.0"),
        (move, "[[1, 2], [3, 4]]", "[4,6]"),
        (book, '["4", "Ada"]', "4 for Ada"),
    ],
)  # fmt: skip
def test_texts_are_read_as_arguments(of: Tool, text: str, expected: str) -> None:
    assert call_tool(of, partial(parse_arguments, of, text), CALLER) == (expected, True)


@pytest.mark.parametrize(
    ("of", "text", "words"),
    [
        (search, '{"query": "tea", "limt": 1}', "no argument 'limt' (did you mean limit?)"),
        (search, "", "search needs query, and its input is empty"),
        (weekday, "tomorrow", "a day that cannot be used: Input should be a valid date"),
        (total, "[1, [2]]", "takes one argument; write it as JSON"),
        (add, "1", 'takes 2 arguments; write them as JSON: {"a": 1, "b": 1}'),
        (add, "[1, 2, 3]", "takes 2 arguments"),
        (greet, "[1, 2]", 'takes one argument; write it as JSON: {"name": null}'),
    ],
)
def test_texts_that_are_no_arguments(of: Tool, text: str, words: str) -> None:
    with pytest.raises(BadArguments) as caught:
        parse_arguments(of, text)
    assert words in str(caught.value)


def test_tools_are_described_with_types_and_defaults() -> None:
    assert describe_tool(now) == "now(): The time."
    assert describe_tool(add) == (
        'add(a, b): Add two numbers. Write its 2 arguments as JSON: {"a": 1, "b": 1}\n'
        "  a: the first number\n  b: the second number"
    )
    assert describe_tool(search).endswith('as JSON: {"query": "...", "limit": 3, "exact": false}')
    assert describe_tool(weekday).endswith("\n  day: date\n  at: time or null")
    assert describe_tool(mix).endswith('\n  second: one of "red", "blue"\n  size: one of 1, 2')
    assert "\n  people: how many (by the JSON schema" in describe_tool(book)
    assert 'as JSON: {"tree": {"label": "..."}}\n' in describe_tool(depth)


def test_what_cannot_be_written_remains_refused() -> None:
    with pytest.raises(ToolkitError, match=r"look\(image\) -> text takes or gives what can be neither"):
        check_texts(Toolkit([tool(look)]))
    with pytest.raises(ToolkitError, match="such as an image"):
        Agent("react", script("draw"), [tool("draw", output="image")(lambda: None)])


class Shy(BaseModel):
    name: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def age(self) -> int:
        raise ValueError("nobody knows")


def test_results_that_cannot_be_written() -> None:
    @tool
    def meet(name: str) -> Shy:
        return Shy(name=name)

    shown, ok = call_tool(meet, partial(parse_arguments, meet, "Ada"), CALLER)
    assert not ok and shown.startswith("Error: meet returned a") and "nobody knows" in shown

    @tool
    def find(name: str) -> object:
        return CALLER

    shown, ok = call_tool(find, partial(parse_arguments, find, "Ada"), CALLER)
    assert not ok and shown.startswith("Error: find returned what it should not: a object that cannot be written")


# -- asynchronous tools -----------------------------------------------------------------------------------------------


def make_slow(seen: list[object], seconds: float = 0.0, **settings: Any) -> Tool:
    @tool("slow", **settings)
    async def slow(text: str, times: int = 1) -> str:
        seen.append(asyncio.get_running_loop())
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return text * times

    return slow


def test_an_asynchronous_tool_runs_on_the_loop_of_the_run() -> None:
    seen: list[object] = []
    run = Agent("react", script("slow", {"text": "a", "times": 3}), [make_slow(seen)]).start("q")

    async def follow() -> None:
        await run.arun_to_end()
        assert seen == [asyncio.get_running_loop()]

    asyncio.run(follow())
    assert [call.output for call in run.calls] == ["aaa"]


def test_an_asynchronous_tool_runs_on_a_loop_of_its_own_in_a_run_without_one() -> None:
    seen: list[object] = []
    agent = Agent("react", script("slow", {"text": "a"}), [make_slow(seen)])
    run = agent.start("q")
    run.run_to_end()
    assert [call.output for call in run.calls] == ["a"] and len(seen) == 1

    async def block() -> None:  # as in a notebook: a loop runs, and the run does not know
        agent.llm = script("slow", {"text": "b"})
        run = agent.start("q")
        run.run_to_end()
        assert [call.output for call in run.calls] == ["b"] and seen[-1] is not asyncio.get_running_loop()

    asyncio.run(block())


@pytest.mark.parametrize("awaited", [False, True])
def test_an_asynchronous_tool_that_takes_too_long_is_cancelled(awaited: bool) -> None:
    seen: list[object] = []
    limits = CallLimits(timeout=0.05)
    run = Agent("react", script("slow", {"text": "a"}), [make_slow(seen, 20)], calls=limits).start("q")
    _ = asyncio.run(run.arun_to_end()) if awaited else run.run_to_end()
    (call,) = run.calls
    assert (call.output, call.ok) == ("Error: slow did not return within 0.05 seconds", False)
    for _ in range(100):
        if "cancelled" in seen:
            break
        asyncio.run(asyncio.sleep(0.01))
    assert seen[1:] == ["cancelled"]


def test_asynchronous_tools_of_one_round_run_at_the_same_time() -> None:
    both = asyncio.Barrier(2)

    @tool("meet", pure=True)
    async def meet(name: str) -> str:
        await asyncio.wait_for(both.wait(), 20)
        return name

    actions = [Action("meet", name) for name in "ab"]
    run = Agent("react", script("meet"), [meet]).start("q")

    async def follow() -> list[ToolCall]:
        asked = next(run.carry_out(actions))
        assert isinstance(asked, Do) and asked.awaited is not None
        return await asked.awaited()  # type: ignore[return-value]  # as the driver sends it in

    assert [(call.output, call.ok) for call in asyncio.run(follow())] == [("a", True), ("b", True)]
