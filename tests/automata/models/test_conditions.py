"""Conditions on arrows, against Python's own comparisons."""

from __future__ import annotations

import operator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.models.conditions import ElseCondition, holds, list_fact_names, read_condition
from tests.strategies import examples

SIGNS = {"<": operator.lt, "<=": operator.le, "=": operator.eq, "!=": operator.ne, ">": operator.gt, "≥": operator.ge}


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> tuple[str, bool]:
    """A condition about a = 3 and b = -2.5, and whether it holds."""
    values = {"a": Fraction(3), "b": Fraction("-2.5"), "3": Fraction(3), "7.25": Fraction("7.25")}
    how = draw(st.sampled_from(["compare", "and", "or", "not"])) if depth else "compare"
    if how == "compare":
        left, right = draw(st.sampled_from("ab")), draw(st.sampled_from(sorted(values)))
        sign = draw(st.sampled_from(sorted(SIGNS)))
        return f"{left}{sign} {right}", SIGNS[sign](values[left], values[right])
    text, true = draw(conditions(depth=depth - 1))
    if how == "not":
        return f"not ({text})", not true
    other, also = draw(conditions(depth=depth - 1))
    return f"({text}) {how} ({other})", (true and also) if how == "and" else (true or also)


@given(conditions())
@examples(100)
def test_conditions_are_what_python_makes_of_them(told: tuple[str, bool]) -> None:
    text, true = told
    condition = read_condition(text)
    assert condition is not None
    assert set(list_fact_names(condition)) <= {"a", "b"}
    assert holds(condition, {"a": 3, "b": "-2.5"}) is true


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("x = 1 or x = 2 and y = no", True), ("not x = 2 and y = YES", True), ("y = 'yes'", True),
        ('y != "yes"', False),
        ("x >= 1_000", False), ("ready = true", True), ("x < 10.5", True), ("y = other", False), ("x <> 1", False),
    ],
)  # fmt: skip
def test_small_conditions(text: str, true: bool) -> None:
    condition = read_condition(text)
    assert condition is not None
    assert holds(condition, {"x": 1, "y": "Yes", "ready": True}) is true


@pytest.mark.parametrize(
    "text", ["yes", "", "18", "more than 3", "a =", "= a", "a = b c", "(a = 1", "a = 1)", "≥ 18", "a ~ b", "a < b < c",
             "(" * 200 + "a = 1" + ")" * 99, "not " * 80, "a = 1" * 100]
)  # fmt: skip
def test_other_texts_are_none(text: str) -> None:
    assert read_condition(text) is None


def test_else_and_what_cannot_be_compared() -> None:
    assert read_condition("Otherwise") == ElseCondition() == read_condition("else")
    condition = read_condition("x > many")
    assert condition is not None
    with pytest.raises(ValueError, match="1 > many compares a number and a text"):
        holds(condition, {"x": 1})
