"""The nearest words and the edits to them."""

import pytest
from hypothesis import assume, given

from formal_llm import CFG, PDA, Limits, Lookahead, SumLimit
from formal_llm.automata.languages.nearest_words import Edit, EditWeights, Nearest, find_edits, nearest
from tests.automata.languages.editing import apply_edits, distance, weights, words
from tests.automata.lookahead.judging import Plain
from tests.automata.messages import quiet
from tests.oracles import all_words, keeps, language
from tests.strategies import (
    examples,
    limited_automata,
    limited_grammars,
    tool_grammars,
)


def weigh_edits(made, weights):
    return sum(getattr(weights, edit.kind) for edit in made)


class TestEdits:
    @given(words, words, weights)
    def test_they_turn_one_word_into_the_other_for_the_least(self, word, other, weights):
        made = find_edits(word, other, weights)
        assert apply_edits(made, word) == other
        assert weigh_edits(made, weights) == distance(word, other, weights)
        assert [edit.position for edit in made] == sorted(edit.position for edit in made)

    def test_what_they_say(self):
        made = find_edits(("a", "b", "c"), ("b", "x", "d"))
        assert len(made) == 3
        assert str(Edit("insert", 2, new="x")) == "insert x at place 3"
        assert str(Edit("delete", 2, "x")) == "delete x at place 3"
        assert str(Edit("substitute", 2, "x", "y")) == "replace x at place 3 by y"

    @pytest.mark.parametrize("weight", [-1, float("inf"), float("nan")])
    def test_weights_are_numbers_from_zero(self, weight):
        with pytest.raises(ValueError, match="the weight of delete"):
            EditWeights(delete=weight)


UP_TO = 5


def check(lookahead, word, weights, short_words):
    """``short_words``: all words of the language within the limits, up to the length ``UP_TO``."""
    found = nearest(lookahead, word, weights)
    assume(found.decided)
    best = min((distance(word, other, weights) for other in short_words), default=float("inf"))
    assert found.distance <= best
    if found.word is None:
        assert found == Nearest(None)
        return
    assert lookahead.automaton.accepts(found.word)
    assert apply_edits(found.edits, word) == found.word
    assert weigh_edits(found.edits, weights) == found.distance
    if len(found.word) <= UP_TO:
        assert found.distance == best


class TestNearest:
    @given(limited_grammars() | tool_grammars(), words, weights)
    @examples(80)
    def test_grammars_under_limits(self, cfg, word, weights):
        within = [w for w in language(cfg, UP_TO) if keeps(w, cfg.limits, cfg.terminals, cfg.symbols)]
        check(Lookahead(cfg), word, weights, within)

    @given(limited_grammars(), words, weights)
    @examples(80)
    def test_grammars_without_limits(self, cfg, word, weights):
        check(Lookahead(PDA.from_cfg(cfg)), word, weights, language(cfg, UP_TO))

    @given(limited_automata(), words, weights)
    @examples(80)
    def test_automata(self, source, word, weights):
        pda, bounds = source
        within = [
            w
            for w in all_words(pda.terminals, UP_TO)
            if keeps(w, bounds, pda.terminals, pda.symbols) and pda.accepts(w)
        ]
        check(Lookahead(*source), word, weights, within)

    def test_limits_on_sums_and_lower_bounds(self):
        cfg = CFG.from_string("S -> a S | b S | c\na cost=2\nb cost=3\n")
        found = nearest(Lookahead(cfg, Limits(sums=(SumLimit("cost", 7, 7),))), ("a", "a", "a", "c"))
        assert (sorted(found.word), found.distance) == (["a", "a", "b", "c"], 1)
        found = nearest(Lookahead(cfg, Limits(at_least={"b": 2})), ("a", "a", "c"), EditWeights(substitute=5))
        assert (sorted(found.word), found.distance) == (["a", "a", "b", "b", "c"], 2)

    def test_left_recursion_empty_productions_and_unit_cycles(self):
        with quiet():
            cfg = CFG.from_string("S -> S N | S | a\nN -> b | ε | N N\n%limit 2 b")
        assert nearest(Lookahead(cfg), ("c", "b", "b", "b")).distance == 2
        assert nearest(Lookahead(cfg), ()).word == ("a",)

    def test_no_word_at_all(self):
        assert nearest(Lookahead(CFG.from_string("S -> a b").with_limits(Limits({"a": 0}))), ("a",)) == Nearest(None)
        assert nearest(Lookahead(CFG([("S", ("S",))])), ("a",)) == Nearest(None)

    def test_symbols_that_the_automaton_does_not_know(self):
        found = nearest(Lookahead(CFG.from_string("S -> a S b | c")), ("x", "a", "y", "z", "b"))
        assert found.distance == 3
        assert not {"x", "y", "z"} & set(found.word)

    def test_long_words(self):
        cfg = CFG.from_string("S -> a S b | c")
        word = ("a",) * 150 + ("c",) + ("b",) * 147
        assert nearest(Lookahead(cfg), word).distance == 3

    def test_the_budget_ends_it_honestly(self):
        names = [f"t{number}" for number in range(12)]
        cfg = CFG([("S", (name, "S")) for name in names] + [("S", ())], limits=Limits(default=1))
        word = ("t0",) * 6 + ("t1",) * 6
        assert nearest(Lookahead(cfg), word, EditWeights(delete=3), max_states=5) == Nearest(None, decided=False)

    def test_moves_without_input_that_never_end(self):
        moves = [("p", None, "X", "p", ("X", "Y")), ("p", "a", "X", "p", ()), ("p", "c", "Y", "p", ())]
        pda = PDA([*moves, ("p", "b", "$", "q", ())], start="p", accepting=["q"], stack=("X", "$"))
        found = nearest(Lookahead(pda), tuple("aacb"))
        assert (found.distance, pda.accepts(found.word)) == (1, True)

    def test_any_automaton(self):
        assert nearest(Lookahead(Plain()), ("x",)).distance == 1


def test_a_nearest_word_is_found_where_limits_leave_many_choices():
    cfg = CFG.from_string("%limit 1\nS -> T | T S\nT -> " + " | ".join(f"t{n}" for n in range(20)))
    word = tuple(f"t{n * n % 17}" for n in range(30))
    found = nearest(Lookahead(cfg), word, max_states=5_000)
    assert found.decided
    assert found.distance == 30 - len(set(word))
