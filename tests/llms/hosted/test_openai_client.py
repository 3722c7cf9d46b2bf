"""How all adapters come by clients, keys and addresses."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from formal_llm.errors import MissingKey, ProviderError
from formal_llm.llms.generation import CUT_OFF, ContinuingLLM, Generated, StreamingContinuingLLM
from formal_llm.llms.llm import resolve
from formal_llm.llms.question import Question
from formal_llm.llms.usage import TokenUsage
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted import protocols
from tests.llms.hosted.adapters import ADAPTERS, BY_NAME, Adapter, each_adapter

MakeQuestion = Callable[..., Question]
Choose = Callable[[Any, Question], Any]
Made = Callable[..., Any]


def test_a_client_brings_its_own_settings(adapter: Adapter, server: ps.ProtocolServer) -> None:
    with sdk_client(adapter, server) as client, pytest.raises(ValueError, match="brings its own timeout, max_retries"):
        adapter.type("test-model", client=client, timeout=3, max_retries=1)  # type: ignore[call-arg]


def sdk_client(adapter: Adapter, server: ps.ProtocolServer, *, awaited: bool = False, **more: Any) -> Any:
    sdk = importlib.import_module(adapter.sdk)
    name = {"openai": "OpenAI", "anthropic": "Anthropic"}[adapter.sdk]
    kind = getattr(sdk, f"Async{name}" if awaited else name)
    settings = {"base_url": server.url + adapter.prefix, "api_key": "of-the-user", "max_retries": 0, "timeout": 7}
    return kind(**{**settings, **more})


def test_a_client_of_the_users_is_mirrored(
    adapter: Adapter, choose: Choose, server: ps.ProtocolServer, make_question: MakeQuestion, loop: asyncio.Runner
) -> None:
    with sdk_client(adapter, server, default_headers={"x-team": "blue"}) as client:
        llm = adapter.type("test-model", client=client, **adapter.arguments)
        assert llm.client is client
        server.script = [ps.failing(500), ps.ok(2)]
        with pytest.raises(ProviderError):
            choose(llm, make_question())
        assert choose(llm, make_question()).number == 2
        loop.run(llm.aclose())
    assert server.headers[1]["authorization"] == "Bearer of-the-user"
    assert server.headers[1]["x-team"] == "blue"
    assert server.headers[1]["x-stainless-read-timeout"] == "7"


def test_an_async_client_of_the_users_is_used_and_left_open(
    adapter: Adapter, server: ps.ProtocolServer, make_question: MakeQuestion, loop: asyncio.Runner
) -> None:
    async def use() -> None:
        async with sdk_client(adapter, server, awaited=True) as client:
            llm = adapter.type("test-model", async_client=client, **adapter.arguments)
            assert (await llm.achoose(make_question())).number == 2
            await llm.aclose()
            assert not client.is_closed()
            # And mirrored for those who wait.
            assert llm.choose(make_question()).number == 2
            llm.client.close()

    server.script = [ps.ok(2), ps.ok(2)]
    loop.run(use())
    assert [headers["authorization"] for headers in server.headers] == ["Bearer of-the-user"] * 2


def test_a_client_that_cannot_be_mirrored_says_so(
    adapter: Adapter, server: ps.ProtocolServer, make_question: MakeQuestion, loop: asyncio.Runner
) -> None:
    sdk = importlib.import_module(adapter.sdk)
    with sdk_client(adapter, server, http_client=sdk.DefaultHttpxClient()) as client:
        llm = adapter.type("test-model", client=client, **adapter.arguments)
        server.script = [ps.ok(2)]
        assert llm.choose(make_question()).number == 2
        with pytest.raises(TypeError, match="give both client and async_client"):
            loop.run(llm.achoose(make_question()))


@pytest.mark.usefixtures("no_credentials")
@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_missing_key(key: str | None, adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "not for this")
    if key is not None:
        monkeypatch.setenv(adapter.key, key)
    with pytest.raises(MissingKey, match=f"{adapter.provider}.*{adapter.key}.*'builtin'") as caught:
        resolve(adapter.provider)
    assert caught.value.variable == adapter.key


@pytest.mark.usefixtures("no_credentials")
@each_adapter
def test_key_and_address_from_the_environment(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    monkeypatch.setenv(adapter.key, "from-the-environment")
    monkeypatch.setenv(adapter.url, server.url + adapter.prefix)
    server.script = [ps.ok(3)]
    llm: Any = resolve(adapter.provider) if not adapter.arguments else adapter.type("test-model", **adapter.arguments)
    assert isinstance(llm, adapter.type)
    with llm.client:
        assert llm.choose(make_question()).number == 3
    assert server.headers[0]["authorization"] == "Bearer from-the-environment"


@pytest.mark.usefixtures("no_credentials")
@pytest.mark.parametrize("adapter", [adapter for adapter in ADAPTERS if not adapter.needs_key], ids=str)
def test_a_local_server_needs_no_key_and_gets_none(
    adapter: Adapter,
    choose: Choose,
    monkeypatch: pytest.MonkeyPatch,
    server: ps.ProtocolServer,
    make_question: MakeQuestion,
    loop: asyncio.Runner,
) -> None:
    # Nothing that is meant for OpenAI goes to somebody else's server.
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", f"secret {name}")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-secret: secret\nAuthorization: Bearer secret")
    server.script = [ps.ok(3)]
    llm: Any = adapter.type("test-model", base_url=server.url + adapter.prefix)
    assert choose(llm, make_question()).number == 3
    loop.run(llm.aclose())
    llm.client.close()
    assert "authorization" not in server.headers[0]
    assert not [name for name, value in server.headers[0].items() if "secret" in value]


VLLM, LLAMACPP, OLLAMA = BY_NAME["vllm"], BY_NAME["llamacpp"], BY_NAME["ollama"]
BOTH = pytest.mark.parametrize("adapter", [VLLM, LLAMACPP], ids=str, indirect=True)
ONE = TokenUsage(1, protocols.INPUT_TOKENS, protocols.OUTPUT_TOKENS)


def ways(llm: Any, prompt: str, loop: asyncio.Runner | None = None, **how: Any) -> Generated:
    """What comes after a text; piece by piece it is the same, and awaited, too."""
    *pieces, last = llm.stream_continuation(prompt, **how)
    assert "".join(pieces) == last.text
    whole = llm.continue_text(prompt, **how)
    assert last == whole
    if loop is not None:
        assert loop.run(llm.acontinue_text(prompt, **how)) == whole
        assert loop.run(listed(llm.astream_continuation(prompt, **how))) == [*pieces, last]
    return whole


async def listed(coming: AsyncIterator[Any]) -> list[Any]:
    return [came async for came in coming]


@BOTH
@pytest.mark.parametrize(
    ("said", "stop", "expected"),
    [
        (ps.text(" it up."), (), Generated(" it up.", ONE, "")),
        (ps.text(" it up. [Obs] 3 [Act]"), ("[Act]", "[Obs]"), Generated(" it up. ", ONE, "[Obs]")),
        (ps.text(" it up", stop="truncated"), ("[Obs]",), Generated(" it up", ONE, None, CUT_OFF)),
        (ps.text(""), ("[Obs]",), Generated("", ONE, "")),
    ],
)
def test_what_comes_and_what_ended_it(
    said: ps.Behaviour, stop: tuple[str, ...], expected: Generated, adapter: Adapter, made: Made,
    server: ps.ProtocolServer, loop: asyncio.Runner,
) -> None:  # fmt: skip
    server.script = [said] * 4
    llm = made(adapter)
    assert isinstance(llm, ContinuingLLM) and isinstance(llm, StreamingContinuingLLM)
    assert ways(llm, "[Thought] I look", loop, max_tokens=9, stop=stop) == expected


@pytest.mark.parametrize(
    ("said", "stop", "expected"),
    [
        (ps.text(" it up."), (), Generated(" it up.", ONE, "")),
        # What it costs the server tells at its end, which is not waited for where a stop of ours came.
        (ps.text(" it up. [Obs] 3 [Act] x y"), ("[Act]", "[Obs]"), Generated(" it up. ", TokenUsage(1), "[Obs]")),
        (ps.text(" it up", stop="truncated"), ("[Obs]",), Generated(" it up", ONE, None, CUT_OFF)),
        (ps.text(""), ("[Obs]",), Generated("", ONE, "")),
    ],
)
def test_ollama_goes_on_without_a_template(
    said: ps.Behaviour, stop: tuple[str, ...], expected: Generated, made: Made, server: ps.ProtocolServer,
    loop: asyncio.Runner,
) -> None:  # fmt: skip
    server.script = [said] * 4
    assert ways(made(OLLAMA), "[Thought] I look", loop, max_tokens=9, stop=stop) == expected
    assert server.paths == ["/api/generate"] * 4
    assert server.bodies[0] == {
        "model": "test-model", "prompt": "[Thought] I look", "raw": True, "stream": True,
        "options": {"num_predict": 9, "temperature": 0.0},
    }  # fmt: skip


def test_ollama_says_what_went_wrong_in_the_middle(made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.Behaviour(page='{"response": "a", "done": false}\n{"error": "out of memory"}\n')]
    with pytest.raises(ProviderError, match="out of memory"):
        made(OLLAMA).continue_text("x")


def test_what_is_sent(made: Made, server: ps.ProtocolServer) -> None:
    server.script = [ps.text("a"), ps.text("b")]
    made(VLLM).continue_text("x", max_tokens=9, stop=["c"])
    made(LLAMACPP).continue_text("x", max_tokens=9, stop=["c"])
    assert server.paths == ["/v1/completions", "/completion"]
    assert server.bodies == [
        {"model": "test-model", "prompt": "x", "max_tokens": 9, "temperature": 0.0, "stop": ["c"],
         "include_stop_str_in_output": True},
        {"prompt": "x", "n_predict": 9, "cache_prompt": True, "temperature": 0.0, "stop": ["c"]},
    ]  # fmt: skip


def test_a_server_that_leaves_the_stop_out_says_which_it_was(made: Made, server: ps.ProtocolServer) -> None:
    choice = {"text": "a ", "finish_reason": "stop", "stop_reason": "[Obs]"}
    server.script = [ps.text("", changes={"choices": [choice]})]
    assert made(VLLM).continue_text("x", stop=["[Obs]"]).ended == "[Obs]"


@pytest.mark.parametrize("adapter", [VLLM], ids=str, indirect=True)
@pytest.mark.parametrize(
    "behaviour", [ps.failing(400), ps.failing(500), ps.CUT, ps.HTML, ps.BROKEN_JSON, ps.Behaviour(page="{}")]
)
@pytest.mark.parametrize("streams", [False, True])
def test_no_text_comes(
    behaviour: ps.Behaviour, streams: bool, adapter: Adapter, made: Made, server: ps.ProtocolServer,
    loop: asyncio.Runner,
) -> None:  # fmt: skip
    server.script = [behaviour]
    llm = made(adapter)
    if streams and behaviour.page is not None:
        server.script = [ps.Behaviour(page="data: {\n\n")]
    with pytest.raises(ProviderError):
        list(llm.stream_continuation("x")) if streams else llm.continue_text("x")
    server.reset()
    server.script = [behaviour if not streams or behaviour.page is None else ps.Behaviour(page="data: {\n\n")]
    with pytest.raises(ProviderError):
        loop.run(listed(llm.astream_continuation("x")) if streams else llm.acontinue_text("x"))


def test_hosted_chat_models_do_not_go_on_with_a_text(made: Made) -> None:
    assert [one.name for one in ADAPTERS if isinstance(made(one), ContinuingLLM)] == [
        "vllm", "llamacpp", "ollama",
    ]  # fmt: skip
