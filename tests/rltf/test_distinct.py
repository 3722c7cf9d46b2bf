"""Distinct questions: each object is looked at once, and equal ones have one number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.question import Option, Question
from formal_llm.rltf.distinct import DistinctQuestions


def asked(text: str) -> Question:
    return Question(text, (Option(1, "a"), Option(2, "b")))


@given(st.lists(st.sampled_from("abc"), max_size=20))
def test_equal_questions_have_one_number_in_the_order_of_the_first(texts: list[str]) -> None:
    looked: list[Question] = []

    def key(question: Question) -> str:
        looked.append(question)
        return question.prompt

    distinct = DistinctQuestions(key)
    questions = [asked(text) for text in texts]
    order = list(dict.fromkeys(texts))
    for _ in range(2):
        assert [distinct.number(question) for question in questions] == [order.index(text) for text in texts]
    assert [question.prompt for question in distinct.questions] == order
    assert len(looked) == len(questions)


def test_an_object_that_is_gone_is_not_taken_for_another() -> None:
    distinct = DistinctQuestions(lambda question: question.prompt)
    assert [distinct.number(asked(str(number))) for number in range(200)] == list(range(200))
