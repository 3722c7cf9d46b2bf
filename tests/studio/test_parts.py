"""What is asked is checked before it is used."""

import pytest

from formal_llm.studio.parts import BadQuestion, answers_of, build_verdict, text_of
from tests.studio.texts import part


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


def test_verdicts_have_the_same_keys() -> None:
    assert build_verdict(True, "it fits", None).keys() == part("verdict", "judge", plan="boil_water").keys()
