"""The search that knows nothing but the protocol, against the slow reference and the search over multisets."""

from hypothesis import assume, given

from formal_llm import CFG, Lookahead
from formal_llm.automata.lookahead.flow import LENGTH
from formal_llm.automata.lookahead.plain_search import PlainSearch
from tests.automata.lookahead.judging import parts, reference
from tests.oracles import INF
from tests.strategies import choices, examples, limited_automata, walk


class TestPlainSearch:
    @given(limited_automata(), choices)
    @examples(80)
    def test_never_says_anything_wrong_and_finds_the_fewest_moves(self, source, picks):
        lookahead = Lookahead(*source)
        automaton, slow = lookahead.automaton, reference(lookahead)
        now, word = walk(automaton, picks)
        search = PlainSearch(automaton, max_states=300)
        found = search.cheapest(now, by_length=False)
        least = slow.moves(*parts(now), word)
        assert found in {least, -1.0}
        if least <= 3:
            assert found == least
        length = search.cheapest(now, by_length=True)
        assert length == -1.0 or (length == INF) == (least == INF)
        if 0 <= length < INF:
            assert length // LENGTH == slow.length(*parts(now), word)

    @given(limited_automata(finite=True), choices)
    @examples(80)
    def test_both_searches_agree_on_finite_automata(self, source, picks):
        # Finitely many configurations: exploring them all decides everything.
        lookahead = Lookahead(*source)
        now, _ = walk(lookahead.automaton, picks)
        search = PlainSearch(lookahead.automaton, max_states=20_000)
        cheapest = search.cheapest(now, by_length=False)
        assume(cheapest != -1.0)
        assert lookahead.completable(now).value == ("no" if cheapest == INF else "yes")
        for steps in range(6):
            assert lookahead.completable(now, steps=steps).value == ("yes" if cheapest <= steps else "no")

    def test_terminals_are_those_that_moves_can_read(self):
        automaton = Lookahead(CFG.from_string("%limit 1 a\nS -> a S | b | c c")).automaton
        assert PlainSearch(automaton, 1000).terminals(automaton.start()) == {"a", "b", "c"}
        now, _ = walk(automaton, [0, 0, 0])
        assert PlainSearch(automaton, 1000).terminals(now) == {"b", "c"}
