"""Formulas: semantics, derivatives, minimal automata, reading and writing, constraints."""

import random
import time
import warnings
from contextlib import contextmanager

import pytest
from automata.fa.dfa import DFA as LibraryDFA
from automata.fa.nfa import NFA
from hypothesis import assume, example, given
from hypothesis import strategies as st

from formal_llm import (
    CFG,
    PDA,
    AutomatonError,
    Formula,
    GrammarWarning,
    Limits,
    Lookahead,
    NotationError,
    NoValidPlan,
    Planner,
    SumLimit,
    Undecided,
    constraint,
    verify,
)
from formal_llm.automata.models.dfa import derivative, finite_pda, minimal_dfa
from formal_llm.automata.models.formula import (
    ANY,
    EMPTY,
    EVERYTHING,
    NOTHING,
    Atom,
    always,
    and_,
    eventually,
    implies,
    next_,
    not_,
    or_,
    until,
)
from formal_llm.automata.models.formula_matching import matches, spans
from formal_llm.automata.notation.formula import read_formula
from tests.oracles import all_words, language
from tests.strategies import examples, grammars, limited_grammars

# -- random formulas, as plain tuples; and what they mean, said three times over ---------------------------------------

BOUNDS = [(0, None), (0, 0), (0, 1), (0, 3), (1, 1), (1, 2), (2, None), (2, 2)]


def trees(letters, leaves=6):
    leaf = st.sampled_from([*letters, *letters, "any", "empty"])

    def grow(inner):
        several = st.tuples(st.sampled_from(["next", "next", "or", "and"]), inner, inner)
        three = st.tuples(st.sampled_from(["next", "or", "and"]), inner, inner, inner)
        single = st.tuples(st.sampled_from(["not", "always", "eventually"]), inner)
        implication = st.tuples(st.just("->"), inner, inner)
        repeated = st.tuples(st.sampled_from(BOUNDS).map(lambda bounds: ("until", *bounds)), inner, inner)
        return st.one_of(several, three, single, implication, repeated)

    return st.recursive(leaf, grow, max_leaves=leaves)


def made(tree, names=None):
    """The formula, by the functions that make formulas; ``names`` stand for the letters of the tree."""
    if isinstance(tree, str):
        return {"any": ANY, "empty": EMPTY}.get(tree) or Atom(name=(names or {}).get(tree, tree))
    head, *parts = tree
    parts = [made(part, names) for part in parts]
    if isinstance(head, tuple):
        return until(*parts, least=head[1], most=head[2])
    makers = {"next": next_, "or": or_, "and": and_, "not": not_, "->": implies}
    return (makers | {"always": always, "eventually": eventually})[head](*parts)


def text_of(tree):
    """The formula in its notation."""
    if isinstance(tree, str):
        return tree
    head, *parts = tree
    if isinstance(head, tuple):
        _, least, most = head
        head = "until" if (least, most) == (0, None) else f"until_{least}_{'*' if most is None else most}"
        if least == 0 and most is not None:
            head = f"until_{most}"
    return f"({head} {' '.join(map(text_of, parts))})"


def holds(tree, word):
    """The definition, by trying all ways to cut a word."""
    if isinstance(tree, str):
        return {"any": len(word) == 1, "empty": not word}.get(tree, word == (tree,))
    head, *parts = tree
    cuts = range(len(word) + 1)
    if isinstance(head, tuple):
        _, least, most = head
        body, end = parts
        # Empty repetitions fill up what is missing; they are counted by whether the body holds of nothing.
        if least > 0 and holds(body, ()):
            least = 0
        if least == 0 and holds(end, word):
            return True
        if most == 0:
            return False
        fewer = (("until", max(least - 1, 0), None if most is None else most - 1), body, end)
        return any(holds(body, word[:cut]) and holds(fewer, word[cut:]) for cut in cuts if cut)
    match head:
        case "next":
            first, *rest = parts
            if not rest:
                return holds(first, word)
            return any(holds(first, word[:cut]) and holds(("next", *rest), word[cut:]) for cut in cuts)
        case "or":
            return any(holds(part, word) for part in parts)
        case "and":
            return all(holds(part, word) for part in parts)
        case "not":
            return not holds(parts[0], word)
        case "->":
            return not holds(parts[0], word) or holds(parts[1], word)
        case "always":
            return all(holds(parts[0], (state,)) for state in word)
    return any(holds(parts[0], word[i:j]) for i in cuts for j in cuts if i <= j)


