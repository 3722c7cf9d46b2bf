"""Formulas of meanings with groups of steps; with single steps each is tried in test_patterns.py."""

from __future__ import annotations

from itertools import product

from formal_llm.authoring import meanings as mean
from formal_llm.automata.models.dfa import minimal_dfa

GROUPS = (("a", "b"), ("c",))


def test_any_of_a_group_will_do() -> None:
    preceded = minimal_dfa(mean.require_before(*GROUPS, 2), "abcd")
    apart = minimal_dfa(mean.require_distance(*GROUPS, 1), "abcd")
    kinds = minimal_dfa(mean.of_kinds(GROUPS, 1, 1), "abcd")
    several = minimal_dfa(mean.any_order(map(mean.match_group, GROUPS)), "abcd")
    for length in range(5):
        for plan in product("abcd", repeat=length):
            text = "".join(plan).replace("b", "a")
            assert preceded.accepts(plan) == ("c" not in text or text.partition("c")[0].count("a") >= 2)
            assert apart.accepts(plan) == ("ac" not in text)
            assert kinds.accepts(plan) == (("a" in text) != ("c" in text))
            assert several.accepts(plan) == (text in ("ac", "ca"))


def test_no_steps_apart_is_everything() -> None:
    assert minimal_dfa(mean.require_distance(*GROUPS, 0), "abc").accepts("ac")
