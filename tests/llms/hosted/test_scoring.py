"""How probable texts are, by servers that tell it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from formal_llm.errors import ProviderError, UnreadableResponse
from formal_llm.llms.generation import ScoringLLM
from formal_llm.llms.question import Message
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import BY_NAME, Adapter

Made = Callable[..., Any]
VLLM, LLAMACPP = BY_NAME["vllm"], BY_NAME["llamacpp"]
BOTH = pytest.mark.parametrize("adapter", [VLLM, LLAMACPP], ids=str, indirect=True)


def page(**data: object) -> ps.Behaviour:
    return ps.Behaviour(page=json.dumps(data))


def tokens(*ids: int) -> ps.Behaviour:
    return page(tokens=ids)


def test_by_vllm(made: Made, server: ps.ProtocolServer) -> None:
    llm = made(VLLM)
    told = {"token_logprobs": [None, -0.1, -1.5, -2.0, -9.0]}
    server.script = [tokens(1, 2), tokens(3, 4), page(choices=[{"logprobs": told}])]
    assert isinstance(llm, ScoringLLM)
    assert llm.log_probabilities([Message("user", "q")], ["two words"]) == [(-3.5, 2)]
    assert server.paths == ["/tokenize", "/tokenize", "/v1/completions"]
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "q"}]
    assert server.bodies[0]["add_generation_prompt"] is True
    assert server.bodies[1]["prompt"] == "two words" and server.bodies[1]["add_special_tokens"] is False
    assert server.bodies[2]["prompt"] == [1, 2, 3, 4] and server.bodies[2]["echo"] is True


def test_by_llama_cpp(made: Made, server: ps.ProtocolServer) -> None:
    told = [{"id": 3, "logprob": -1.5}, {"id": 4, "logprob": -2.0}]
    script = [page(prompt="<q>"), tokens(1, 2), tokens(3, 4), page(completion_probabilities=told)]
    server.script = [*script, tokens(3), page(completion_probabilities=told[:1])]
    assert made(LLAMACPP).log_probabilities("q", ["two words", "one"]) == [(-3.5, 2), (-1.5, 1)]
    assert server.paths[:4] == ["/apply-template", "/tokenize", "/tokenize", "/completion"]
    assert server.bodies[1] == {"content": "<q>", "add_special": True, "parse_special": True}
    assert server.bodies[3]["prompt"] == [1, 2] and server.bodies[3]["grammar"] == "root ::= <[3]> <[4]>"
    assert server.bodies[3]["n_predict"] == 2
    server.script = [*script[:3], page(completion_probabilities=told[::-1])]
    with pytest.raises(UnreadableResponse):  # the server did not keep to the grammar
        made(LLAMACPP).log_probabilities("q", ["two words"])


@BOTH
def test_a_server_that_cannot_tell_and_one_that_fails(adapter: Adapter, made: Made, server: ps.ProtocolServer) -> None:
    llm = made(adapter)
    for refused in (ps.failing(404), ps.failing(400, message="failed to parse grammar")):
        server.script = [refused]
        assert llm.log_probabilities("q", ["a"]) is None
    for failed in (ps.failing(500), ps.failing(400, message="the prompt is too long"), ps.CUT, ps.HTML, page(x=1)):
        server.script = [failed]
        with pytest.raises(ProviderError):
            llm.log_probabilities("q", ["a"])
    with pytest.raises(ValueError, match="an empty text"):
        llm.log_probabilities("q", ["a", ""])
