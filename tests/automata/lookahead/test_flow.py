"""The commutative grammar of an automaton, against words written out."""

from hypothesis import given

from formal_llm import CFG, PDA, Limits
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import ACCEPTING, LENGTH, FlowGrammar
from formal_llm.automata.models.pda import LOOP
from tests.oracles import language
from tests.strategies import examples, grammars, limited_grammars


def flow(cfg, limits=None):
    pda = PDA.from_cfg(cfg).with_limits(cfg.limits if limits is None else limits)
    return FlowGrammar(pda, Counters(pda.bounds))


class TestSymbols:
    @given(limited_grammars())
    @examples(80)
    def test_the_shortest_words_of_each_nonterminal(self, cfg):
        grammar = flow(cfg)
        upper = [bound for bound in grammar.counters.bounds if bound.most is not None]
        limited = {name for bound in upper for name in bound.weights}
        banned = {name for bound in upper for name, weight in bound.weights.items() if weight > bound.most}
        for head in cfg.nonterminals:
            symbol = grammar.symbol(LOOP, head, LOOP)
            words = language(cfg.with_start(head), 4)
            for length, without in ((symbol.least_length, banned), (symbol.free_length, limited)):
                found = [len(word) for word in words if without.isdisjoint(word)]
                if found:
                    assert length // LENGTH == min(found)
                else:
                    assert length == INFINITE or length // LENGTH > 4

    def test_moves_and_terminals(self):
        grammar = flow(CFG.from_string("%limit 1 a\nS -> a S b | c"))
        symbol = grammar.symbol(LOOP, "S", LOOP)
        assert (symbol.least_steps, symbol.least_length) == (2, LENGTH + 2)  # S -> c, and c is read
        assert symbol.free
        assert not grammar.symbol(LOOP, "a", LOOP).free

    def test_due_symbols_may_serve_a_lower_bound(self):
        grammar = flow(CFG.from_string("%require 1 a\nS -> A B\nA -> a | b\nB -> b"))
        due = {head: grammar.symbol(LOOP, head, LOOP).due for head in "SAB"}
        assert due == {"S": True, "A": True, "B": False}


class TestStacks:
    def test_ways_to_be_done_with_the_top(self):
        pda = PDA([("p", "a", "X", "q"), ("p", "b", "X", "r")], start="p", accepting="r", stack="X")
        grammar = FlowGrammar(pda, Counters(()))
        assert {target for _, target in grammar.resolve("p", "X")} == {"q", "r"}
        assert [target for _, target in grammar.resolve("r", None)] == [ACCEPTING]
        assert grammar.resolve("q", None) == []
        assert grammar.open
        levels = [{target for _, target in ways} for ways in grammar.levels("p", pda.start().stack)]
        assert levels == [{ACCEPTING}]  # with nothing below, all the ways at once

    def test_what_is_reached(self):
        grammar = flow(CFG([("S", ("A", "a")), ("A", ("b",)), ("B", ("S",))]))
        start = grammar.symbol(LOOP, "S", LOOP)
        names = {grammar.symbols[index].key[1] for index in grammar.reached([start.index])}
        assert names == {"S", "A", "a", "b"}


class TestDetours:
    @given(grammars(selections=False))
    @examples(40)
    def test_no_word_with_the_terminal_is_shorter(self, cfg):
        grammar = flow(cfg, Limits())
        symbol = grammar.symbol(LOOP, cfg.start, LOOP)
        detours = grammar.detours(symbol.index)
        for word in language(cfg, 4):
            for name in word:
                assert symbol.least_length // LENGTH + detours[name] <= len(word)
