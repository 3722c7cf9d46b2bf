"""Fronts: equal ones are one, and beyond the cap they answer the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Limits, Lookahead, SumLimit, Symbol
from formal_llm.automata.languages.fronts import Allowed, ConfigurationSet, ConfigurationSets, ViablePrefixes
from formal_llm.automata.models.product import product
from formal_llm.errors import AutomatonError, Undecided
from tests.automata.languages.editing import words
from tests.automata.lookahead.judging import Plain, sources
from tests.oracles import Reference, keeps
from tests.strategies import choices, examples, limited_automata, limited_grammars, tool_grammars


def test_words_with_one_front_share_it() -> None:
    fronts = ConfigurationSets(Lookahead(Behaviour.load("react")))
    round_ = ("Tht", "Act", "Act-Inp", "Obs")
    assert fronts.after_word(("Ques",)) is fronts.after_word(("Ques", *round_, *round_))


def test_the_configurations_of_a_front_are_those_that_are_followed() -> None:
    lookahead = Lookahead(CFG.from_string("S -> a S b | c"))
    few, none = ConfigurationSets(lookahead), ConfigurationSets(lookahead, max_configurations=0)
    assert few.start.configurations == frozenset((lookahead.automaton.start(),))
    assert few.after_word("aa").configurations
    assert few.after_word("b").configurations == frozenset()
    assert none.after_word("a").configurations is None


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


def test_a_prefix_is_not_certainly_the_longest_where_the_time_ran_out() -> None:
    cfg = CFG.from_string("%order forward\n%limit 5 a b\n%require 2 a b\nS -> E S T | c\nE -> ε\nT -> a | b | T T")
    for most in (2, 5):
        word = ("c", "a", "b", "a", "b", "c")
        assert ViablePrefixes(Lookahead(cfg), max_configurations=most).longest_viable(word) == (5, True)
        length, sure = ViablePrefixes(Lookahead(cfg), search_time=0, max_configurations=most).longest_viable(word)
        assert length < 5 and not sure


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


@given(sources, choices)
@examples(100)
def test_what_comes_next_is_found_as_by_single_moves(source, picks) -> None:
    fronts, plain = (ConfigurationSets(Lookahead(*source)) for _ in range(2))
    plain.lookahead.top = lambda _: None
    here, there = fronts.start, plain.start
    for pick in picks:
        assert [*here.allowed_terminals.items()] == [*there.allowed_terminals.items()]
        assert (here.may_stop, here.is_viable) == (there.may_stop, there.is_viable)
        assert {name: here.can_continue_with(name) for name in fronts.terminals} == {
            name: there.after_terminal(name).is_viable for name in fronts.terminals
        }
        for name, found in here.allowed_terminals.items():
            assert found.shortest == there.after_terminal(name).shortest_length
        if not here.allowed_terminals:
            break
        name = list(here.allowed_terminals)[pick % len(here.allowed_terminals)]
        here, there = here.after_terminal(name), there.after_terminal(name)


def test_fronts_are_forgotten_and_made_anew(monkeypatch) -> None:
    monkeypatch.setattr("formal_llm.automata.languages.fronts._KEPT", 15)
    cfg = CFG(
        [*CFG.from_string("%order forward\nS -> a S | b").productions], symbols={"a": Symbol(numbers={"work": 1})}
    )
    fronts = ConfigurationSets(Lookahead(cfg, Limits(sums=(SumLimit("work", 20),))))
    front = fronts.start
    for _ in range(20):
        front = front.after_terminal("a")
        assert len(fronts._known) <= 8
    assert front.allowed_terminals == {"b": Allowed(0)}
    assert fronts.after_word("a" * 20).allowed_terminals == front.allowed_terminals


def test_nothing_follows_a_dead_end() -> None:
    fronts = ConfigurationSets(Lookahead(CFG.from_string("%order forward\nS -> a b")))
    assert fronts.after_word(("b",)) is fronts.dead
    assert (fronts.dead.is_viable, fronts.dead.may_stop, fronts.dead.shortest_length) == (False, False, None)
    assert not fronts.dead.allowed_terminals


def test_answers_are_kept_until_they_are_forgotten() -> None:
    front = ConfigurationSets(Lookahead(CFG.from_string("%order forward\nS -> a S b | c"))).start
    assert front.allowed_terminals == {"a": Allowed(2), "c": Allowed(0)}
    assert front.allowed_terminals is front.allowed_terminals
    assert front.after_terminal("a") is front.after_terminal("a")
    before = front.after_terminal("a")
    front.forget_followers()
    assert front.after_terminal("a") is before
    assert front.shortest_length == 1


def test_what_each_kind_of_front_says_itself() -> None:
    missing = "_find_shortest, _follow_terminal, is_viable, may_stop, next_terminals, readable_terminals"
    with pytest.raises(TypeError, match=f"abstract methods {missing}"):
        ConfigurationSet()  # type: ignore[abstract]


def viable(pda, bounds, prefix):
    """Whether a word within the limits begins with ``prefix``, by the slow reference on both automata side by side."""
    steps = [(at, name, None, at + 1) for at, name in enumerate(prefix)]
    loops = [(len(prefix), name, None, len(prefix)) for name in pda.terminals]
    begins = PDA([*steps, *loops], start=0, accepting=[len(prefix)], check=False)
    # The letters are those of the automaton, so that no limit on what cannot be read after the prefix is lost.
    return not Reference(product(pda, begins), bounds, pda.terminals).empty


def check_prefixes(pda, bounds, word, **options):
    prefixes = ViablePrefixes(Lookahead(pda, bounds), **options)
    length, decided = prefixes.longest_viable(word)
    assert decided
    found = [viable(pda, bounds, word[:end]) for end in range(len(word) + 1)]
    assert found == [end <= length for end in range(len(word) + 1)]
    assert found == [prefixes.is_viable(word[:end]) for end in range(len(word) + 1)]
    if length >= 0:
        start = word[:length]
        allowed, may_stop, decided = prefixes.next_terminals(start)
        assert decided
        assert may_stop == (pda.accepts(start) and keeps(start, bounds, pda.terminals, pda.symbols))
        assert allowed == tuple(name for name in pda.terminals if viable(pda, bounds, (*start, name)))


class TestPrefixes:
    @given(limited_grammars() | tool_grammars(), words, st.sampled_from([0, 3, 1_000]))
    @examples(60)
    def test_grammars(self, cfg, word, most):
        check_prefixes(PDA.from_cfg(cfg), cfg.limits, word, max_configurations=most)

    @given(limited_grammars(), words, st.sampled_from([0, 3, 1_000]))
    @examples(40)
    def test_grammars_without_limits(self, cfg, word, most):
        check_prefixes(PDA.from_cfg(cfg), Limits(), word, max_configurations=most)

    @given(limited_automata(), words, st.sampled_from([0, 3, 1_000]))
    @examples(60)
    def test_automata(self, source, word, most):
        check_prefixes(*source, word, max_configurations=most)

    def test_left_recursion_without_end(self):
        cfg = CFG.from_string("S -> S a | S b | c")
        prefixes = ViablePrefixes(Lookahead(cfg), max_configurations=20)
        assert prefixes.longest_viable(("c", "a", "b", "c", "a")) == (3, True)
        assert prefixes.next_terminals(("c", "a")) == (("a", "b"), True, True)
        limited_too = ViablePrefixes(Lookahead(cfg, Limits(at_most={"a": 1}, at_least={"b": 2})), max_configurations=5)
        assert limited_too.longest_viable(("c", "a", "a")) == (2, True)
        assert limited_too.next_terminals(("c", "a", "b")) == (("b",), False, True)
        assert limited_too.longest_viable(("x",)) == (0, True)

    def test_long_words_with_left_recursion(self):
        prefixes = ViablePrefixes(Lookahead(CFG.from_string("S -> S a | b")), max_configurations=20)
        word = ("b",) + ("a",) * 60 + ("b",) + ("a",) * 20
        assert prefixes.longest_viable(word) == (61, True)

    @given(limited_grammars() | tool_grammars(), words, st.sampled_from([0.0, 0.0003]))
    @examples(40)
    def test_what_is_certain_in_little_time_is_right(self, cfg, word, seconds):
        hasty, exact = ViablePrefixes(Lookahead(cfg), search_time=seconds), ViablePrefixes(Lookahead(cfg))
        assert hasty.is_viable(word) in (None, exact.is_viable(word))
        length, decided = hasty.longest_viable(word)
        assert length == exact.longest_viable(word)[0] if decided else length <= exact.longest_viable(word)[0]
        allowed, may_stop, decided = hasty.next_terminals(word[:1])
        sure = exact.next_terminals(word[:1])
        assert (set(allowed), may_stop) == (set(sure[0]), sure[1]) if decided else set(allowed) <= set(sure[0])

    def test_many_options_are_followed_one_by_one(self):
        names = [f"t{number}" for number in range(400)]
        prefixes = ViablePrefixes(Lookahead(CFG.from_string(f"%limit 1\nS -> T S | T\nT -> {' | '.join(names)}")))
        allowed, may_stop, decided = prefixes.next_terminals(("t3",))
        assert (len(allowed), may_stop, decided) == (399, True, True)
        assert prefixes.fronts.after_word(("t3",)).word is None

    def test_only_for_pushdown_automata(self):
        with pytest.raises(AutomatonError, match="pushdown"):
            ViablePrefixes(Lookahead(Plain()))