class Library:
    """The formula as an automaton of automata-lib, by its operations."""

    def __init__(self, letters):
        self.letters = set(letters)
        self.none = NFA(states={0}, input_symbols=self.letters, transitions={}, initial_state=0, final_states=set())
        self.empty = NFA(states={0}, input_symbols=self.letters, transitions={}, initial_state=0, final_states={0})
        self.any = self.one(*letters)

    def one(self, *letters):
        moves = {0: {letter: {1} for letter in letters}}
        return NFA(states={0, 1}, input_symbols=self.letters, transitions=moves, initial_state=0, final_states={1})

    def small(self, nfa):
        return NFA.from_dfa(self.dfa(nfa))

    def dfa(self, nfa):
        return LibraryDFA.from_nfa(nfa, minify=True, retain_names=False)

    def complement(self, nfa):
        return NFA.from_dfa(self.dfa(nfa).to_complete().complement())

    def repeated(self, body, least, most):
        if most is None:
            found = body.kleene_star()
        else:
            found = self.empty
            for _ in range(most - least):
                found = self.small(self.empty.union(body.concatenate(found)))
        for _ in range(least):
            found = body.concatenate(found)
        return found

    def of(self, tree):
        return self.small(self._of(tree))

    def _of(self, tree):
        if isinstance(tree, str):
            return {"any": self.any, "empty": self.empty}.get(tree) or self.one(tree)
        head, *parts = tree
        first, *rest = map(self.of, parts)
        if isinstance(head, tuple):
            return self.repeated(first, *head[1:]).concatenate(rest[0])
        match head:
            case "next":
                for part in rest:
                    first = first.concatenate(part)
                return first
            case "or":
                for part in rest:
                    first = first.union(part)
                return first
            case "and":
                for part in rest:
                    first = self.small(first.intersection(part))
                return first
            case "not":
                return self.complement(first)
            case "->":
                return self.complement(first).union(rest[0])
            case "always":
                return first.intersection(self.any).kleene_star()
        everything = self.any.kleene_star()
        return everything.concatenate(first).concatenate(everything)


def as_library(dfa, letters):
    """Our automaton as one of automata-lib."""
    return LibraryDFA(
        states=set(range(len(dfa.table))),
        input_symbols=set(letters),
        transitions={state: dict(row) for state, row in enumerate(dfa.table)},
        initial_state=0,
        final_states=set(dfa.accepting),
        allow_partial=True,
    )


