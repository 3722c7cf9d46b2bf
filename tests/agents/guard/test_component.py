"""Rules apart where they share nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.guard import Guard, GuardRules
from tests.agents.guard.short_runs import compare_with_runs
from tests.agents.guard.whole_product import RULES, follow
from tests.strategies import examples


def test_component() -> None:
    rules = GuardRules.from_string(
        "tools a, b, c, d\nrule r: a before b\nrule s: c before d\nrule t: never b after a\n"
    )
    ((_, supervisor),) = Guard(rules).tiers(frozenset())
    assert [list(one.component.parts) for one in supervisor.lookouts] == [[0, 2], [1]]


@pytest.mark.parametrize("guarantee", ["some", "whatever"])
@examples(60)
@given(rules=RULES, seed=st.integers(0, 1_000_000))
def test_as_the_whole_product(guarantee: str, rules: list[tuple[str, str, str, int]], seed: int) -> None:
    follow(guarantee, rules, seed)


@examples(30)
@given(st.integers(0, 10**6))
def test_guards_against_all_short_runs(seed: int) -> None:
    compare_with_runs(seed)
