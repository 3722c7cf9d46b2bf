"""The cheapest completions against the slow reference."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Lookahead
from formal_llm.errors import Undecided
from tests.automata.lookahead.judging import parts, reference, sources
from tests.oracles import INF
from tests.strategies import choices, examples, walk


class TestShortest:
    def test_doubling_grammar_is_not_written_out(self):
        rules = [(f"A{level}", (f"A{level + 1}",) * 2) for level in range(25)]
        assert Lookahead(CFG([*rules, ("A25", ("a",))])).shortest() == 2**25

    def test_none_where_there_is_no_word(self):
        lookahead = Lookahead(CFG([("S", ("a", "S"))]))
        assert lookahead.shortest() is None
        assert lookahead.shortest_word() is None
        assert lookahead.least_steps(lookahead.automaton.start()) == INF
        assert lookahead.least_length(lookahead.automaton.start()) == INF

    def test_undecided_says_what_to_raise(self):
        cfg = CFG.from_string("%limit 3\n%require 2 a b c\nS -> T S T | U\nT -> a | b U | c\nU -> c T | a b")
        with pytest.raises(Undecided, match="raise max_states"):
            Lookahead(cfg, max_states=1).shortest()
        with pytest.raises(Undecided, match="raise max_states"):
            Lookahead(cfg, max_states=1).shortest_word()

    @given(sources, choices, st.sampled_from([0, 1, 5, 50, 4_000]))
    @examples(40)
    def test_bounds_are_no_more_than_the_length_however_few_the_tries(self, source, picks, tries):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        start = lookahead.automaton.start()
        bounds = lookahead.least_lengths([now, start, now], tries)
        slow = reference(lookahead)
        lengths = [slow.length(*parts(now), word), slow.length(*parts(start), ())]
        assert all(found <= length for found, length in zip(bounds, [*lengths, lengths[0]], strict=True))

    def test_bounds_of_many_together_cost_no_more_than_they_may(self):
        names = [f"t{number}" for number in range(60)]
        rules = ["S -> T S | T", f"T -> {' | '.join(names)}", "%limit kg >= 300", "%limit 1"]
        lookahead = Lookahead(CFG.from_string("\n".join([*rules, *(f"{n} kg={k}" for k, n in enumerate(names))])))
        start = lookahead.automaton.start()
        lookahead.least_lengths([start], 1_000)  # prices are made once
        begun = process_time()
        assert lookahead.least_lengths([start] * 50, 1_000) == lookahead.least_lengths([start] * 50, 1_000)
        assert process_time() - begun < 1
