import itertools

from hypothesis import given

from formal_llm import CFG
from formal_llm.automata.languages.ambiguity import ambiguity_witness, derivations
from formal_llm.automata.languages.word_lists import words
from tests.strategies import examples, grammars


class TestDerivations:
    @given(grammars())
    @examples(60)
    def test_each_derives_the_word_and_no_two_are_the_same(self, cfg):
        for word in itertools.islice(words(cfg, 4), 6):
            found = derivations(cfg, word, 8).found
            assert found
            assert len(set(found)) == len(found)
            assert [len(one) for one in found] == sorted(len(one) for one in found)
            for derivation in found:
                form = [cfg.start]
                for production in derivation:
                    at = next(place for place, name in enumerate(form) if name not in cfg.terminals)
                    assert form[at] == production.head
                    form[at : at + 1] = production.body
                assert tuple(form) == word

    def test_as_many_as_catalan_says(self):
        cfg = CFG.from_string("S -> S S | a")
        assert [len(derivations(cfg, "a" * n).found) for n in range(1, 7)] == [1, 1, 2, 5, 14, 42]
        assert derivations(cfg, "aaaa", 5).complete
        assert not derivations(cfg, "aaaa", 4).complete
        assert derivations(cfg, "b").found == ()

    def test_infinitely_many_are_cut_and_it_says_so(self):
        found = derivations(CFG.from_string("S -> S | a"), "a", 3)
        assert [len(one) for one in found.found] == [1, 2, 3]
        assert not found.complete

    def test_long_words(self):
        found = derivations(CFG.from_string("S -> a S | b"), "a" * 150 + "b")
        assert found.complete
        assert len(found.found[0]) == 151


class TestWitnesses:
    @given(grammars(selections=False))
    @examples(40)
    def test_a_shortest_ambiguous_word(self, cfg):
        witness = ambiguity_witness(cfg, 3)
        ambiguous = [word for word in words(cfg, 3) if len(derivations(cfg, word, 2).found) > 1]
        assert (witness.word if witness else None) == (ambiguous[0] if ambiguous else None)
        if witness:
            assert witness.derivations[0] != witness.derivations[1]

    def test_none_for_a_grammar_without_ambiguity(self):
        assert ambiguity_witness(CFG.from_string("S -> a S b | ε"), 8) is None
