"""Looking ahead: both guarantees against an oracle that multiplies everything out."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from formal_llm.guard import Guard, GuardRules
from tests.guard.oracle import EVENTS, Oracle
from tests.guard.short_runs import (
    test_some_guards_against_all_short_runs as test_some_guards_against_all_short_runs,
)
from tests.guard.whole_product import RULES, event, follow, oracle_of, rules_over, text
from tests.strategies import examples


@pytest.mark.parametrize("guarantee", ["some", "whatever"])
@given(rules=RULES, seed=st.integers(0, 1_000_000))
@settings(deadline=None)
def test_as_the_whole_product(guarantee: str, rules: list[tuple[str, str, str, int]], seed: int) -> None:
    follow(guarantee, rules, seed)


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
