"""Requests for texts, and how they are answered: whole, piece by piece, awaited; by servers, too."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from formal_llm import Answer, RandomLLM
from formal_llm.agents import Agent
from formal_llm.errors import InvalidAnswer, ProviderError, WritesNoText
from formal_llm.llms import LLM, FunctionLLM, ScriptedLLM, TextRequest
from formal_llm.llms.doubles import TEXTS, TURNS
from formal_llm.llms.question import CallRequest, Message
from formal_llm.llms.recorded import answer_from_data, answer_to_data
from formal_llm.llms.schemas import closed
from formal_llm.llms.text_request import TextGrammar, ToolOffer, chat
from formal_llm.tools import tool
from tests.tool_server import ToolServer, make_llm


def test_a_request_for_text_is_a_question_without_options() -> None:
    asked = TextRequest([Message("system", "s"), Message("user", "u")], max_tokens=9, stop=["x"], walk="7")
    assert asked.options == () and asked.prompt == "u" and asked.walk == "7" and asked.again("x") is asked
    assert [message.content for message in asked.messages] == ["s", "u"] and chat("a") == (Message("user", "a"),)
    assert asked.check("any text").text == "any text"
    with pytest.raises(InvalidAnswer, match="int is no text"):
        asked.check(3)
    with pytest.raises(ValueError, match="nothing to go on from"):
        TextRequest([])
    assert TextRequest("u", max_tokens=9).content["writes"] == {"max_tokens": 9, "stop": [], "temperature": 0.0}


ADD = ToolOffer("add", "Adds.", {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"],
    "additionalProperties": False,
})  # fmt: skip
OPEN = ToolOffer("note", "Notes.", {"type": "object", "properties": {"text": {"type": "string"}}})
SCHEMA = closed({"a": {"type": "integer"}})


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, "write"), ({"max_tokens": 9}, "write"), ({"stop": ["x"]}, "write"), ({"temperature": 1.0}, "write"),
        ({"continues": True}, "continue"), ({"schema": SCHEMA}, "object"), ({"role": "planner"}, "write"),
        ({"grammar": TextGrammar("l", "g")}, "grammar"), ({"tools": []}, "call"), ({"tools": [ADD]}, "call"),
        ({"tools": [ADD], "must_call": True}, "call"),
    ],
)  # fmt: skip
def test_requests_are_values_that_are_told_apart(settings: dict[str, Any], kind: str) -> None:
    asked, plain = TextRequest("u", **settings), TextRequest("u")
    assert pickle.loads(pickle.dumps(asked)) == asked == plain.replace(**settings) and asked.kind == kind
    assert (asked == plain) == (asked.content == plain.content) == (not settings)
    with pytest.raises(WritesNoText, match="RandomLLM writes no free text"):
        RandomLLM().ask(asked)


def test_a_message_is_a_value() -> None:
    one = Message("assistant", "x", (CallRequest("1", "add", "{}"),))
    assert one != Message("assistant", "x") and len({one, pickle.loads(pickle.dumps(one))}) == 1
    assert Message("tool", "5", answers="1") != Message("tool", "5", answers="2")
    assert Message("user", "x").to_data() == {"role": "user", "content": "x"}


# -- streams ----------------------------------------------------------------------------------------------------------


async def collect(llm: LLM) -> list[object]:
    return [part async for part in llm.astream(TextRequest("u"))]


def test_a_text_comes_piece_by_piece_or_in_one_piece() -> None:
    async def written(_: object) -> str:
        return "abc"

    whole = FunctionLLM(lambda _: "abcde", can=TEXTS, piece=2)
    answer = whole.ask(TextRequest("u"))
    assert list(whole.stream(TextRequest("u"))) == asyncio.run(collect(whole)) == ["ab", "cd", "e", answer]
    for function in (written, lambda _: "abc"):
        one = FunctionLLM(function, can=TEXTS, piece=9)
        assert list(one.stream(TextRequest("u"))) == asyncio.run(collect(one)) == ["abc", one.ask(TextRequest("u"))]

    class Silent(LLM):
        can = frozenset({"write"})

        def answer(self, request: TextRequest) -> str:
            return ""

    assert list(Silent().stream(TextRequest("u"))) == asyncio.run(collect(Silent())) == [Answer((), text="")]
    with pytest.raises(WritesNoText):
        asyncio.run(collect(RandomLLM()))


def test_whoever_has_enough_closes_it() -> None:
    closed_now: list[bool] = []

    class Closing(FunctionLLM):
        def stream(self, request: TextRequest) -> Any:
            try:
                yield from super().stream(request)
            finally:
                closed_now.append(True)

    async def first() -> object:
        async with aclosing(Closing(lambda _: "abcdef", can=TEXTS).astream(TextRequest("u"))) as coming:
            return await anext(coming)

    assert asyncio.run(first()) == "abc" and closed_now == [True]


# -- turns with tools: real clients of three protocols against a server on this machine ------------------------------

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


def get_calls(made: Answer) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in made.calls]


EXPECTED = [("add", {"a": 4, "b": 5}), ("note", {"text": "é"})]


def test_turns_are_taken_whole_streamed_and_awaited(served: tuple[ToolServer, Any]) -> None:
    server, llm = served
    must, may = TextRequest(CHAT, tools=[ADD, OPEN], must_call=True), TextRequest(CHAT, tools=[ADD, OPEN])

    async def both() -> tuple[Answer, list[Any]]:
        return await llm.aask(must), [part async for part in llm.astream(may)]

    whole = llm.ask(must)
    awaited, astreamed = asyncio.run(both())
    streamed = list(llm.stream(may))
    for made in (whole, awaited, streamed[-1], astreamed[-1]):
        assert made.text == "Again." and get_calls(made) == EXPECTED and made.stopped == ""
        assert len({call.id for call in made.calls}) == 2 and made.usage.input_tokens == server.asked[0].read
    assert "".join(streamed[:-1]) == "".join(astreamed[:-1]) == "Again." and len(streamed) > 2
    for asked, must_call in zip(server.asked, (True, True, False, False), strict=True):
        assert asked.tools == ["add", "note"] and asked.results == ["5", "noted"]
        assert asked.must_call == must_call


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


def test_turns_are_kept_as_data() -> None:
    llm = ScriptedLLM(texts=[("I add.", [("add", {"a": 2, "b": 3})])], can=TURNS)
    answer = llm.ask(TextRequest("q", tools=[ADD]))
    assert answer.calls and answer_from_data(answer_to_data(answer)) == answer
    for damaged in ({"calls": "x"}, {"calls": [["a", "b"]]}, {"calls": [[1, "b", "c"]]}, {"stopped": 1}):
        with pytest.raises(ValueError, match=r"calls|call|stopped"):
            answer_from_data({"numbers": [], **damaged})
