"""Terminals that no word uses."""

from __future__ import annotations

from formal_llm import CFG, Limits, Lookahead
from formal_llm.automata.languages.unused import unused


def test_unreachable_ones_and_those_that_limits_leave_no_place_for() -> None:
    cfg = CFG.from_string("S -> a S b | c | d a d d\n%limit 1 a d")
    assert unused(Lookahead(cfg)) == ["d"]
    assert unused(Lookahead(cfg), used=["d"]) == []
    assert unused(Lookahead(cfg, Limits({"a": 0}))) == ["a", "b", "d"]
