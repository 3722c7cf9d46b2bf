"""What can happen."""

from __future__ import annotations

from formal_llm.agents.guard import Guard, GuardRules


def test_plant() -> None:
    rules = GuardRules.from_string("a: web_*\nb: a.result[ok]\nrule r: a before b\n")
    assert Guard(rules).plant.tools == ("web_…", "a")
    assert Guard(rules, ["web_get", "x"]).plant.tools == ("web_get",)
