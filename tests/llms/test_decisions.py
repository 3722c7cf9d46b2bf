"""Reading what decision models say, and System One."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from formal_llm.errors import InvalidAnswer, ProviderError
from formal_llm.llms.hosted.decisions import read_choice, read_several
from formal_llm.llms.question import Question
from formal_llm.llms.usage import TokenUsage
from tests.llms import protocol_server as ps
from tests.llms.adapters import ADAPTERS

MakeQuestion = Callable[..., Question]
Made = Callable[..., Any]
SYSTEMONE = ADAPTERS[-1]
ONE = TokenUsage(1)
QUESTION = Question("Which?", ["a", "b", "c"])
SEVERAL = Question("Which?", ["a", "b", "c"], several=True)


def test_a_choice_with_its_probabilities() -> None:
    answer = read_choice(QUESTION, "2", {"1": 0.2, "2": 0.5, "3": 0.3}, ONE)
    assert (answer.numbers, answer.probabilities, answer.usage) == ((2,), {1: 0.2, 2: 0.5, 3: 0.3}, ONE)
    # Rounded by the server; scaled to 1. An option that is left out has 0.
    assert read_choice(QUESTION, "2", {"1": 0.33, "2": 0.66}, ONE).probabilities == pytest.approx(
        {1: 1 / 3, 2: 2 / 3, 3: 0}
    )


@pytest.mark.parametrize(
    "shares",
    [{}, {"1": 1.0, "2": math.nan}, {"1": 1.5, "2": -0.5}, {"1": "1"}, {"1": True}, {"1": 0.5}, {"1": 1.0, "2": 1.0},
     {"1": math.inf}, {"1": None}],
)  # fmt: skip
def test_what_is_no_distribution_is_left_out(shares: dict[object, object]) -> None:
    assert read_choice(QUESTION, "1", shares, ONE).probabilities is None


def test_several_are_chosen_by_their_probabilities() -> None:
    assert read_several(SEVERAL, [0.5, 0.49, 1.0], ONE).numbers == (1, 3)
    # The likeliest alone; the first of equals.
    assert read_several(SEVERAL, [0.1, 0.2, 0.2], ONE).numbers == (2,)
    assert read_several(SEVERAL, [0, 0, 0], ONE).numbers == (1,)
    with pytest.raises(ValueError, match="zip"):
        read_several(SEVERAL, [0.5, 0.5], ONE)


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1, "0.5", None, True, math.inf])
def test_several_without_probabilities_cannot_be_chosen(wrong: object) -> None:
    with pytest.raises(InvalidAnswer, match="the probability of option 2 is none") as caught:
        read_several(SEVERAL, [0.9, wrong, 0.1], ONE)
    assert caught.value.usage == ONE


def test_options_that_may_not_go_together_are_thinned_out() -> None:
    def objection(numbers: tuple[int, ...]) -> str:
        return "too many" if len(numbers) > 2 else ""

    question = Question("Which?", ["a", "b", "c"], several=True, objection=objection)
    assert read_several(question, [0.9, 0.6, 0.8], ONE).numbers == (1, 3)


# -- System One ------------------------------------------------------------------------------------------------


def test_what_is_sent(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2)]
    answer = made(SYSTEMONE).choose(make_question())
    assert answer.probabilities == pytest.approx({1: 0.15, 2: 0.7, 3: 0.15})
    assert server.bodies == [
        {
            "model": "test-model",
            "state": {
                "question": "Which one?",
                "earlier messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "1: a"},
                    {"role": "assistant", "content": "1"},
                ],
            },
            "questions": {
                "choice": {
                    "type": "choice",
                    "instructions": "Choose the option that answers the last question.",
                    "criteria": {"1": "red", "2": "green", "3": "blue"},
                }
            },
        }
    ]
    # Servers look at one or the other.
    assert server.headers[0]["authorization"] == "Bearer dummy-key"
    assert server.headers[0]["x-api-key"] == "dummy-key"


def test_several(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(probabilities={1: 0.1, 2: 0.7, 3: 0.8})]
    answer = made(SYSTEMONE).choose(make_question(several=True))
    assert (answer.numbers, answer.probabilities) == ((2, 3), {1: 0.1, 2: 0.7, 3: 0.8})
    assert {question["type"] for question in server.bodies[0]["questions"].values()} == {"noul"}
    assert "option 3: blue" in server.bodies[0]["questions"]["3"]["instructions"]


def test_nonsense(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2, probabilities={1: math.nan, 2: 0.5, 3: 0.5})]
    assert made(SYSTEMONE).choose(make_question()).probabilities is None
    server.script = [ps.ok(2, probabilities={1: 0.1, 2: math.nan, 3: 0.5})]
    with pytest.raises(InvalidAnswer, match="probability of option 2"):
        made(SYSTEMONE).choose(make_question(several=True))
    for answers in ({}, {"choice": {"type": "noul", "noul": 1.0}}, {"choice": 7}, {"choice": {"type": "choice"}}):
        server.script = [ps.ok(2, changes={"answers": answers})]
        with pytest.raises(ProviderError, match="cannot be read"):
            made(SYSTEMONE).choose(make_question())


def test_a_server_that_counts_nothing(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2, changes={"usage": None})]
    assert made(SYSTEMONE).choose(make_question()).usage == TokenUsage(1)


def test_more_options_than_the_protocol_has(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    for count in (1, 256):
        with pytest.raises(ProviderError, match=f"2 to 255 options, this one has {count}"):
            made(SYSTEMONE).choose(make_question(count=count))
    assert server.bodies == []
