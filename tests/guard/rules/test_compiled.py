"""Rules as machines."""

from __future__ import annotations

from formal_llm.guard import GuardRules


def test_compiled() -> None:
    rules = GuardRules.from_string("a: a with c = n\n%limit 2 a\n%limit c <= 5\nrule t: 1h between a\n")
    assert (len(rules.parts), len(rules.timed)) == (2, 1)
