"""Answers as JSON data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.recorded.answer_data import answer_from_data, answer_to_data, read_json

KEYS = st.sampled_from(["numbers", "probabilities", "text", "usage", "requests", "1"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@given(JSON)
def test_reading_an_answer_fails_with_nothing_but_a_value_error(data: object) -> None:
    try:
        answer = answer_from_data(data)
    except ValueError:
        return
    assert answer_from_data(answer_to_data(answer)) == answer or answer.probabilities  # which may hold a NaN


def test_json_that_is_none_is_a_value_error() -> None:
    for text in ("", "{", b"\xff", "[" * 200_000):
        with pytest.raises(ValueError):
            read_json(text)
