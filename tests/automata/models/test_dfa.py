"""Derivatives and the smallest automata of formulas."""

import pytest
from automata.fa.dfa import DFA as LibraryDFA
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm.automata.models.dfa import finite_pda, minimal_dfa, project
from formal_llm.automata.models.formula import (
    ANY,
    EVERYTHING,
    Atom,
    eventually,
    next_,
    not_,
    or_,
)
from formal_llm.errors import Undecided
from tests.automata.formula_matching import matches
from tests.automata.formulas import Library, as_library, made, trees
from tests.oracles import all_words
from tests.strategies import examples


class TestMinimal:
    @given(trees("ab", leaves=10))
    @examples(300)
    def test_direct_evaluation_and_automaton_to_length_six(self, tree):
        formula = made(tree)
        dfa = minimal_dfa(formula, "ab")
        for word in all_words("ab", 6):
            assert matches(formula, word) == dfa.accepts(word), word

    @given(trees("abc"))
    @examples(20)
    def test_three_letters_to_length_six(self, tree):
        formula = made(tree)
        dfa, pda = minimal_dfa(formula, "abc"), finite_pda(minimal_dfa(formula, "abc"))
        for word in all_words("abc", 6):
            assert matches(formula, word) == dfa.accepts(word), word
        for word in all_words("abc", 2):
            assert pda.accepts(word) == matches(formula, word)

    @given(trees("ab", leaves=10), st.sampled_from(["ab", "abc"]))
    @examples(250)
    def test_automata_lib_has_the_same_language_and_no_smaller_automaton(self, tree, letters):
        theirs = LibraryDFA.from_nfa(Library(letters).of(tree), minify=True, retain_names=False)
        dfa = minimal_dfa(made(tree), letters)
        ours = as_library(dfa, letters)
        assert ours.to_complete() == theirs.to_complete()
        # Compared with the trap state, which ours leaves out.
        smallest = len(theirs.to_complete().minify().states)
        trap = bool(dfa.accepting) and any(len(row) < len(letters) for row in dfa.table)
        assert len(dfa.table) + trap == smallest

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


class TestRun:
    @given(trees("ab"))
    @examples(60)
    def test_leads_on_exactly_where_a_word_goes_on(self, tree):
        dfa = minimal_dfa(made(tree), "ab")
        assume(len(dfa.table) <= 4)
        words = [word for word in all_words("ab", 5) if matches(made(tree), word)]
        # From each state a final one is at most as many steps away as there are other states.
        for prefix in all_words("ab", 2):
            assert (dfa.run(prefix) is not None) == any(word[: len(prefix)] == prefix for word in words)


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
