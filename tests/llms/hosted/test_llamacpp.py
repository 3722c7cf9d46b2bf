"""What is special to llama.cpp: its grammar, and token probabilities that it may refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from formal_llm import Question
from formal_llm.llms.hosted.llamacpp import grammar
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import BY_NAME

MakeQuestion = Callable[..., Question]


Made = Callable[..., Any]


LLAMACPP = BY_NAME["llamacpp"]


MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "1: a"},
    {"role": "assistant", "content": "1"},
    {"role": "user", "content": "Which one?"},
]


ASKED = {"logprobs": True, "top_logprobs": 20}


def test_llamacpp(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2), ps.ok(1, 3)]
    llm = made(LLAMACPP, temperature=0.5, max_completion_tokens=9)
    llm.choose(make_question())
    llm.choose(make_question(several=True))
    same = {"model": "test-model", "messages": MESSAGES, "temperature": 0.5, "max_tokens": 9}
    assert server.bodies == [
        {**same, **ASKED, "grammar": 'root ::= "1" | "2" | "3"', "n_probs": 20},
        {**same, "grammar": grammar(3, several=True)},
    ]


def test_what_is_sent_for_texts(server: ps.ProtocolServer, made: Made) -> None:
    """A continuation takes the server's cache up again."""
    llm = made(LLAMACPP)
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
