"""Formulas as text, and the expressions that they are written in."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Lookahead, constraint
from formal_llm.automata.models.formula import (
    EMPTY,
    NOTHING,
    Always,
    Atom,
    always,
    eventually,
    next_,
    not_,
    or_,
    until,
)
from formal_llm.automata.notation.formula import read_formula
from formal_llm.errors import GrammarWarning, NotationError
from tests.automata.formula_matching import matches
from tests.automata.formulas import made, text_of, trees
from tests.automata.messages import from_caret, quiet
from tests.strategies import examples


def inside_always(tree):
    """What stands inside each ``always`` of a formula that is written out."""
    if isinstance(tree, str):
        return
    head, *parts = tree
    if head == "always":
        yield parts[0]
    for part in parts:
        yield from inside_always(part)


class TestNotation:
    @given(trees("ab", leaves=10))
    @examples(300)
    def test_print_then_read(self, tree):
        formula = made(tree)
        parts = [part.parts[0] for part in formula.walk() if isinstance(part, Always)]
        for text, insides in (
            (text_of(tree), [made(inside) for inside in inside_always(tree)]),
            (str(formula), parts),
            (formula.pretty(), parts),
        ):
            with quiet():
                if all(any(matches(inside, name) for name in "ab") for inside in insides):
                    assert read_formula(text, [*"ab"]) == formula
                else:
                    # An ``always`` that nothing satisfies can be made but not written.
                    with pytest.raises(NotationError, match="no single terminal satisfies"):
                        read_formula(text, [*"ab"])

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


class TestErrors:
    def test_a_reserved_word_as_a_name(self):
        with pytest.warns(GrammarWarning, match='<string>:1:7: there is a terminal of this name.*write "any" for'):
            assert constraint("(next any a)", ["any", "a"]).accepts("aa")
        assert not constraint('(next "any" a)', ["any", "a"]).accepts("aa")

    def test_too_deep(self):
        text = "(not " * 101 + "pay" + ")" * 101
        assert "more than 100 deep" in refuse(text).problem
        assert constraint(text[5:-1], ["pay"]).accepts(["pay"])

    def test_the_alphabet_is_no_text(self):
        with pytest.raises(TypeError, match="not one text"):
            constraint("a", "abc")

    def test_values_are_checked_like_texts(self):
        error = refuse(next_("search", "bok"))
        assert from_caret(error) == "bok)"
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

    def test_labels_of_the_grammar(self):
        cfg = CFG.from_string('S -> a S | b\na "The a"')
        assert constraint("(eventually a)", cfg).label("a") == "The a"

    def test_alphabets(self):
        pda = PDA.from_cfg(self.CFG)
        limited = Lookahead(self.CFG).automaton
        for alphabet in (self.CFG, pda, limited, ["a", "b", "c"], {"a": 1, "b": 2, "c": 3}):
            assert constraint("(always any)", alphabet).accepts("abc")

    def test_only_the_empty_sequence(self):
        pda = constraint("empty", [*"ab"])
        assert pda.accepts(()) and not pda.accepts("a")
        assert Lookahead(CFG.from_string("S -> a S | ε") & pda).count() == 1


@given(st.text('()a" ;\\\n', max_size=12))
@examples(150)
def test_any_text_is_read_or_refused_at_a_place(text):
    try:
        read_formula(text, ["a", ""])
    except NotationError as error:
        assert error.column is None or from_caret(error) == error.source_line[error.column - 1 :]
    else:
        assume('"' not in text)
        uncommented = "".join(line.partition(";")[0] for line in text.split("\n"))
        assert uncommented.count("(") == uncommented.count(")")


def test_a_name_in_two_unicode_forms_is_one_name() -> None:
    assert constraint("(eventually cafe\u0301)", ["caf\u00e9"]).accepts(["caf\u00e9"])
