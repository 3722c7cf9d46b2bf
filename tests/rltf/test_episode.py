"""Episodes: a plan by its word and by the numbers that were chosen; equal questions have one number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Planner, Task
from formal_llm.llms.question import Option, Question
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.episode import DistinctQuestions
from formal_llm.rltf.rollout import Start, replay


def test_the_path_tells_plans_of_one_word_apart() -> None:
    planner, task = Planner(CFG.from_string("S -> A b | a B | c\nA -> a\nB -> b"), "test:first"), Task("t")
    one, other, third = enumerate_episodes(planner, task, 0, 3)
    assert one.word == other.word == ("a", "b")
    assert (one.path, other.path, third.path) == ((1,), (2,), (3,))
    for episode in (one, other, third):
        assert episode.word == episode.plan.word
        assert replay(planner, Start(0, task), episode.path).path == episode.path


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
        assert [distinct.number_of(question) for question in questions] == [order.index(text) for text in texts]
    assert [question.prompt for question in distinct.questions] == order
    assert len(looked) == len(questions)


def test_an_object_that_is_gone_is_not_taken_for_another() -> None:
    distinct = DistinctQuestions(lambda question: question.prompt)
    assert [distinct.number_of(asked(str(number))) for number in range(200)] == list(range(200))
