"""Machines one at a time."""

from __future__ import annotations

from itertools import product

import pytest

from formal_llm.control.machines import (
    ANY_CALL,
    build_within,
)


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
