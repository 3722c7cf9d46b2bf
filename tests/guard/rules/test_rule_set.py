"""Rules as values."""

from __future__ import annotations

from formal_llm.guard.rules.rule_set import AtMostBody, EventPattern, GuardRule, GuardRuleSet, Letter


def test_odd_names_stand_in_quotes() -> None:
    rules = GuardRuleSet(
        (Letter("my.tool", (EventPattern("call", "my.tool"),)),),
        (GuardRule("a b", AtMostBody(1, ("my.tool",)), "warn", (), "No."),),
    )
    assert str(rules) == '"my.tool": "my.tool"\nrule "a b" warn: at most 1 "my.tool"\n    "No."\n'