@contextmanager
def quiet():
    """Random formulas often ask for an ``eventually`` that always holds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        yield


class TestSemantics:
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

    @given(trees("ab"), st.sampled_from("ab"))
    @examples(150)
    def test_derivatives_are_left_quotients(self, tree, state):
        formula = made(tree)
        after = derivative(formula, state)
        for word in all_words("ab", 4):
            assert matches(after, word) == matches(formula, (state, *word))

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

    @given(trees("ab"))
    @examples(100)
    def test_always_is_the_dual_of_eventually(self, tree):
        formula = made(tree)
        dual = not_(eventually(and_(ANY, not_(formula))))
        assert minimal_dfa(always(formula), "ab") == minimal_dfa(dual, "ab")
        assert minimal_dfa(always(formula), "ab") == minimal_dfa(until(and_(formula, ANY), EMPTY), "ab")

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

    def test_long_words(self):
        formula = next_(until(next_("a", until("b", "c", 0, 3)), "d"), not_(eventually("a")))
        word = ("a", "b", "b", "c") * 100 + ("d",) + ("b",) * 100
        begin = time.perf_counter()
        assert matches(formula, word) and minimal_dfa(formula, "abcd").accepts(word)
        assert not matches(formula, (*word, "a"))
        assert time.perf_counter() - begin < 20

    def test_bounds_larger_than_the_word(self):
        formula = until("a", "b", 10**6, 10**6 + 1)
        assert not matches(formula, "aab")
        assert matches(until(or_("a", EMPTY), "b", 10**6, 10**6 + 1), "aab")


class TestNormalForm:
    @given(trees("ab", leaves=10))
    @examples(150)
    def test_finitely_many_derivatives(self, tree):
        minimal_dfa(made(tree), "ab", max_states=3_000)

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

    def test_too_large_an_automaton(self):
        # The tenth state from the end is an a: 2^10 states, the book's example.
        formula = next_(EVERYTHING, "a", *[ANY] * 9)
        assert len(minimal_dfa(formula, "ab").table) == 1024
        with pytest.raises(Undecided, match="more than 500 states"):
            minimal_dfa(formula, "ab", max_states=500)


class TestNotation:
    @given(trees("ab", leaves=10))
    @examples(300)
    def test_print_then_read(self, tree):
        formula = made(tree)
        try:
            with quiet():
                assert read_formula(text_of(tree), [*"ab"]) == formula
                assert read_formula(str(formula), [*"ab"]) == formula
                assert read_formula(formula.pretty(), [*"ab"]) == formula
        except NotationError as error:
            # An ``always`` that nothing satisfies can be made but not written.
            assert "no single terminal satisfies" in error.problem

    @given(st.text(min_size=1, max_size=6).filter(lambda name: "\0" not in name))
    @example("any")
    @example("empty")
    @example("next")
    @example("a b")
    @example('"')
    @example(":x")
    @example("#;()")
    @example("\x85\u2028")
    def test_any_name(self, name):
        assume("\r" not in name.replace("\r\n", ""))
        names = dict.fromkeys([name, "b"])
        formula = next_(Atom(name=name), not_(Atom(name=name)), "b")
        assert read_formula(str(formula), names) == formula

    def test_pretty(self):
        long = or_(*(next_(f"state-{n}", f"state-{n + 1}") for n in range(10)))
        lines = long.pretty(4).split("\n")
        assert lines[:2] == ["(or", "      (next state-0 state-1)"]
        assert read_formula(long.pretty(4), long.names) == long

    def test_layout_and_comments(self):
        text = "(until ; as long as it takes\n   (next a\tb) # a, then b\r\n c)"
        assert read_formula(text, [*"abc"]) == until(next_("a", "b"), "c")
        assert read_formula('(next "a" b)', [*"ab"]) == next_("a", "b")


def refuse(text, alphabet=("search", "book", "pay")):
    with pytest.raises(NotationError) as caught:
        constraint(text, alphabet)
    return caught.value


def pointed(error):
    """The rest of the line from the caret on, checked against the attributes."""
    shown, pointer = str(error).split("\n")[1:3]
    assert shown == f"  {error.line} | {error.source_line}"
    assert pointer.index("^") - pointer.index("|") == error.column + 1
    return shown[pointer.index("^") :]


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "problem", "caret", "hint"),
        [
            ("(next search bok)", "unknown terminal: bok (did you mean book?)", "bok)", None),
            ("(next search 7)", "unknown terminal: 7", "7)", "there are: search, book, pay"),
            ("(nxt search book)", "unknown operator: nxt", "nxt search", "did you mean next?"),
            ("(zzz search)", "unknown operator: zzz", "zzz", None),
            ("(until5 search book)", "unknown operator: until5", "until5", "until, until_5"),
            ("(until_5_2 search book)", "at least 5 and at most 2 times is impossible", "until_5_2", None),
            ("(until search)", "(until ...) takes 2 parts, not 1", "(until search)", None),
            ("(not search book)", "(not ...) takes 1 part, not 2", "book)", "(next ...)"),
            ("(next)", "(next ...) takes at least 1 part, not 0", "(next)", None),
            ("(search book)", "search is a terminal, not an operator", "search book", "(next search ...)"),
            ("(any book)", "any takes no parts", "any book", None),
            ("(next next book)", "next is an operator", "next book", "(next ...)"),
            ("((next search) book)", "a group begins with an operator", "(next search) book", None),
            ("(or search ())", "a group begins with an operator", "())", None),
            ('("next" search)', "a group begins with an operator", '"next"', None),
            ("(next search (or book pay)", "this parenthesis is never closed", "(next search (or", None),
            ("(next search\n  (or book pay", "this parenthesis is never closed", "(or book pay", None),
            ("(next search))", "this parenthesis closes nothing", ")", None),
            ('(next "search)', "closing", '"search)', None),
            ("(next search \x01)", "unexpected character", "\x01", None),
            ("search book", "2 formulas, where one is needed", "book", "(and (...) (...))"),
            ("(and search book)", "no sequence satisfies this formula", "(and search", None),
            ("(not (until any empty))", "no sequence satisfies this formula", "(not", None),
            ("(or pay (always (next search book)))", "no single terminal satisfies", "(always", "(until f empty)"),
            ("(always empty)", "no single terminal satisfies what is inside", "(always", None),
        ],
    )
    def test_place_and_advice(self, text, problem, caret, hint):
        error = refuse(text)
        assert problem in error.problem
        assert pointed(error).startswith(caret)
        if hint:
            assert hint in (error.suggestion or "")

    def test_nothing(self):
        assert "there is no formula" in str(refuse(" ; only a comment"))

    def test_expected_operators(self):
        assert "until" in refuse("(zzz search)").expected

    def test_a_reserved_word_as_a_name(self):
        with pytest.warns(GrammarWarning, match='<string>:1:7: there is a terminal of this name.*write "any" for'):
            assert constraint("(next any a)", ["any", "a"]).accepts("aa")
        assert not constraint('(next "any" a)', ["any", "a"]).accepts("aa")

    def test_too_deep(self):
        text = "(not " * 101 + "pay" + ")" * 101
        assert "more than 100 deep" in refuse(text).problem
        assert constraint(text[5:-1], ["pay"]).accepts(["pay"])

    def test_an_eventually_that_asks_for_nothing(self):
        with pytest.warns(GrammarWarning, match="<string>:1:6: the empty sequence satisfies .* every sequence"):
            constraint("(and (eventually (not a)) b)", [*"ab"])

    def test_the_alphabet_is_no_text(self):
        with pytest.raises(TypeError, match="not one text"):
            constraint("a", "abc")

    def test_values_are_checked_like_texts(self):
        error = refuse(next_("search", "bok"))
        assert pointed(error) == "bok)"
        assert "no single terminal" in refuse(always(EMPTY)).problem
        assert "no sequence" in refuse(NOTHING).problem


RULES = """
    %limit 2
    %limit * c
    S -> a S | b S | c
