"""The rules to blame are as few as can be."""

from __future__ import annotations

from formal_llm.agents.guard import Call, Guard, GuardRules


def test_supervisor() -> None:
    rules = GuardRules.from_string(
        "tools a, b, c\nrule r: never a after b\nrule s: at least 1 a\nrule t: at most 9 b\nrule u: c before a\n"
    )
    assert Guard(rules).start().check(Call("b")).rules == ("r", "s")
