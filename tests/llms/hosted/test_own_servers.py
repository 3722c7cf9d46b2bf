"""What is special to each server of one's own: Ollama, vLLM, llama.cpp."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from formal_llm.llms.hosted.llamacpp import grammar
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


VLLM, LLAMACPP = BY_NAME["vllm"], BY_NAME["llamacpp"]


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


LLAMACPP_OF_LLAMACPP = BY_NAME["llamacpp"]


def test_llamacpp(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2), ps.ok(1, 3)]
    llm = made(LLAMACPP_OF_LLAMACPP, temperature=0.5, max_completion_tokens=9)
    llm.choose(make_question())
    llm.choose(make_question(several=True))
    same = {"model": "test-model", "messages": MESSAGES, "temperature": 0.5, "max_tokens": 9}
    assert server.bodies == [
        {**same, **ASKED, "grammar": 'root ::= "1" | "2" | "3"', "n_probs": 20},
        {**same, "grammar": grammar(3, several=True)},
    ]


def test_what_is_sent_for_texts(server: ps.ProtocolServer, made: Made) -> None:
    """A continuation takes the server's cache up again."""
    llm = made(LLAMACPP_OF_LLAMACPP)
    server.script = [ps.text("a")]
    llm.continue_text("x", max_tokens=9, stop=["c"])
    assert server.paths == ["/completion"]
    assert server.bodies == [
        {"prompt": "x", "n_predict": 9, "cache_prompt": True, "temperature": 0.0, "stop": ["c"]},
    ]


def words(rules: str) -> set[str]:
    """All words of a grammar without recursion, by turning it into alternatives of plain texts."""
    bodies = dict(line.split(" ::= ") for line in rules.splitlines())

    def expand(body: str) -> set[str]:
        found: set[str] = set()
        for alternative in split(body):
            ends = {""}
            for item in re.findall(r'"[^"]*"\??|\([^()]*\)\?|[a-z0-9-]+', alternative):
                if item.startswith("("):
                    more = expand(item[1:-2]) | {""}
                elif item.startswith('"'):
                    more = {item.rstrip("?")[1:-1]} | ({""} if item.endswith("?") else set())
                else:
                    more = expand(bodies[item])
                ends = {end + piece for end in ends for piece in more}
            found |= ends
        return found

    def split(body: str) -> list[str]:
        return re.split(r"\s\|\s", body)

    return expand(bodies["root"])


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_grammar_of_one_and_of_several(count: int) -> None:
    numbers = list(map(str, range(1, count + 1)))
    assert words(grammar(count)) == set(numbers)
    lists = {",".join(some) for size in range(1, count + 1) for some in combinations(numbers, size)}
    assert {word.replace(", ", ",") for word in words(grammar(count, several=True))} == lists
    question = Question("Which?", list("abcdefgh")[:count], several=True)
    for word in words(grammar(count, several=True)):
        assert question.read(word).numbers == tuple(map(int, word.split(",")))


def test_the_grammar_of_many_stays_small() -> None:
    assert len(grammar(1000, several=True)) < 100_000
