"""Reading what decision models say."""

from __future__ import annotations

import math

import pytest

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.hosted.decisions import read_choice, read_several
from formal_llm.llms.question import Question
from formal_llm.llms.usage import TokenUsage

ONE = TokenUsage(1)
QUESTION = Question("Which?", ["a", "b", "c"])
SEVERAL = Question("Which?", ["a", "b", "c"], several=True)


def test_a_choice_with_its_probabilities() -> None:
    answer = read_choice(QUESTION, "2", {"1": 0.2, "2": 0.5, "3": 0.3}, ONE)
    assert (answer.numbers, answer.probabilities, answer.usage) == ((2,), {1: 0.2, 2: 0.5, 3: 0.3}, ONE)
    # Rounded by the server; scaled to 1. An option that is left out has 0.
    assert read_choice(QUESTION, "2", {"1": 0.33, "2": 0.66}, ONE).probabilities == pytest.approx(
        {1: 1 / 3, 2: 2 / 3, 3: 0}
    )


@pytest.mark.parametrize(
    "shares",
    [{}, {"1": 1.0, "2": math.nan}, {"1": 1.5, "2": -0.5}, {"1": "1"}, {"1": True}, {"1": 0.5}, {"1": 1.0, "2": 1.0},
     {"1": math.inf}, {"1": None}],
)  # fmt: skip
def test_what_is_no_distribution_is_left_out(shares: dict[object, object]) -> None:
    assert read_choice(QUESTION, "1", shares, ONE).probabilities is None


def test_several_are_chosen_by_their_probabilities() -> None:
    assert read_several(SEVERAL, [0.5, 0.49, 1.0], ONE).numbers == (1, 3)
    # The likeliest alone; the first of equals.
    assert read_several(SEVERAL, [0.1, 0.2, 0.2], ONE).numbers == (2,)
    assert read_several(SEVERAL, [0, 0, 0], ONE).numbers == (1,)
    with pytest.raises(ValueError, match="zip"):
        read_several(SEVERAL, [0.5, 0.5], ONE)


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1, "0.5", None, True, math.inf])
def test_several_without_probabilities_cannot_be_chosen(wrong: object) -> None:
    with pytest.raises(InvalidAnswer, match="the probability of option 2 is none") as caught:
        read_several(SEVERAL, [0.9, wrong, 0.1], ONE)
    assert caught.value.usage == ONE


def test_options_that_may_not_go_together_are_thinned_out() -> None:
    def objection(numbers: tuple[int, ...]) -> str:
        return "too many" if len(numbers) > 2 else ""

    question = Question("Which?", ["a", "b", "c"], several=True, objection=objection)
    assert read_several(question, [0.9, 0.6, 0.8], ONE).numbers == (1, 3)
