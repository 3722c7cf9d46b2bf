"""Which members of a selection may be chosen together, and that a question takes this with it."""

from __future__ import annotations

import copy
import pickle
from itertools import combinations

import pytest

from formal_llm import CFG, InvalidAnswer, Planner, Question

RULES = """
%start S
S -> some(a, b, c) x
%limit 1
%limit minutes <= 5
a "A" minutes=3
b "B" minutes=3
c "C" minutes=1
"""
SETS = [numbers for size in (1, 2, 3) for numbers in combinations((1, 2, 3), size)]


def asked(rules: str = RULES) -> Question:
    question = Planner(CFG.from_string(rules)).start("choose").question
    assert question is not None
    return question


def test_what_the_rules_forbid_is_objected_to() -> None:
    question = asked()
    assert [numbers for numbers in SETS if question.problem(numbers)] == [(1, 2), (1, 2, 3)]


def test_what_some_set_begins_with() -> None:
    question = asked()
    assert [numbers for numbers in SETS if question.leads_on(numbers)] == [(1,), (2,), (3,), (1, 3), (2, 3)]


def test_a_set_that_is_ruled_out_is_objected_to() -> None:
    walk = Planner(CFG.from_string(RULES)).start("choose")
    walk.answer([1, 3])
    walk.rule_out()
    question = walk.question
    assert question is not None
    assert question.problem((1, 3)) == "this selection is ruled out"
    assert question.leads_on((1,)) and not question.leads_on((1, 3))
    assert pickle.loads(pickle.dumps(question)).problem((1, 3)) == "this selection is ruled out"


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("how", ["pickle", "deepcopy", "copy"])
def test_a_copy_refuses_what_the_question_refuses(how: str, again: bool) -> None:
    question = asked().again("it was empty") if again else asked()
    ways = {"pickle": lambda q: pickle.loads(pickle.dumps(q)), "deepcopy": copy.deepcopy, "copy": copy.copy}
    other = ways[how](question)
    assert [other.problem(numbers) for numbers in SETS] == [question.problem(numbers) for numbers in SETS]
    assert [other.leads_on(numbers) for numbers in SETS] == [question.leads_on(numbers) for numbers in SETS]
    with pytest.raises(InvalidAnswer, match="cannot be chosen together"):
        other.check([1, 2])
    assert other.prompt == question.prompt and ("could not be used" in other.prompt) is again
    assert other == question and hash(other) == hash(question)


def test_the_same_selection_under_other_rules_is_another_question() -> None:
    assert asked() == asked()
    assert asked() != asked(RULES.replace("minutes <= 5", "minutes <= 6"))
