"""Rules apart where they share nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.control.component import (
    Component,
    ComponentNode,
    CopyDistances,
    MachineMove,
    apply_moves,
    project_node,
)
from formal_llm.control.machines import AfterMachine, AtMostMachine, NeverMachine, State
from formal_llm.guard import Call, Guard, GuardRules, Result
from tests.control.keyed_traps import KeyedJudge, TrapCount, make_keyed_rules, write_keyed_rules
from tests.control.test_whole_product import RULES, text
from tests.strategies import examples


def test_component() -> None:
    rules = GuardRules.from_string(
        "tools a, b, c, d\nrule r: a before b\nrule s: c before d\nrule t: never b after a\n"
    )
    ((_, supervisor),) = Guard(rules).list_supervisors(frozenset())
    assert [list(one.component.parts) for one in supervisor.searches] == [[0, 2], [1]]


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


def begun(text: str) -> tuple[Component, ComponentNode]:
    """The component of the first rule, and where it begins."""
    guard = Guard(GuardRules.from_string(text))
    ((_, supervisor),) = guard.list_supervisors(frozenset())
    component = supervisor.searches[0].component
    return component, project_node(guard.start().position, component)


def events_until(component: Component, move: MachineMove, state: State) -> int:
    """How many events a rule needs till one may come, or after how many there is nowhere new; 50 at most."""
    place = component.plain[move.place]
    machine, layers, seen = component.parts[place].machine, [{state}], {state}
    events = [one for step in component.steps for one in step.plain if one.place == move.place]
    while layers[-1] and len(layers) <= 50:
        if any(machine.step(one, move.letters, move.weight) is not None for one in layers[-1]):
            return len(layers) - 1
        further = {machine.step(one, event.letters, event.weight) for one in layers[-1] for event in events}
        layers.append(further - seen - {None})
        seen |= layers[-1]
    return len(layers) - 1


def guess(component: Component, node: ComponentNode) -> int:
    """For each rule that owes events the fewest that have to come before one that brings it nearer; summed."""
    total = 0
    for place, number in enumerate(component.plain):
        machine, state = component.parts[number].machine, node.plain[place]
        found = []
        for step in component.steps:
            for move in step.plain:
                if move.place == place:
                    after = machine.step(state, move.letters, move.weight)
                    if after is not None and (machine.distance_to_acceptance(after) or 0) < (
                        machine.distance_to_acceptance(state) or 0
                    ):
                        found.append(sum(events_until(component, one, node.plain[one.place]) for one in step.plain))
        total += min(found, default=0)
    return total


CHAINS = {
    "a chain": ("tools a, b, c, d\nrule r: 2 a before b\nrule s: 3 b before c\nrule t: c before d\nrule e: at least 1 d\n", 1),
    "two that owe": ("tools a, b, c\nrule e: at least 1 b\nrule r: 2 a before b\nrule f: at least 2 c\nrule s: 3 a before c\n", 5),
    "one of two ways": ("tools a\nb: b\nc: c\nx: b | c\nrule e: at least 1 x\nrule r: 5 a before b\nrule s: 3 a before c\n", 3),
    "the other way": ("tools a\nb: b\nc: c\nx: b | c\nrule e: at least 1 x\nrule r: 3 a before b\nrule s: 5 a before c\n", 3),
    "several rules at one event": ("tools a, b, z\nrule r: 2 a before z\nrule s: 3 b before z\nrule e: at least 1 z\n", 5),
    "nothing owed first": ("tools a, b, z\nrule q: b after each z\nrule r: 2 a before z\nrule e: at least 1 z\n", 2),
    "far": ("tools a, z\nrule r: 70 a before z\nrule e: at least 1 z\n", 50),
    "a last one": ("tools a, z\nrule r: 50 a before z\nrule e: at least 1 z\n", 50),
    "never": ("tools a, z\nrule n: never z\nrule e: at least 1 z\n", 1),
    "at once": ("tools a, z\nrule r: a before z\nrule e: at least 3 a\n", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_the_guess_of_what_has_to_come_first(name: str) -> None:
    text, expected = CHAINS[name]
    component, node = begun(text)
    assert component.estimate_missing_events(node) == expected
    assert guess(component, node) == expected
    seen, todo = {node}, [node]
    for now in todo[:40]:
        assert component.estimate_missing_events(now) == guess(component, now)
        for step in component.steps:
            for after in component.find_successors(now, step):
                if after is not None and after not in seen and len(todo) < 40:
                    seen.add(after)
                    todo.append(after)


@examples(60)
@given(rules=RULES)
def test_the_guess_of_rules_at_random(rules: list[tuple[str, str, str, int]]) -> None:
    component, node = begun(text(rules))
    todo = [node]
    for now in todo:
        assert component.estimate_missing_events(now) == guess(component, now)
        found = [after for step in component.steps for after in component.find_successors(now, step)]
        todo += [after for after in found if after is not None and len(todo) < 12 and after not in todo]


def test_calls_under_way_are_counted_down_one_by_one() -> None:
    text = "a: t.result\nrule r: at least 3 a\n"
    guard = Guard(GuardRules.from_string(text))
    ((_, supervisor),) = guard.list_supervisors(frozenset())
    (component,) = (search.component for search in supervisor.searches)
    state = guard.start()
    for number in range(3):
        state = state.after(Call("t", {}, f"{number}"))
    (result,) = (step for step in component.steps if step.symbol.kind == "result")
    (call,) = (step for step in component.steps if step.symbol.kind == "call")
    node = project_node(state.position, component)
    for left in (3, 2, 1):
        assert [count for _, count in node.pending] == [left]
        assert [*component.find_successors(node, call)] == []
        (more,) = component.find_successors(node, call, again=True)
        assert more is not None and [count for _, count in more.pending] == [left + 1]
        (after,) = component.find_successors(node, result)
        assert after is not None
        node = after
        state = state.after(Result("t", {}, "", f"{left - 1}"))
        assert node == project_node(state.position, component)
    assert node.pending == () and [*component.find_successors(node, result)] == []


def test_cases_that_owe_alike_are_counted() -> None:
    text = "c: call with order = order\nl: letter with order = order\nrule r for each order: l after each c\n"
    component, node = begun(text)
    (call,) = (step for step in component.steps if step.symbol.tool == "call")
    (letter,) = (step for step in component.steps if step.symbol.tool == "letter")
    for owing in (1, 2, 3):
        node = max(
            (one for one in component.find_successors(node, call) if one is not None),
            key=lambda one: component.distance_to_acceptance(one) or 0,
        )
        ((_, live),) = node.copies
        assert [count for _, count in live] == [owing] and component.distance_to_acceptance(node) == owing
        assert not component.is_accepting(node)
    for owing in (2, 1, 0):
        node = min(
            (one for one in component.find_successors(node, letter) if one is not None),
            key=lambda one: component.distance_to_acceptance(one) or 0,
        )
        assert component.distance_to_acceptance(node) == owing and component.is_accepting(node) is not bool(owing)


def test_one_copy_moves_where_an_event_is_about_it_and_all_where_it_has_no_key() -> None:
    text = "a: a with k = k\nx: x\nrule r for each k: at least 3 a\nrule s for each k: never x after a\n"
    component, node = begun(text)
    (a,) = (step for step in component.steps if step.symbol.tool == "a")
    (x,) = (step for step in component.steps if step.symbol.tool == "x")
    assert [[len(moves) for moves in one] for one in (*a.each, *x.each)] == [[0, 2], [1, 0]]
    base = (3, False)
    for expected in (
        {frozenset({((2, True), 1)})},
        {frozenset({((2, True), 2)}), frozenset({((1, True), 1)})},
        {frozenset({((2, True), 3)}), frozenset({((2, True), 1), ((1, True), 1)})},
    ):
        found = [after for after in component.find_successors(node, a) if after is not None]
        assert {after.copies for after in found} == {((base, live),) for live in expected}
        for after in found:
            owed = sum(int(str(state[0])) * number for state, number in after.copies[0][1])
            assert component.distance_to_acceptance(after) == owed
            assert component.distance_after(node, after, a, component.distance_to_acceptance(node) or 0) == owed
        node = max(found, key=lambda one: component.distance_to_acceptance(one) or 0)
    assert [*component.find_successors(node, x)] == [None]


def test_a_result_comes_for_a_call_of_its_tool_that_it_may_come_for() -> None:
    guard = Guard(
        GuardRules.from_string("a: t.result\nb: u.result\nrule r: at least 3 a\nrule s: at most 3 b since a\n")
    )
    ((_, supervisor),) = guard.list_supervisors(frozenset())
    (component,) = (search.component for search in supervisor.searches)
    state = guard.start().after(Call("t", {}, "1")).after(Call("u", {}, "2"))
    node = project_node(state.position, component)
    assert [call for call, _ in node.pending] == [("t", frozenset()), ("u", frozenset())]
    (result,) = (step for step in component.steps if (step.symbol.kind, step.symbol.tool) == ("result", "t"))
    none: frozenset[str] = frozenset()
    for calls, count in (
        (frozenset({none}), 1),
        (frozenset({frozenset({"big"})}), 0),
        (frozenset[frozenset[str]](), 1),
    ):
        found = [*component.find_successors(node, result._replace(symbol=replace(result.symbol, after=calls)))]
        assert [one and one.pending for one in found] == [((("u", frozenset()), 1),)] * count


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
    monkeypatch.setattr("formal_llm.control.component._MOST", 0)
    events = [((), [MachineMove(0, A, None), MachineMove(1, A, None)])]
    assert CopyDistances([OWES, OWES], events).measure_distance((True, True)) == 2
    assert CopyDistances([OWES, OWES], events).measure_distance((True, False)) == 1
