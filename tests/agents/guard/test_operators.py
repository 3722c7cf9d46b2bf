"""Operators."""

from __future__ import annotations

from formal_llm.agents.guard.operators import OPERATORS


def test_operators() -> None:
    assert OPERATORS["contains"][1]([1, 2], "2")
    assert OPERATORS["-"][1]("2026-01-03", "2026-01-01").days == 2
