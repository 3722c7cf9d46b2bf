"""Certificates of plans: what is in them, and that what is no plan gets none."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Budget, Flowchart, Limits, Plan, Planner, RandomLLM, SumLimit, Symbol, Walk, constraint
from formal_llm.automata.models.product import product
from formal_llm.errors import AutomatonError, BudgetExceeded, NoValidPlan
from formal_llm.planning.plans.certificates import certificate, compiled_rules, find_run
from tests import strategies
from tests.certifying import prove
from tests.oracles import language
from tests.planning.wandering import SEASONING, drive

LAUNDRY = CFG.from_string(
    "%limit 2 wash\n%limit minutes <= 7.5\n%require 1 dry\nS -> wash S | dry\nwash minutes=2.5\ndry minutes=2"
)


def test_a_certificate_holds_the_derivation_and_the_sums() -> None:
    walk = Walk(LAUNDRY)
    walk.answer(1)
    walk.answer(2)
    found = walk.plan.certificate()
    assert found["claim"] == "plan"
    assert (found["word"], found["run"], found["constraints"]) == (["wash", "dry"], [0, 1], [])
    assert found["sums"] == [1, 1, "9/2"]
    rules = compiled_rules(LAUNDRY)
    assert rules["grammar"] == {"start": "S", "productions": [["S", ["wash", "S"]], ["S", ["dry"]]]}
    assert rules["limits"][2] == {  # type: ignore[index, call-overload]
        "name": "%limit minutes <= 7.5", "weights": {"wash": "5/2", "dry": 2}, "at_most": "15/2",
    }  # fmt: skip


def test_a_plan_from_a_file_needs_its_rules() -> None:
    plan = Planner(LAUNDRY, "test:first").plan("t")
    again = Plan.from_json(plan.to_json())
    with pytest.raises(ValueError, match="name its rules"):
        again.certificate()
    assert again.certificate(LAUNDRY)["word"] == list(plan.word)
    assert prove(again, LAUNDRY)
    assert plan.with_usage(plan.usage).certificate() == plan.certificate()


def test_what_is_no_plan_has_no_certificate() -> None:
    walk = Walk(LAUNDRY)
    with pytest.raises(ValueError, match="not finished"):
        walk.partial.certificate()
    with pytest.raises(AutomatonError, match=r"%limit 2 wash is broken"):
        certificate(LAUNDRY, ["wash", "wash", "wash", "dry"])
    with pytest.raises(AutomatonError, match="no plan of these rules"):
        certificate(LAUNDRY, ["dry", "dry"])
    dry = constraint("(eventually wash)", LAUNDRY)
    with pytest.raises(AutomatonError, match="no plan of these rules"):
        certificate(LAUNDRY & dry, ["dry"])


def test_what_is_compiled_is_the_callers_own() -> None:
    compiled_rules(LAUNDRY)["limits"] = []
    assert len(compiled_rules(LAUNDRY)["limits"]) == 3  # type: ignore[arg-type]


class Own:
    """An automaton of one's own: one a."""

    terminals = ("a",)
    fingerprint = "own"

    def start(self) -> int:
        return 0

    def moves(self, configuration: int) -> list[object]:
        return [] if configuration else [type("Read", (), {"read": "a"})()]

    def step(self, configuration: int, move: object) -> int:
        return 1

    def accepting(self, configuration: int) -> bool:
        return configuration == 1


def test_an_automaton_of_ones_own_is_code_and_that_is_told() -> None:
    plan = Planner(Own(), "test:first").plan("t")  # type: ignore[arg-type]
    with pytest.raises(AutomatonError, match="automaton of one's own are code"):
        plan.certificate()


CHART = """flowchart TD
    s([Start]) --> a[Check] --> up{Is it up?}
    up -->|yes| b[Note]
    up -->|no| c[Page] --> a
"""
BY_HAND = PDA(
    [("p", "(", None, "p", ("x",)), ("p", ")", "x", "p"), ("p", None, None, "q"), ("q", "end", None, "r")],
    start="p", accepting=["r"],
)  # fmt: skip
NUMBERED = PDA([(0, "a", None, 1), (1, None, None, 0), (1, "b", None, 2)], start=0, accepting=[2])
FINITE = constraint("(eventually (next a b))", NUMBERED)


