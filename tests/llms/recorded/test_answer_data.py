"""Answers as JSON data."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.authored.files import parse_json
from formal_llm.llms.question import Answer
from formal_llm.llms.recorded.answer_data import (
    answer_from_data,
    answer_to_data,
    usage_from_data,
    usage_to_data,
)
from formal_llm.llms.usage import TokenUsage

KEYS = st.sampled_from(["numbers", "probabilities", "text", "usage", "requests", "1"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@given(JSON)
def test_reading_an_answer_fails_with_nothing_but_a_value_error(data: object) -> None:
    try:
        answer = answer_from_data(data)
    except ValueError:
        return
    assert answer_from_data(answer_to_data(answer)) == answer


def test_json_that_is_none_is_a_value_error() -> None:
    for text in ("", "{", b"\xff", "[" * 200_000):
        with pytest.raises(ValueError):
            parse_json(text)


ANSWERS = st.builds(
    Answer,
    st.lists(st.integers(1, 99), min_size=1).map(tuple),
    st.none() | st.dictionaries(st.integers(1, 99), st.floats(0, 1)),
    st.text(),
    st.builds(TokenUsage, *[st.integers(0, 10**9)] * 5),
    st.none() | st.text(),
)


@given(ANSWERS)
def test_answers_come_back_from_their_json(answer: Answer) -> None:
    text = json.dumps(answer_to_data(answer))
    assert answer_from_data(parse_json(text)) == answer


def test_numbers_of_an_array_library_are_written() -> None:
    answer = Answer((np.int64(2),), {np.int64(1): np.float32(0.25), np.int64(2): np.float32(0.75)})
    assert answer_from_data(json.loads(json.dumps(answer_to_data(answer)))) == Answer((2,), {1: 0.25, 2: 0.75})


@pytest.mark.parametrize("data", [{"requests": -1}, {"pages": 1}, {"requests": True}, [], 7])
def test_what_is_no_usage(data: object) -> None:
    with pytest.raises(ValueError, match="usage"):
        usage_from_data(data)
    assert usage_from_data(None) == TokenUsage()
    assert usage_to_data(None) == {}
