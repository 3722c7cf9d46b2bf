"""What is asked is checked before it is used."""

import pytest

from formal_llm.studio.parts import BadQuestion, answers_of, text_of


def test_texts() -> None:
    assert text_of({"text": "a"}, "text") == "a"
    assert text_of({}, "text", "b") == "b"
    for asked in ({}, {"text": 3}, {"text": None}):
        with pytest.raises(BadQuestion, match="text is a text"):
            text_of(asked, "text")


def test_answers() -> None:
    assert answers_of({"answers": [[1], [2, 3]]}) == [[1], [2, 3]]
    assert answers_of({}) == []
    for bad in (1, [1], [[True]], [["1"]], "11"):
        with pytest.raises(BadQuestion):
            answers_of({"answers": bad})
