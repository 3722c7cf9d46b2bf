"""The words of a grammar, and their derivations."""

import itertools

import pytest
from hypothesis import given

from formal_llm import CFG, PDA, Limits, Lookahead
from formal_llm.automata.languages.word_lists import PlanCount, count_plans, words
from formal_llm.automata.lookahead.derivations import derivations
from formal_llm.errors import Undecided
from tests.automata.languages.order import in_order
from tests.oracles import all_words, language
from tests.strategies import automata, examples, grammars


class TestWords:
    @given(grammars())
    @examples(100)
    def test_each_once_and_in_order(self, cfg):
        assert list(words(cfg, 4)) == in_order(language(cfg, 4), cfg.terminals)

    @given(automata(letters=("a", "b")))
    @examples(80)
    def test_of_automata_written_by_hand(self, pda):
        accepted = {word for word in all_words(pda.terminals, 4) if pda.accepts(word)}
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


@pytest.mark.parametrize(
    ("rules", "many", "said"),
    [
        ("S -> a b | a b c d | e", PlanCount(3, "words"), "3"),
        ("S -> a S | b", PlanCount(5, "words", 5), "infinitely many; 5 up to 5"),
        ("S -> " + " | ".join(f"a{n}" for n in range(1200)), PlanCount(1200, "words"), "1,200"),
    ],
)
def test_how_many_plans_there_are(rules: str, many: PlanCount, said: str) -> None:
    found = count_plans(Lookahead(CFG.from_string(rules)))
    assert found == many
    assert found.describe_count("up to {}") == said


def test_derivations_are_counted_where_words_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    lookahead = Lookahead(CFG.from_string("S -> A | B\nA -> a\nB -> a"))
    count = lookahead.count

    def undecided(configuration: object = None, *, of: str = "words", max_length: int | None = None) -> int:
        if of == "words":
            raise Undecided("not counted")
        return count(configuration, of="derivations", max_length=max_length)

    monkeypatch.setattr(lookahead, "count", undecided)
    found = count_plans(lookahead)
    assert found == PlanCount(2, "derivations")
    assert found.describe_count("") == "2 derivations (a plan may have several)"


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
        found = derivations(CFG([("S", ("S",)), ("S", ("a",))]), "a", 3)
        assert [len(one) for one in found.found] == [1, 2, 3]
        assert not found.complete

    def test_long_words(self):
        found = derivations(CFG.from_string("S -> a S | b"), "a" * 150 + "b")
        assert found.complete
        assert len(found.found[0]) == 151
