"""Compiled rules are shared, and can be made anew from what they were made of."""

from __future__ import annotations

import pickle

from formal_llm import Behaviour, constraint
from formal_llm.agents import Allowed, Monitor
from formal_llm.agents.compiled import CompiledRules

LETTERS = ("a", "b", "c")
RULES = [
    constraint("(eventually a)", LETTERS),
    constraint("(next (until any b) (until any b) (until any empty))", LETTERS),
]


def test_equal_rules_have_one_fingerprint() -> None:
    one, other = (CompiledRules(RULES, None, 1_000, 1_000) for _ in range(2))
    assert one.fingerprint == other.fingerprint == pickle.loads(pickle.dumps(one)).fingerprint
    assert one.fingerprint != CompiledRules(RULES[:1], None, 1_000, 1_000).fingerprint


def test_a_step_leaves_other_groups_where_they_are() -> None:
    rules = CompiledRules(RULES, None, 1_000, 1_000)
    after = rules.apply_event(rules.start, "a")
    assert after is not None
    assert (after[0].shortest_length, after[1]) == (0, rules.start[1])
    assert rules.apply_event(rules.start, "c") == rules.start
    assert rules.apply_event(rules.start, "unknown") is None


def test_several_groups_are_one_mapping() -> None:
    allowed = Monitor(RULES).allowed()
    assert repr(allowed) == repr({"a": Allowed(2), "b": Allowed(2), "c": Allowed(3)})
    assert ("a" in allowed, "x" in allowed, None in allowed) == (True, False, False)
    assert len(allowed) == 3


def test_the_whole_is_multiplied_only_where_it_is_small() -> None:
    letters = [f"t{number}" for number in range(20)]
    many = [constraint(f"(eventually {name})", letters) for name in letters]
    assert CompiledRules(many, None, 1_000, 1_000).trace_verifier is None
    assert CompiledRules(RULES, None, 1_000, 1_000).trace_verifier is not None


def test_labels_are_those_of_the_rules() -> None:
    assert CompiledRules(Behaviour.load("react"), None, 1_000, 1_000).label("Act") == "[Action]"
