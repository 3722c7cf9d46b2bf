"""The cheapest completions against the slow reference."""

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formal_llm import CFG, Lookahead
from formal_llm.errors import Undecided
from tests.automata.lookahead.judging import parts, reference, sources
from tests.oracles import INF, keeps, language
from tests.strategies import choices, examples, limited_grammars, walk


class TestShortest:
    @given(sources, choices)
    @examples(120)
    def test_length_is_that_of_the_reference(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        length = reference(lookahead).length(*parts(now), word)
        assert lookahead.shortest(now) == (None if length == INF else length)
        assert lookahead.least_length(now) <= length or length == INF
        assert lookahead.least_steps(now) <= reference(lookahead).moves(*parts(now), word)

    @given(sources, choices)
    @examples(120)
    def test_word_has_that_length_and_completes_the_plan(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        rest = lookahead.shortest_word(now)
        if rest is None:
            assert reference(lookahead).length(*parts(now), word) == INF
            return
        assert len(rest) == reference(lookahead).length(*parts(now), word)
        pda = lookahead.pda
        assert keeps(word + rest, lookahead.limits, list(pda.terminals), pda.symbols)
        assert lookahead.automaton.accepts(word + rest)

    @given(limited_grammars())
    def test_grammars_agree_with_all_words_written_out(self, cfg):
        fitting = [w for w in language(cfg, 4) if keeps(w, cfg.limits, list(cfg.terminals), cfg.symbols)]
        shortest = Lookahead(cfg).shortest()
        if fitting:
            assert shortest == min(map(len, fitting))
        else:
            assert shortest is None or shortest > 4

    def test_doubling_grammar_is_not_written_out(self):
        rules = [(f"A{level}", (f"A{level + 1}",) * 2) for level in range(20)]
        assert Lookahead(CFG([*rules, ("A20", ("a",))])).shortest() == 2**20

    def test_many_moves_do_not_spill_into_the_length(self):
        rules = [(f"A{level}", (f"A{level + 1}",) * 2) for level in range(25)]
        assert Lookahead(CFG([*rules, ("A25", ("a",))])).shortest() == 2**25

    def test_none_where_there_is_no_word(self):
        lookahead = Lookahead(CFG([("S", ("a", "S"))]))
        assert lookahead.shortest() is None
        assert lookahead.shortest_word() is None
        assert lookahead.least_steps(lookahead.automaton.start()) == INF
        assert lookahead.least_length(lookahead.automaton.start()) == INF

    @given(sources, choices)
    @example((CFG.from_string("%require 4 a\nS -> a S | b"), None), [0] * 6)
    @examples(40)
    def test_within_a_number_of_moves_as_the_reference_says_whatever_was_asked_before(self, source, picks):
        lookahead = Lookahead(*source)
        slow = reference(lookahead)
        for end in range(len(picks), -1, -1):
            now, word = walk(lookahead.automaton, picks[:end])
            least = slow.moves(*parts(now), word)
            for steps in {0, 3, 9, *((least - 1, least) if 0 < least < INF else ())}:
                verdict = lookahead.completable(now, steps=steps)
                assert (verdict.value == "yes") == (least <= steps)
                assert verdict.steps is None or least <= verdict.steps <= steps

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
