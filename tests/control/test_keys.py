"""Guards with rules ``for each`` key, against a search through all states."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard import Call, Guard, GuardRules
from tests.control.keyed_traps import KeyedJudge, TrapCount, make_keyed_rules, write_keyed_rules
from tests.strategies import examples

KEYED = (
    "pay: pay with order = id, cost = 0\nship: ship with order = id, cost = 2\nrefund: refund with order = id, cost = 0\n"
    "rule due for each order: {} after each pay\nrule paid-once for each order: at most 1 pay\n"
)


@pytest.mark.parametrize(
    ("due", "more", "fits"),
    [
        ("ship", "rule few: at most 3 ship\n", 3),
        ("ship", "rule few: at most 1 ship since refund\n", None),  # what begins anew bounds nothing in the end
        ("ship or refund", "rule few: at most 2 ship\nrule back: at most 1 refund\n", 3),
        ("ship", "rule spent: budget cost <= 5\n", 2),
        ("ship", "rule few: at most 3 ship\nrule twice for each order: 2 refund before ship\nrule back: at most 4 refund\n", 2),
        ("ship or refund", "rule few: at most 0 ship\n", None),
    ],
)  # fmt: skip
def test_what_copies_need_is_counted(due: str, more: str, fits: int | None) -> None:
    """Orders are paid as long as all of them can still be shipped; no search is needed for that."""
    state = Guard(GuardRules.from_string(KEYED.format(due) + more), max_states=200).start()
    for order in range(6):
        decision = state.check(Call("pay", {"id": order}))
        assert decision.certain
        assert decision.runs is (fits is None or order < fits)
        if not decision.runs:
            assert "could not be kept" in decision.reason
            return
        state = state.after(Call("pay", {"id": order}))
    assert fits is None


@pytest.mark.parametrize("severity", ["", " ask"])
def test_a_key_that_one_rule_sees_is_one_of_all_rules_for_these_keys(severity: str) -> None:
    """``b`` begins a copy of the rule about ``d``, which does not look at ``b``, and is not in the same tier."""
    lines = [f"{name}: {name} with key = key" for name in "bd"]
    lines += ["rule few: at most 2 d", "rule two for each key: at least 2 d"]
    guard = Guard(GuardRules.from_string("\n".join([*lines, f"rule one{severity} for each key: at least 1 b\n"])))
    state = guard.start().after(Call("b", {"key": 0}))
    assert state.check(Call("d", {"key": 0})).runs
    for name in "bd":
        decision = state.check(Call(name, {"key": 1}))
        assert (decision.action, decision.certain) == ("block", True)


@examples(15)
@given(st.integers(0, 10**6))
def test_rules_for_each_key_against_a_search_through_all_states(seed: int) -> None:
    rng, count = random.Random(seed), TrapCount()
    whole, each = make_keyed_rules(rng)
    count.walk(write_keyed_rules(whole, each), KeyedJudge(whole, each), rng, 5, "block")
    assert not count.wrong
    assert not count.entered


def test_a_trap_among_copies_is_seen_at_once() -> None:
    rules = GuardRules.from_string(
        "a: a with key = key\nb: b with key = key\nrule r0 for each key: a after each b\nrule r1 for each key: never a after b"
    )
    state = Guard(rules, tools=["a", "b"]).start()
    decision = state.check(Call("b", {"key": 1}))
    assert decision.action == "block" and decision.certain