"""


class TestConstraints:
    CFG = CFG.from_string(RULES)

    def test_name_is_the_text(self):
        assert constraint("(not  (eventually\n (next a b)))", self.CFG).name == "(not (eventually (next a b)))"
        assert constraint(not_(eventually(next_("a", "b"))), self.CFG).name == "(not (eventually (next a b)))"
        assert constraint("a", self.CFG, name="just a").name == "just a"

    def test_smallest_with_readable_states(self):
        pda = constraint("(not (eventually (next a b)))", self.CFG)
        assert not pda.uses_stack
        assert set(pda.states) == {"start", "after a"}
        assert [str(t) for t in pda.transitions] == [
            "(start, a, ε -> after a, ε)",
            "(start, b, ε -> start, ε)",
            "(start, c, ε -> start, ε)",
            "(after a, a, ε -> after a, ε)",
            "(after a, c, ε -> start, ε)",
        ]
        assert "after a" in pda.to_mermaid()
        assert "→" not in pda.to_mermaid()

    @given(trees("ab"))
    @examples(60)
    def test_state_names_differ(self, tree):
        dfa = minimal_dfa(made(tree), "abcdef")
        assert len(finite_pda(dfa).states) <= len(dfa.table)
        assert len({t.state for t in finite_pda(dfa).transitions} | {"start"}) <= len(dfa.table)
        named = {(t.state, t.read) for t in finite_pda(dfa).transitions}
        assert len(named) == sum(map(len, dfa.table))

    def test_state_names_that_look_alike(self):
        # A state that is called like the number of another.
        formula = or_(next_("a", "x", "a", "y"), next_("a (1)", "z"))
        pda = finite_pda(minimal_dfa(formula, formula.names))
        assert pda.accepts(["a (1)", "z"]) and pda.accepts(["a", "x", "a", "y"])
        assert not pda.accepts(["a", "z"]) and not pda.accepts(["a", "y"])

    def test_labels_of_the_grammar(self):
        cfg = CFG.from_string('S -> a S | b\na "The a"')
        assert constraint("(eventually a)", cfg).label("a") == "The a"

    def test_alphabets(self):
        pda = PDA.from_cfg(self.CFG)
        limited = Lookahead(self.CFG).automaton
        for alphabet in (self.CFG, pda, limited, ["a", "b", "c"], {"a": 1, "b": 2, "c": 3}):
            assert constraint("(always any)", alphabet).accepts("abc")

    def test_planning(self):
        rule = constraint("(not (eventually (next a b)))", self.CFG)
        planner = Planner(self.CFG, "test:random=3", constraints=[rule])
        for _ in range(20):
            word = planner.plan("x").word
            assert "a b" not in " ".join(word)
            assert max(word.count("a"), word.count("b")) <= 2

    def test_the_one_to_blame_is_named(self):
        planner = Planner(self.CFG, constraints=[constraint("(eventually (next c c))", self.CFG)])
        with pytest.raises(NoValidPlan) as caught:
            planner.plan("x")
        assert caught.value.constraints == ("(eventually (next c c))",)

    def test_only_the_empty_sequence(self):
        pda = constraint("empty", [*"ab"])
        assert pda.accepts(()) and not pda.accepts("a")
        assert Lookahead(CFG.from_string("S -> a S | ε") & pda).count() == 1


# -- products ----------------------------------------------------------------------------------------------------------


class TestProducts:
    @given(grammars(), trees("abc"))
    @examples(80)
    def test_words_of_the_grammar_that_satisfy_the_formula(self, cfg, tree):
        formula = made(tree)
        both = cfg & finite_pda(minimal_dfa(formula, cfg.terminals))
        assert isinstance(both, PDA)
        words = {word for word in language(cfg, 4) if formula_over(formula, word, cfg)}
        assert {word for word in all_words(cfg.terminals, 4) if both.accepts(word)} == words

    @given(limited_grammars(), trees("abc"), st.integers(0, 99))
    @examples(80)
    def test_counting_sampling_and_lookahead(self, cfg, tree, seed):
        formula = made(tree)
        both = cfg & finite_pda(minimal_dfa(formula, cfg.terminals))
        automaton = Lookahead(cfg).automaton
        words = {w for w in language(cfg, 4) if automaton.accepts(w) and formula_over(formula, w, cfg)}
        lookahead = Lookahead(both)
        assert lookahead.count(max_length=4) == len(words)
        sampled = lookahead.sample(random.Random(seed), max_length=4)
        assert (sampled in words) if words else sampled is None
        if words:
            assert lookahead.completable().value == "yes"
            assert lookahead.shortest() == min(map(len, words))
            assert formula_over(formula, lookahead.shortest_word(), cfg)

    @given(limited_grammars(), trees("abc"), trees("abc"))
    @examples(40)
    def test_order_and_brackets_make_no_difference(self, cfg, one, other):
        first, second = (finite_pda(minimal_dfa(made(tree), cfg.terminals)) for tree in (one, other))
        products = [cfg & first & second, cfg & (first & second), first & cfg & second, (second & first) & cfg]
        words = [{w for w in all_words(cfg.terminals, 3) if both.accepts(w)} for both in products]
        assert words[1:] == words[:-1]
        inner = [getattr(both, "automaton", both) for both in products]
        assert [len(both.factors) for both in inner] == [3, 3, 3, 3]
        assert all(both.factors[0] is PDA.from_cfg(cfg) for both in (inner[0], inner[1]))

    def test_limits_stay_on_top(self):
        cfg = CFG.from_string(RULES)
        both = cfg & constraint("(not (eventually (next a b)))", cfg)
        assert both.limits == cfg.limits
        assert both.accepts("bac") and not both.accepts("abc") and not both.accepts("aaac")
        assert Lookahead(both).count() == sum(map(both.accepts, all_words("abc", 5)))
        assert verify(tuple("bbac"), both).valid
        assert verify(tuple("abc"), both).nearest is not None
        assert "after a" in both.to_mermaid()
        plan = Planner(both, "test:random=5").plan("x")
        assert both.accepts(plan.word)

    def test_no_plan_names_both_sides(self):
        cfg = CFG.from_string("%require 1 a\nS -> a S | b")
        with pytest.raises(NoValidPlan) as caught:
            Planner(cfg & constraint("(always b)", cfg)).plan("x")
        assert caught.value.constraints == ("(always b)",)
        assert caught.value.limits == ("%require 1 a",)

    def test_limits_of_a_terminal_that_the_other_side_lacks(self):
        cfg = CFG.from_string("%require 1 a\nS -> a S | b")
        both = constraint("(next b)", ["b"]) & cfg
        assert Lookahead(both).completable().value == "no"
        only = Lookahead(constraint("(always any)", ["b", "a"]), Limits(at_least={"a": 2})).source
        assert Lookahead(constraint("b", ["b"]) & only).completable().value == "no"
        assert Lookahead(only & constraint("(always any)", ["a"])).shortest_word() == ("a", "a")

    def test_numbers_of_both_sides_count(self):
        cheap = CFG.from_string("%limit cost <= 5\nS -> a S | ε\na cost=2")
        quick = CFG.from_string("S -> a S | ε\na minutes=3")
        side = PDA([("s", "a", None, "s")], start="s", accepting="s", symbols=quick.symbols)
        both = cheap & Lookahead(side, Limits(sums=(SumLimit("minutes", 3),))).source
        assert Lookahead(both).count() == 2
        other = PDA([("s", "a", None, "s")], start="s", accepting="s", symbols=cheap.symbols)
        dear = CFG.from_string("S -> a S | ε\na cost=3")
        with pytest.raises(AutomatonError, match="a has cost=3 and cost=2"):
            dear & other

    def test_two_stacks(self):
        cfg = CFG.from_string("S -> a S b | ε")
        with pytest.raises(AutomatonError, match="both automata use their stack"):
            cfg & cfg

    def test_what_is_no_automaton(self):
        cfg = CFG.from_string("S -> a")
        for other in (3, "a", None):
            with pytest.raises(TypeError):
                cfg & other


def formula_over(formula: Formula, word, cfg) -> bool:
    """Direct evaluation, for letters that may not all be terminals of the grammar."""
    return set(word) <= set(cfg.terminals) and matches(formula, word)
