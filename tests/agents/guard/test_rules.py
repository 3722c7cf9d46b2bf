"""Rules as values."""

from __future__ import annotations

from formal_llm.agents.guard.rules import AtMost, Letter, Pattern, Rule, RuleSet


def test_odd_names_stand_in_quotes() -> None:
    rules = RuleSet(
        (Letter("my.tool", (Pattern("call", "my.tool"),)),), (Rule("a b", AtMost(1, ("my.tool",)), "warn", (), "No."),)
    )
    assert str(rules) == '"my.tool": "my.tool"\nrule "a b" warn: at most 1 "my.tool"\n    "No."\n'
