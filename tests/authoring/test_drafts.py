"""Drafts: how the notation is recognised, what is found in one. What models get wrong is tried in test_author.py."""

from __future__ import annotations

import pytest

from formal_llm.authoring.drafts import check_draft, draft_of, notation_of


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("S -> a", ".cfg"), ("q, a, ε -> r, ε", ".pda"),
        ("graph LR\n a --> b", ".mmd"), ("; rules\n(define x)", ".agent"),
        ("S ::= a, b", ".cfg"), ("Buy milk.", None),
    ],
)  # fmt: skip
def test_the_notation(text: str, ending: str | None) -> None:
    assert notation_of(text) == ending


def test_what_is_found() -> None:
    good = check_draft("S -> a | b", ".cfg")
    assert (good.problems, good.doubts) == ((), ())
    assert good.source.accepts(["a"])
    wrong = check_draft("S -> a |", ".cfg")
    assert wrong.problems and wrong.rules is None
    with pytest.raises(ValueError, match="cannot be read"):
        _ = wrong.source
    empty = check_draft('(define r (:states a b) (:limits "%limit 0 a") (:behavior a))', ".agent")
    assert "no plan keeps %limit 0 a" in empty.problems[0]
    assert check_draft("flowchart TD\n a[Tell {who}] --> b([End])", ".mmd").problems == ()


def test_prose_in_the_middle() -> None:
    draft = draft_of("The plan:\nS -> a B\nwhere B is\nB -> b | c\nas you said.")
    assert (draft.text, draft.problems) == ("S -> a B\nB -> b | c\n", ())
    chart = "flowchart TD\n a[Wash] --> b([End])\n"
    assert draft_of(f"Here is the chart:\n{chart}\nIt washes.").text == chart
    assert draft_of("x (define r (:states a) (:behavior a)) y").text == "(define r (:states a) (:behavior a))\n"


def test_the_notation_that_was_asked_for_counts() -> None:
    assert draft_of("```\nS -> a\n```", ".pda").problems
    assert draft_of("no rules at all", ".pda").problems == (
        "there are no rules in the answer; write a .pda file between ``` and ```",
    )
