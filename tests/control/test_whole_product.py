"""Guards at every place of a walk against an oracle that multiplies everything out."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard import Call, Guard, GuardRules, Result, Said
from formal_llm.guard.events import GuardEvent
from tests.guard.oracle import CALLS, EVENTS, OUTSIDE, Oracle, formula
from tests.strategies import examples

#: Each letter with the events that it means, and how the rule file says it.
LETTERS = {
    "a": ({"a"}, "a"),
    "b": ({"b"}, "b"),
    "t": ({"t"}, "t"),
    "ab": ({"a", "b"}, "a | b"),
    "ok": ({"ok"}, "t.result[ok]"),
    "done": ({"ok", "no"}, "t.result"),
    "u": ({"u"}, "user"),
}
SAID = {
    "never": "never {0}",
    "never after": "never {0} after {1}",
    "only": "only {0} or {1}",
    "within": "{0} within {2} calls after {1}",
    "before": "{2} {0} before {1}",
    "before each": "{2} {0} before each {1}",
    "after each": "{0} after each {1}",
    "at least": "at least {2} {0}",
    "at most": "at most {2} {0}",
    "at most since": "at most {2} {0} since {1}",
}


def rules_over(*letters: str) -> st.SearchStrategy[list[tuple[str, str, str, int]]]:
    """Rules about some of the letters; 'only' is about calls."""
    calls = [one for one in letters if LETTERS[one][0] <= CALLS]
    rule = st.sampled_from([*SAID]).flatmap(
        lambda kind: st.tuples(
            st.just(kind), *2 * (st.sampled_from(calls if kind == "only" else letters),), st.integers(1, 2)
        )
    )
    return st.lists(rule, min_size=1, max_size=4)


RULES = rules_over(*LETTERS)


def event(name: str) -> GuardEvent:
    if name == "u":
        return Said("user", "hello")
    if name in ("ok", "no"):
        return Result("t", {}, None, error=name == "no")
    return Call(name)


def text(rules: list[tuple[str, str, str, int]]) -> str:
    letters = "".join(f"{name}: {said}\n" for name, (_, said) in LETTERS.items())
    return letters + "".join(f"rule r{place}: {SAID[kind].format(one, other, count)}\n"
                             for place, (kind, one, other, count) in enumerate(rules))  # fmt: skip


def oracle_of(rules: list[tuple[str, str, str, int]]) -> Oracle:
    return Oracle(formula(kind, LETTERS[one][0], LETTERS[other][0], count) for kind, one, other, count in rules)


def follow(guarantee: str, rules: list[tuple[str, str, str, int]], seed: int) -> None:
    """Every call at every place of a walk: allowed just where the fixpoint on the whole product holds what follows."""
    oracle = oracle_of(rules)
    good = oracle.some if guarantee == "some" else oracle.whatever
    guard = Guard(GuardRules.from_string(text(rules)), ("a", "b", "t"), guarantee)
    state, place = guard.start(), oracle.start
    rng = random.Random(seed)
    assert (state.lost_rules == ()) is True
    if oracle.empty or place not in good:
        return
    for _ in range(6):
        assert set(state.allowed_tools()) == {
            name for name in ("a", "b", "t") if oracle.comes(place, name) and oracle.step(place, name) in good
        } or not oracle.comes(place, "t")
        for name in ("a", "b", "t"):
            if oracle.comes(place, name):
                decision = state.check(Call(name))
                assert decision.certain
                assert (decision.action == "allow") is (oracle.step(place, name) in good), (name, decision)
        assert (state.may_stop().action == "allow") is oracle.accepting(place)
        allowed = [name for name in EVENTS if oracle.comes(place, name) and oracle.step(place, name) in good]
        if guarantee == "whatever":
            assert all(name in allowed for name in OUTSIDE if oracle.comes(place, name))
        if not allowed:
            return
        name = rng.choice(allowed)
        state, place = state.after(event(name)), oracle.step(place, name)
        assert state.lost_rules == ()


@pytest.mark.parametrize("guarantee", ["some", "whatever"])
@examples(60)
@given(rules=RULES, seed=st.integers(0, 1_000_000))
def test_as_the_whole_product(guarantee: str, rules: list[tuple[str, str, str, int]], seed: int) -> None:
    follow(guarantee, rules, seed)
