"""System One: what is sent, and what is read of what comes back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from formal_llm.errors import InvalidAnswer, ProviderError
from formal_llm.llms.question import Question
from formal_llm.llms.usage import TokenUsage
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import BY_NAME

MakeQuestion = Callable[..., Question]


Made = Callable[..., Any]


SYSTEMONE = BY_NAME["systemone"]


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


def test_the_label_mass_is_kept(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    told = {"type": "choice", "choice": "2", "probabilities": {"1": 0.2, "2": 0.5, "3": 0.3}}
    for mass, kept in ((0.62, 0.62), (2.0, None), ("x", None)):
        server.script = [ps.ok(2, changes={"answers": {"choice": {**told, "label_mass": mass}}})]
        assert made(SYSTEMONE).choose(make_question()).label_mass == kept


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
