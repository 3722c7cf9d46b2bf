"""A person on the terminal."""

from __future__ import annotations

import io

import pytest

from formal_llm import (
    CFG,
    LLMError,
    Planner,
    Question,
)
from formal_llm.llms.person import Person

QUESTION = Question("Which?", ["a", "b", "c"])


def test_a_person_is_shown_the_question_and_asked_again() -> None:
    screen = io.StringIO()
    person = Person(io.StringIO("what?\n2\n"), screen)
    plan = Planner(CFG.from_string("S -> a | b"), person).plan("t")
    assert plan.word == ("b",)
    assert screen.getvalue().count("1: a\n2: b") == 2
    assert "'what?' is not a number" in screen.getvalue()


def test_the_end_of_the_input_is_told() -> None:
    with pytest.raises(LLMError, match="input ended"):
        Person(io.StringIO(""), io.StringIO()).choose(QUESTION)
