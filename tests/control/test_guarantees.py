"""Guards under both guarantees against an oracle that multiplies everything out."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace

import pytest
from hypothesis import example, given
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
    assert state.lost_rules == ()
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


@examples(100)
@given(
    rules=RULES,
    events=st.lists(st.sampled_from(EVENTS), max_size=4),
    guarantee=st.sampled_from(["some", "whatever"]),
    most=st.integers(1, 20),
)
def test_what_is_certain_within_a_small_bound_is_right(
    rules: list[tuple[str, str, str, int]], events: list[str], guarantee: str, most: int
) -> None:
    oracle = oracle_of(rules)
    good = oracle.some if guarantee == "some" else oracle.whatever
    rules_read = GuardRules.from_string(text(rules))
    state, place = Guard(rules_read, ("a", "b", "t"), guarantee, max_states=most).start(), oracle.start
    for name in [*events, ""]:
        if oracle.empty or place not in good:
            return
        for tool in ("a", "b", "t"):
            decision = state.check(Call(tool))
            if oracle.comes(place, tool) and decision.certain:
                assert decision.runs is (oracle.step(place, tool) in good)
        if not name or not oracle.comes(place, name):
            return
        state, place = state.after(event(name)), oracle.step(place, name)


def count_events_to_an_end(oracle: Oracle, start: tuple[int, ...], good: set[tuple[int, ...]]) -> int:
    todo, seen = deque([(start, 0)]), {start}
    while todo:
        place, count = todo.popleft()
        if oracle.accepting(place):
            return count
        for name in EVENTS:
            after = oracle.step(place, name) if oracle.comes(place, name) else None
            if after in good and after not in seen:
                seen.add(after)
                todo.append((after, count + 1))
    raise AssertionError("no end can be reached")


#: Without results: a way leaves those out that no rule distinguishes.
WITHOUT_RESULTS = rules_over("a", "b", "ab", "u")


@pytest.mark.parametrize("guarantee", ["some", "whatever"])
@given(rules=WITHOUT_RESULTS, picks=st.lists(st.sampled_from(["a", "b", "u"]), max_size=5))
@example(rules=[("never after", "u", "a", 1), ("at least", "ab", "a", 1)], picks=[])  # "a" ends it, too, at a risk
@examples(60)
def test_a_way_on_is_a_shortest_one(guarantee: str, rules: list[tuple[str, str, str, int]], picks: list[str]) -> None:
    oracle = oracle_of(rules)
    good = oracle.some if guarantee == "some" else oracle.whatever
    state, place = Guard(GuardRules.from_string(text(rules)), ("a", "b", "t"), guarantee).start(), oracle.start
    for name in [*picks, ""]:
        if oracle.empty or place not in good:
            return
        decision = state.may_stop()
        if decision.action != "allow":
            assert len(decision.way) == count_events_to_an_end(oracle, place, good)
            end = place
            for one in decision.way:
                end = oracle.step(end, {"user": "u"}.get(one, one))
                assert end in good
            assert oracle.accepting(end)
        if name:
            state, place = state.after(event(name)), oracle.step(place, name)


@examples(60)
@given(st.sampled_from([None, 0, 1, 2, 4]), st.integers(1, 2), st.lists(st.integers(0, 6), min_size=1, max_size=3))
def test_budgets_reserve_what_required_letters_cost_at_least(least: int | None, count: int, spent: list[int]) -> None:
    """Of 10, calls of ``a`` may take all but the least of what is required; without a least, that is not known."""
    condition = "" if least is None else f"[amount >= {least}]"
    text = f"a: a with cost = amount\nb: b{condition} with cost = amount\nrule s: budget cost <= 10\nrule n: at least {count} b\n"
    state, left = Guard(GuardRules.from_string(text)).start(), 10
    for amount in spent:
        decision = state.check(Call("a", {"amount": amount}))
        if amount > left:
            assert not decision.runs and decision.certain
        elif least is None:
            assert decision.certain is decision.runs is (count == 1 and left - amount == 10)
            decision = replace(decision, action="allow")  # a person says yes
        else:
            assert decision.certain and decision.runs is (left - amount >= count * least)
        if decision.runs:
            state, left = state.after(Call("a", {"amount": amount})), left - amount


def test_control() -> None:
    text = "a: a\nbad: a.result[not ok]\nrule r: never bad\nrule s: at least 1 a\n"
    assert Guard(GuardRules.from_string(text), guarantee="whatever").start().check(Call("a")).action == "block"
    assert Guard(GuardRules.from_string(text)).start().check(Call("a")).action == "allow"


@pytest.mark.parametrize("guarantee", ["some", "whatever"])
def test_thirty_prerequisites(guarantee: str) -> None:
    """They have 2 to the power of 30 states, and the user may write at any time."""
    text = "".join(f"t{n}: t{n}\nrule p{n}: t{n} before z\n" for n in range(30))
    text += "z: z\nx: x\nu: user\nrule e: at least 1 z\nrule f: never t7 after x\nrule g: t8 after each u\n"
    start = Guard(GuardRules.from_string(text), guarantee=guarantee).start()
    assert set(start.check(Call("x")).rules) == {"p7", "e", "f"}
    assert start.check(Call("x")).certain and start.check(Call("t3")).certain


def test_what_a_copy_owes_the_other_rules_forbid() -> None:
    """For one order: a letter after each call, and no letter once there was a payment."""
    text = "c: call with order = order\nl: letter with order = order\np: pay\n"
    rules = "rule r0 for each order: l after each c\nrule r1: never l after p\nrule r2: c before p\n"
    guard = Guard(GuardRules.from_string(text + rules), max_states=50)  # of orders without end
    called = guard.start().after(Call("call", {"order": 1}))
    assert called.check(Call("pay")).action == "block" and called.check(Call("pay")).certain
    written = called.after(Call("letter", {"order": 1}))
    assert written.check(Call("pay")).action == "allow"


@pytest.mark.parametrize(
    "rules", ["never l after p\nrule r2: p before l", "at most 1 p since q\nrule r2: 2 p before l"]
)
def test_what_a_copy_owes_can_never_come(rules: str) -> None:
    """There are orders without end, so that no search ends; and rules that forget nothing would let it come."""
    names = "".join(f"{name}: {name} with order = id\n" for name in ("c", "l", "look", "see"))
    keyed = "rule r0 for each order: l after each c\nrule rl for each order: look before see\n"
    text = f"{names}p: p\nq: q\n{keyed}rule r1: {rules}\nrule r3: never q after p\n"
    state = Guard(GuardRules.from_string(text)).start().after(Call("look", {"id": 0}))
    decision = state.check(Call("c", {"id": 0}))
    assert (decision.action, decision.certain) == ("block", True)


def test_what_is_due_needs_what_is_used_up() -> None:
    text = "look: look with order = id\npay: pay with order = id\nship: ship with order = id\n"
    text += "rule due for each order: ship after each pay\nrule first for each order: look before pay\n"
    text += "rule once for each order: at most 1 pay\nrule few: at most 3 ship\nrule many: at least 4 pay\n"
    state = Guard(GuardRules.from_string(text), unsure="allow", max_states=300).start()
    for order in range(2):
        for tool in ("look", "pay", "ship"):
            state = state.after(Call(tool, {"id": order}))
    decision = state.after(Call("look", {"id": 2})).check(Call("pay", {"id": 2}))
    assert (decision.action, decision.certain) == ("block", True)
