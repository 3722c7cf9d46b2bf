"""Guards with rules ``for each`` and sums against all short runs."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard import Call, Guard, GuardRules, Result
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
    rng = Random(seed)
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
