"""Bodies of productions; repetitions and groups mean what they say (see also the tests of the model)."""

from __future__ import annotations

import pytest

from formal_llm import CFG
from formal_llm.automata.models.limits import Limits
from formal_llm.errors import GrammarError


def test_signs_that_stand_alone_are_names() -> None:
    assert list(CFG.from_string("%order forward\nE -> E + T | x ? *\nT -> t").terminals) == ["+", "x", "?", "*", "t"]


def test_what_stands_in_groups_is_counted_and_limited() -> None:
    cfg = CFG.from_string("%limit 2 b\n%order forward\nS -> (a some(b, c))+")
    assert cfg.limits == Limits({"b": 2})
    assert list(cfg.terminals) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("S -> x\n  | a{3,1}", 2, 5, "never"),
        ("S -> x (a b{0})", 1, 11, "never"),
        ("S -> A+\nA -> B*\nB -> b", 1, 6, "A may be empty"),
        ("S -> (a | b?)*", 1, 7, "may be empty"),
        ("S -> some(a, b)?", 1, 15, "a selection cannot be repeated"),
        ('S -> (a "text")', 1, 9, "a text stands at the end of a production"),
        ("S -> " + "(" * 21 + "a" + ")" * 21, 1, 27, "more than 20 deep"),
        ("S -> " + "(" * 5000 + "a" + ")" * 5000, 1, 5006, "more than 20 deep"),
        ("a? -> b", 1, 1, "reads as a repetition"),
        ('S -> a?\na? "x"', 2, 1, "reads as a repetition of a"),
        ("%limit 2 a?\nS -> a?", 1, 10, "reads as a repetition of a"),
    ],
)
def test_what_is_refused_and_where(text, line, column, problem) -> None:
    with pytest.raises(GrammarError, match=problem) as caught:
        CFG.from_string(text)
    assert (caught.value.line, caught.value.column) == (line, column)
