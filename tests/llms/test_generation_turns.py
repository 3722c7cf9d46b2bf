"""Turns with tools: real clients of three protocols against a server on this machine, whole, streamed and awaited."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from formal_llm.agents import Agent
from formal_llm.errors import ProviderError
from formal_llm.llms import resolve
from formal_llm.llms.doubles import TURNS, ScriptedLLM
from formal_llm.llms.question import CallRequest, Message
from formal_llm.llms.recorded import RecordedLLM, answer_from_data, answer_to_data
from formal_llm.llms.text_request import TextRequest, ToolOffer
from formal_llm.tools import tool
from tests.tool_server import ToolServer, make_llm

ADD = ToolOffer("add", "Adds.", {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"],
    "additionalProperties": False,
})  # fmt: skip
OPEN = ToolOffer("note", "Notes.", {"type": "object", "properties": {"text": {"type": "string"}}})
CHAT = (
    Message("system", "Be brief."),
    Message("user", "2 + 3?"),
    Message("assistant", "I add.", (CallRequest("c1", "add", '{"a": 2, "b": 3}'), CallRequest("c2", "note", "[1"))),
    Message("tool", "5", answers="c1"),
    Message("tool", "noted", answers="c2"),
    Message("user", "And again?"),
)


@pytest.fixture(params=["openai", "vllm", "llamacpp", "ollama", "anthropic"])
def served(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ToolServer, Any]]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ToolServer(lambda asked: ("Again.", [("add", {"a": 4, "b": 5}), ("note", {"text": "é"})])) as server:
        yield server, make_llm(request.param, server)


def get_calls(made: Generated) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in made.calls]


EXPECTED = [("add", {"a": 4, "b": 5}), ("note", {"text": "é"})]


def test_turns_are_taken_whole_streamed_and_awaited(served: tuple[ToolServer, Any]) -> None:
    server, llm = served
    assert isinstance(llm, ToolCallingLLM) and hasattr(llm, "stream_turn")

    async def both() -> tuple[Generated, list[Any]]:
        whole = await llm.aask(TextRequest(CHAT, tools=[ADD, OPEN], must_call=True))
        return whole, [part async for part in llm.astream(TextRequest(CHAT, tools=[ADD, OPEN]))]

    whole = llm.ask(TextRequest(CHAT, tools=[ADD, OPEN], must_call=True))
    awaited, astreamed = asyncio.run(both())
    streamed = list(llm.stream(TextRequest(CHAT, tools=[ADD, OPEN])))
    for made in (whole, awaited, streamed[-1], astreamed[-1]):
        assert made.text == "Again." and get_calls(made) == EXPECTED and made.stopped == ""
        assert len({call.id for call in made.calls}) == 2 and made.usage.input_tokens == server.asked[0].read
    assert "".join(streamed[:-1]) == "".join(astreamed[:-1]) == "Again." and len(streamed) > 2
    for asked, must in zip(server.asked, (True, True, False, False), strict=True):
        assert asked.tools == ["add", "note"] and asked.results == ["5", "noted"]
        assert asked.must_call == must


def test_a_chat_with_calls_may_be_continued_without_tools(served: tuple[ToolServer, Any]) -> None:
    server, llm = served
    server.model = lambda asked: ("Fine.", [])
    assert llm.ask(TextRequest(CHAT, tools=[])).text == "Fine." and server.asked[0].tools == []


def test_schemas_are_strict_where_they_are_closed(served: tuple[ToolServer, Any]) -> None:
    server, llm = served
    llm.ask(TextRequest("2 + 3?", tools=[ADD, OPEN]))
    tools = server.asked[0].body["tools"]
    strict = [one.get("strict", one.get("function", {}).get("strict")) for one in tools]
    assert strict == [None if llm.name in ("anthropic:m", "ollama:m") else True, None]  # not all know them
    shown = [one.get("input_schema", one.get("function", {}).get("parameters")) for one in tools]
    assert [one["properties"] for one in shown] == [one.parameters["properties"] for one in (ADD, OPEN)]
    assert shown[0]["required"] == ["a", "b"] and "required" not in shown[1]


def test_a_chat_that_the_provider_refuses_is_an_error(served: tuple[ToolServer, Any]) -> None:
    _, llm = served
    with pytest.raises(ProviderError, match="the request was refused"):
        llm.ask(TextRequest(CHAT[:3], tools=[ADD]))


@pytest.mark.parametrize("streaming", [False, True])
def test_an_agent_runs_on_every_provider(served: tuple[ToolServer, Any], streaming: bool) -> None:
    server, llm = served

    @tool
    def add(a: int, b: int = 1) -> int:
        """Adds two numbers."""
        return a + b

    def model(asked):  # type: ignore[no-untyped-def]
        if len(asked.results) < 2:
            return "", [("add", {"a": len(asked.results), "b": None}), ("pay", {})][: 1 + len(asked.results)]
        return f"{asked.results}", []

    server.model = model
    agent = Agent("react", llm, [add], native=True, streaming=streaming)
    made = agent.run("q")
    assert made.answer == "['1', '2']" and made.usage.requests == 3
    assert [one.written for one in made.corrections] == ["pay"]  # it was called beside a legal one
    assert asyncio.run(agent.arun("q")).segments == made.segments


def test_turns_are_cached_recorded_and_kept_as_data(tmp_path: Any) -> None:
    turns = ("I add.", [("add", {"a": 2, "b": 3})])
    llm = ScriptedLLM(texts=[turns], can=TURNS)
    with RecordedLLM(llm, tmp_path / "c.sqlite", name="s") as kept:
        assert isinstance(kept, ToolCallingLLM)
        first, second = kept.ask(TextRequest(CHAT, tools=[ADD])), kept.ask(TextRequest(CHAT, tools=[ADD]))
        assert first.calls == second.calls != () and len(llm.requests) == 1
    answer = ScriptedLLM(texts=[turns], can=TURNS).ask(TextRequest("q", tools=[ADD]))
    assert answer_from_data(answer_to_data(answer)) == answer
    for damaged in ({"calls": "x"}, {"calls": [["a", "b"]]}, {"calls": [[1, "b", "c"]]}, {"stopped": 1}):
        with pytest.raises(ValueError, match=r"calls|call|stopped"):
            answer_from_data({"numbers": [], **damaged})


def test_turns_are_values() -> None:
    assert (
        TextRequest("q", tools=[ADD]) == TextRequest("q", tools=[ADD]) != TextRequest("q", tools=[ADD], must_call=True)
    )
    assert TextRequest("q", tools=[ADD]).content != TextRequest("q", tools=[OPEN]).content
    assert TextRequest("q", tools=[ADD]).way(resolve("test:first")) is None


def test_a_message_with_tools_is_a_value_and_a_pair() -> None:
    one = Message("assistant", "x", [CallRequest("1", "add", "{}")])
    role, content = one
    assert (role, content) == ("assistant", "x") and one.calls and one != Message("assistant", "x") != one
    assert Message("user", "x") == Message("user", "x") and len({one, pickle.loads(pickle.dumps(one))}) == 1
    assert Message("tool", "5", answers="1") != Message("tool", "5", answers="2")
