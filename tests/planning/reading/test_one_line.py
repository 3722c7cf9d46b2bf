"""Plans on one line: what is written is read back, whatever signs names and labels hold."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Flowchart, Symbol, Verifier
from formal_llm.errors import Undecided
from formal_llm.planning.checking.texts import verify_text
from formal_llm.planning.plans.vocabulary import write_word
from formal_llm.planning.reading.one_line import PlanLine, split_steps
from formal_llm.planning.reading.prose import StepPhrases
from formal_llm.planning.reading.reader import read_plan_text
from tests.planning.printing import plans
from tests.strategies import LETTERS, examples, names, told_automata, told_grammars

#: Labels with what parts steps, words, calls and data.
odd = st.text(' ,/abAB"()[]{}:;.-*#?—1ε', min_size=1, max_size=8).filter(str.strip)
PAY = Flowchart.from_mermaid("""
flowchart TD
    how{How to pay?} --> bill[Bill] --> done([End])
    how -->|by card| swipe[Swipe, and wait] --> again{Once more?}
    again -->|Bill / later| bill
    again -->|no| done
""")


@st.composite
def odd_automata(draw: st.DrawFn) -> PDA:
    """Automata with decisions, whose names, labels and questions are odd."""
    plain = draw(told_automata())
    called = dict(zip(LETTERS, draw(st.lists(names, min_size=3, max_size=3, unique=True)), strict=True))
    question = draw(odd)
    moves = [
        replace(
            move, read=None if move.read is None else called[move.read], question=question if move.decision else "",
            text=draw(odd) if move.text and draw(st.booleans()) else move.text,
        )
        for move in plain.transitions
    ]  # fmt: skip
    read = {move.read for move in moves} - {None}
    labels = draw(st.dictionaries(st.sampled_from(LETTERS), odd | st.sampled_from(LETTERS), max_size=3))
    symbols = {called[name]: Symbol(label) for name, label in labels.items() if called[name] in read}
    return PDA(
        moves, start=plain.start_state, accepting=plain.accepting_states, stack=plain.start_stack, symbols=symbols,
        order=draw(st.sampled_from([None, "forward", "backward"])),
    )  # fmt: skip


def check_lines(rules: CFG | PDA) -> None:
    pda = PDA.from_cfg(rules).with_limits(rules.limits) if isinstance(rules, CFG) else rules
    line, verifier = PlanLine(rules), Verifier(rules)
    for plan in islice(plans(pda, "forward", 4), 8):
        for text in (line.write_plan(plan.word), write_word(plan.word)):
            found = verify_text(text, verifier, repair=False)
            assert found.valid, (text, plan.word, found.reason)


@given(odd_automata())
@examples(150)
def test_what_is_written_of_automata_is_valid(pda: PDA) -> None:
    with suppress(Undecided):
        check_lines(pda)


@given(told_grammars(), st.dictionaries(st.sampled_from(LETTERS), odd, max_size=3))
@examples(40)
def test_what_is_written_of_grammars_is_valid(cfg: CFG, labels: dict[str, str]) -> None:
    with suppress(Undecided):
        check_lines(cfg.with_labels({name: label for name, label in labels.items() if name in cfg.terminals}))


@pytest.mark.parametrize(("row", "parts"), [
    ("a / b / x", ["a / b", "x"]),
    ("x / a / b", ["x", "a / b"]),
    ("x, a, b", ["x", "a", "b"]),
    ("a / b / what / x", ["a / b", "what", "x"]),
    ("a / what / b", ["a", "what", "b"]),
    ("a / b / what", None),
])  # fmt: skip
def test_a_line_has_as_few_unknown_parts_as_possible_and_then_as_few_parts(row: str, parts: list[str] | None) -> None:
    names = ["a", "b", "a / b", "x"]
    assert split_steps(row, StepPhrases(lambda text: text in names, names)) == parts


def test_an_answer_with_the_label_of_the_step_behind_it_is_written_once() -> None:
    line = PlanLine(PAY.pda())
    assert line.write_plan(("how=bill", "bill")) == "Bill"
    long = ("how=by_card", "swipe", "again=bill_later", "bill")
    assert line.write_plan(long) == "How to pay? by card / Swipe, and wait / Once more? Bill / later / Bill"
    assert read_plan_text(line.write_plan(long), PAY) == long
    assert line.write_plan(()) == "ε (the empty plan)"
