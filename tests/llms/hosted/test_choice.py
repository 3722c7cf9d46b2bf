"""A choice as structured output: what is read as an answer and what is not, from all adapters and by itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.hosted.choice import Reply, choice_schema, read_reply
from formal_llm.llms.question import Question
from formal_llm.llms.usage import TokenUsage

COLOURS = ["red", "green", "blue"]
ONE, SOME = Question("Which one?", COLOURS), Question("Which?", COLOURS, several=True)
SPENT = TokenUsage(1, 2, 3)

NO_ANSWERS = [
    '{"choice": 0}', '{"choice": 4}', '{"choice": "2"}', '{"choice": 2.0}', '{"choice": true}', '{"choice": null}',
    '{"choice": [2]}', '{"choice": 1, "choice": 2}', '{"choice": 2, "other": 3}', '{"choices": [2]}',
    '[["choice", 2]]', "{}", '{"choice": 2', '{"choice": NaN}', "NaN", "-1", "0", "4",
    '{"choice": ' + "9" * 5000 + "}", "[" * 9_000, "I would take 2, or perhaps 3", "   ", "2" * 20_000,
]  # fmt: skip


@pytest.mark.parametrize("written", ["2", " Option 2.", '\n{ "choice" : 2 }\n', "2: green"])
def test_what_is_read_as_an_answer(written: str) -> None:
    """A server that does not keep to its guarantee may still answer."""
    answer = read_reply(ONE, Reply(written, SPENT))
    assert (answer.numbers, answer.text, answer.usage) == ((2,), written, SPENT)


@pytest.mark.parametrize("written", NO_ANSWERS, ids=lambda written: written[:20])
def test_what_is_no_answer(written: str) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        read_reply(ONE, Reply(written, SPENT))
    assert caught.value.usage == SPENT
    ((prompt, shown),) = caught.value.transcript
    assert prompt == "Which one?"
    assert written.startswith(shown.removesuffix("..."))


@pytest.mark.parametrize(
    "written", ['{"choices": []}', '{"choices": [1, 1]}', '{"choices": [1, 4]}', '{"choices": 1}', "1,1", "3 5"]
)
def test_what_is_no_answer_where_several_may_be_chosen(written: str) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        read_reply(SOME, Reply(written, SPENT))
    assert caught.value.usage == SPENT


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
