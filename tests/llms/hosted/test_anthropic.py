"""What is special to models of Anthropic: two guarantees, prompt caching, credentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from formal_llm.errors import InvalidAnswer, ProviderError
from formal_llm.llms.hosted.anthropic import AnthropicLLM
from formal_llm.llms.question import Message, Question
from formal_llm.llms.usage import TokenUsage
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import ADAPTERS

MakeQuestion = Callable[..., Question]
Made = Callable[..., Any]
SCHEMA, TOOL = (adapter for adapter in ADAPTERS if adapter.module == "anthropic")

CHOICE = {
    "type": "object",
    "properties": {"choice": {"type": "integer", "enum": [1, 2, 3]}},
    "required": ["choice"],
    "additionalProperties": False,
}
KEPT = {"type": "ephemeral"}
CHAT = {
    "model": "test-model",
    "max_tokens": 8192,
    # What later questions have in common with this one is cached: up to here, and up to the last message before it.
    "system": [{"type": "text", "text": "Be brief.", "cache_control": KEPT}],
    "messages": [
        {"role": "user", "content": "1: a"},
        {"role": "assistant", "content": [{"type": "text", "text": "1", "cache_control": KEPT}]},
        {"role": "user", "content": "Which one?"},
    ],
}


def test_what_is_sent_with_a_schema(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2)]
    made(SCHEMA).choose(make_question())
    # The whole body: no sampling parameter, no system message among the messages, nothing begun for the assistant.
    assert server.bodies == [{**CHAT, "output_config": {"format": {"type": "json_schema", "schema": CHOICE}}}]


@pytest.mark.parametrize("usage", [None, {}])
def test_a_response_without_usage(
    usage: object, server: ps.ProtocolServer, made: Made, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(2, changes={"usage": usage})]
    answer = made(SCHEMA).choose(make_question())
    assert (answer.number, answer.usage) == (2, TokenUsage(1))


def test_what_is_sent_with_a_tool(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2)]
    answer = made(TOOL).choose(make_question())
    assert answer.text == '{"choice": 2}'
    tools = server.bodies[0].pop("tools")
    assert server.bodies == [
        {**CHAT, "tool_choice": {"type": "tool", "name": "choose", "disable_parallel_tool_use": True}}
    ]
    assert [{**tool, "description": ""} for tool in tools] == [
        {"name": "choose", "description": "", "input_schema": CHOICE, "strict": True}
    ]


def test_a_tool_that_is_used_wrongly(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    def use(**given: Any) -> dict[str, Any]:
        return {"type": "tool_use", "id": "t", "name": "choose", "input": given}

    for content in (
        [use(choice=2), use(choice=2)],
        [use()],
        [use(choice="2")],
        [use(choice=4)],
        [{**use(choice=2), "name": "x"}],
    ):
        server.script = [ps.ok(2, changes={"content": content})]
        with pytest.raises(InvalidAnswer) as caught:
            made(TOOL).choose(make_question())
        assert caught.value.usage == TOOL.one


def test_settings(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2), ps.ok(2)]
    made(SCHEMA, effort="low", cache="1h", max_tokens=500).choose(make_question())
    assert server.bodies[0]["output_config"]["effort"] == "low"
    assert server.bodies[0]["max_tokens"] == 500
    assert server.bodies[0]["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    llm = made(SCHEMA, cache=None)
    llm.choose(make_question())
    assert "cache_control" not in str(server.bodies[1])
    # Caching changes the price of an answer, not the answer.
    assert llm.identity == {
        "llm": "anthropic:test-model", "address": server.url, "method": "schema", "max_tokens": 8192,
    }  # fmt: skip
    for wrong in ({"method": "json"}, {"cache": "2h"}):
        with pytest.raises(ValueError, match="method is"):
            AnthropicLLM("test-model", api_key="x", **wrong)  # type: ignore[arg-type]


def test_nothing_to_cache(server: ps.ProtocolServer, made: Made) -> None:
    server.script = [ps.ok(1), ps.ok(1)]
    made(SCHEMA).choose(Question("Which one?", ["red", "green"]))
    assert "system" not in server.bodies[0]
    # An empty text cannot be marked.
    made(SCHEMA).choose(
        Question("Which one?", ["red", "green"], messages=[Message("user", " "), Message("assistant", "")])
    )
    assert "cache_control" not in str(server.bodies)


def test_more_than_can_be_waited_for(server: ps.ProtocolServer, make_question: MakeQuestion) -> None:
    llm = AnthropicLLM("test-model", base_url=server.url, api_key="x", max_tokens=100_000)
    with pytest.raises(ProviderError, match="Streaming is required"):
        llm.choose(make_question())
    llm.client.close()


@pytest.mark.usefixtures("no_credentials")
def test_a_credential_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_PROFILE", "there-is-none")
    with pytest.raises(ProviderError, match="anthropic:test-model") as caught:
        AnthropicLLM("test-model")
    assert isinstance(caught.value.cause, anthropic.AnthropicError)


@pytest.mark.usefixtures("no_credentials")
def test_a_token_instead_of_a_key(
    monkeypatch: pytest.MonkeyPatch, server: ps.ProtocolServer, make_question: MakeQuestion, loop: Any
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "a-token")
    llm = AnthropicLLM("test-model", base_url=server.url)
    server.script = [ps.ok(1), ps.ok(1)]
    llm.choose(make_question())
    loop.run(llm.achoose(make_question()))
    loop.run(llm.aclose())
    llm.client.close()
    assert [headers["authorization"] for headers in server.headers] == ["Bearer a-token"] * 2
