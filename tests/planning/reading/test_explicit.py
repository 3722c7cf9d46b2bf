"""Plans in JSON, and words."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Flowchart, Planner, RandomLLM, Symbol, Verifier
from formal_llm.errors import NotationError, Undecided
from formal_llm.planning.checking.texts import verify_text
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.vocabulary import write_word
from formal_llm.planning.reading.candidates import has_word
from formal_llm.planning.reading.explicit import (
    find_call_candidates,
    find_tree_candidates,
    format_call,
    is_derivation,
    parse_call,
    read_json,
    read_names,
)
from formal_llm.planning.reading.one_line import PlanLine, split_steps
from formal_llm.planning.reading.prose import StepPhrases
from formal_llm.planning.reading.reader import read_plan_text
from tests.planning.printing import plans
from tests.strategies import LETTERS, examples, names, told_automata, told_grammars

CALLS = CFG.from_string('%order prefix\nS -> f S S | g S | x some(y, z) "Mix" | x')


def plan(seed: int = 1) -> Plan:
    return Planner(CALLS, RandomLLM(seed)).plan("")


def test_what_json_says_besides_the_tree_is_looked_at() -> None:
    for seed in range(10):
        made = plan(seed)
        assert read_json(made.to_json()) == made
        assert is_derivation(made.tree, CALLS)
        data = json.loads(made.to_json())
        for part in ("word", "steps", "call"):
            with pytest.raises(NotationError, match=f"contradicts itself: its {part} and its tree"):
                read_json(json.dumps({**data, part: [["x"]]}))


def test_a_tree_that_is_no_derivation() -> None:
    made = Planner(CALLS, RandomLLM(2)).plan("")
    other = CFG.from_string("%order prefix\nS -> f S S | g S | x y")
    assert not is_derivation(made.tree, other)


def test_a_flat_tree_is_that_of_a_run() -> None:
    pda = PDA.from_string(
        '%start p\n%accept r\np, a, ε -> q, ε "Go"\np, a, ε -> s, ε "Run"\nq, b, ε -> r, ε\ns, c, ε -> r, ε'
    )
    made = Planner(pda, RandomLLM(0)).plan("").tree
    told = find_tree_candidates(made, pda)
    assert told is not None
    assert has_word(told)
    made.children[0].text = "Run" if made.children[0].text == "Go" else "Go"
    told = find_tree_candidates(made, pda)
    assert told is not None
    assert not has_word(told)


def test_names() -> None:
    assert read_names(["a b", "c"], {"a", "b", "c"}) == ("a", "b", "c")
    assert read_names(["a b", "d"], {"a", "b", "c"}) is None
    assert read_names(["a", "b"], {"a", "b"}) is None  # one a line: that is a list of steps


ETL = CFG.from_string('%order prefix\nR "the report" -> render T\nT -> join T T | load_csv events | load_sql orders')


def told(text: str) -> tuple[str, ...] | None:
    call = parse_call(text)
    found = find_call_candidates(ETL, *call) if call is not None else None
    return None if found is None else found.sample


@pytest.mark.parametrize(
    "text",
    [
        "render(join(load_csv(events), load_sql(orders)))",
        "the_report = render(join(load_csv(events), load_sql(orders)))",
        "render( join (load_csv(events),load_sql(orders)) )",
    ],
)
def test_the_brackets_of_a_plan(text: str) -> None:
    assert told(text) == ("render", "join", "load_csv", "events", "load_sql", "orders")


@pytest.mark.parametrize(
    "text",
    [
        "render(join, load_csv(events), load_sql(orders))",
        "render(join(load_csv, events, load_sql(orders)))",
        "render(join(load_csv(events)), load_sql(orders))",
        "render(join(load_csv(events, load_sql(orders))))",
        "other = render(join(load_csv(events), load_sql(orders)))",
        "render(load_csv(orders))",
    ],
)
def test_the_same_names_with_other_brackets_are_no_plan(text: str) -> None:
    assert told(text) is None


@pytest.mark.parametrize("text", ["f(x", "f(x))", "f(,x)", "f(x,)", "f()", "f(x)(y)", "f(x), g(y)", "f", "f(x) y"])
def test_what_is_no_call(text: str) -> None:
    assert parse_call(text) is None


def test_a_call_is_shown_as_it_is_printed() -> None:
    assert format_call(*(parse_call("a = f(x,g( y ))") or ("", []))) == "a = f(x, g(y))"


def test_selections_and_what_is_nothing() -> None:
    cfg = CFG.from_string("%order prefix\nS -> pan some(salt, oil) N\nN -> ε | spoon")
    for text, word in (("pan(salt, oil)", "pan salt oil"), ("pan(oil, spoon)", "pan oil spoon")):
        found = find_call_candidates(cfg, *(parse_call(text) or ("", [])))
        assert found is not None
        assert found.sample == tuple(word.split())
    assert find_call_candidates(cfg, *(parse_call("pan(oil, salt)") or ("", []))) is None


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
        order=draw(st.sampled_from(["forward", "prefix"])),
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
