"""Machines one at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from formal_llm.control.machines import BeforeMachine, TimedMachine, list_letter_sets


def test_an_event_that_is_both() -> None:
    machine = BeforeMachine(("a", "b"), frozenset("a"), frozenset("b"), 1, each=True)
    both = frozenset("ab")
    assert machine.step(0, both, None) is None
    assert machine.step(1, both, None) == 1  # it uses up the one before, and is one for the next


def test_waiting() -> None:
    machine, now = TimedMachine(("a",), 1, timedelta(minutes=10)), datetime(2026, 1, 1, tzinfo=UTC)
    state = machine.step((), now)
    assert machine.find_wait_end(state, now + timedelta(minutes=9)) == now + timedelta(minutes=10)
    assert machine.find_wait_end(state, now + timedelta(minutes=10)) is None


def test_sets_of_letters() -> None:
    found = list_letter_sets(["a", "b", "c"], [("a", "b")], 10)
    assert found is not None
    assert set(found) == {frozenset("a"), frozenset("b"), frozenset("c"), frozenset("ab")}
    assert list_letter_sets(["a", "b", "c"], [("a", "b")], 3) is None
