"""Going on with a text, through the real SDK, against the local server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from formal_llm.errors import ProviderError
from formal_llm.llms.awaited import AsyncContinuingLLM, AsyncStreamingContinuingLLM
from formal_llm.llms.generation import CUT_OFF, ContinuingLLM, Generated, StreamingContinuingLLM
from formal_llm.llms.usage import TokenUsage
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted import protocols
from tests.llms.hosted.adapters import ADAPTERS, BY_NAME, Adapter

Made = Callable[..., Any]
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
    assert isinstance(llm, ContinuingLLM) and isinstance(llm, AsyncContinuingLLM)
    assert isinstance(llm, StreamingContinuingLLM) and isinstance(llm, AsyncStreamingContinuingLLM)
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


def test_llama_cpp_of_old_has_a_truth_value_for_each_end(made: Made, server: ps.ProtocolServer) -> None:
    for told, ended in [("stopped_eos", ""), ("stopped_limit", None), ("stopped_word", "c")]:
        changes = {"stop_type": None, "stopping_word": "c", told: True}
        server.script = [ps.text("a", changes=changes)]
        assert made(LLAMACPP).continue_text("x", stop=["c"]).ended == ended


def test_the_server_of_llama_cpp_python(server: ps.ProtocolServer) -> None:
    """It has no /completion and does not tell which stop it was: stops are cut off here, where they are seen."""
    server.script = [ps.failing(404), ps.text("a [Obs] b"), ps.text("a [Obs] b")]
    llm = LLAMACPP.make(server.url)
    assert ways(llm, "x", stop=["[Obs]"]).ended == "[Obs]"
    assert server.paths == ["/completion", "/v1/completions", "/v1/completions"]
    assert "stop" not in server.bodies[2]
    llm.client.close()


@BOTH
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
