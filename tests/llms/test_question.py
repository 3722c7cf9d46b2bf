"""Questions and answers as values, and what they cost."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Answer, Option, Outlook, Question
from formal_llm.errors import InvalidAnswer
from formal_llm.llms import Message, Prospect, Term, TokenUsage
from formal_llm.llms.usage import BATCH_SHARE, Prices


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


def only_small(numbers: tuple[int, ...]) -> str:
    return "too many" if len(numbers) > 1 else ""


def first_alone(numbers: tuple[int, ...]) -> bool:
    return numbers == (1,)


FULL = Question(
    lambda: "Which?",
    ("a", "b"),
    several=True,
    task="t",
    messages=lambda: [Message("system", "Choose.")],
    outlook=lambda: Outlook((Term("x", "X"),), (Prospect(), Prospect()), prefix=True),
    objection=only_small,
    begins=first_alone,
    walk="w",
)
WAYS = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "deepcopy": copy.deepcopy, "copy": copy.copy}


@pytest.mark.parametrize("how", WAYS)
def test_a_copy_is_the_question_with_all_that_it_accepts(how: str) -> None:
    for question in (FULL, FULL.again("it was empty")):
        other = WAYS[how](question)
        assert other == question and hash(other) == hash(question)
        assert (other.prompt, other.messages, other.outlook) == (question.prompt, question.messages, question.outlook)
        assert (other.walk, other.task, other.complaint) == (question.walk, question.task, question.complaint)
        assert other.problem((1, 2)) == "too many" and other.leads_on((1,)) and not other.leads_on((2,))


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "What?"}, {"options": ("a", "c")}, {"several": False}, {"task": "u"}, {"messages": ()},
        {"outlook": None}, {"objection": None}, {"begins": None}, {"walk": "v"},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_every_part_makes_another_question(change: dict[str, Any]) -> None:
    parts = {
        "prompt": "Which?", "options": ("a", "b"), "several": True, "task": "t", "walk": "w",
        "messages": [Message("system", "Choose.")], "outlook": FULL.outlook, "objection": only_small,
        "begins": first_alone,
    }  # fmt: skip
    assert Question(**parts) == FULL and hash(Question(**parts)) == hash(FULL)
    assert Question(**parts | change) != FULL
    assert FULL.again("it was empty") != FULL
    assert FULL != "Which?"


def test_a_question_whose_objection_cannot_go_with_it_is_not_pickled_without() -> None:
    question = Question("?", ["a", "b"], several=True, objection=lambda numbers: "no" if 1 in numbers else "")
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(question)


@pytest.mark.parametrize(
    "value",
    [
        Answer((1, 2), {1: 0.5, 2: 0.5}, "1, 2", TokenUsage(1, 2, 3)),
        Option(1, "a"),
        Message("user", "hi"),
        Term("x", "X", "an x"),
        Prospect((Term("x", "X"),), ((Term("y", "Y"), 2),), 3),
        FULL.outlook,
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_parts_are_values(value: object) -> None:
    for other in (way(value) for way in WAYS.values()):
        assert other == value and hash(other) == hash(value)


def test_answers_with_other_probabilities_differ() -> None:
    assert Answer((1,), {1: 0.5, 2: 0.5}) != Answer((1,), {1: 0.6, 2: 0.4})


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


def test_a_question_that_was_let_go_keeps_nothing_and_is_the_same() -> None:
    made: list[str] = []

    def of(name: str, value: Any) -> Any:
        return lambda: (made.append(name), value)[1]

    def asked() -> Question:
        messages = [Message("system", "Choose.")]
        return Question(
            of("prompt", "Which?"), ("a", "b"), messages=of("messages", messages), outlook=of("outlook", None)
        )

    question = asked()
    for _ in range(2):
        assert question.prompt == "Which?" and question.messages[0] == Message("system", "Choose.")
    assert made == ["prompt", "messages"]
    question.let_go()
    for _ in range(2):
        assert question.prompt == "Which?" and question.messages[-1] == Message("user", "Which?")
    assert made.count("prompt") == 5 and question == asked()
    held = asked()
    held.let_go(prompt=False)
    made.clear()
    assert held.prompt == held.prompt == "Which?" and made == ["prompt"]
    held = asked()
    held.hold()
    held.let_go()
    made.clear()
    assert held.messages == held.messages and made == ["messages", "prompt"]
    assert held == asked() and hash(held) == hash(asked())


@pytest.mark.parametrize(
    ("legal", "wanted", "found"),
    [
        ({(1,), (2, 3)}, (2, 3), (2, 3)),
        ({(1,), (2, 3)}, (3, 2), (2, 3)),
        ({(1,), (2, 3)}, (2,), (2, 3)),
        ({(1,), (2, 3)}, (3,), (2, 3)),
        ({(1, 2, 4), (2, 3)}, (4, 1), (1, 2, 4)),
        ({(1, 2, 3, 4)}, (3,), (1, 2, 3, 4)),
        ({(1,), (1, 2)}, (1, 3), (1,)),
        (set(), (1, 3), (1, 3)),
    ],
)
def test_the_nearest_selection(legal: set[tuple[int, ...]], wanted: tuple[int, ...], found: tuple[int, ...]) -> None:
    question = Question("?", list("abcd"), several=True, objection=lambda numbers: "" if numbers in legal else "no")
    assert question.nearest(wanted) == found


def test_token_usage_adds_up() -> None:
    assert TokenUsage(1, 10, 2) + TokenUsage(1, 5, 1) == TokenUsage(2, 15, 3)


COUNTS = st.builds(TokenUsage, *[st.integers(0, 10**6)] * 5)


@given(COUNTS, COUNTS)
def test_usage_is_a_value_that_adds_up_field_by_field(one: TokenUsage, other: TokenUsage) -> None:
    both = one + other
    assert astuple(both) == tuple(a + b for a, b in zip(astuple(one), astuple(other), strict=True))
    assert both == other + one and hash(both) == hash(other + one)
    assert both.tokens == one.tokens + other.tokens
    assert pickle.loads(pickle.dumps(both)) == copy.deepcopy(both) == both


def test_what_tokens_cost() -> None:
    usage = TokenUsage(1, 1_000_000, 100_000, cached_tokens=600_000, cache_write_tokens=200_000)
    assert Prices(2, 10).cost(usage) == pytest.approx(2 + 1)
    # 200 thousand plainly read, 600 from the cache, 200 into it.
    assert Prices(2, 10, cached=0.2, cache_write=2.5).cost(usage) == pytest.approx(0.4 + 0.12 + 0.5 + 1)
    assert Prices(2, 10, cached=0).cost(usage) == pytest.approx(0.8 + 1)
    assert pickle.loads(pickle.dumps(Prices(2, 10))) == Prices(2, 10)


@pytest.mark.parametrize("price", [-1, math.inf, math.nan])
def test_what_is_no_price(price: float) -> None:
    with pytest.raises(ValueError, match="a price is a number of 0 or more"):
        Prices(1, 1, cached=price)


def test_a_share_of_the_prices() -> None:
    assert Prices(2, 8, cached=0.5).scaled(BATCH_SHARE) == Prices(1, 4, cached=0.25)
    usage = TokenUsage(1, 1_000_000, 1_000_000, 500_000)
    assert Prices(2, 8, 1, 4).scaled(0.5).cost(usage) == Prices(2, 8, 1, 4).cost(usage) / 2
