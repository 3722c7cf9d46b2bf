"""Being the model."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from formal_llm import CFG, Lookahead
from tests.studio.texts import CHART, NESTED, TEA, part, parts


def test_a_step_tells_the_configuration() -> None:
    here = part("position", "step", NESTED, answers=[[1], [1]])
    assert here["stack"][:3] == ["S", "close", "close"]
    assert here["word"]["names"] == ["open", "open"]
    (limit,) = here["limits"]
    assert (limit["now"], limit["whole"], limit["kind"]) == (1, 3, "left")


def test_lower_limits_are_told_as_needed() -> None:
    here = part("position", "step", "S -> a S | c S | b\n%require 2 a\n%limit 4 a\n", answers=[[1]])
    assert {(one["kind"], one["now"], one["whole"]) for one in here["limits"]} == {("left", 3, 4), ("needed", 1, 2)}


def test_an_option_that_is_missing_has_its_reason() -> None:
    (missing,) = part("left out", "step", answers=[[1]])["options"]
    assert missing == {"text": 'the output of "pour"', "reason": "because of %limit 1 pour"}


def test_a_finished_plan_has_its_steps_and_its_way() -> None:
    found = parts("step", answers=[[1], [2]])
    assert [one["part"] for one in found] == ["position", "picture"]
    assert found[0]["done"]
    assert found[0]["steps"] == ["Step 1: Use pour on Boil water"]


def test_answers_that_are_none() -> None:
    assert "not one of the numbers" in part("problems", "step", answers=[[9]])["problems"][0]["message"]
    assert part("bad question", "step", answers=[[3], [1]])["reason"] == "there are more answers than questions"
    assert part("bad question", "step", answers="no")["reason"] == "answers are lists of numbers"


def test_of_a_chart_the_node_is_the_state() -> None:
    here = part("position", "step", CHART, ".mmd")
    assert here["state"] == "Q"
    assert here["stack"] == []


def test_selections_are_asked_with_several_numbers() -> None:
    text = "S -> some(a, b, c) d\n%limit 1\n"
    assert part("position", "step", text)["several"]
    found = parts("branches", text)
    assert sorted(tuple(one["answer"]) for one in found) == [(1,), (1, 2), (1, 2, 3), (1, 3), (2,), (2, 3), (3,)]
    assert {one["plans"] for one in found} == {"1"}


@given(st.sampled_from([TEA, NESTED, "S -> a S | b S c | d\n%limit 3 a\n%limit 2 b\n"]), st.integers(0, 2**16))
@settings(max_examples=20)
def test_the_counts_of_the_branches_add_up(text: str, seed: int) -> None:
    """However a walk goes: the plans behind the options together are the plans from here."""
    rng = random.Random(seed)
    lookahead = Lookahead(CFG.from_string(text))
    total = lookahead.count()
    answers: list[list[int]] = []
    while found := parts("branches", text, answers=answers):
        assert sum(int(one["plans"]) for one in found) == total
        chosen = rng.choice(found)
        total = int(chosen["plans"])
        answers.append(chosen["answer"])
    assert total == 1
    assert part("position", "step", text, answers=answers)["done"]


def test_infinitely_many_are_counted_up_to_one_length() -> None:
    found = parts("branches", "S -> a S | b\n")
    assert [(one["plans"], one["longest"]) for one in found] == [("4", 5), ("1", None)]


def test_a_run_is_told_as_it_happens() -> None:
    found = parts("run", llm="test:script=2,1,1", task="a cup")
    assert [one["part"] for one in found][:3] == ["asked", "answered", "asked"]
    last = found[-1]
    assert last["part"] == "finished"
    assert CFG.from_string(TEA).accepts(last["word"]["names"])
    assert part("position", "step", answers=last["answers"])["word"] == last["word"]


def test_the_task_is_told_to_the_model() -> None:
    assert "a cup of green tea" in parts("run", llm="test:first", task="a cup of green tea")[0]["prompt"]


def test_what_goes_wrong_is_said() -> None:
    assert "names no LLM" in part("problems", "run", llm="nobody:x")["problems"][0]["message"]
    assert "Be the model" in part("bad question", "run", llm="person")["reason"]
    assert part("problems", "run", llm="test:script=7", task="")["problems"]
    assert part("problems", "run", "S - a", llm="test:first")["problems"][0]["line"] == 1


def test_a_run_over_a_chart() -> None:
    assert part("finished", "run", CHART, ".mmd", llm="test:script=2,2,1")["questions"] == 3
