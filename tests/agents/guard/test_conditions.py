"""Conditions are printed with as few brackets as needed."""

from __future__ import annotations

from formal_llm.agents.guard.reading import read_rules


def test_conditions() -> None:
    text = "x: t[(a or b) and not (c and d) and a - (b - c) > 2 * (a + b)]"
    assert str(read_rules(text + "\nrule r: never x")).split("\n")[0] == text
