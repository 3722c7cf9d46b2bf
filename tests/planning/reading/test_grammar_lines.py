"""The lines of a grammar's plan: order, what is applied to what, and why there is no plan."""

from __future__ import annotations

import pytest

from formal_llm import CFG
from formal_llm.planning.reading.grammar_lines import GrammarLines
from formal_llm.planning.reading.prose import StepLine

CFGS = CFG.from_string("S -> join T T\nT -> cut x | fold y | z")


def retold(*texts: str, order: str = "backward", strict: bool = False) -> GrammarLines:
    lines = [StepLine(n, n, text, text, n, printed=True) for n, text in enumerate(texts, 1)]
    return GrammarLines(CFGS, lines, order, strict=strict)


PRINTED = ("Use fold on y", "Use cut on x", "Use join on the result of step 2 and the result of step 1")


def test_a_printed_plan_and_its_results() -> None:
    assert [told.sample for told in retold(*PRINTED, strict=True).told] == [("join", "cut", "x", "fold", "y")]
    turned = (*PRINTED[:2], "Use join on the result of step 1 and the result of step 2")
    # It is printed with its last argument first, so this is none.
    assert not retold(*turned, strict=True).told
    assert not retold(PRINTED[1], PRINTED[0], PRINTED[2], strict=False).told[:0]


@pytest.mark.parametrize(
    "texts",
    [
        ("Use fold on y", "Use join on the result of step 1 and the result of step 1"),
        ("Use fold on x", *PRINTED[1:]),
        PRINTED[::-1],
        (*PRINTED[:2], "Use join on the result of step 2 and z"),
    ],
)
def test_other_lines_are_no_plan(texts: tuple[str, ...]) -> None:
    assert not retold(*texts).told
    assert not retold(*texts, strict=True).told


def test_what_steps_are_applied_to_may_be_left_out_of_all_of_them_but_not_by_a_machine() -> None:
    assert [told.sample for told in retold("fold", "cut", "join").told] == [("join", "cut", "x", "fold", "y")]
    assert not retold("Use fold", "Use cut", "Use join", strict=True).told
    assert not retold("join", "cut", "fold").told


def test_why_there_is_none() -> None:
    wrong = retold(PRINTED[0], PRINTED[0], "Use join on z and z").explain_failure()
    assert wrong.line is not None
    assert wrong.problem.startswith("no plan")
    assert retold(*PRINTED[:2]).guess_word() is None or not CFGS.accepts(retold(*PRINTED[:2]).guess_word() or ())


def test_a_label_with_on_in_it_is_not_what_a_step_is_applied_to() -> None:
    cfg = CFG.from_string('%order forward\nS -> S A | A "Wash"\nA -> c\nc "rinse on and on"')
    texts = ("Use rinse on and on", "Wash: rinse on and on")
    for order, rows in (("forward", texts), ("backward", texts[::-1])):
        lines = [StepLine(n, n, text, text, n, printed=True) for n, text in enumerate(rows, 1)]
        assert not GrammarLines(cfg, lines, order, strict=False).told
