"""Rules are put together only where they look at the same events."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Limits, SumLimit, constraint
from formal_llm.agents.compiled import group_rules
from formal_llm.errors import AutomatonError, Undecided
from tests.automata.lookahead.judging import Plain

LETTERS = ("a", "b", "c", "d")


def letters_of(rules, limits=None):
    return [sorted(letters or ()) for _, letters in group_rules(rules, limits)]


def some(name):
    return constraint(f"(eventually {name})", LETTERS)


def test_what_shares_no_event_stays_apart() -> None:
    assert letters_of([some("a"), some("b")]) == [["a"], ["b"]]
    assert letters_of(
        [some("a"), constraint("(next (until any a) (until any b) (until any empty))", LETTERS), some("c")]
    ) == [["a", "b"], ["c"]]


def test_a_limit_is_with_the_rules_whose_events_it_counts() -> None:
    assert letters_of([some("a"), some("b")], Limits(at_most={"a": 1, "d": 2})) == [["a"], ["b"], ["d"]]
    priced = CFG.from_string("%order forward\nS -> a | b | c | d\na cost=1\nb cost=2\nc cost=0")
    rules = [constraint(f"(eventually {name})", priced) for name in LETTERS]
    assert letters_of(rules, Limits(sums=(SumLimit("cost", 5),))) == [["a", "b"], ["c"], ["d"]]


def test_a_rule_forbids_what_it_does_not_know() -> None:
    assert letters_of([constraint("(eventually a)", ["a", "b"]), some("c")]) == [["a", "c", "d"]]


def test_what_cannot_be_put_together() -> None:
    with pytest.raises(AutomatonError, match="several rules are"):
        group_rules([Plain(), Plain()], None)
    with pytest.raises(AutomatonError, match="stack"):
        group_rules([CFG.from_string("S -> a S b | a b"), CFG.from_string("S -> a S | b")], None)
    with pytest.raises(AutomatonError, match="unknown terminal"):
        group_rules([some("a"), some("b")], Limits(at_most={"x": 1}))


def test_too_many_states_together(monkeypatch) -> None:
    monkeypatch.setattr("formal_llm.agents.compiled._MOST", 10)
    with pytest.raises(Undecided, match="too many states together"):
        group_rules([some("a"), some("b"), constraint("(eventually (or (next a b) (next b a)))", LETTERS)], None)
