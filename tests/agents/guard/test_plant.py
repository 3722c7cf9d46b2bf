"""What can happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.guard import Guard, GuardRules
from tests.agents.guard.short_runs import compare_with_runs
from tests.agents.guard.whole_product import RULES, follow
from tests.strategies import examples


def test_plant() -> None:
    rules = GuardRules.from_string("a: web_*\nb: a.result[ok]\nrule r: a before b\n")
    assert Guard(rules).plant.tools == ("web_…", "a")
    assert Guard(rules, ["web_get", "x"]).plant.tools == ("web_get",)


@pytest.mark.parametrize("guarantee", ["some", "whatever"])
@examples(60)
@given(rules=RULES, seed=st.integers(0, 1_000_000))
def test_as_the_whole_product(guarantee: str, rules: list[tuple[str, str, str, int]], seed: int) -> None:
    follow(guarantee, rules, seed)


@examples(30)
@given(st.integers(0, 10**6))
def test_guards_against_all_short_runs(seed: int) -> None:
    compare_with_runs(seed)


@pytest.mark.parametrize(("name", "tool"), [("web_*", "web_…"), ("get_?", "get_…"), ("*_?", "…_…"), ("plain", "plain")])
def test_a_tool_that_a_name_with_stars_may_mean(name: str, tool: str) -> None:
    assert Guard(GuardRules.from_string(f"a: {name}\nrule r: never a\n")).plant.tools == (tool,)


def test_what_is_only_perhaps_is_doubtful() -> None:
    for kind in ("t", "t.result"):
        plant = Guard(GuardRules.from_string(f"a: {kind}[p * q == 7]\nrule r: never a\n")).plant
        of_kind = [one for one in plant.symbols if one.kind == ("result" if "." in kind else "call")]
        assert {(one.doubtful, one.letters) for one in of_kind} == {(False, frozenset()), (True, frozenset("a"))}
