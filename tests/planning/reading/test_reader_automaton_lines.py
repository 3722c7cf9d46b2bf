"""Lines of flowcharts and automata: decisions that are left out, and the first line that cannot be right."""

from __future__ import annotations

import random

import pytest

from formal_llm import PDA, Flowchart, Limits, Planner, RandomLLM
from formal_llm.errors import NotationError
from formal_llm.planning.reading.candidates import CandidateWords, has_word
from formal_llm.planning.reading.prose import StepLine
from formal_llm.planning.reading.reader import AutomatonLines, fill_decisions

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


def lines(*texts: str) -> list[StepLine]:
    return [StepLine(at, at, text, text) for at, text in enumerate(texts, 1)]


DAY = PDA.from_string("""
%start 3
%accept 0
{t}, eat, ε -> {t-1}, ε "{t-1}:00: Eat" for t in 1..3
{t}, read, ε -> {t-1}, ε "{t-1}:00: Read" for t in 1..3
""")


def test_the_text_of_a_step_tells_which_one_it_is() -> None:
    day = AutomatonLines(DAY, lines("0:00: Eat", "1:00: Read", "2:00: Eat"), "backward", strict=True)
    assert day.candidates.find_word(DAY, 100) == ("eat", "read", "eat")
    assert not has_word(
        AutomatonLines(DAY, lines("0:00: Eat", "0:00: Read", "2:00: Eat"), "backward", strict=True).candidates
    )
    # By name they may be any.
    assert has_word(AutomatonLines(DAY, lines("eat", "read", "eat"), "backward", strict=False).candidates)
    with pytest.raises(NotationError, match="unknown step: eat"):
        AutomatonLines(DAY, lines("eat"), "backward", strict=True)


@pytest.mark.parametrize(("order", "texts"), [("backward", "012"), ("forward", "210")])
def test_the_first_line_that_cannot_be_right_as_the_lines_stand(order: str, texts: str) -> None:
    def possible(told: CandidateWords) -> bool:
        return has_word(told)

    first, _, last = texts
    wrong = AutomatonLines(
        DAY, lines(f"{first}:00: Eat", f"{first}:00: Read", f"{last}:00: Eat"), order, strict=True
    ).explain_failure(possible)
    assert (wrong.line.place, wrong.expected) == (2, ("1:00: Eat", "1:00: Read"))
    short = AutomatonLines(DAY, lines(f"{first}:00: Eat"), order, strict=True).explain_failure(possible)
    assert short.problem == "a step is missing after this one"
