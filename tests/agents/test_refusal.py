"""A refusal names the rules to blame, and what could come instead."""

from __future__ import annotations

from formal_llm import CFG, Limits, constraint
from formal_llm.agents import Monitor

LETTERS = ("a", "b", "c")


def test_many_that_could_come_are_not_all_listed() -> None:
    letters = [f"t{number}" for number in range(14)]
    found = Monitor(constraint("(next any any)", letters)).why()
    assert str(found).endswith("t9 or one of 4 others could come next")


def test_the_grammar_itself_is_no_rule_to_blame() -> None:
    found = Monitor(CFG.from_string("%order forward\nS -> a b")).why("b")
    assert found is not None
    assert (found.limits, found.constraints) == ((), ())
    assert str(found) == "b cannot come now; a could come next"


def test_it_must_end() -> None:
    monitor = Monitor(constraint("(or a (next b b))", LETTERS)).after("a")
    assert str(monitor.why("b")) == "b cannot come now; it must end here"


def test_of_several_groups_only_those_to_blame() -> None:
    rules = [constraint(f"(until_1 (until (and any (not {x})) {x}) (always (not {x})))", LETTERS, name=x) for x in "ab"]
    monitor = Monitor(rules, limits=Limits(at_least={"c": 1})).after("a")
    found = monitor.why("a")
    assert found is not None
    assert found.constraints == ("a",)
    end = monitor.why()
    assert end is not None
    assert (end.limits, end.constraints) == (("%require 1 c",), ())
