"""Errors about rules: the place, the line with its caret, and the way out."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import GrammarError, NotationError


def test_place_line_caret_and_way_out() -> None:
    error = GrammarError(
        "an arrow is missing",
        file="rules.cfg",
        line=3,
        column=3,
        source_line="S\ta b",
        expected=["->"],
        suggestion="write: S -> a b",
    )
    assert str(error) == (
        "rules.cfg:3:3: an arrow is missing\n  3 | S a b\n    |   ^\n  expected: ->\n  write: S -> a b"
    )


def test_without_a_place() -> None:
    assert str(NotationError("the grammar is empty")) == "<string>: the grammar is empty"
    assert str(NotationError("it is empty", file="a.cfg", line=2)) == "a.cfg:2: it is empty"


@given(st.text(alphabet="ab \t→", min_size=1, max_size=30), st.data())
def test_the_caret_stands_under_its_character(line: str, data: st.DataObject) -> None:
    column = data.draw(st.integers(1, len(line)))
    shown = str(NotationError("wrong", line=7, column=column, source_line=line)).split("\n")
    assert shown[1][shown[2].index("^")] == line[column - 1].replace("\t", " ")


def test_it_travels_with_its_facts() -> None:
    error = GrammarError("wrong", file="a.cfg", line=1, column=2, source_line="ab", expected=["c"], suggestion="d")
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is GrammarError
    assert (str(other), other.__dict__) == (str(error), error.__dict__)
