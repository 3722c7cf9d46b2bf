"""Rules compiled."""

from __future__ import annotations

from formal_llm.guard import GuardRules


def test_core() -> None:
    text = "tools a, b\nrule r: a before b\n"
    assert GuardRules.from_string(text) == GuardRules.from_string("# again\n" + text)
    assert GuardRules.from_string(text).names == ("r",)
