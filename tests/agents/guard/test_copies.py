"""Copies of rules ``for each``: how far they are from being kept, and guards against all short runs."""

from __future__ import annotations

import pytest

from formal_llm.agents.guard import Call, Guard, GuardRules
from formal_llm.agents.guard.copies import CopyDistances, MachineMove, apply_moves
from formal_llm.agents.guard.machines import AfterMachine, AtMostMachine, NeverMachine
from tests.agents.guard.short_runs import test_guards_against_all_short_runs as test_guards_against_all_short_runs

A, B = frozenset("a"), frozenset("b")
OWES = AfterMachine(("a", "b"), A, B)
NEVER = NeverMachine(("a", "b"), A, B, False)
MOST = AtMostMachine(("b",), B, frozenset(), 2)


def test_moved() -> None:
    both = [MachineMove(0, B, None), MachineMove(1, B, None)]
    assert apply_moves([OWES, NEVER], (False, False), both) == (True, True)
    assert apply_moves([OWES, NEVER], (True, True), [MachineMove(0, A, None), MachineMove(1, A, None)]) is None
    assert apply_moves([OWES, NEVER], (True, True), []) == (True, True)


def test_what_one_rule_owes_another_forbids() -> None:
    events = [((), [MachineMove(0, name, None), MachineMove(1, name, None)]) for name in (A, B)]
    distances = CopyDistances([OWES, NEVER], events)
    assert distances.measure_distance((False, False)) == 0
    assert distances.measure_distance((True, False)) == 1
    assert distances.measure_distance((True, True)) is None


def test_what_other_copies_are_about_moves_this_one_only_where_it_is_about_all() -> None:
    assert CopyDistances([OWES], [([MachineMove(0, A, None)], ())]).measure_distance((True,)) == 1
    assert CopyDistances([MOST, OWES], [((), [MachineMove(0, B, None)])]).measure_distance((1, True)) is None


def test_a_trap_among_copies_is_seen_at_once() -> None:
    rules = GuardRules.from_string(
        "a: a with key = key\nb: b with key = key\nrule r0 for each key: a after each b\nrule r1 for each key: never a after b"
    )
    state = Guard(rules, tools=["a", "b"]).start()
    decision = state.check(Call("b", {"key": 1}))
    assert decision.action == "block" and decision.certain


def test_an_event_that_breaks_a_rule_does_not_hide_the_next() -> None:
    """Of three events the first may not come."""
    events = [
        ((), [MachineMove(0, B, None), MachineMove(1, A, None)]),
        ((), [MachineMove(1, A, None)]),
        ((), [MachineMove(0, A, None)]),
    ]
    assert CopyDistances([NEVER, OWES], events).measure_distance((True, False)) == 0
    assert CopyDistances([NeverMachine(("a", "b"), A, B, True), OWES], [
        ((), [MachineMove(0, A, None), MachineMove(1, A, None)]), ((), [MachineMove(1, A, None)]),
    ]).measure_distance((True, True)) == 1  # fmt: skip
    assert CopyDistances([NEVER, OWES], [([MachineMove(0, A, None)], [MachineMove(1, A, None)]), ((), [MachineMove(1, A, None)])]).measure_distance(
        (True, True)
    ) == 1  # fmt: skip


def test_rules_with_many_states_together_are_measured_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formal_llm.agents.guard.copies._MOST", 0)
    events = [((), [MachineMove(0, A, None), MachineMove(1, A, None)])]
    assert CopyDistances([OWES, OWES], events).measure_distance((True, True)) == 2
    assert CopyDistances([OWES, OWES], events).measure_distance((True, False)) == 1