@pytest.mark.parametrize(
    "rules",
    [
        SEASONING,
        Flowchart.from_mermaid(CHART),
        BY_HAND,
        BY_HAND.with_limits(Limits({"(": 3}, {"(": 1})),
        NUMBERED,
        NUMBERED & FINITE,
        product(NUMBERED, FINITE),
        LAUNDRY & constraint("(eventually wash)", LAUNDRY) & constraint("(not (next wash wash any))", LAUNDRY),
        CFG.from_string("S -> some(a, b, c) T | d\nT -> x T | ε\n%limit 2 x\n%require 1 b"),
    ],
)
def test_rules_of_every_kind_are_proved(rules: object) -> None:
    for seed in range(6):
        plan = Planner(rules, RandomLLM(seed), budget=Budget(steps=60, backtracks=100)).plan("t")  # type: ignore[arg-type]
        assert prove(plan) == f"proved: this plan follows the rules: {' '.join(plan.word)}"
        assert prove(Plan.from_json(plan.to_json()), rules)


def test_the_stack_may_be_used_by_the_second_of_a_product() -> None:
    any_word = PDA([("z", letter, None, "z") for letter in ("(", ")", "end")], start="z", accepting=["z"])
    both = product(any_word, BY_HAND)
    assert [len(compiled_rules(rules)["constraints"]) for rules in (both, BY_HAND & any_word)] == [0, 1]  # type: ignore[arg-type]
    for rules in (both, BY_HAND & any_word):
        assert prove(Planner(rules, RandomLLM(3), budget=Budget(steps=40)).plan("t"))


@strategies.examples(60)
@given(strategies.limited_grammars(), st.integers(0, 1 << 30), st.sampled_from(["on", "off"]))
def test_every_plan_of_a_grammar_is_proved(cfg: CFG, seed: int, lookahead: str) -> None:
    try:
        walk = Walk(cfg, lookahead=lookahead, budget=Budget(steps=150, backtracks=300))  # type: ignore[arg-type]
        plan = drive(walk, random.Random(seed)).plan
    except (NoValidPlan, BudgetExceeded):
        assume(False)
    assert prove(plan)
    assert json.loads(json.dumps(plan.certificate())) == plan.certificate()


def test_amounts_are_exact() -> None:
    cfg = CFG(
        [("S", ("a", "S")), ("S", ("a",))], symbols={"a": Symbol(numbers={"m": 0.1})},
        limits=Limits(sums=(SumLimit("m", at_most=0.3, at_least=0.3),)),
    )  # fmt: skip
    plan = Planner(cfg, "test:first").plan("t")
    assert plan.certificate()["sums"] == ["3/10", "3/10"]
    assert prove(plan)


def test_a_run_reads_the_word() -> None:
    pda = PDA.from_cfg(CFG.from_string("S -> a S b | c"))
    moves = find_run(pda, tuple("aacbb"))
    here = pda.start()
    for move in moves:
        assert move in pda.moves(here)
        here = pda.step(here, move)
    assert pda.accepting(here)
    assert [move.read for move in moves if move.read] == list("aacbb")
    for word, shown in ((("a", "c"), "a c"), ((), r"ε \(the empty plan\)")):
        with pytest.raises(AutomatonError, match=f"this is no plan of these rules, .*: {shown}$"):
            find_run(pda, word)


@given(strategies.grammars())
@strategies.examples(80)
def test_each_word_has_a_run_whatever_goes_round_in_circles(cfg: CFG) -> None:
    pda = PDA.from_cfg(cfg)
    for word in sorted(language(cfg, 4))[:8]:
        here = pda.start()
        for move in find_run(pda, word):
            assert move in pda.moves(here)
            here = pda.step(here, move)
        assert pda.accepting(here)


@pytest.mark.filterwarnings("ignore:.*can become")
def test_a_run_does_not_go_round_in_circles() -> None:
    """The completions that are known from one place to the next need not become shorter here."""
    pda = PDA.from_cfg(CFG.from_string("S -> some(b) | some(c, a, b) S | b S S | S | ε"))
    for word in ("aba", "ca", "caba", "bcabab"):
        assert [move.read for move in find_run(pda, tuple(word)) if move.read] == list(word)
