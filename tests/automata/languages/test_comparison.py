"""Differences between languages, against all short words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, constraint
from formal_llm.automata.languages.comparison import differences
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.lookahead.limited import as_automaton
from tests.automata.languages.order import in_order
from tests.oracles import keeps, language
from tests.strategies import automata, examples, grammars, limited_automata, limited_grammars

UP_TO = 5


def within(cfg, up_to=UP_TO):
    return {w for w in language(cfg, up_to) if keeps(w, cfg.limits, cfg.terminals, cfg.symbols)}


def check(found, ours, theirs, up_to):
    """What was found is right for two sets of all words of at most ``up_to`` terminals."""
    for only, mine, others in ((found.only_one, ours, theirs), (found.only_other, theirs, ours)):
        apart = mine - others
        if only is not None and len(only) <= up_to:
            assert only in apart
            assert len(only) == min(map(len, apart))
        else:
            sure = up_to if found.up_to is None else min(found.up_to, up_to)
            assert not [word for word in apart if len(word) <= sure]
    for row in found.counts:
        if row.length <= up_to:
            assert row.one == sum(len(word) == row.length for word in ours)
            assert row.other == sum(len(word) == row.length for word in theirs)


class TestAgainstAllShortWords:
    @given(limited_grammars(), limited_grammars())
    @examples(80)
    def test_grammars_up_to_a_length(self, one, other):
        found = differences(one, other, UP_TO)
        assert found.up_to is None or found.up_to == UP_TO or None not in (found.only_one, found.only_other)
        check(found, within(one), within(other), UP_TO)

    @given(limited_grammars(), limited_grammars())
    @examples(40)
    def test_grammars_without_a_bound(self, one, other):
        check(differences(one, other, max_places=50), within(one), within(other), UP_TO)

    @given(limited_automata(finite=True), automata(finite=True))
    @examples(60)
    def test_finite_automata_are_compared_without_a_bound(self, limited, other):
        one = as_automaton(limited[0], limited[1])
        found = differences(one, other)
        assert found.exact
        check(found, set(words(one, UP_TO)), set(words(other, UP_TO)), UP_TO)

    @given(grammars(), st.sampled_from(["(eventually a)", "(not (eventually (next a b)))", "(until any c)"]))
    @examples(25)
    def test_products(self, cfg, formula):
        one = constraint(formula, ("a", "b", "c"))
        found = differences(cfg, cfg & one, UP_TO)
        assert found.only_other is None
        check(found, language(cfg, UP_TO), {w for w in language(cfg, UP_TO) if one.accepts(w)}, UP_TO)


class TestWhatIsSure:
    def test_finite_languages(self):
        found = differences(
            CFG.from_string("%order forward\nS -> a S S | b\n%limit 2 a"),
            CFG.from_string("S -> b | a b b | a T\nT -> a b b b | b a b b"),
        )
        assert (found.equal, found.exact, found.up_to) == (True, True, None)
        assert [tuple(row) for row in found.counts] == [(1, 1, 1), (2, 0, 0), (3, 1, 1), (4, 0, 0), (5, 2, 2)]

    def test_infinite_languages_up_to_a_length(self):
        found = differences(CFG.from_string("S -> a S b | ε"), CFG.from_string("S -> a S b | a b | ε"))
        assert (found.equal, found.exact) == (True, False)
        assert found.up_to >= 40

    def test_the_same_rules_are_equal_however_large(self):
        cfg = CFG.from_string("%order forward\nS -> a S S | b S c | ε")
        found = differences(cfg, CFG.from_string(str(cfg) + '\na "A label"'), max_places=10)
        assert (found.equal, found.exact) == (True, True)
        numbers = "S -> a S | b\n%limit cost <= 3\na cost={}"
        found = differences(CFG.from_string(numbers.format(1)), CFG.from_string(numbers.format(2)))
        assert (found.only_one, found.only_other) == (("a", "a", "b"), None)

    def test_both_ways(self):
        one = PDA([("p", "a", None, "p"), ("p", "b", None, "q")], start="p", accepting=["q"])
        other = PDA([("p", "a", None, "p"), ("p", "c", None, "q")], start="p", accepting=["p", "q"])
        found = differences(one, other)
        assert (found.only_one, found.only_other, found.exact) == (("b",), (), True)
        assert differences(one, one, 0).equal

    def test_a_small_budget_is_told(self):
        cfg = CFG.from_string("S -> a S | b S | c S | d S | ε\n%limit 3")
        found = differences(cfg, cfg.with_limits(Limits(default=4)), max_places=3)
        assert (found.equal, found.exact, found.up_to) == (True, False, 1)

    def test_no_negative_length(self):
        with pytest.raises(ValueError, match="counts from 0"):
            differences(CFG.from_string("S -> a"), CFG.from_string("S -> a"), -1)


class TestShortestWords:
    @given(grammars(), grammars())
    @examples(60)
    def test_a_shortest_word_of_one_only(self, one, other):
        apart = language(one, 3) ^ language(other, 3)
        expected = in_order(apart, dict.fromkeys((*one.terminals, *other.terminals)))
        found = differences(one, other, 3)
        shortest = [word for word in (found.only_one, found.only_other) if word is not None]
        assert in_order(shortest, dict.fromkeys((*one.terminals, *other.terminals)))[:1] == expected[:1]

    def test_grammar_and_automaton(self):
        pda = PDA(
            [("p", "a", None, "p", ("X",)), ("p", None, None, "q"), ("q", "b", "X", "q"), ("q", None, "$", "f")],
            start="p",
            accepting=["f"],
            stack=("$",),
        )
        assert differences(CFG.from_string("S -> a S b | ε"), pda, 8).equal
        found = differences(CFG.from_string("S -> a S b | c"), pda, 8)
        assert (found.only_one, found.only_other) == (("c",), ())
