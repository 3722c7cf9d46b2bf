"""Questions and answers."""

from __future__ import annotations

import pickle

import pytest

from formal_llm import Answer, InvalidAnswer, Option, Outlook, Question
from formal_llm.llms import Message, Prospect, Term


def test_parts_are_made_when_they_are_looked_at() -> None:
    made: list[str] = []

    def prompt() -> str:
        made.append("prompt")
        return "Which?"

    def messages() -> list[Message]:
        made.append("messages")
        return [Message("system", "Choose.")]

    def outlook() -> Outlook:
        made.append("outlook")
        return Outlook(prospects=(Prospect((Term("a", "A"),)), Prospect()))

    question = Question(prompt, ["a", "b"], messages=messages, outlook=outlook)
    assert made == []
    assert question.options == (Option(1, "a"), Option(2, "b"))
    assert question.messages == (Message("system", "Choose."), Message("user", "Which?"))
    assert question.outlook is question.outlook
    assert made == ["messages", "prompt", "outlook"]


def test_a_question_can_be_pickled() -> None:
    question = Question(lambda: "Which?", ("a", "b"), task="t", outlook=Outlook)
    copy = pickle.loads(pickle.dumps(question))
    assert (copy.prompt, copy.options, copy.task, copy.outlook) == ("Which?", question.options, "t", Outlook())


@pytest.mark.parametrize("given", [2, "2", Answer((2,)), [2], (2,)])
def test_forms_of_an_answer(given: object) -> None:
    assert Question("?", ["a", "b"]).check(given).number == 2


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (0, "0 is not one of the numbers from 1 to 2"),
        (3, "3 is not one"),
        (True, "bool is no answer"),
        (2.0, "float is no answer"),
        (None, "NoneType is no answer"),
        ([], "nothing was chosen"),
        ([1, 2], "exactly one"),
        (Answer((True,)), "True is not one"),
        ("", "empty"),
        ("b or a", "not a number"),
    ],
)
def test_what_is_no_answer_says_why_and_keeps_the_transcript(given: object, problem: str) -> None:
    with pytest.raises(InvalidAnswer, match=problem) as caught:
        Question("Which?", ["a", "b"]).check(given)
    assert caught.value.transcript[0][0] == "Which?"


def test_several_numbers() -> None:
    question = Question("?", ["a", "b", "c"], several=True)
    assert question.check([3, 1]).numbers == (3, 1)
    assert question.check("1, 3").numbers == (1, 3)
    with pytest.raises(InvalidAnswer, match="twice"):
        question.check("1, 1")
    with pytest.raises(ValueError, match="2 numbers"):
        _ = question.check([1, 2]).number


def test_an_objection_is_part_of_the_check() -> None:
    question = Question("?", ["a", "b"], several=True, objection=lambda numbers: "not both" if len(numbers) > 1 else "")
    assert question.check([1]).numbers == (1,)
    with pytest.raises(InvalidAnswer, match="not both"):
        question.again("x").check([1, 2])


def test_asking_again_says_what_was_wrong() -> None:
    question = Question("Which?", ["a", "b"])
    again = question.again("'7' is not one of the numbers from 1 to 2")
    assert again.prompt.startswith("Which?\n\nYour last answer could not be used: '7' is not one")
    assert again.prompt.endswith("one number from 1 to 2, and nothing else.")
    assert question.prompt == "Which?"
    # What was wrong before the last time is not repeated.
    assert again.again("other").prompt.count("could not be used") == 1
