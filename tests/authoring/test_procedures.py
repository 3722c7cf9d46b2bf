"""Procedures: what they say, and what is between their steps."""

from __future__ import annotations

import pytest

from formal_llm.authoring.english import normalize_text
from formal_llm.authoring.names import NoName
from formal_llm.authoring.procedures import Ambiguous, read_procedure, rename_steps, weave_steps
from formal_llm.automata.models.formula import or_


@pytest.mark.parametrize(
    ("sentence", "formula"),
    [
        ("First wash, then dry, then iron", "(next wash dry iron)"),
        ("Either wash or dry, then iron", "(next (or wash dry) iron)"),
        ("Then wash and dry, in any order", "(or (next wash dry) (next dry wash))"),
        ("Then wash and then dry", "(next wash dry)"),
        ("Wash, then optionally dry", "(next wash (or dry empty))"),
        ("Then dry if needed", "(or dry empty)"),
        ("Finally wash up to 3 times", "(until_3 wash empty)"),
        ("Then wash between 2 and 3 times", "(until_2_3 wash empty)"),
        ("Then wash any number of times", "(until wash empty)"),
        ("Repeat draft or sketch until accept", "(until_1_* (or draft sketch) accept)"),
        ("Wash, followed by dry", "(next wash dry)"),
        ("If it is hot, open the window", "(or (next it_is_hot=yes open_window) it_is_hot=no)"),
        (
            "If asked for a refund then check then pay else answer",
            "(or (next asked_for_refund=yes check pay) (next asked_for_refund=no answer))",
        ),
        ("Wash, then if hot, dry, otherwise iron", "(next wash (or (next hot=yes dry) (next hot=no iron)))"),
        ("Then do nothing or wash", "(or empty wash)"),
    ],
)  # fmt: skip
def test_what_is_told(sentence: str, formula: str) -> None:
    assert str(read_procedure(normalize_text(sentence))) == formula


def test_what_is_no_procedure_or_not_clear() -> None:
    assert read_procedure("wash the car") is None
    assert str(read_procedure("wash the car", listed=True)) == "wash_car"
    with pytest.raises(NoName):
        read_procedure("then wash it")
    for sentence in (
        "if hot, wash, otherwise dry, then iron",
        "if hot, wash then dry",
        "then a, b or c and d",
        "then a, b, c, d, e and f",
    ):
        with pytest.raises(Ambiguous):
            read_procedure(sentence)


def test_weaving_and_renaming() -> None:
    told = read_procedure("wash at most 2 times, then dry or iron")
    assert told is not None
    assert str(rename_steps(told, str.upper)) == "(next (until_2 WASH empty) (or DRY IRON))"
    assert weave_steps(told, None) == told
    free = or_("x", "y")
    assert str(weave_steps(told, free)) == (
        "(next (until_2 (until (or x y) wash) empty) (or (until (or x y) dry) (until (or x y) iron)) "
        "(until (or x y) empty))"
    )
