"""The search over multisets: what decided, what is remembered, what a budget does."""

import pytest
from hypothesis import given

from formal_llm import CFG, Limits, Lookahead, Verdict
from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.verdicts import BUDGET, FILTER, LINEAR, SEARCH
from tests.automata.lookahead.judging import parts, reference, sources
from tests.oracles import INF
from tests.strategies import choices, examples, tool_grammars, walk

#: Each day two of six people, nobody twice: an exact cover, beyond the filters.
SHIFTS = CFG.from_string("""
%limit 1
Week -> Monday Tuesday Wednesday
Monday    -> ann bob | cat dan | ann fay
Tuesday   -> ann bob | cat eve | dan fay
Wednesday -> eve fay | ann cat | bob dan
""")


def search_of(lookahead, max_states):
    """A search of its own, without a solver."""
    return CompletionSearch(FlowGrammar(lookahead.pda, Counters(lookahead.bounds)), max_states)


def decide(search, lookahead, now):
    (state, stack), remaining, needed = lookahead._split_configuration(now)
    return search.decide_demand(search.demands.for_configuration(state, stack), remaining, needed)


class TestDecide:
    @given(sources, choices)
    @examples(100)
    def test_as_the_reference_says(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        least = reference(lookahead).moves(*parts(now), word)
        found, how = decide(search_of(lookahead, 20_000), lookahead, now)
        assert (found == INFINITE) == (least == INF)
        assert found >= least
        assert how in (FILTER, LINEAR, SEARCH)

    @given(tool_grammars(), choices)
    @examples(40)
    def test_a_small_budget_is_never_wrong_and_says_what_ended_it(self, cfg, picks):
        lookahead = Lookahead(cfg)
        now, word = walk(lookahead.automaton, picks)
        least = reference(lookahead).moves(*parts(now), word)
        for max_states in (0, 1, 3):
            found, how = decide(search_of(lookahead, max_states), lookahead, now)
            assert (found == UNKNOWN) == (how == BUDGET)
            assert found == UNKNOWN or (found == INFINITE) == (least == INF)

    def test_what_was_found_is_remembered(self):
        lookahead = Lookahead(SHIFTS)
        search = search_of(lookahead, 20_000)
        first = decide(search, lookahead, lookahead.automaton.start())
        assert first[1] == SEARCH
        search.max_states = 0
        assert decide(search, lookahead, lookahead.automaton.start()) == first
        assert decide(search_of(lookahead, 1), lookahead, lookahead.automaton.start()) == (UNKNOWN, BUDGET)

    def test_finish_judges_what_is_pending(self):
        lookahead = Lookahead(CFG.from_string("%limit 1\nS -> T T\nT -> a | b"), Limits())
        search = lookahead._search
        one = search.multisets.unit_of(search.grammar.get_symbol("loop", "T", "loop").index)
        left = search.demands.resources.resources_left(lookahead.automaton.start().remaining)
        assert [search.finish_moves(count * one, None, left, 0) for count in (0, 1, 2, 3)] == [0, 2, 4, INFINITE]


class TestVerdict:
    def test_has_no_truth_value(self):
        with pytest.raises(TypeError, match="three values"):
            bool(Lookahead(CFG.from_string("S -> a")).completable())

    def test_possible_means_not_ruled_out(self):
        assert [Verdict(value, "search").possible for value in ("yes", "no", "unknown")] == [True, False, True]

    def test_text_tells_what_decided(self):
        lookahead = Lookahead(CFG.from_string("S -> a b"))
        assert str(lookahead.completable()) == "yes (filter)"
        assert str(lookahead.completable(steps=2)) == "no (step budget)"
