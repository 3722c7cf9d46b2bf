"""Machines one at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import product

import pytest

from formal_llm.control.machines import (
    ANY_CALL,
    AtMostMachine,
    BudgetMachine,
    RateMachine,
    build_after,
    build_before,
    build_within,
)


def test_an_event_that_is_both() -> None:
    machine = build_before(("a", "b"), frozenset("a"), frozenset("b"), 1, each=True)
    both = frozenset("ab")
    assert machine.step(0, both, None) is None
    assert machine.step(1, both, None) == 1  # it uses up the one before, and is one for the next


def test_what_an_event_takes_from_the_whole_run() -> None:
    one = frozenset("a")
    assert AtMostMachine(("a", "b"), one, frozenset(), 3).measure_use(frozenset("ab"), None) == 1
    assert AtMostMachine(("a", "b"), one, frozenset(), 3).measure_use(frozenset("b"), None) == 0
    assert AtMostMachine(("a", "b"), one, frozenset("b"), 3).measure_use(one, None) is None  # it begins anew
    assert BudgetMachine(("a",), "cost", Fraction(5)).measure_use(one, Fraction(2)) == 2
    assert BudgetMachine(("a",), "cost", Fraction(5)).measure_use(one, None) == 0
    assert build_after(("a", "b"), one, frozenset("b")).measure_use(one, None) is None


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_a_deadline_that_calls_count(late: bool, calls: int) -> None:
    """Against all short runs: a call with each set of letters, and, where one may be late, each set without a call."""
    letters = [frozenset(one) for one in ("", "a", "b", "ab")]
    events = [one | {ANY_CALL} for one in letters] + letters[1:] * late
    machine = build_within(("a", "b"), frozenset("a"), frozenset("b"), calls, late=late)
    for run in (run for length in range(6) for run in product(events, repeat=length)):
        state: object = machine.start
        for event in run:
            state = None if state is None else machine.step(state, event, None)
        broken, due = False, False
        for at, event in enumerate(run):
            if "b" in event:
                after = run[at + 1 :]
                before = next((n for n, one in enumerate(after) if "a" in one), None)
                counted = sum(ANY_CALL in one for one in (after if before is None else after[: before + 1]))
                due |= before is None
                broken |= counted > calls or (before is None and counted == calls and not late)
        assert (state is None) is broken
        assert state is None or machine.is_accepting(state) is not due


def test_waiting() -> None:
    machine, now = RateMachine(("a",), 1, timedelta(minutes=10)), datetime(2026, 1, 1, tzinfo=UTC)
    state, _ = machine.step((), frozenset("a"), now)
    assert machine.step(state, frozenset("a"), now + timedelta(minutes=9)) == (
        state,
        "wait until 2026-01-01 00:10:00+00:00",
    )
    later = now + timedelta(minutes=10)
    assert machine.step(state, frozenset("a"), later) == ((later,), None)
