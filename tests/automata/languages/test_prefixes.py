"""Sets of configurations: equal ones are one, and beyond the cap they answer the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Limits, Lookahead
from formal_llm.automata.languages.prefixes import Allowed, ConfigurationSets
from formal_llm.automata.models.product import product
from formal_llm.errors import Undecided
from tests.automata.languages.editing import words
from tests.automata.lookahead.judging import Plain, sources
from tests.oracles import Reference, keeps
from tests.strategies import choices, examples, limited_automata, limited_grammars, tool_grammars


def test_words_with_one_set_share_it() -> None:
    fronts = ConfigurationSets(Lookahead(Behaviour.load("react")))
    round_ = ("Tht", "Act", "Act-Inp", "Obs")
    assert fronts.after_word(("Ques",)) is fronts.after_word(("Ques", *round_, *round_))


def test_the_configurations_of_a_set_are_those_that_are_followed() -> None:
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
        assert ConfigurationSets(Lookahead(cfg), max_configurations=most).longest_viable(word) == (5, True)
        length, sure = ConfigurationSets(Lookahead(cfg), search_time=0, max_configurations=most).longest_viable(word)
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
        _ = ConfigurationSets(Lookahead(Endless()), max_configurations=7).start.may_stop


@given(sources, choices)
@examples(60)
def test_what_comes_next_is_what_leads_on(source, picks) -> None:
    sets = ConfigurationSets(Lookahead(*source))
    here = sets.start
    for pick in picks:
        after = {name: here.after_terminal(name) for name in sets.terminals}
        allowed = [name for name, one in after.items() if one.is_viable is not False]
        assert here.allowed_terminals == {name: Allowed(after[name].shortest_length) for name in allowed}
        assert not allowed or here.is_viable
        if not allowed:
            break
        here = after[allowed[pick % len(allowed)]]


def test_nothing_follows_a_dead_end() -> None:
    fronts = ConfigurationSets(Lookahead(CFG.from_string("%order forward\nS -> a b")))
    assert fronts.after_word(("b",)) is fronts.dead
    assert (fronts.dead.is_viable, fronts.dead.may_stop, fronts.dead.shortest_length) == (False, False, None)
    assert not fronts.dead.allowed_terminals


def viable(pda, bounds, prefix):
    """Whether a word within the limits begins with ``prefix``, by the slow reference on both automata side by side."""
    steps = [(at, name, None, at + 1) for at, name in enumerate(prefix)]
    loops = [(len(prefix), name, None, len(prefix)) for name in pda.terminals]
    begins = PDA([*steps, *loops], start=0, accepting=[len(prefix)], check=False)
    # The letters are those of the automaton, so that no limit on what cannot be read after the prefix is lost.
    return not Reference(product(pda, begins), bounds, pda.terminals).empty


def check_prefixes(pda, bounds, word, **options):
    prefixes = ConfigurationSets(Lookahead(pda, bounds), **options)
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
        prefixes = ConfigurationSets(Lookahead(cfg), max_configurations=20)
        assert prefixes.longest_viable(("c", "a", "b", "c", "a")) == (3, True)
        assert prefixes.next_terminals(("c", "a")) == (("a", "b"), True, True)
        limited_too = ConfigurationSets(
            Lookahead(cfg, Limits(at_most={"a": 1}, at_least={"b": 2})), max_configurations=5
        )
        assert limited_too.longest_viable(("c", "a", "a")) == (2, True)
        assert limited_too.next_terminals(("c", "a", "b")) == (("b",), False, True)
        assert limited_too.longest_viable(("x",)) == (0, True)

    def test_long_words_with_left_recursion(self):
        prefixes = ConfigurationSets(Lookahead(CFG.from_string("S -> S a | b")), max_configurations=20)
        word = ("b",) + ("a",) * 60 + ("b",) + ("a",) * 20
        assert prefixes.longest_viable(word) == (61, True)

    @given(limited_grammars() | tool_grammars(), words, st.sampled_from([0.0, 0.0003]))
    @examples(40)
    def test_what_is_certain_in_little_time_is_right(self, cfg, word, seconds):
        hasty, exact = ConfigurationSets(Lookahead(cfg), search_time=seconds), ConfigurationSets(Lookahead(cfg))
        assert hasty.is_viable(word) in (None, exact.is_viable(word))
        length, decided = hasty.longest_viable(word)
        assert length == exact.longest_viable(word)[0] if decided else length <= exact.longest_viable(word)[0]
        allowed, may_stop, decided = hasty.next_terminals(word[:1])
        sure = exact.next_terminals(word[:1])
        assert (set(allowed), may_stop) == (set(sure[0]), sure[1]) if decided else set(allowed) <= set(sure[0])

    def test_many_options_are_followed_one_by_one(self):
        names = [f"t{number}" for number in range(400)]
        prefixes = ConfigurationSets(Lookahead(CFG.from_string(f"%limit 1\nS -> T S | T\nT -> {' | '.join(names)}")))
        allowed, may_stop, decided = prefixes.next_terminals(("t3",))
        assert (len(allowed), may_stop, decided) == (399, True, True)
        assert prefixes.after_word(("t3",)).word is None
