"""A choice as structured output: what is read as an answer and what is not, from all adapters and by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.hosted.choice_schema import Reply, choice_schema, read_reply
from formal_llm.llms.question import Question
from formal_llm.llms.usage import TokenUsage
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import ADAPTERS, BY_NAME, Adapter, each_adapter

MakeQuestion = Callable[..., Question]
Choose = Callable[[Any, Question], Any]
Made = Callable[..., Any]


@each_adapter
def test_a_right_answer(
    adapter: Adapter, choose: Choose, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(2)]
    answer = choose(made(adapter), make_question())
    assert answer.numbers == (2,)
    assert answer.usage == adapter.one
    assert "2" in answer.text
    assert server.paths == [adapter.path]
    assert server.bodies[0]["model"] == "test-model"


@each_adapter
def test_several(
    adapter: Adapter, choose: Choose, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(1, 3)]
    answer = choose(made(adapter), make_question(several=True))
    assert answer.numbers == (1, 3)
    assert answer.usage == adapter.one
    assert len(server.bodies) == 1


@pytest.mark.parametrize("written", ["2", " Option 2.", '\n{ "choice" : 2 }\n', "2: green"])
def test_what_is_read_as_an_answer(
    written: str, adapter: Adapter, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    # A server that does not keep to its guarantee may still answer.
    server.script = [ps.text(written)]
    assert made(adapter).choose(make_question()).numbers == (2,)


NO_ANSWERS = [
    '{"choice": 0}', '{"choice": 4}', '{"choice": "2"}', '{"choice": 2.0}', '{"choice": true}', '{"choice": null}',
    '{"choice": [2]}', '{"choice": 1, "choice": 2}', '{"choice": 2, "other": 3}', '{"choices": [2]}',
    '[["choice", 2]]', "{}", '{"choice": 2', '{"choice": NaN}', "NaN", "-1", "0", "4",
    '{"choice": ' + "9" * 5000 + "}", "[" * 9_000, "I would take 2, or perhaps 3", "   ",
]  # fmt: skip


def test_what_is_no_answer(
    adapter: Adapter, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    for written in NO_ANSWERS:
        server.script = [ps.text(written)]
        with pytest.raises(InvalidAnswer) as caught:
            made(adapter).choose(make_question())
        assert caught.value.transcript == (("Which one?", written),)
        assert caught.value.usage == adapter.one


def test_what_is_no_answer_where_several_may_be_chosen(
    adapter: Adapter, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    for written in ['{"choices": []}', '{"choices": [1, 1]}', '{"choices": [1, 4]}', '{"choices": 1}', "1,1", "3 5"]:
        server.script = [ps.text(written)]
        with pytest.raises(InvalidAnswer) as caught:
            made(adapter).choose(make_question(several=True))
        assert caught.value.usage == adapter.one


def test_a_number_that_is_no_option(
    adapter: Adapter, choose: Choose, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion
) -> None:
    server.script = [ps.ok(4)]
    with pytest.raises(InvalidAnswer) as caught:
        choose(made(adapter), make_question())
    assert caught.value.usage == adapter.one
    assert "4" in caught.value.transcript[0][1]


@pytest.mark.parametrize(
    ("behaviour", "problem", "said"),
    [
        (ps.TRUNCATED, "it was cut off at the limit of tokens", '{"choi'),
        (ps.EMPTY, "it was empty", ""),
    ],
    ids=["truncated", "empty"],
)
def test_an_answer_that_did_not_come_to_its_end(
    behaviour: ps.Behaviour,
    problem: str,
    said: str,
    adapter: Adapter,
    choose: Choose,
    made: Made,
    server: ps.ProtocolServer,
    make_question: MakeQuestion,
) -> None:
    server.script = [behaviour]
    with pytest.raises(InvalidAnswer) as caught:
        choose(made(adapter), make_question())
    assert caught.value.problem == problem
    assert caught.value.transcript == (("Which one?", said),)
    assert caught.value.usage == adapter.one


@pytest.mark.parametrize("adapter", [a for a in ADAPTERS if a.module in ("openai", "anthropic")], ids=str)
def test_a_refusal(adapter: Adapter, made: Made, server: ps.ProtocolServer, make_question: MakeQuestion) -> None:
    server.script = [ps.REFUSAL]
    with pytest.raises(InvalidAnswer, match="it was refused") as caught:
        made(adapter).choose(make_question(several=True))
    assert caught.value.transcript == (("Which one?", "I can't help with that." if adapter.writes else ""),)
    assert caught.value.usage == adapter.one


def test_a_content_filter(made: Made, server: ps.ProtocolServer, make_question: MakeQuestion) -> None:
    server.script = [ps.FILTERED]
    with pytest.raises(InvalidAnswer, match="content filter"):
        made(BY_NAME["openai-chat"]).choose(make_question())


def test_the_schema_has_the_numbers_and_nothing_else() -> None:
    one, some = Question("?", ["a", "b"]), Question("?", ["a", "b"], several=True)
    number = {"type": "integer", "enum": [1, 2]}
    assert choice_schema(one)["properties"] == {"choice": number}
    assert choice_schema(some)["properties"] == {"choices": {"type": "array", "items": number}}
    bounded = choice_schema(some, bounded=True)["properties"]
    assert bounded == {"choices": {"type": "array", "items": number, "minItems": 1, "maxItems": 2}}
    for schema in (choice_schema(one), choice_schema(some)):
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])


@given(st.integers(1, 30), st.data())
def test_a_reply_of_the_schema_is_read_back(count: int, data: st.DataObject) -> None:
    several = data.draw(st.booleans())
    question = Question("?", [f"tool {n}" for n in range(count)], several=several)
    size = 1 if not several else data.draw(st.integers(1, count))
    numbers = data.draw(st.lists(st.integers(1, count), min_size=size, max_size=size, unique=True))
    text = json.dumps({"choices": numbers} if several else {"choice": numbers[0]})
    token = {"token": text, "logprob": 0.0, "top_logprobs": []}
    answer = read_reply(question, Reply(text, TokenUsage(1, 2, 3), logprobs=[token]))
    assert (answer.numbers, answer.text, answer.usage) == (tuple(numbers), text, TokenUsage(1, 2, 3))
    assert answer.probabilities == (None if several else {n: float(n == numbers[0]) for n in range(1, count + 1)})


def test_what_kept_the_model_from_its_answer_comes_first() -> None:
    with pytest.raises(InvalidAnswer, match="it was cut off") as caught:
        read_reply(Question("?", ["a", "b"]), Reply('{"choice": 1}', TokenUsage(1), "it was cut off"))
    assert caught.value.usage == TokenUsage(1)
