"""Copies of rules ``for each``: how far they are from being kept, and guards against all short runs."""

from __future__ import annotations

from itertools import product
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.guard import Call, Guard, GuardRules, Result
from formal_llm.agents.guard.copies import CopyDistances, Moves, moved
from formal_llm.agents.guard.machines import AfterMachine, AtMostMachine, NeverMachine
from tests.strategies import examples

A, B = frozenset("a"), frozenset("b")
OWES = AfterMachine(("a", "b"), A, B)
NEVER = NeverMachine(("a", "b"), A, B, False)
MOST = AtMostMachine(("b",), B, frozenset(), 2)


def test_moved() -> None:
    both = [Moves(0, B, None), Moves(1, B, None)]
    assert moved([OWES, NEVER], (False, False), both) == (True, True)
    assert moved([OWES, NEVER], (True, True), [Moves(0, A, None), Moves(1, A, None)]) is None
    assert moved([OWES, NEVER], (True, True), []) == (True, True)


def test_what_one_rule_owes_another_forbids() -> None:
    events = [((), [Moves(0, name, None), Moves(1, name, None)]) for name in (A, B)]
    distances = CopyDistances([OWES, NEVER], events)
    assert distances.of((False, False)) == 0
    assert distances.of((True, False)) == 1
    assert distances.of((True, True)) is None


def test_what_other_copies_are_about_moves_this_one_only_where_it_is_about_all() -> None:
    assert CopyDistances([OWES], [([Moves(0, A, None)], ())]).of((True,)) == 1
    assert CopyDistances([MOST, OWES], [((), [Moves(0, B, None)])]).of((1, True)) is None


#: Runs are of two tools; two keys that come, and one that did not come yet.
EVENTS = [*product("ab", (1, 2, 3))]
RUNS = [run for length in range(6) for run in product(EVENTS, repeat=length)]


def kept(rule: tuple[str, ...], run: str) -> bool:
    """Whether a sequence of tools keeps a rule, read off the whole sequence."""
    kind, one, other = rule
    if kind == "at least 1":
        return one in run
    if kind == "at most 1":
        return run.count(one) <= 1
    if kind == "before":
        return other not in run.partition(one)[0]
    if kind == "before each":
        return all(one in part for part in run.split(other)[:-1])
    if kind == "never after":
        return one not in run.partition(other)[2]
    assert kind == "after each"
    return other not in run or one in run.rpartition(other)[2]


def written(rule: tuple[str, ...]) -> str:
    kind, one, other = rule
    first, _, then = kind.partition(" ")
    if first == "at":
        return f"{kind} {one}"
    return (
        f"never {one} after {other}"
        if first == "never"
        else f"{one} {kind} {other}"
        if then
        else f"{one} before {other}"
    )


@examples(30)
@given(st.integers(0, 10**6))
def test_guards_against_all_short_runs(seed: int) -> None:
    rng = Random(seed)
    cost, most = {tool: rng.randint(0, 2) for tool in "ab"}, rng.choice((None, 0, 1, 3))
    rules = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("at least 1", "at most 1", "before", "before each", "never after", "after each"))
        rules.append(((kind, *rng.sample("ab", 2)), kind != "at least 1" and rng.random() < 0.6))
    lines = [f"{tool}: {tool} with cost = {cost[tool]}, key = key" for tool in "ab"]
    lines += [f"rule r{n}{' for each key' * each}: {written(rule)}" for n, (rule, each) in enumerate(rules)]
    lines += [f"rule sum: budget cost <= {most}"] if most is not None else []

    def good(run: tuple[tuple[str, int], ...]) -> bool:
        whole = "".join(tool for tool, _ in run)
        apart = ["".join(tool for tool, key in run if key == wanted) for wanted in (1, 2, 3)]
        return (most is None or sum(cost[tool] for tool in whole) <= most) and all(
            kept(rule, text) for rule, each in rules for text in (apart if each else [whole])
        )

    ends = {run for run in RUNS if good(run)}
    if () not in ends and not any(run[:1] for run in ends):
        return  # no run keeps the rules, which is told before any
    live = {run[:length] for run in ends for length in range(min(len(run), 1) + 1)}
    state = Guard(GuardRules.from_string("\n".join(lines)), tools=["a", "b"]).start()
    assert (state.may_stop().action == "allow") == (() in ends)
    for tool, key in EVENTS[:2] + EVENTS[3:5]:
        call = Call(tool, {"key": key})
        decision = state.check(call)
        assert (decision.action == "allow") == (((tool, key),) in live) or not decision.certain, (lines, tool, key)
        assert decision.certain or decision.action == "allow"
        if decision.action == "allow":
            after = state.after(call).after(Result(tool, {"key": key}, ""))
            assert (after.may_stop().action == "allow") == (((tool, key),) in ends)


def test_a_trap_among_copies_is_seen_at_once() -> None:
    rules = GuardRules.from_string(
        "a: a with key = key\nb: b with key = key\nrule r0 for each key: a after each b\nrule r1 for each key: never a after b"
    )
    state = Guard(rules, tools=["a", "b"]).start()
    decision = state.check(Call("b", {"key": 1}))
    assert decision.action == "block" and decision.certain
