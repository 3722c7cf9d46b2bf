"""Guards with rules ``for each`` and sums against all short runs, and against a search through all states."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard import Call, Guard, GuardRules, Result
from tests.control.keyed_traps import KeyedJudge, TrapCount, make_keyed_rules, write_keyed_rules
from tests.strategies import examples

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
    if kind == "only":
        return set(run) <= {one}
    if kind.startswith("within"):
        most = int(kind.split()[1])
        return all(one in run[at + 1 : at + 1 + most] for at, tool in enumerate(run) if tool == other)
    assert kind == "after each"
    return other not in run or one in run.rpartition(other)[2]


def written(rule: tuple[str, ...]) -> str:
    kind, one, other = rule
    first, _, then = kind.partition(" ")
    if first in ("at", "only"):
        return f"{kind} {one}"
    return (
        f"never {one} after {other}"
        if first == "never"
        else f"{one} {kind} {other}"
        if then
        else f"{one} before {other}"
    )


def compare_with_runs(seed: int) -> None:
    """Rules at random: what a guard allows first and second, and where it may end, against all runs of five calls."""
    rng = random.Random(seed)
    cost, most = {tool: rng.randint(0, 2) for tool in "ab"}, rng.choice((None, 0, 1, 3))
    rules = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("at least 1", "at most 1", "before", "before each", "never after", "after each",
                           "within 1 call after", "within 2 calls after", "only"))  # fmt: skip
        rules.append(((kind, *rng.sample("ab", 2)), kind not in ("at least 1", "only") and rng.random() < 0.6))
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
    prefixes = [{run[:length] for run in ends} for length in range(3)]
    first = Guard(GuardRules.from_string("\n".join(lines)), tools=["a", "b"], unsure="allow").start()
    assert (first.may_stop().action == "allow") == (() in ends)
    waiting = [(first, ())]
    for state, run in waiting:
        for tool, key in EVENTS[:2] + EVENTS[3:5]:
            call, longer = Call(tool, {"key": key}), (*run, (tool, key))
            decision = state.check(call)
            # After two events there may be too few left among the short runs.
            if decision.action == "allow":
                assert not decision.certain or run or longer in prefixes[1], (lines, longer)
                after = state.after(call).after(Result(tool, {"key": key}, ""))
                assert (after.may_stop().action == "allow") == (longer in ends), (lines, longer)
                waiting += [(after, longer)] if not run else []
            else:
                assert decision.certain and longer not in prefixes[len(longer)], (lines, longer)


@pytest.mark.parametrize("seed", range(20))
def test_some_guards_against_all_short_runs(seed: int) -> None:
    compare_with_runs(seed)


@examples(30)
@given(st.integers(0, 10**6))
def test_guards_against_all_short_runs(seed: int) -> None:
    compare_with_runs(seed)


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
