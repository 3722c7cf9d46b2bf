"""What is special to models of OpenAI: two endpoints, and probabilities where the model gives them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from formal_llm.errors import InvalidAnswer, ProviderError
from formal_llm.llms.hosted.decisions import read_choice, read_several
from formal_llm.llms.hosted.openai import DECISION_MODELS, OpenAILLM
from formal_llm.llms.question import Question
from formal_llm.llms.usage import TokenUsage
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import BY_NAME

MakeQuestion = Callable[..., Question]
Made = Callable[..., Any]
CHAT, DECISIONS = BY_NAME["openai-chat"], BY_NAME["openai-decisions"]

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "1: a"},
    {"role": "assistant", "content": "1"},
    {"role": "user", "content": "Which one?"},
]
SCHEMA = {
    "type": "object",
    "properties": {"choice": {"type": "integer", "enum": [1, 2, 3]}},
    "required": ["choice"],
    "additionalProperties": False,
}


def tokens(*shares: float) -> list[dict[str, Any]]:
    """The tokens of the answer 2, with the probabilities of the numbers from 1."""
    top = [{"token": str(number), "logprob": math.log(share)} for number, share in enumerate(shares, 1)]
    return [
        {"token": '{"choice": ', "logprob": 0.0, "top_logprobs": [{"token": '{"choice": ', "logprob": 0.0}]},
        {**top[1], "top_logprobs": top},
        {"token": "}", "logprob": 0.0, "top_logprobs": [{"token": "}", "logprob": 0.0}]},
    ]


# -- chat completions ------------------------------------------------------------------------------------------


def test_what_is_sent(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2)]
    made(CHAT).choose(make_question())
    # The whole body: a model that takes no temperature must not be sent one.
    assert server.bodies == [
        {
            "model": "test-model",
            "messages": MESSAGES,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "choice", "strict": True, "schema": SCHEMA},
            },
            "logprobs": True,
            "top_logprobs": 20,
        }
    ]


def test_what_is_sent_for_several(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(1)]
    answer = made(CHAT).choose(make_question(several=True))
    assert answer.probabilities is None
    assert "logprobs" not in server.bodies[0]
    assert server.bodies[0]["response_format"]["json_schema"]["schema"]["properties"] == {
        "choices": {"type": "array", "items": {"type": "integer", "enum": [1, 2, 3]}}
    }


def test_settings_are_sent_and_part_of_the_identity(
    server: ps.ProtocolServer, made: Made, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(1)]
    llm = made(CHAT, temperature=0.0, max_completion_tokens=50, logprobs=False)
    llm.choose(make_question())
    assert (server.bodies[0]["temperature"], server.bodies[0]["max_completion_tokens"]) == (0, 50)
    assert "logprobs" not in server.bodies[0]
    assert llm.identity == {
        "llm": "openai:test-model", "address": f"{server.url}/v1", "api": "chat", "temperature": 0.0,
        "max_completion_tokens": 50, "logprobs": False,
    }  # fmt: skip


def test_probabilities(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2, logprobs=tokens(0.25, 0.5, 0.25))]
    answer = made(CHAT).choose(make_question())
    assert answer.probabilities == pytest.approx({1: 0.25, 2: 0.5, 3: 0.25})


@pytest.mark.parametrize("broken", ["text", 7, [], [7], [None], [{"token": 1}], [{"token": "2", "logprob": math.nan}]])
def test_broken_probabilities_spoil_no_answer(
    broken: Any, server: ps.ProtocolServer, made: Made, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(2, logprobs=broken)]
    answer = made(CHAT).choose(make_question())
    assert (answer.number, answer.probabilities) == (2, None)


REFUSED = ps.failing(400, message="Unsupported parameter: 'logprobs' is not supported with this model.")


def test_a_model_that_refuses_probabilities_is_asked_without(
    server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    llm = CHAT.make(server.url)
    before = llm.identity
    server.script = [REFUSED, ps.ok(2), ps.ok(1)]
    with pytest.warns(UserWarning, match=r"no token probabilities \(.*logprobs.*asked without them"):
        assert llm.choose(make_question()).number == 2
    assert llm.choose(make_question()).number == 1
    assert ["logprobs" in body for body in server.bodies] == [True, False, False]
    assert llm.identity == before
    llm.client.close()


# -- decisions -------------------------------------------------------------------------------------------------


def test_which_endpoint() -> None:
    for model in DECISION_MODELS:
        assert OpenAILLM(model, api_key="x").api == "decisions"
        assert OpenAILLM(model, api_key="x", api="chat").api == "chat"
    assert OpenAILLM("other", api_key="x").api == "chat"
    assert OpenAILLM("other", api_key="x", api="decisions").api == "decisions"
    with pytest.raises(ValueError, match="api is"):
        OpenAILLM("other", api_key="x", api="both")  # type: ignore[arg-type]


def test_a_choice(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(2)]
    answer = made(DECISIONS).choose(make_question())
    assert answer.probabilities == pytest.approx({1: 0.15, 2: 0.7, 3: 0.15})
    choices = [{"value": str(number), "description": text} for number, text in enumerate(["red", "green", "blue"], 1)]
    assert server.bodies[0]["questions"] == [
        {
            "type": "choice",
            "name": "choice",
            "instructions": "Choose the option that answers the last question.",
            "choices": choices,
        }
    ]
    # What the model said is sent in parts, which the endpoint wants.
    assert [message["content"] for message in server.bodies[0]["input"]] == [
        "Be brief.", "1: a", [{"type": "output_text", "text": "1"}], "Which one?",
    ]  # fmt: skip
    assert {message["type"] for message in server.bodies[0]["input"]} == {"message"}


def test_statements(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    server.script = [ps.ok(probabilities={1: 0.5, 2: 0.1, 3: 0.8})]
    answer = made(DECISIONS).choose(make_question(several=True))
    assert answer.numbers == (1, 3)
    assert answer.probabilities == {1: 0.5, 2: 0.1, 3: 0.8}
    assert [question["type"] for question in server.bodies[0]["questions"]] == ["predicate"] * 3
    assert "option 3: blue" in server.bodies[0]["questions"][2]["instructions"]


@pytest.mark.parametrize(("count", "path"), [(255, "/v1/decisions"), (256, CHAT.path), (1, CHAT.path)])
def test_more_options_than_the_endpoint_takes(
    count: int, path: str, server: ps.ProtocolServer, made: Made, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(1, probabilities=dict.fromkeys(range(1, count + 1), 1 / count))]
    assert made(DECISIONS).choose(make_question(count=count)).number == 1
    assert server.paths == [path]


def test_answers_to_other_questions_cannot_be_read(
    server: ps.ProtocolServer, made: Made, make_question: MakeQuestion
) -> None:
    other = [{"type": "predicate", "name": "choice", "probability": 1.0}]
    for answers in (other, [], other * 2, [{"type": "choice", "name": "choice"}], [{}], [None]):
        server.script = [ps.ok(2, changes={"answers": answers})]
        with pytest.raises(ProviderError, match="cannot be read"):
            made(DECISIONS).choose(make_question())


def test_a_choice_of_another_type_is_none(server: ps.ProtocolServer, made: Made, make_question: MakeQuestion) -> None:
    for choice in (True, 2, "two", None, "2 "):
        answer = {"type": "choice", "name": "choice", "choice": choice, "confidence": 1.0, "probabilities": []}
        server.script = [ps.ok(2, changes={"answers": [answer]})]
        with pytest.raises(InvalidAnswer, match="is not the number of an option") as caught:
            made(DECISIONS).choose(make_question())
        assert caught.value.usage == DECISIONS.one


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
