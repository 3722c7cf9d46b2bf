"""Where events move rules, and what they would break."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.control.component import (
    Position,
    project_node,
)
from formal_llm.guard import Call, Guard, GuardRules, Result, Said
from formal_llm.guard.position import BrokenMachine, Movement
from tests.strategies import examples


def test_position() -> None:
    state = (
        Guard(GuardRules.from_string("a: t.result\nrule r: at least 1 a\n"))
        .start()
        .after(Call("t", {}, "1"))
        .after(Call("t", {}, "2"))
    )
    assert [name for name, _ in state.after(Result("t", {}, 1, "2")).position.calls] == ["1"]


Labelled = Mapping[str, Mapping[str, object]]


def moved(guard: Guard, position: Position, labels: Labelled, *, at: datetime | None = None) -> Movement:
    """Where an event with these letters leads."""
    return guard.positions.apply_event(position, Call("t", {}, at=at), labels)


def live(position: Position) -> tuple[Mapping[tuple[str, ...], object], ...]:
    """The state of each machine with keys in each case; the cases are counted right."""
    by_number = {}
    for cases in position.live.values():
        assert cases.counts == Counter(cases.states.values())
        for place, number in enumerate(cases.numbers):
            by_number[number] = {case: states[place] for case, states in cases.states.items()}
    return tuple(by_number[number] for number in sorted(by_number))


EACH = "a: a with k = k\nb: b with k = k\nx: x\n"


def test_each_case_of_a_rule_is_moved_by_itself_and_all_by_what_has_no_key() -> None:
    guard = Guard(GuardRules.from_string(f"{EACH}rule r for each k: at most 2 a since x\n"))
    now = guard.positions.start
    assert (now.states, live(now)) == ((2,), ({},))
    for key, cases in (("1", {("1",): 1}), ("2", {("1",): 1, ("2",): 1}), ("1", {("1",): 0, ("2",): 1})):
        now, refused = moved(guard, now, {"a": {"k": key}})
        assert (now.states, live(now), refused) == ((2,), (cases,), ())
    after, refused = moved(guard, now, {"a": {"k": "1"}})
    assert (after, refused) == (now, (BrokenMachine(0, said="for 1"),))
    fresh, refused = moved(guard, now, {"x": {}})
    assert (fresh.states, live(fresh), refused) == ((2,), ({("1",): 2, ("2",): 2},), ())
    missing, refused = moved(guard, now, {"a": {}})
    assert (missing, refused) == (now, (BrokenMachine(0, said="k cannot be told"),))


def test_what_breaks_some_cases_moves_the_others() -> None:
    guard = Guard(GuardRules.from_string(f"{EACH}rule r for each k: never x after a\nrule s for each k: at most 1 b\n"))
    now, _ = moved(guard, guard.positions.start, {"a": {"k": "1"}})
    now, _ = moved(guard, now, {"b": {"k": "2"}})
    assert live(now) == ({("1",): True, ("2",): False}, {("1",): 1, ("2",): 0})
    after, refused = moved(guard, now, {"x": {}})
    assert (after, refused) == (now, (BrokenMachine(0, said="for 1"),))


def test_where_nothing_new_may_come_no_case_begins() -> None:
    guard = Guard(
        GuardRules.from_string(f"{EACH}rule r for each k: a before x\nrule s for each k: at most 1 b since x\n")
    )
    now, _ = moved(guard, guard.positions.start, {"a": {"k": "1"}})
    after, refused = moved(guard, now, {"x": {}})
    assert (after.states, live(after), refused) == ((None, 1), live(now), ())
    late, refused = moved(guard, after, {"a": {"k": "2"}})
    assert (live(late)[0], refused) == ({("1",): 1}, (BrokenMachine(0, said="for 2"),))
    ((_, supervisor),) = guard.list_supervisors(frozenset())
    (component,) = (search.component for search in supervisor.searches)
    for position, base in ((now, (0, 1)), (after, None)):
        assert project_node(position, component).copies == ((base, frozenset({((1, 1), 1)})),)


@pytest.mark.parametrize("turned", [False, True])
def test_a_case_may_begin_for_one_rule_where_another_allows_none(turned: bool) -> None:
    rules = ["rule r for each k: at most 1 b since x\n", "rule s for each k: a before x\n"]
    guard = Guard(GuardRules.from_string(EACH + "".join(rules[::-1] if turned else rules)))
    state = guard.start().after(Call("x"))
    assert state.check(Call("a", {"k": 1})).rule == "s"
    assert state.check(Call("b", {"k": 1})).action == "allow"
    state = state.after(Call("b", {"k": 1}))
    assert {part.name: cases[("1",)] for part, cases in zip(guard.rules.parts, live(state.position), strict=True)} == {
        "r": 0,
        "s": None,
    }
    assert state.check(Call("b", {"k": 1})).rules == ("r",)
    assert state.check(Call("a", {"k": 1})).rule == "s"
    assert state.may_stop().runs


@examples(50)
@given(st.lists(st.tuples(st.sampled_from("abx"), st.integers(0, 3)), max_size=30))
def test_cases_are_counted_as_they_move(events: list[tuple[str, int]]) -> None:
    text = "rule r for each k: at most 2 a since x\nrule s for each k: b after each a\nrule t for each k: never x after b\n"
    guard = Guard(GuardRules.from_string(EACH + text))
    now = guard.positions.start
    for name, key in events:
        before = now
        now, refused = moved(guard, now, {name: {} if name == "x" else {"k": f"{key}"}})
        old, new = live(before), live(now)
        for number, cases in enumerate(new):
            step = guard.rules.parts[number].machine.step
            for case, state in cases.items():
                start = old[number].get(case, before.states[number])
                concerned = name in guard.rules.parts[number].machine.letters and (name == "x" or case == (f"{key}",))
                after = step(start, frozenset(name), None) if concerned else start
                assert state == (start if after is None else after)
                assert after is not None or number in [one.place for one in refused]


def test_what_a_budget_of_a_case_says() -> None:
    guard = Guard(GuardRules.from_string("a: a with k = k, c = c\nrule r for each k: budget c <= 5\n"))
    start = guard.positions.start
    for amount, said in ((-1, "c would be negative"), (6, "for 1"), (None, "c cannot be told")):
        labels = {"a": {"k": "1"} if amount is None else {"k": "1", "c": amount}}
        after, refused = moved(guard, start, labels)
        assert refused == (BrokenMachine(0, said=said),)
        assert live(after) == ({("1",): 5},)
    for amount in (0, 1, 5):
        after, refused = moved(guard, start, {"a": {"k": "1", "c": amount}})
        assert (live(after), refused) == (({("1",): 5 - amount},), ())
    assert moved(guard, after, {"a": {"k": "1", "c": 0.5}})[1] == (BrokenMachine(0, said="for 1"),)


def test_rules_about_when() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    text = f"{EACH}rule r for each k: at most 2 a within 10min\nrule s: at most 0 x within 10min\n"
    guard = Guard(GuardRules.from_string(text))
    now = guard.positions.start
    assert now.times == ({}, {})
    for minutes, key, times in ((0, "1", [0]), (1, "2", [1]), (2, "1", [0, 2])):
        now, refused = moved(guard, now, {"a": {"k": key}}, at=begin + timedelta(minutes=minutes))
        assert refused == ()
        assert now.times[0]["1",] or key == "1"
        assert now.times[0][key,] == tuple(begin + timedelta(minutes=minute) for minute in times)
    full, refused = moved(guard, now, {"a": {"k": "1"}}, at=begin + timedelta(minutes=9))
    assert (full, refused) == (now, (BrokenMachine(0, True, "wait until 2026-01-01 00:10:00+00:00"),))
    full, refused = moved(guard, now, {"x": {}}, at=begin)
    assert (full, refused) == (now, (BrokenMachine(1, True, ""),))
    for labels, expected in (
        ({"a": {}, "x": {}}, {BrokenMachine(0, True, "k cannot be told"), BrokenMachine(1, True)}),
        ({"b": {"k": "1"}}, set()),
        ({}, set()),
    ):
        after, refused = moved(guard, now, labels, at=begin)
        assert (after, set(refused)) == (now, expected)


def test_calls_under_way_are_remembered_up_to_64() -> None:
    guard = Guard(GuardRules.from_string("a: t.result\nrule r: at least 1 a\n"))
    now = guard.positions.start
    for number in range(70):
        now, _ = guard.positions.apply_event(now, Call("t", {}, f"{number}"), {})
    assert [name for name, _ in now.calls] == [f"{number}" for number in range(6, 70)]
    for event, gone in (
        (Result("t", {}, "", "8"), "8"),
        (Result("t", {}, "", "unknown"), "6"),
        (Result("u", {}, "", "8"), None),
        (Said("user", "hello"), None),
    ):
        after, _ = guard.positions.apply_event(now, event, {})
        assert [name for name, _ in after.calls] == [name for name, _ in now.calls if name != gone]
