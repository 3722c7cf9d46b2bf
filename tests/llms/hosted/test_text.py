"""Free text and objects from all adapters that write, through the real SDKs, against the local server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from formal_llm.errors import InvalidAnswer, ProviderError
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.generation import Generated, ObjectLLM, StreamingLLM, TextLLM
from formal_llm.llms.hosted.text_request import TextRequest
from formal_llm.llms.objects import generate_object
from formal_llm.llms.question import Message
from formal_llm.llms.schemas import closed, portable
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import BY_NAME, Adapter, each_adapter

Made = Callable[..., Any]


#: OpenAI's decisions endpoint writes nothing, but its models are also asked through chat completions.
PATHS = {"openai-decisions": "/v1/chat/completions"}


@each_adapter
def test_a_text(adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.text("Step 1: Use Colorization")]
    llm = made(adapter)
    assert isinstance(llm, TextLLM)
    written = llm.generate("What is its solution?", max_tokens=99)
    assert replace(written, ended=None) == Generated("Step 1: Use Colorization", adapter.one)
    assert server.paths == [PATHS.get(adapter.name, adapter.path)]
    (body,) = server.bodies
    assert body["model"] == "test-model"
    assert body["messages"][-1]["role"] == "user"
    # Nothing holds the model to anything.
    assert not {"response_format", "structured_outputs", "grammar", "format", "tools", "output_config"} & set(body)
    limits = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    assert 99 in [*limits, body.get("options", {}).get("num_predict")]


@each_adapter
def test_a_chat_with_a_stop(adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    # A server that does not know stops writes on.
    server.script = [ps.text("Step 1: a\nProblem: another")]
    messages = [Message("system", "Be brief."), Message("user", "1"), Message("assistant", "2"), Message("user", "3")]
    written = made(adapter).generate(messages, stop=["Problem:", "never"])
    assert written.text == "Step 1: a\n"
    (body,) = server.bodies
    said = json.dumps(body)
    for text in ("Be brief.", "Problem:", '"3"'):
        assert text in said


def test_what_is_sent_to_openai(made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.text("a")]
    made(BY_NAME["openai-chat"]).generate("b", stop=["c"])
    assert server.bodies == [
        {
            "model": "test-model",
            "messages": [{"role": "user", "content": "b"}],
            "max_completion_tokens": 512,
            "temperature": 0.0,
            "stop": ["c"],
        }
    ]


def test_what_is_sent_to_anthropic(made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.text("a")]
    made(BY_NAME["anthropic-schema"]).generate("b", stop=["c"])
    # No temperature: the call of the SDK has none.
    assert server.bodies == [
        {
            "model": "test-model",
            "messages": [{"role": "user", "content": "b"}],
            "max_tokens": 512,
            "stop_sequences": ["c"],
        }
    ]


def test_a_model_that_takes_no_temperature_and_no_stop(made: Made, server: ps.ProtocolServer) -> None:
    server.script = [
        ps.failing(400, message="Unsupported value: 'temperature' does not support 0"),
        ps.failing(400, message="Unsupported parameter: 'stop' is not supported with this model."),
        ps.text("one; two"),
    ]
    with pytest.warns(UserWarning, match="takes no temperature"):
        assert made(BY_NAME["openai-chat"]).generate("x", stop=[";"]).text == "one"
    assert "temperature" not in server.bodies[1]
    assert "stop" not in server.bodies[2]


@pytest.mark.parametrize(
    "behaviour", [ps.failing(400), ps.failing(401), ps.failing(500), ps.CUT, ps.HTML, ps.BROKEN_JSON]
)
def test_no_text_comes(behaviour: ps.Behaviour, adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    server.script = [behaviour]
    with pytest.raises(ProviderError):
        made(adapter).generate("x")
    assert len(server.bodies) == 1


def test_no_words(adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.EMPTY, ps.TRUNCATED]
    assert made(adapter).generate("x").text == ""
    assert made(adapter).generate("x").text == '{"choi'


def test_a_refusal_is_what_is_said(made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.REFUSAL]
    assert made(BY_NAME["openai-chat"]).generate("x").text == "I can't help with that."


def test_nothing_to_write(made: Made) -> None:
    with pytest.raises(ValueError, match="nothing"):
        made(BY_NAME["openai-chat"]).generate([])
    with pytest.raises(ValueError, match="token"):
        made(BY_NAME["openai-chat"]).generate("x", max_tokens=0)


def test_who_writes_nothing() -> None:
    assert not isinstance(BuiltinLLM(), TextLLM)


# -- objects ----------------------------------------------------------------------------------------------------------

SCHEMA = closed({"tool": {"enum": ["a", "b"]}, "task": {"type": "string", "maxLength": 9}})
SENT = portable(SCHEMA)
HELD: dict[str, Callable[[dict[str, Any]], Any]] = {
    "openai-chat": lambda body: body["response_format"]["json_schema"]["schema"],
    "openai-decisions": lambda body: body["response_format"]["json_schema"]["schema"],
    "anthropic-schema": lambda body: body["output_config"]["format"]["schema"],
    "anthropic-tool": lambda body: body["tools"][0]["input_schema"],
    "vllm": lambda body: body["structured_outputs"]["json"],
    "llamacpp": lambda body: body["response_format"]["schema"],
    "ollama": lambda body: body["format"],
}


@each_adapter
def test_an_object(adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.text('{"tool": "a", "task": "go"}')]
    llm = made(adapter)
    assert isinstance(llm, ObjectLLM)
    written = llm.generate_object("Which tool?", SCHEMA, max_tokens=99)
    assert written.value == {"tool": "a", "task": "go"} and written.usage == adapter.one
    (body,) = server.bodies
    assert HELD[adapter.name](body) == SENT
    assert "99" in json.dumps(body)


def test_an_object_as_the_input_of_a_tool(made: Made, server: ps.ProtocolServer) -> None:
    def used(*inputs: object) -> ps.Behaviour:
        blocks = [{"type": "tool_use", "id": "1", "name": "choose", "input": one} for one in inputs]
        return ps.text("", changes={"content": blocks})

    good = {"tool": "b", "task": ""}
    server.script = [used(good), used(good, good)]
    llm = made(BY_NAME["anthropic-tool"])
    assert llm.generate_object("x", SCHEMA).value == good
    assert server.bodies[0]["tool_choice"] == {"type": "tool", "name": "choose", "disable_parallel_tool_use": True}
    with pytest.raises(InvalidAnswer, match="no whole JSON object"):
        llm.generate_object("x", SCHEMA)


@pytest.mark.parametrize(
    "behaviour", [ps.TRUNCATED, ps.EMPTY, ps.text('{"tool": "c", "task": ""}'), ps.text('{"tool": "a"}')]
)
def test_a_provider_is_not_trusted(
    behaviour: ps.Behaviour, adapter: Adapter, made: Made, server: ps.ProtocolServer
) -> None:
    server.script = [behaviour, ps.text('{"tool": "a", "task": "far too long"}'), behaviour]
    with pytest.raises(InvalidAnswer) as caught:
        made(adapter).generate_object("x", SCHEMA)
    assert caught.value.usage == adapter.one
    with pytest.raises(InvalidAnswer) as caught:
        generate_object(made(adapter), "x", SCHEMA)
    assert caught.value.usage == adapter.one + adapter.one and len(server.bodies) == 3
    assert "at most 9 are wanted" in json.dumps(server.bodies[2]["messages"])


@each_adapter
def test_no_object_comes(adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.failing(400, message="structured output is not known")]
    with pytest.raises(ProviderError):
        made(adapter).generate_object("x", SCHEMA)
    with pytest.raises(ValueError, match="asked for an object"):
        made(adapter).generate_object("x", {"type": "string"})
    assert len(server.bodies) == 1


@each_adapter
def test_a_text_piece_by_piece(adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.text("Use Colorization; then stop")] * 2
    llm = made(adapter)
    assert isinstance(llm, StreamingLLM)
    *pieces, last = llm.stream("What is its solution?", max_tokens=99)
    assert len(pieces) > 5
    assert "".join(pieces) == last.text == "Use Colorization; then stop"
    assert last.usage == adapter.one
    assert server.bodies[0]["stream"] is True
    assert server.headers[0]["accept-encoding"] == "identity"
    *pieces, last = llm.stream("What is its solution?", stop=["; t", "never"])
    assert "".join(pieces) == last.text == "Use Colorization"
    assert last.ended == "; t"


@each_adapter
def test_awaited_it_is_the_same(adapter: Adapter, made: Made, server: ps.ProtocolServer, loop: asyncio.Runner) -> None:
    said = ps.text("Use Colorization; then stop")
    server.script = [said] * 4
    llm = made(adapter)
    assert loop.run(llm.agenerate("x", stop=["; t"])) == llm.generate("x", stop=["; t"])

    async def listed() -> list[Any]:
        return [came async for came in llm.astream("x", stop=["; t"])]

    assert loop.run(listed()) == list(llm.stream("x", stop=["; t"]))
    waited, awaited = server.bodies[1::2], server.bodies[::2]
    assert waited == awaited
    server.script = [ps.text('{"tool": "a", "task": "t"}')] * 2
    assert loop.run(llm.agenerate_object("x", SCHEMA)) == llm.generate_object("x", SCHEMA)


def test_an_awaited_stream_that_is_closed_is_not_read_on(
    adapter: Adapter, made: Made, server: ps.ProtocolServer, loop: asyncio.Runner
) -> None:
    async def first(llm: Any) -> Any:
        async with aclosing(llm.astream("x")) as stream:
            return await anext(stream)

    server.script = [ps.text("so " * 10_000), ps.text("again")]
    llm = made(adapter)
    assert loop.run(first(llm)) == "so"
    assert loop.run(llm.agenerate("x")).text == "again"


def test_an_awaited_stream_is_bounded(server: ps.ProtocolServer, loop: asyncio.Runner) -> None:
    async def listed(llm: Any) -> list[Any]:
        return [came async for came in llm.astream("x")]

    llm = BY_NAME["vllm"].make(server.url, max_bytes=2_000)
    server.script = [ps.text("so " * 5_000), ps.Behaviour(page=b"x" * 5_000, headers={"content-encoding": "gzip"})]
    with pytest.raises(ProviderError, match="larger than 2,000 bytes"):
        loop.run(listed(llm))
    with pytest.raises(ProviderError, match="compresses"):
        loop.run(listed(llm))
    slow = BY_NAME["vllm"].make(server.url, deadline=0.2)
    server.script = [ps.text("so " * 50, drip=0.05)]
    with pytest.raises(ProviderError, match=r"within 0\.2 seconds"):
        loop.run(listed(slow))
    for one in (llm, slow):
        loop.run(one.aclose())
        one.client.close()


def test_a_stream_that_is_closed_is_not_read_on(adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.text("so " * 10_000), ps.text("again")]
    llm = made(adapter)
    stream = llm.stream("x")
    assert next(stream) == "so"
    stream.close()
    assert llm.generate("x").text == "again"


@pytest.mark.parametrize(
    "behaviour",
    [ps.failing(400), ps.failing(500), ps.CUT, ps.Behaviour(page="data: {\n\n"), ps.text("abc", cut_body=40)],
)
def test_no_stream_comes(behaviour: ps.Behaviour, adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    server.script = [behaviour]
    with pytest.raises(ProviderError):
        list(made(adapter).stream("x"))


def test_a_stream_is_bounded(server: ps.ProtocolServer) -> None:
    llm = BY_NAME["vllm"].make(server.url, max_bytes=2_000)
    server.script = [ps.text("so " * 5_000), ps.Behaviour(page=b"x" * 5_000, headers={"content-encoding": "gzip"})]
    with pytest.raises(ProviderError, match="larger than 2,000 bytes"):
        list(llm.stream("x"))
    with pytest.raises(ProviderError, match="compresses"):
        list(llm.stream("x"))
    slow = BY_NAME["vllm"].make(server.url, deadline=0.2)
    server.script = [ps.text("so " * 50, drip=0.05)]
    with pytest.raises(ProviderError, match=r"within 0\.2 seconds"):
        list(slow.stream("x"))
    llm.client.close()
    slow.client.close()


REQUEST = TextRequest((Message("user", "x"),), 9, ("a",), 0.5)
