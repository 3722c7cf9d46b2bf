"""Terminals that no word uses."""

from __future__ import annotations

from formal_llm import CFG, Limits, Lookahead
from formal_llm.automata.languages.unused import find_unused_terminals


def test_unreachable_ones_and_those_that_limits_leave_no_place_for() -> None:
    cfg = CFG.from_string("S -> a S b | c | d a d d\n%limit 1 a d")
    assert find_unused_terminals(Lookahead(cfg)) == ["d"]
    assert find_unused_terminals(Lookahead(cfg), used=["d"]) == []
    assert find_unused_terminals(Lookahead(cfg, Limits({"a": 0}))) == ["a", "b", "d"]
