"""The largest set is one that nothing leads out of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.guard import Call, Guard, GuardRules
from tests.agents.guard.whole_product import RULES, follow
from tests.strategies import examples


def test_control() -> None:
    text = "a: a\nbad: a.result[not ok]\nrule r: never bad\nrule s: at least 1 a\n"
    assert Guard(GuardRules.from_string(text), guarantee="whatever").start().check(Call("a")).action == "block"
    assert Guard(GuardRules.from_string(text)).start().check(Call("a")).action == "allow"


@pytest.mark.parametrize("guarantee", ["some", "whatever"])
@examples(60)
@given(rules=RULES, seed=st.integers(0, 1_000_000))
def test_as_the_whole_product(guarantee: str, rules: list[tuple[str, str, str, int]], seed: int) -> None:
    follow(guarantee, rules, seed)
