import itertools

import pytest
from hypothesis import given

from formal_llm import CFG, PDA, Limits, Lookahead
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.models import tabulation
from tests.automata.languages.order import in_order
from tests.oracles import all_words, language
from tests.strategies import automata, examples, grammars


class TestWords:
    @given(grammars())
    @examples(150)
    def test_each_once_and_in_order(self, cfg):
        assert list(words(cfg, 4)) == in_order(language(cfg, 4), cfg.terminals)

    @given(automata(letters=("a", "b")))
    @examples(80)
    def test_of_automata_written_by_hand(self, pda):
        accepted = {word for word in all_words(pda.terminals, 4) if tabulation.accepts_by_tabulation(pda, word)}
        assert list(words(pda, 4)) == in_order(accepted, pda.terminals)

    def test_lazily(self):
        names = [f"tool{number}" for number in range(40)]
        cfg = CFG([("S", ("T", "S")), ("S", ()), *(("T", (name,)) for name in names)])
        assert list(itertools.islice(words(cfg, 500), 3)) == [(), ("tool0",), ("tool1",)]

    def test_limits_of_an_automaton_are_kept(self):
        cfg = CFG.from_string("S -> a S | b")
        assert list(words(PDA.from_cfg(cfg).with_limits(Limits({"a": 1})), 5)) == [("b",), ("a", "b")]
        assert list(words(cfg, 1)) == [("b",)]

    def test_the_timetable_of_an_automaton_is_kept(self):
        pda = PDA.from_string(
            "%clock time 8:00-9:00\n%window b 8:30-9:00\n%accept p q\np, a, ε -> q, ε\np, b, ε -> q, ε\n"
            "q, ε, ε -> p, ε\na time=30min\nb time=30min"
        )
        assert list(words(pda, 4)) == [(), ("a",), ("a", "a"), ("a", "b")]
        assert Lookahead(pda).count() == 4

    def test_other_automata_are_an_error(self):
        with pytest.raises(TypeError, match="grammar or a pushdown automaton"):
            words(object(), 3)
