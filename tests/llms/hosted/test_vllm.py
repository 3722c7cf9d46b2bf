"""What is special to vLLM: its structured outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from formal_llm.llms.question import Question
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import BY_NAME

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
