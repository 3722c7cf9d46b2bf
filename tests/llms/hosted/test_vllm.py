"""What is special to vLLM: its structured outputs, and the probabilities of tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from formal_llm.errors import ProviderError, UnreadableResponse
from formal_llm.llms.hosted.vllm import LoRAServer
from formal_llm.llms.question import Question
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import BY_NAME
from tests.rltf.vllm_server import BASE, VLLMServer

MakeQuestion = Callable[..., Question]
Made = Callable[..., Any]
VLLM, LLAMACPP = BY_NAME["vllm"], BY_NAME["llamacpp"]
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "1: a"},
    {"role": "assistant", "content": "1"},
    {"role": "user", "content": "Which one?"},
]
ASKED = {"logprobs": True, "top_logprobs": 20}


def schema(**properties: Any) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


SOME = schema(choices={"type": "array", "items": {"type": "integer", "enum": [1, 2, 3]}, "minItems": 1, "maxItems": 3})


def number_token(**shares: float) -> dict[str, Any]:
    top = [{"token": name[1:], "logprob": math.log(share), "bytes": None} for name, share in shares.items()]
    return {**top[1], "top_logprobs": top}


@pytest.mark.parametrize("adapter", [VLLM, LLAMACPP], ids=str)
def test_probabilities_of_a_number_alone(
    adapter: Any, server: ps.ProtocolServer, made: Made, make_question: MakeQuestion
) -> None:
    # From before the constraint: most of it was never about options.
    server.script = [ps.ok(2, logprobs=[number_token(n1=0.1, n2=0.2, n3=0.1, nThe=0.6)])]
    answer = made(adapter).choose(make_question())
    assert answer.probabilities == pytest.approx({1: 0.25, 2: 0.5, 3: 0.25})


def test_vllm(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2), ps.ok(1, 2)]
    llm = made(VLLM, temperature=0.5, max_completion_tokens=9)
    llm.choose(make_question())
    llm.choose(make_question(several=True))
    same = {"model": "test-model", "messages": MESSAGES, "temperature": 0.5, "max_completion_tokens": 9}
    assert server.bodies == [
        {**same, **ASKED, "structured_outputs": {"choice": ["1", "2", "3"]}},
        {**same, "structured_outputs": {"json": SOME}},
    ]


@pytest.mark.parametrize("adapter", [VLLM, LLAMACPP], ids=str)
def test_further_fields(adapter: Any, server: ps.ProtocolServer, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2)]
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    llm = adapter.make(server.url, extra_body=extra)
    llm.choose(make_question())
    llm.client.close()
    assert server.bodies[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert llm.identity["extra_body"] == extra


TEXT = (11, 12, 13, 14)
WANTED = {TEXT: {40, 41}, (*TEXT, 40): {2, 50}, (*TEXT, 40, 50): {2}, (*TEXT, 41): {2}, (21, 22): {40}}


@pytest.fixture
def vllm() -> Iterator[VLLMServer]:
    with VLLMServer().running() as server:
        yield server


@pytest.fixture
def asked() -> Iterator[tuple[LoRAServer, ps.ProtocolServer]]:
    server = ps.ProtocolServer()
    server.start()
    yield LoRAServer(server.url, max_retries=0), server
    server.stop()


def completions(server: VLLMServer) -> list[dict[str, Any]]:
    return [body for path, body in server.asked if path == "/v1/completions"]


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_addresses_with_and_without_the_version(vllm: VLLMServer, ending: str) -> None:
    server = LoRAServer(vllm.url + ending)
    assert server.models() == {BASE: ""}
    assert server.name == f"vLLM server at {vllm.url}/v1"


def test_what_is_no_address() -> None:
    with pytest.raises(ProviderError, match="is no address of a server"):
        LoRAServer("localhost:8000")


def test_tokens_are_asked_for_by_their_numbers_what_others_go_on_from_first(vllm: VLLMServer) -> None:
    server = LoRAServer(vllm.url)
    found = server.next_tokens(BASE, WANTED)
    assert {text: set(logs) for text, logs in found.items()} == WANTED
    assert server.names_tokens is True
    first, second = completions(vllm)
    assert first["prompt"] == [[21, 22], list(TEXT)]
    assert first["logprob_token_ids"] == [40, 41]
    assert len(second["prompt"]) == 3
    assert (first["max_tokens"], first["temperature"], first["return_tokens_as_token_ids"]) == (1, 1.0, True)


@pytest.mark.parametrize("names_tokens", ["ignored", "refused"])
def test_older_servers_are_sent_the_answers_and_tell_the_same(vllm: VLLMServer, names_tokens: str) -> None:
    new = LoRAServer(vllm.url).next_tokens(BASE, WANTED)
    vllm.asked.clear()
    vllm.names_tokens = names_tokens
    server = LoRAServer(vllm.url)
    old = server.next_tokens(BASE, WANTED)
    assert {text: pytest.approx(logs, abs=1e-4) for text, logs in new.items()} == old
    assert server.names_tokens is False
    _, echo = completions(vllm)
    assert echo["echo"] is True
    assert [tuple(text) for text in echo["prompt"]] == [
        (*TEXT, 40, 2), (*TEXT, 40, 50, 2), (*TEXT, 41, 2), (21, 22, 40),
    ]  # fmt: skip
    server.next_tokens(BASE, WANTED)
    assert len(completions(vllm)) == 3  # it is not tried again


def test_a_request_names_no_more_tokens_than_a_server_takes(vllm: VLLMServer) -> None:
    wanted = {(*TEXT, first): set(range(10 * first, 10 * first + 10)) for first in range(1, 31)}
    found = LoRAServer(vllm.url).next_tokens(BASE, wanted)
    assert {text: set(logs) for text, logs in found.items()} == wanted
    sizes = [len(body["logprob_token_ids"]) for body in completions(vllm)]
    assert max(sizes) <= 128
    assert sum(sizes) == 300


def choices(*told: object) -> ps.Behaviour:
    listed = [{"index": place, "logprobs": {"top_logprobs": [top]}} for place, top in enumerate(told)]
    return ps.Behaviour(page=json.dumps({"choices": listed}))


@pytest.mark.parametrize("log", [-9999.0, 0.5, "-1", None, math.nan])
def test_what_is_no_probability_is_told(asked: tuple[LoRAServer, ps.ProtocolServer], log: object) -> None:
    server, behind = asked
    behind.script = [choices({"token_id:40": log, "token_id:41": -0.1})]
    with pytest.raises(ProviderError, match=r"how probable each answer is .* --logprobs-mode raw_logprobs"):
        server.next_tokens("m", {TEXT: {40, 41}})


@pytest.mark.parametrize(
    "page",
    [
        "{}",
        '{"choices": []}',
        '{"choices": [{"index": 0}]}',
        '{"choices": [{"index": 0, "logprobs": {}}]}',
        "<html>",
        '{"choices": [{"index": 0, "logprobs": {"top_logprobs": []}}]}',
    ],
)
def test_what_cannot_be_read(asked: tuple[LoRAServer, ps.ProtocolServer], page: str) -> None:
    server, behind = asked
    behind.script = [ps.Behaviour(page=page)]
    with pytest.raises(UnreadableResponse):
        server.next_tokens("m", {TEXT: {40}})
    behind.script = [ps.Behaviour(page=page)]
    with pytest.raises(UnreadableResponse):
        server.next_tokens("m", {TEXT: {40}})


def test_a_model_that_is_not_there_is_seen_by_its_status(vllm: VLLMServer) -> None:
    with pytest.raises(ProviderError, match="does not exist") as caught:
        LoRAServer(vllm.url).next_tokens("another", {TEXT: {40}})
    assert getattr(caught.value.cause, "status_code", None) == 404


def test_a_check_tells_whether_adapters_can_come(vllm: VLLMServer) -> None:
    LoRAServer(vllm.url).check()
    vllm.updating = False
    with pytest.raises(ProviderError, match="takes no adapters while it runs; start it with VLLM_ALLOW_RUNTIME"):
        LoRAServer(vllm.url).check()


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        (400, "LoRA is not enabled.", "started without LoRA; start it with .*--enable-lora"),
        (500, "Call to add_lora method failed: LoRA is not enabled.", "started without LoRA"),
        (400, "LoRA rank 64 is greater than max_lora_rank 16.", "start it with --max-lora-rank 64"),
        (404, "Loading lora x failed: No adapter found for /runs/x", "does not see the folder /runs/x"),
        (400, "modules_to_save is not supported", r"refuses the adapter \(status 400: modules_to_save"),
        (401, "Unauthorized", "the key was refused"),
    ],
)
def test_a_refused_adapter(status: int, message: str, said: str) -> None:
    with VLLMServer(refusing=(status, message)).running() as behind, pytest.raises(ProviderError, match=said):
        LoRAServer(behind.url, max_retries=0).load("x", "/runs/x", 64)


def test_an_adapter_that_is_gone_is_gone(vllm: VLLMServer) -> None:
    LoRAServer(vllm.url).unload("never there")
    assert vllm.asked[-1] == ("/v1/unload_lora_adapter", {"lora_name": "never there"})
