"""Proofs that there is no plan: they hold, are found where the argument is linear, and never where there is one."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, SumLimit, Symbol, Verdict, constraint
from formal_llm.errors import AutomatonError, Undecided
from formal_llm.planning.checking.no_plan import no_plan_certificate
from formal_llm.planning.plans.certificates import compiled_rules, pda_of, write_claim_head
from tests import oracles, strategies
from tests.certifying import Refused, check, stranger
from tests.planning.checking.test_certificate_checker import changes

PROVED = "proved: no plan follows the rules"
ABC = CFG.from_string("S -> a S | b S | c")


def summed(limits: Limits, *rows: tuple[str, dict[str, float]], text: str = "S -> a S | b S | c") -> CFG:
    cfg = CFG.from_string(text)
    return CFG(cfg.productions, symbols={name: Symbol(numbers=numbers) for name, numbers in rows}, limits=limits)


@pytest.mark.parametrize(
    ("rules", "how"),
    [
        (CFG([("S", ("a", "S"))]), "reachability"),
        (ABC.with_limits(Limits({"c": 0})), "reachability"),
        (PDA([("p", "a", "x", "q"), ("p", "a", None, "p", ("y",))], start="p", accepting=["q"], check=False),
         "reachability"),
        (ABC & constraint("(eventually (next c a))", ABC), "reachability"),
        # A required terminal that no plan reaches; one that is needed more often than another one allows.
        (CFG([("S", ("a",)), ("X", ("x", "X")), ("X", ("x",))], limits=Limits({}, {"x": 1})), "linear"),
        (CFG([("S", ("a", "b", "S")), ("S", ("c",))], limits=Limits({"b": 2}, {"a": 3})), "linear"),
        (ABC.with_limits(Limits({"b": 1})) & constraint("(eventually (next b b))", ABC), "linear"),
        # 100 steps of at most 9 do not come to 1,000, and not two of these three sums can be kept by themselves.
        (summed(Limits(sums=(SumLimit("k", at_least=1000), SumLimit("n", at_most=100))),
                ("a", {"k": 9, "n": 1}), ("b", {"k": 8, "n": 1}), ("c", {"k": 2, "n": 1})), "linear"),
        (summed(Limits({}, {"a": 3, "b": 4}, sums=(SumLimit("k", at_most=10.5), SumLimit("m", at_most=10.5))),
                ("a", {"k": 2, "m": 1}), ("b", {"k": 1, "m": 2})), "linear"),
        # No sum of 2s is 5: true, and no linear argument. Of the large ones there are too many sums to write down.
        (summed(Limits(sums=(SumLimit("k", 5, 5),)), ("a", {"k": 2}), text="S -> a S | c"), "counting"),
        (summed(Limits(sums=(SumLimit("k", 3.5, 3.5),)), ("a", {"k": 1}), ("b", {"k": 2}), text="S -> S a | a S b | c"),
         "counting"),
        (summed(Limits({"a": 1, "b": 1}, sums=(SumLimit("k", 5, 5), SumLimit("m", at_most=9))),
                ("a", {"k": 2}), ("b", {"k": 4, "m": 1})), "counting"),
        (summed(Limits(sums=(SumLimit("k", 7, 7),)), ("a", {"k": 2}), ("b", {"k": 4}))
         & constraint("(eventually b)", ABC), "counting"),
        (summed(Limits(sums=(SumLimit("k", 10**5 + 1, 10**5 + 1),)), ("a", {"k": 2}), text="S -> a S | c"), "search"),
    ],
)  # fmt: skip
def test_why_there_is_no_plan_is_proved_or_told_to_be_by_search(rules: Any, how: str) -> None:
    found = stranger(no_plan_certificate(rules))
    assert found["how"] == how
    if how == "search":
        with pytest.raises(Refused, match="found by search"):
            check(stranger(compiled_rules(rules)), found)
    else:
        assert check(stranger(compiled_rules(rules)), found) == PROVED


def test_where_there_is_a_plan_there_is_no_such_certificate() -> None:
    with pytest.raises(AutomatonError, match="there is a plan"):
        no_plan_certificate(ABC)


def test_what_the_lookahead_does_not_know_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lookahead, "completable", lambda _: Verdict("unknown", "state budget"))
    with pytest.raises(Undecided, match="state budget"):
        no_plan_certificate(ABC)


def test_more_limits_and_large_rules() -> None:
    assert no_plan_certificate(ABC, Limits({"c": 0}))["how"] == "reachability"
    large = CFG([("S", (f"t{number}", "S")) for number in range(21_000)])  # too large for a proof to be looked for
    assert no_plan_certificate(large)["how"] == "search"


@strategies.examples(40)
@given(strategies.limited_grammars())
def test_what_is_proved_to_have_no_plan_has_none(cfg: CFG) -> None:
    assume(Lookahead(cfg).completable().value == "no")
    found = stranger(no_plan_certificate(cfg))
    if found["how"] != "search":
        assert check(stranger(compiled_rules(cfg)), found) == PROVED
    words = oracles.language(cfg, 4)
    assert not [word for word in words if oracles.keeps(word, cfg.limits, cfg.terminals, cfg.symbols)]


@strategies.examples(15)
@given(strategies.limited_automata())
def test_automata_by_hand_too(made: tuple[PDA, Limits]) -> None:
    pda, limits = made
    assume(Lookahead(pda, limits).completable().value == "no")
    found = stranger(no_plan_certificate(pda, limits))
    if found["how"] != "search":
        assert check(stranger(compiled_rules(pda, limits)), found) == PROVED
    assert oracles.Reference(pda, limits, pda.terminals).empty


@strategies.examples(20)
@given(strategies.limited_grammars(), st.integers(0, 1 << 30))
def test_a_proof_does_not_hold_for_rules_with_a_plan(cfg: CFG, seed: int) -> None:
    assume(Lookahead(cfg).completable().value == "no")
    rng = random.Random(seed)
    proof = stranger(no_plan_certificate(cfg))
    looser = cfg.with_limits(Limits(dict.fromkeys(cfg.terminals, 2), {}))
    for rules in (looser, cfg.with_limits(Limits())):
        if Lookahead(rules).completable().value != "yes":
            continue
        head = write_claim_head(pda_of(rules, None), "no plan")
        data = stranger(compiled_rules(rules))
        count = len(data["limits"])
        tried = [proof, *rng.sample(found := list(changes(proof, [])), min(50, len(found)))]
        for one in tried:
            given_ = one.get("multipliers")
            if isinstance(given_, list):
                one = {**one, "multipliers": [*given_, *[0] * count][:count]}
            with pytest.raises(Refused):
                check(data, {**one, **head})
