"""What can happen."""

from __future__ import annotations

import pytest

from formal_llm.agents.guard import Guard, GuardRules
from tests.agents.guard.short_runs import test_guards_against_all_short_runs as test_guards_against_all_short_runs
from tests.agents.guard.whole_product import test_as_the_whole_product as test_as_the_whole_product


def test_plant() -> None:
    rules = GuardRules.from_string("a: web_*\nb: a.result[ok]\nrule r: a before b\n")
    assert Guard(rules).plant.tools == ("web_…", "a")
    assert Guard(rules, ["web_get", "x"]).plant.tools == ("web_get",)


@pytest.mark.parametrize(("name", "tool"), [("web_*", "web_…"), ("get_?", "get_…"), ("*_?", "…_…"), ("plain", "plain")])
def test_a_tool_that_a_name_with_stars_may_mean(name: str, tool: str) -> None:
    assert Guard(GuardRules.from_string(f"a: {name}\nrule r: never a\n")).plant.tools == (tool,)


def test_what_is_only_perhaps_is_doubtful() -> None:
    for kind in ("t", "t.result"):
        plant = Guard(GuardRules.from_string(f"a: {kind}[p * q == 7]\nrule r: never a\n")).plant
        of_kind = [one for one in plant.symbols if one.kind == ("result" if "." in kind else "call")]
        assert {(one.doubtful, one.letters) for one in of_kind} == {(False, frozenset()), (True, frozenset("a"))}
