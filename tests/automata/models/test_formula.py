"""Formulas: their normal form, derivatives, and smallest automata."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.models.dfa import finite_pda, minimal_dfa, project
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
from formal_llm.errors import Undecided
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


class TestMinimal:
    @given(trees("ab", leaves=10))
    @examples(300)
    def test_direct_evaluation_and_automaton_to_length_six(self, tree):
        formula = made(tree)
        dfa = minimal_dfa(formula, "ab")
        for word in all_words("ab", 6):
            assert matches(formula, word) == dfa.accepts(word), word

    @given(trees("ab", leaves=10), st.sampled_from(["ab", "abc"]))
    @examples(250)
    def test_no_automaton_is_smaller(self, tree, letters):
        """Every state is reached and accepts something, and any two differ in some word (Myhill and Nerode)."""
        dfa = minimal_dfa(made(tree), letters)
        trap = len(dfa.table)
        rows = [[row.get(letter, trap) for letter in letters] for row in dfa.table] + [[trap] * len(letters)]
        block = [state in dfa.accepting for state in range(trap + 1)]
        for _ in rows:
            kinds = [(block[state], *(block[target] for target in row)) for state, row in enumerate(rows)]
            block = [[*dict.fromkeys(kinds)].index(kind) for kind in kinds]
        assert len(set(block[:-1])) == trap
        assert not dfa.accepting or block[-1] not in block[:-1]
        assert {target for row in dfa.table for target in row.values()} | {0} == set(range(trap))

    def test_not_ranges_over_the_alphabet(self):
        assert minimal_dfa(not_("a"), "a").accepts("aa")
        assert not minimal_dfa(not_("a"), "a").accepts("b")
        assert minimal_dfa(not_("a"), "ab").accepts("b")

    def test_names_outside_the_alphabet_stand_nowhere(self):
        assert minimal_dfa(or_("a", "z"), "ab") == minimal_dfa(Atom(name="a"), "ab")
        assert minimal_dfa(Atom(name="z"), "ab").accepting == frozenset()

    def test_many_names_that_behave_alike(self):
        names = [f"n{number}" for number in range(500)]
        dfa = minimal_dfa(not_(eventually(next_("n1", "n2"))), names)
        assert len(dfa.table) == 2
        assert dfa.accepts(names[2:]) and not dfa.accepts(names)


class TestSize:
    def test_too_large_an_automaton(self):
        # The tenth state from the end is an a: 2^10 states, the book's example.
        formula = next_(EVERYTHING, "a", *[ANY] * 9)
        assert len(minimal_dfa(formula, "ab").table) == 1024
        with pytest.raises(Undecided, match="more than 500 states"):
            minimal_dfa(formula, "ab", max_states=500)


class TestFinitePda:
    @given(trees("ab"))
    @examples(60)
    def test_state_names_differ(self, tree):
        dfa = minimal_dfa(made(tree), "abcdef")
        pda = finite_pda(dfa)
        assert len(pda.states) == len(dfa.table)
        assert len(pda.accepting_states) == len(dfa.accepting)
        assert len({(t.state, t.read) for t in pda.transitions}) == sum(map(len, dfa.table))

    def test_state_names_that_look_alike(self):
        # A state that is called like the number of another.
        formula = or_(next_("a", "x", "a", "y"), next_("a (1)", "z"))
        pda = finite_pda(minimal_dfa(formula, formula.names))
        assert pda.accepts(["a (1)", "z"]) and pda.accepts(["a", "x", "a", "y"])
        assert not pda.accepts(["a", "z"]) and not pda.accepts(["a", "y"])


@given(trees("abc"), st.sets(st.sampled_from("abc")))
@examples(60)
def test_a_projection_has_the_words_with_letters_left_out(tree, letters):
    """Against a search for a word of the automaton that has this one's letters, and any others in between."""
    dfa = minimal_dfa(made(tree), "abc")
    left = project(finite_pda(dfa), sorted(letters))
    for word in all_words(sorted(letters), 4):
        todo, seen = [(0, 0)], set()
        while todo:
            state, read = place = todo.pop()
            if place not in seen:
                seen.add(place)
                todo += [
                    (target, read + (letter in letters))
                    for letter, target in dfa.table[state].items()
                    if letter not in letters or word[read : read + 1] == (letter,)
                ]
        assert left.accepts(word) == any((state, len(word)) in seen for state in dfa.accepting), word
