"""Fronts: equal ones are one, and beyond the cap they answer the same."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Behaviour, Limits, Lookahead, SumLimit, Symbol
from formal_llm.automata.languages.front import Allowed
from formal_llm.automata.languages.fronts import ConfigurationSets
from formal_llm.errors import Undecided
from tests.automata.lookahead.judging import Plain


def test_words_with_one_front_share_it() -> None:
    fronts = ConfigurationSets(Lookahead(Behaviour.load("react")))
    round_ = ("Tht", "Act", "Act-Inp", "Obs")
    assert fronts.after_word(("Ques",)) is fronts.after_word(("Ques", *round_, *round_))


def test_beyond_the_cap_answers_stay_the_same() -> None:
    # The left recursion is hidden behind what derives ε, so it stays.
    cfg = CFG.from_string("%order forward\nS -> E S a | E S b | c\nE -> ε")
    limits = Limits(at_most={"a": 1}, at_least={"b": 2})
    for few in (limits, Limits()):
        narrow = ConfigurationSets(Lookahead(cfg, few), max_configurations=5)
        front = narrow.after_word(("c", "a"))
        assert front.word == ("c", "a")
        left = 1 if few else 0
        assert front.shortest_length == (2 if few else 0)
        assert dict(front.allowed_terminals) == ({"b": Allowed(left)} if few else {"a": Allowed(0), "b": Allowed(0)})
        assert front.may_stop == (not few)
        assert front.after_terminal("c").is_viable is False


def test_beyond_the_cap_other_automata_are_not_decided() -> None:
    class Endless(Plain):
        class Silent:
            read = None

        def moves(self, configuration):
            return (self.Silent(), *self.steps)

        def step(self, configuration, move):
            return configuration + 1 if move.read is None else 0

    with pytest.raises(Undecided, match="more than 7 configurations"):
        _ = ConfigurationSets(Lookahead(Endless()), max_configurations=7).start.is_viable


def test_fronts_are_forgotten_and_made_anew(monkeypatch) -> None:
    monkeypatch.setattr("formal_llm.automata.languages.fronts._KEPT", 15)
    cfg = CFG(
        [*CFG.from_string("%order forward\nS -> a S | b").productions], symbols={"a": Symbol(numbers={"work": 1})}
    )
    fronts = ConfigurationSets(Lookahead(cfg, Limits(sums=(SumLimit("work", 20),))))
    front = fronts.start
    for _ in range(20):
        front = front.after_terminal("a")
        assert len(fronts._known) <= 6
    assert front.allowed_terminals == {"b": Allowed(0)}
    assert fronts.after_word("a" * 20).allowed_terminals == front.allowed_terminals


def test_nothing_follows_a_dead_end() -> None:
    fronts = ConfigurationSets(Lookahead(CFG.from_string("%order forward\nS -> a b")))
    assert fronts.after_word(("b",)) is fronts.dead
    assert (fronts.dead.is_viable, fronts.dead.may_stop, fronts.dead.shortest_length) == (False, False, None)
    assert not fronts.dead.allowed_terminals
