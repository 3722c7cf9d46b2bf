"""Machines one at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import product

import pytest

from formal_llm.control.machines import (
    ANY_CALL,
    AfterMachine,
    AtMostMachine,
    BeforeMachine,
    BudgetMachine,
    RateMachine,
    WithinMachine,
    list_letter_sets,
)
from formal_llm.guard import Call, Guard, GuardRules


def test_an_event_that_is_both() -> None:
    machine = BeforeMachine(("a", "b"), frozenset("a"), frozenset("b"), 1, each=True)
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
    assert AfterMachine(("a", "b"), one, frozenset("b")).measure_use(one, None) is None


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_a_deadline_that_calls_count(late: bool, calls: int) -> None:
    """Against all short runs: a call with each set of letters, and, where one may be late, each set without a call."""
    letters = [frozenset(one) for one in ("", "a", "b", "ab")]
    events = [one | {ANY_CALL} for one in letters] + letters[1:] * late
    machine = WithinMachine(("a", "b", ANY_CALL), frozenset("a"), frozenset("b"), calls, late)
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


GRAMMAR = "S -> opn S cls | wrk S | wrk"


def words_within(deep: int, cls: int, wrk: int) -> set[tuple[str, ...]]:
    """All words of the grammar up to a depth that have no more of two letters."""
    words = {("wrk",)}
    for _ in range(deep):
        words |= {made for word in words for made in (("opn", *word, "cls"), ("wrk", *word))
                  if made.count("cls") <= cls and made.count("wrk") <= wrk}  # fmt: skip
    return words


@pytest.mark.parametrize("more", ["", "rule spent: budget cost <= 9\n"])
def test_words_whose_letters_are_limited(more: str) -> None:
    """A grammar and limits on its letters, decided exactly: against all words."""
    prefixes = {word[:size] for word in words_within(8, 3, 3) for size in range(len(word) + 1)}
    text = "opn: opn with cost = 1\ncls: cls with cost = 0\nwrk: wrk with cost = 0\n"
    text += f'rule g: grammar """\n%order forward\n{GRAMMAR}\n"""\nrule few: at most 3 cls\n%limit 3 wrk\n{more}'
    guard = Guard(GuardRules.from_string(text), ["opn", "cls", "wrk"])
    todo = [((), guard.start())]
    for word, state in todo:
        for name in ("opn", "cls", "wrk"):
            decision, longer = state.check(Call(name)), (*word, name)
            assert decision.certain
            assert decision.runs is (longer in prefixes), longer
            if longer in prefixes:
                todo.append((longer, state.after(Call(name))))


def test_waiting() -> None:
    machine, now = RateMachine(("a",), 1, timedelta(minutes=10)), datetime(2026, 1, 1, tzinfo=UTC)
    state, _ = machine.step((), frozenset("a"), now)
    assert machine.step(state, frozenset("a"), now + timedelta(minutes=9)) == (
        state,
        "wait until 2026-01-01 00:10:00+00:00",
    )
    later = now + timedelta(minutes=10)
    assert machine.step(state, frozenset("a"), later) == ((later,), None)


def test_sets_of_letters() -> None:
    found = list_letter_sets(["a", "b", "c"], [("a", "b")], 10)
    assert found is not None
    assert set(found) == {frozenset("a"), frozenset("b"), frozenset("c"), frozenset("ab")}
    assert list_letter_sets(["a", "b", "c"], [("a", "b")], 3) is None
