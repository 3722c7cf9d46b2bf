"""The largest set is one that nothing leads out of."""

from __future__ import annotations

from formal_llm.agents.guard import Call, Guard, GuardRules


def test_control() -> None:
    text = "a: a\nbad: a.result[not ok]\nrule r: never bad\nrule s: at least 1 a\n"
    assert Guard(GuardRules.from_string(text), guarantee="whatever").start().check(Call("a")).action == "block"
    assert Guard(GuardRules.from_string(text)).start().check(Call("a")).action == "allow"
