"""What is special to Ollama: its chat, its hosts, and the probabilities of tokens."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from formal_llm.llms.hosted.ollama import host_address
from formal_llm.llms.question import Question
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import BY_NAME

MakeQuestion = Callable[..., Question]


Made = Callable[..., Any]


OLLAMA = BY_NAME["ollama"]


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


ONE = schema(choice={"type": "integer", "enum": [1, 2, 3]})


SOME = schema(choices={"type": "array", "items": {"type": "integer", "enum": [1, 2, 3]}, "minItems": 1, "maxItems": 3})


def number_token(**shares: float) -> dict[str, Any]:
    top = [{"token": name[1:], "logprob": math.log(share), "bytes": None} for name, share in shares.items()]
    return {**top[1], "top_logprobs": top}


def test_ollama(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2), ps.ok(1, 2)]
    llm = made(OLLAMA, temperature=0.5, num_predict=9, think=False)
    llm.choose(make_question())
    llm.choose(make_question(several=True))
    options = {"temperature": 0.5, "num_predict": 9}
    same = {"model": "test-model", "messages": MESSAGES, "stream": False, "options": options, "think": False}
    assert server.bodies == [{**same, **ASKED, "format": ONE}, {**same, "format": SOME}]
    assert llm.identity["options"] == options


def test_ollama_with_and_without_probabilities(
    server: ps.ProtocolServer, made: Made, make_question: MakeQuestion
) -> None:
    tokens = [{"token": text, "logprob": 0.0, "top_logprobs": []} for text in ('{"', "choice", '":')]
    tokens += [number_token(**{"n 1": 0.1, "n 2": 0.7, "n2": 0.1, "n3": 0.1}), {"token": "}", "logprob": 0.0}]
    server.script = [ps.text('{"choice": 2}', logprobs=tokens), ps.ok(2), ps.ok(2, logprobs="none")]
    assert made(OLLAMA).choose(make_question()).probabilities == pytest.approx({1: 0.1, 2: 0.8, 3: 0.1})
    assert made(OLLAMA).choose(make_question()).probabilities is None
    assert made(OLLAMA).choose(make_question()).probabilities is None


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("box", "http://box:11434"),
        ("box:80", "http://box:80"),
        (" 10.0.0.7 ", "http://10.0.0.7:11434"),
        (":99", "http://127.0.0.1:99"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:99", "http://127.0.0.1:99"),
        ("http://box", "http://box"),
        ("https://box/", "https://box"),
        ("https://box:99/ollama/", "https://box:99/ollama"),
        ("box/ollama", "http://box:11434/ollama"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:99", "http://[::1]:99"),
        ("::1", "http://[::1]:11434"),
    ],
)
def test_the_forms_of_a_host(host: str, url: str) -> None:
    assert host_address(host) == url
