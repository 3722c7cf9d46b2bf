"""Rules advanced together: copies, and calls under way."""

from __future__ import annotations

from dataclasses import replace

from formal_llm.control.component import Component, ComponentNode, project_node
from formal_llm.guard import Call, Guard, GuardRules, Result


def begun(text: str) -> tuple[Component, ComponentNode]:
    """The component of the first rule, and where it begins."""
    guard = Guard(GuardRules.from_string(text))
    ((_, supervisor),) = guard.list_supervisors(frozenset())
    component = supervisor.searches[0].component
    return component, project_node(guard.start().position, component)


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
    assert not node.pending and [*component.find_successors(node, result)] == []


def test_cases_that_owe_alike_are_counted() -> None:
    text = "c: call with order = order\nl: letter with order = order\nrule r for each order: l after each c\n"
    component, node = begun(text)
    (call,) = (step for step in component.steps if step.symbol.tool == "call")
    (letter,) = (step for step in component.steps if step.symbol.tool == "letter")
    for owing in (1, 2, 3):
        node = max(
            (one for one in component.find_successors(node, call) if one is not None),
            key=lambda one: component.estimate_distance(one) or 0,
        )
        ((_, live),) = node.copies
        assert [count for _, count in live] == [owing] and component.estimate_distance(node) == owing
        assert not component.is_accepting(node)
    for owing in (2, 1, 0):
        node = min(
            (one for one in component.find_successors(node, letter) if one is not None),
            key=lambda one: component.estimate_distance(one) or 0,
        )
        assert component.estimate_distance(node) == owing and component.is_accepting(node) is not bool(owing)


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
            assert component.estimate_distance(after) == owed
        node = max(found, key=lambda one: component.estimate_distance(one) or 0)
    assert [*component.find_successors(node, x)] == [None]


def test_a_result_comes_for_a_call_of_its_tool_that_it_may_come_for() -> None:
    guard = Guard(
        GuardRules.from_string("a: t.result\nb: u.result\nrule r: at least 3 a\nrule s: at most 3 b since a\n")
    )
    ((_, supervisor),) = guard.list_supervisors(frozenset())
    (component,) = (search.component for search in supervisor.searches)
    state = guard.start().after(Call("t", {}, "1")).after(Call("u", {}, "2"))
    node = project_node(state.position, component)
    assert {call for call, _ in node.pending} == {("t", frozenset()), ("u", frozenset())}
    (result,) = (step for step in component.steps if (step.symbol.kind, step.symbol.tool) == ("result", "t"))
    none: frozenset[str] = frozenset()
    for calls, count in (
        (frozenset({none}), 1),
        (frozenset({frozenset({"big"})}), 0),
        (frozenset[frozenset[str]](), 1),
    ):
        found = [*component.find_successors(node, result._replace(symbol=replace(result.symbol, after=calls)))]
        assert [one and one.pending for one in found] == [{(("u", frozenset()), 1)}] * count
