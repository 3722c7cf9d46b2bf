"""The public test doubles, and the person on the terminal."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from formal_llm import CFG, Answer, InvalidAnswer, LLMError, Planner, Question, RandomLLM, ScriptedLLM
from formal_llm.llms.person import Person

QUESTION = Question("Which?", ["a", "b", "c"])


def test_random_answers_are_uniform_and_reproducible() -> None:
    llm = RandomLLM(7)
    drawn = [llm.choose(QUESTION).number for _ in range(3_000)]
    again = RandomLLM(7)
    assert drawn == [again.choose(QUESTION).number for _ in range(3_000)]
    assert all(900 < count < 1_100 for count in Counter(drawn).values())
    several = Question("?", ["a", "b"], several=True)
    subsets = Counter(llm.choose(several).numbers for _ in range(3_000))
    assert set(subsets) == {(1,), (2,), (1, 2)}
    assert all(850 < count < 1_150 for count in subsets.values())


def test_random_selections_respect_the_question_s_objection() -> None:
    question = Question("?", ["a", "b"], several=True, objection=lambda numbers: "no" if 1 in numbers else "")
    assert {RandomLLM(seed).choose(question).numbers for seed in range(20)} == {(2,)}


def test_a_script_plays_and_ends() -> None:
    llm = ScriptedLLM([2, "Option 3", Answer((1,))])
    assert [llm.choose(QUESTION).number for _ in range(3)] == [2, 3, 1]
    assert llm.questions == [QUESTION] * 3
    with pytest.raises(InvalidAnswer, match="script ended before question 4"):
        llm.choose(QUESTION)
    with pytest.raises(InvalidAnswer, match="4 is not one"):
        ScriptedLLM([4]).choose(QUESTION)


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
