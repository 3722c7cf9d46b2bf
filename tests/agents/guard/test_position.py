"""Positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.guard import Call, Guard, GuardRules, Result
from tests.agents.guard.short_runs import compare_with_runs
from tests.agents.guard.whole_product import RULES, follow
from tests.strategies import examples


def test_position() -> None:
    state = (
        Guard(GuardRules.from_string("a: t.result\nrule r: at least 1 a\n"))
        .start()
        .after(Call("t", {}, "1"))
        .after(Call("t", {}, "2"))
    )
    assert [name for name, _ in state.after(Result("t", {}, 1, "2")).position.calls] == ["1"]


@pytest.mark.parametrize("guarantee", ["some", "whatever"])
@examples(60)
@given(rules=RULES, seed=st.integers(0, 1_000_000))
def test_as_the_whole_product(guarantee: str, rules: list[tuple[str, str, str, int]], seed: int) -> None:
    follow(guarantee, rules, seed)


@pytest.mark.parametrize("seed", range(20))
def test_some_guards_against_all_short_runs(seed: int) -> None:
    compare_with_runs(seed)


@examples(20)
@given(st.integers(20, 10**6))
def test_guards_against_all_short_runs(seed: int) -> None:
    compare_with_runs(seed)
