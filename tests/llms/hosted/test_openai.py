"""What is special to models of OpenAI: two endpoints, and probabilities where the model gives them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from formal_llm.errors import InvalidAnswer, ProviderError
from formal_llm.llms.hosted.openai import DECISION_MODELS, OpenAILLM
from formal_llm.llms.question import Question
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


def test_many_that_are_refused_together_are_all_asked_again(
    server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    llm = CHAT.make(server.url)

    async def both() -> list[Any]:
        answers = await asyncio.gather(llm.achoose(make_question()), llm.achoose(make_question()))
        await llm.aclose()
        return answers

    # Neither is refused before both are there.
    server.script = [*[replace(REFUSED, together=2)] * 2, ps.ok(2), ps.ok(2)]
    with pytest.warns(UserWarning, match="no token probabilities") as warned:
        assert [answer.number for answer in asyncio.run(both())] == [2, 2]
    assert len(warned) == 1
    assert len(server.bodies) == 4
    llm.client.close()


def test_a_refusal_of_probabilities_that_were_not_asked_for_is_an_error(
    server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    for logprobs, requests in ((None, 2), (True, 1), (False, 1)):
        server.reset()
        server.script = [REFUSED] * 3
        llm = CHAT.make(server.url, logprobs=logprobs)
        told = pytest.warns(UserWarning, match="no token probabilities") if logprobs is None else nullcontext()
        with told, pytest.raises(ProviderError, match="logprobs"):
            llm.choose(make_question())
        assert len(server.bodies) == requests
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


@pytest.mark.parametrize(("count", "path"), [(400, "/v1/decisions"), (401, CHAT.path)])
def test_more_statements_than_the_endpoint_takes(
    count: int, path: str, server: ps.ProtocolServer, made: Made, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(7)]
    assert made(DECISIONS).choose(make_question(count=count, several=True)).numbers == (7,)
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
