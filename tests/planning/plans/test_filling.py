"""Decisions that the steps of a plan leave out are filled in, by a shortest word, checked against all of them."""

from __future__ import annotations

import random

import pytest

from formal_llm import Flowchart, Limits, Planner, RandomLLM
from formal_llm.planning.plans.filling import fill_decisions

CHART = Flowchart.from_mermaid(
    """flowchart TD
    begin([Start]) --> a[Ask] --> new{New?}
    new -->|yes| greet[Greet] --> more{More?}
    new -->|no| more
    more -->|yes| a
    more -->|no| bye[Bye]
    """
).pda()
DECISIONS = {"new=yes", "new=no", "more=yes", "more=no"}


def steps_of(word: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [(name,) for name in word if name not in DECISIONS]


@pytest.mark.parametrize("seed", range(20))
def test_the_steps_of_a_plan_give_a_word_with_these_steps(seed: int) -> None:
    word = Planner(CHART, RandomLLM(seed)).plan("t").word
    found = fill_decisions(steps_of(word), CHART)
    assert CHART.accepts(found)
    assert steps_of(found) == steps_of(word)
    assert len(found) <= len(word)


def test_limits_are_kept() -> None:
    limited = CHART.with_limits(Limits({"new=no": 0}))
    steps = [("a",), ("greet",), ("bye",)]
    assert fill_decisions(steps, limited) == ("a", "new=yes", "greet", "more=no", "bye")


def test_of_several_that_read_the_same_the_one_that_fits_is_meant() -> None:
    assert fill_decisions([("bye", "a"), ("bye",)], CHART) == ("a", "new=no", "more=no", "bye")


def test_where_no_word_has_the_steps_decisions_are_filled_in_as_far_as_they_go() -> None:
    steps = [("a",), ("greet",), ("greet",), ("bye",)]
    assert fill_decisions(steps, CHART) == ("a", "new=yes", "greet", "greet", "bye")
    rng = random.Random(3)
    for _ in range(20):
        steps = [(rng.choice(["a", "greet", "bye"]),) for _ in range(rng.randrange(5))]
        found = fill_decisions(steps, CHART)
        assert steps_of(found) == steps
