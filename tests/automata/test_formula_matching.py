"""What formulas mean, straight from the definition."""

import pytest
from hypothesis import example, given

from formal_llm.automata.models.dfa import minimal_dfa
from formal_llm.automata.models.formula import (
    EMPTY,
    eventually,
    next_,
    not_,
    or_,
    until,
)
from formal_llm.automata.notation.formula import read_formula
from tests.automata.formula_matching import matches, spans
from tests.automata.formulas import holds, made, trees
from tests.oracles import all_words
from tests.strategies import examples


class TestMatches:
    @given(trees("ab"))
    @examples(400)
    @example(("not", "a"))
    @example((("until", 2, 2), ("or", "a", "empty"), "b"))
    @example(("always", ("next", "a", "b")))
    def test_by_the_definition(self, tree):
        formula, dfa = made(tree), minimal_dfa(made(tree), "ab")
        for word in all_words("ab", 4):
            assert matches(formula, word) == holds(tree, word), word
            assert dfa.accepts(word) == holds(tree, word), word

    def test_spans_are_all_the_parts(self):
        rows = spans(until("a", "b"), "aab")
        assert {(i, j) for i in range(4) for j in range(4) if rows[i] >> j & 1} == {(0, 3), (1, 3), (2, 3)}

    @pytest.mark.parametrize(
        ("text", "good", "bad"),
        [
            ("a", ["a"], ["", "b", "aa"]),
            ("any", ["a", "b", "c"], ["", "ab"]),
            ("empty", [""], ["a"]),
            ("(next a b c)", ["abc"], ["ab", "abcc", "acb"]),
            ("(until a b)", ["b", "ab", "aaab"], ["", "a", "abb", "ba"]),
            ("(until (next a b) c)", ["c", "abc", "ababc"], ["ac", "aabbc", "ab"]),
            ("(until_2 a b)", ["b", "ab", "aab"], ["aaab"]),
            ("(until_1_2 a b)", ["ab", "aab"], ["b", "aaab"]),
            ("(until_2_* a b)", ["aab", "aaaab"], ["b", "ab"]),
            ("(not a)", ["", "b", "aa", "ab"], ["a"]),
            ("(and any (not a))", ["b", "c"], ["", "a", "bb"]),
            ("(always (or a b))", ["", "a", "b", "abba"], ["c", "abc"]),
            ("(always (not a))", ["", "b", "bcb"], ["a", "bab"]),
            ("(eventually a)", ["a", "bac"], ["", "bc"]),
            ("(eventually (next a b))", ["ab", "caba"], ["ba", "acb", ""]),
            ("(not (eventually (next a b)))", ["", "ba", "acb"], ["ab", "cab"]),
            ("(-> (next a b) (next a b))", ["", "ab", "c"], []),
            ("(-> (eventually a) (eventually b))", ["", "c", "ab", "ba"], ["a", "ca"]),
            # Those of the how-to page.
            ("(always (not a))", ["", "bcb"], ["a", "bab"]),
            ("(not (eventually (next a (until any b))))", ["", "bba", "acc"], ["ab", "accb"]),
            (
                "(or (always (not b)) (next (until (and any (not b)) a) (until any empty)))",
                ["", "cc", "ab", "cabb"],
                ["b", "ba", "cba"],
            ),
            ("(until_2 any empty)", ["", "a", "ab"], ["abc"]),
            ("(not (next (until any empty) a (not (next b (until any empty)))))", ["", "ab", "cabab"], ["a", "aab"]),
        ],
    )
    def test_by_hand(self, text, good, bad):
        formula = read_formula(text, [*"abc"])
        assert [word for word in good if not matches(formula, word)] == []
        assert [word for word in bad if matches(formula, word)] == []

    def test_long_words(self):
        formula = next_(until(next_("a", until("b", "c", 0, 3)), "d"), not_(eventually("a")))
        word = ("a", "b", "b", "c") * 100 + ("d",) + ("b",) * 100
        assert matches(formula, word) and minimal_dfa(formula, "abcd").accepts(word)
        assert not matches(formula, (*word, "a"))

    def test_bounds_larger_than_the_word(self):
        formula = until("a", "b", 10**6, 10**6 + 1)
        assert not matches(formula, "aab")
        assert matches(until(or_("a", EMPTY), "b", 10**6, 10**6 + 1), "aab")
