from itertools import combinations

import pytest
from hypothesis import assume, given
from oracles import Reference
from strategies import examples, limited_automata, limited_grammars

from formal_llm import CFG, PDA, Limits, Lookahead, SumLimit
from formal_llm.automata.explain import clash, remedy, why_empty
from formal_llm.automata.limited import limited, split


def check(pda, bounds):
    """The limits named leave no word together, and without any one of them there is one."""
    named = clash(limited(pda, bounds))
    every = [bound.line for bound in bounds.bounds(list(pda.terminals), _numbers(pda))]
    if Reference(pda, Limits()).empty:
        assert named == []
        return
    assert named
    assert set(named) <= set(every)

    def empty(lines):
        rest = bounds
        for line in every:
            if line not in lines:
                rest = rest.without(line)
        return Reference(pda, rest).empty

    assert empty(named)
    for line in named:
        assert not empty([other for other in named if other != line])


def _numbers(pda):
    return {name: symbol.numbers for name, symbol in pda.symbols.items()}


class TestClash:
    @given(limited_grammars())
    @examples(60)
    def test_grammars(self, cfg):
        pda = PDA.from_cfg(cfg)
        assume(Reference(pda, cfg.limits).empty)
        check(pda, cfg.limits)

    @given(limited_automata())
    @examples(60)
    def test_automata(self, source):
        assume(Reference(*source).empty)
        check(*source)

    def test_by_hand(self):
        cfg = CFG.from_string("S -> a S b | c")
        bounds = Limits({"b": 1, "c": 5}, {"a": 3, "c": 1})
        assert sorted(clash(Lookahead(cfg, bounds).automaton)) == ["%limit 1 b", "%require 3 a"]

    def test_the_default_is_named_for_the_terminal_it_hits(self):
        cfg = CFG.from_string("S -> a a b")
        assert clash(Lookahead(cfg, Limits(default=1)).automaton) == ["%limit 1 a"]

    def test_both_ends_of_one_sum(self):
        cfg = CFG.from_string("S -> a S | b\na cost=3")
        bounds = Limits(sums=(SumLimit("cost", 5, 4),))
        assert sorted(clash(Lookahead(cfg, bounds).automaton)) == ["%limit cost <= 5", "%limit cost >= 4"]

    def test_terminals_with_blanks_in_their_names(self):
        pda = PDA([("p", "wash hands", None, "q")], start="p", accepting="q")
        bounds = Limits({"wash hands": 0})
        # Dropping the limit by its line must drop it, or looking for the clash would never end.
        assert bounds.without("%limit 0 wash hands") == Limits()
        assert clash(limited(pda, bounds)) == ["%limit 0 wash hands"]


class TestWhyEmpty:
    def test_limits_to_blame(self):
        cfg = CFG.from_string("S -> a S b | c")
        reason, symbols, lines, _ = why_empty(Lookahead(cfg, Limits({"c": 0})).automaton)
        assert (symbols, lines) == ([], ["%limit 0 c"])
        assert reason == "these limits clash: %limit 0 c"

    def test_symbols_to_blame(self):
        cfg = CFG([("S", ("a", "T")), ("T", ("T",)), ("U", ("U",))])
        reason, symbols, lines, _ = why_empty(PDA.from_cfg(cfg))
        assert (symbols, lines) == (["S", "T"], [])
        assert reason == "no word can be derived from S, T"

    @pytest.mark.parametrize("bounds", [None, Limits({"a": 1})])
    def test_an_automaton_that_cannot_end(self, bounds):
        pda = PDA([("p", "a", None, "p"), ("p", "a", "X", "q")], start="p", accepting=["q"], stack=("Y", "X"))
        assert why_empty(limited(pda, bounds)) == ("no run of the automaton accepts", [], [], [])


class TestRemedy:
    def test_one_limit_is_enough_where_two_clash(self):
        cfg = CFG.from_string("S -> a S | b S | c")
        found = remedy(limited(PDA.from_cfg(cfg), Limits({"a": 1, "b": 0}, {"a": 2})))
        assert len(found) == 1
        assert found[0] in {"%limit 1 a", "%require 2 a"}

    @given(limited_grammars())
    @examples(60)
    def test_it_is_smallest_and_gives_a_word(self, cfg):
        automaton = Lookahead(cfg).automaton
        if Lookahead(cfg).completable().value != "no":
            return
        inner, limits = split(automaton)
        found = remedy(automaton)
        if not found:
            assert Lookahead(inner).completable().value == "no"
            return
        lines = [bound.line for bound in automaton.counters.bounds]

        def possible(dropped):
            left = limits
            for line in dropped:
                left = left.without(line)
            return Lookahead(inner, left).completable().value == "yes"

        assert possible(found)
        for size in range(len(found)):
            assert not any(possible(smaller) for smaller in combinations(lines, size))
