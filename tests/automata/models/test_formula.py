"""Formulas as values: their normal form and their parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.models.dfa import minimal_dfa
from formal_llm.automata.models.formula import (
    ANY,
    EMPTY,
    EVERYTHING,
    NOTHING,
    Atom,
    Repeated,
    always,
    and_,
    derivative,
    eventually,
    next_,
    not_,
    or_,
    satisfied_by_one,
    until,
)
from tests.automata.formula_matching import matches
from tests.automata.formulas import holds, made, trees
from tests.oracles import all_words
from tests.strategies import examples


class TestNormalForm:
    def test_laws(self):
        a, b, c = (Atom(name=name) for name in "abc")
        assert next_(a, next_(b, c)) == next_(next_(a, b), c) == next_("a", "b", "c")
        assert next_(a, EMPTY) == a
        assert next_() == EMPTY
        assert next_(a, NOTHING, b) == NOTHING
        assert or_(a, or_(b, a)) == or_(b, a)
        assert hash(or_(a, b)) == hash(or_(b, a))
        assert or_(a, NOTHING) == and_(a, EVERYTHING) == a
        assert or_(a, EVERYTHING) == EVERYTHING
        assert and_(a, NOTHING) == NOTHING == or_()
        assert and_() == EVERYTHING == not_(NOTHING)
        assert not_(not_(a)) == a
        assert until(a, NOTHING) == NOTHING == until(NOTHING, a, 1)
        assert until(EMPTY, a) == until(NOTHING, a) == until(b, a, 0, 0) == a
        assert until(or_(a, EMPTY), b, 2, 5) == until(or_(a, EMPTY), b, 0, 5)
        assert until(a, b, 1, 1) == next_(a, b)
        assert eventually(eventually(a)) == eventually(a)
        assert eventually(NOTHING) == NOTHING
        assert and_(a, b) != or_(a, b) != a
        assert (a == "a") is False

    def test_parts_and_names(self):
        formula = next_("q", until(or_("t", not_("q")), ANY))
        assert formula.names == ("q", "t")
        assert [str(part) for part in formula.walk()] == [
            "(next q (until (or t (not q)) any))",
            "q",
            "(until (or t (not q)) any)",
            "(or t (not q))",
            "t",
            "(not q)",
            "any",
        ]
        assert repr(formula) == "<Formula: (next q (until (or t (not q)) any))>"

    def test_impossible_bounds(self):
        with pytest.raises(ValueError, match="at least 3 and at most 2"):
            until("a", "b", 3, 2)
        with pytest.raises(ValueError, match="at least -1"):
            until("a", "b", -1)


class TestSemantics:
    @given(trees("ab"))
    @examples(100)
    def test_a_sequence_again_and_again(self, tree):
        formula = made(tree)
        again = Repeated((formula,))
        assert minimal_dfa(again, "ab") == minimal_dfa(until(formula, EMPTY), "ab")
        assert again != always(formula) and again.nullable and str(again) == str(always(formula))


class TestEquality:
    @given(trees("ab", leaves=2), trees("ab", leaves=2))
    @examples(300)
    def test_equal_formulas_have_equal_hashes_and_languages(self, one, other):
        first, second = made(one), made(other)
        assert (first == second) == (second == first)
        if first == second:
            assert hash(first) == hash(second)
            assert all(matches(first, word) == matches(second, word) for word in all_words("ab", 3))


class TestText:
    @pytest.mark.parametrize(
        ("name", "text"),
        [("a", "a"), ("any", '"any"'), ("a b", '"a b"'), (":a", '":a"'), ("", '""'), ("a-b", "a-b"), ("(", '"("')],
    )
    def test_names_that_look_like_something_else_are_quoted(self, name, text):
        assert str(Atom(name=name)) == text


class TestDerivative:
    @given(trees("ab"), st.sampled_from("ab"))
    @examples(150)
    def test_derivatives_are_left_quotients(self, tree, state):
        formula = made(tree)
        after = derivative(formula, state)
        for word in all_words("ab", 4):
            assert matches(after, word) == matches(formula, (state, *word))


class TestSatisfiedByOne:
    @given(trees("abc"), st.sets(st.sampled_from("abc")))
    def test_by_the_definition(self, tree, names):
        assert satisfied_by_one(made(tree), names) == any(holds(tree, (name,)) for name in names)
