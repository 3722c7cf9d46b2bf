"""Drafts: what is found in one. What models get wrong is tried in test_author.py."""

from __future__ import annotations

import pytest

from formal_llm.authoring.drafts import check_draft, read_draft


def test_what_is_found() -> None:
    good = check_draft("S -> a | b", ".cfg")
    assert (good.problems, good.warnings) == ((), ())
    assert good.source.accepts(["a"])
    wrong = check_draft("S -> a |", ".cfg")
    assert wrong.problems and wrong.rules is None
    with pytest.raises(ValueError, match="cannot be read"):
        _ = wrong.source
    empty = check_draft('(define r (:states a b) (:limits "%limit 0 a") (:behavior a))', ".agent")
    assert "no plan keeps %limit 0 a" in empty.problems[0]
    assert check_draft("flowchart TD\n a[Tell {who}] --> b([End])", ".mmd").problems == ()


def test_the_last_block_counts_and_its_first_word_names_the_notation() -> None:
    draft = read_draft("```cfg\nS -> a\n```\nor\n```rules\nsteps: a\nexactly 1 a\n```\nas you said")
    assert (draft.ending, draft.text, draft.problems) == (".rules", "steps: a\nexactly 1 a\n", ())
    chart = "flowchart TD\n a[Wash] --> b([End])\n"
    assert read_draft(f"Here is the chart:\n```mermaid\n{chart}```").text == chart


def test_the_notation_that_was_asked_for_counts() -> None:
    assert read_draft("```\nS -> a\n```", ".cfg").problems == ()
    assert read_draft("```cfg\nS -> a\n```", ".pda").problems
    assert read_draft("no rules at all", ".pda").problems


@pytest.mark.parametrize("reply", ["", "Buy milk.", "S -> a", "```\nS -> a\n```", "```python\nS -> a\n```"])
def test_without_a_name_of_the_notation_nothing_is_guessed(reply: str) -> None:
    draft = read_draft(reply)
    assert draft.rules is None
    assert "the name of the notation after the first ```" in draft.problems[0]
