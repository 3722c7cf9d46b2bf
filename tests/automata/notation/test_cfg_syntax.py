"""The syntax of grammars: the tree of a text, and what is expected where a text ends it."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG
from formal_llm.automata.notation import cfg_syntax
from formal_llm.automata.notation.cfg_syntax import parse_grammar
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError
from tests.automata.grammar_errors import check, refuse
from tests.strategies import examples


def kinds(text):
    return [str(statement.data) for statement in parse_grammar(SourceText(text, None)).children]


class TestTree:
    @pytest.mark.parametrize(
        ("line", "kind"),
        [
            ("%start S", "start_symbol"), ("%limit 1 a b", "limit"), ("%limit *", "limit"), ("%require 1 a", "require"),
            ("%limit cost <= 5", "sum_limit"), ("%limit cost >= 5", "sum_limit"), ("S -> a b", "rule"),
            ('S "label" "more" ::= ε', "rule"), ('a "label"', "terminal"), ('a "label" "more" x=1', "terminal"),
            ("a x=1 y=2", "numbers"),
        ],
    )  # fmt: skip
    def test_statements(self, line, kind):
        for text in (line, f"\n\n{line}   # a comment\n", f"S -> a\n | b\n{line}"):
            assert kinds(text)[-1] == kind

    def test_a_line_that_begins_with_a_bar_goes_on_with_the_one_before(self):
        assert kinds("S -> a\n\n # more\n  | b\n|c\nT -> d") == ["rule", "rule"]

    def test_tokens_know_their_places(self):
        source = SourceText('S -> a B\n  | some(c, d) "t"  # x\nB -> ε', None)
        tokens = [*parse_grammar(source).scan_values(lambda token: token.type != "ARROW")]
        assert list(map(str, tokens)) == ["S", "a", "B", "c", "d", '"t"', "B", "ε"]
        rows = source.text.split("\n")
        for token in tokens:
            assert rows[token.line - 1][token.column - 1 :].startswith(str(token))

    @pytest.mark.parametrize("name", ["some", "something", "somebody(", "ε", "εa"])
    def test_words_of_the_notation_inside_other_words(self, name):
        if name.endswith("("):
            refuse(f"S -> {name}a)")
        else:
            (token,) = [t for t in parse_grammar(SourceText(f"S -> {name}", None)).scan_values(bool) if t.column == 6]
            assert token.type == ("EMPTY" if name == "ε" else "SYMBOL")


#: text, line, column, what the caret points to, a part of the problem, a part of the suggestion.
ERRORS = [
    ("S a S | b", 1, 3, "a S | b", "arrow is missing", None),
    ("S -> a\nT = b", 2, 3, "= b", "arrow is missing", "write '->' instead of '='"),
    ("S => a", 1, 3, "=> a", "arrow is missing", "write '->' instead of '=>'"),
    ("S -> a\nB", 2, 2, "", "arrow is missing", None),
    ("S : a", 1, 3, ": a", "arrow is missing", "write '->' instead of ':'"),
    ("S -> a\n%strat S", 2, 1, "%strat S", "unknown directive %strat", "did you mean %start?"),
    ("S -> a\n%frobnicate S", 2, 1, "%frobnicate S", "unknown directive %frobnicate", "directives are"),
    ("%limit\nS -> a", 1, 7, "", "ends too early", None),
    ('S -> a "never closed\n | b', 1, 8, '"never closed', 'closing " is missing', None),
    ('S -> a\n\ta "x" = y', 2, 8, "= y", "unexpected '='", "write '->' instead of '='"),
    ("S -> a |\nT -> b", 1, 9, "", "ends too early", None),
    ("S ->   # nothing\nT -> b", 1, 5, "   # nothing", "ends too early", None),
    ("S -> a | | b", 1, 10, "| b", "unexpected '|'", None),
    ("S -> some(a", 1, 12, "", "ends too early", None),
    ("S -> some()", 1, 11, ")", "unexpected ')'", None),
    ("S -> some(a, )", 1, 14, ")", "unexpected ')'", None),
    ("| a\nS -> b", 1, 1, "| a", "unexpected", None),
    ("S -> a\x00b", 1, 7, "\x00b", "unexpected character", None),
    ("S -> a\u00a0b", 1, 7, "\u00a0b", "unexpected character", None),
    ("-> a", 1, 1, "-> a", "unexpected '->'", None),
]


class TestErrors:
    @pytest.mark.parametrize(("text", "line", "column", "pointed", "problem", "suggestion"), ERRORS)
    def test_place_problem_and_way_out(self, text, line, column, pointed, problem, suggestion):
        check(refuse(text), text, line, column, pointed, problem, suggestion)

    @pytest.mark.parametrize("text", ["", "   \n\t\n", "# only a comment", "\ufeff", "\n# c\n\n#", "\r\n"])
    def test_nothing_at_all(self, text):
        error = refuse(text)
        assert (error.problem, error.line, error.column) == ("the grammar is empty", None, None)
        assert "S -> a S | b" in error.suggestion
        assert str(error) == f"<string>: the grammar is empty\n  {error.suggestion}"

    def test_expected_names_what_could_stand_there(self):
        error = refuse("S -> a\nT |")
        assert "'->' after the symbol" in error.expected
        assert "expected: '->' after the symbol" in str(error)
        assert "')'" in refuse("S -> some(a b)").expected
        assert "'<=' or '>='" in refuse("%limit 1 <= cost = 5\nS -> a").expected

    def test_a_number_sign_in_a_text_does_not_move_the_caret(self):
        error = refuse('S "a#b" -> \nB -> c')
        assert (error.line, error.column) == (1, 11)


# -- plain rules are read without the parser: what comes of a text is the same as with it -----------------------------

PIECES = [
    "S", "T", "a", "b", "a-b", "a:", "-", "->", "->", "→", "::=", "|", "ε", "%empty", "%limit 1", "%start", "%",
    "some(a, b)", '"text"', "# more", "=", "<", "<=", "x=1", "(", ",", "\u00a0", "\t", "'", "*",
]  # fmt: skip
lines = st.lists(st.sampled_from(PIECES), max_size=7).map(" ".join) | st.sampled_from(
    [
        "S -> a S | b",
        "T -> a",
        "S -> T",
        "  | c d",
        "| T",
        "",
        "# a comment",
        'a "label"',
        "S->a|b",
        "%limit 2 a",
        "S -> a|",
    ]
)


def read(text):
    """What comes of a text: the grammar and the warnings, or the error; with every word."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            cfg = CFG.from_string(text)
        except NotationError as error:
            return str(error), error.line, error.column
        return cfg, str(cfg), [str(one.message) for one in warned]


@given(st.lists(lines, max_size=6), st.sampled_from(["\n", "\n\n", " \n ", "\r\n"]))
@examples(400)
def test_a_text_is_read_alike_with_and_without_plain_rules(written, end):
    text = end.join(written)
    quick = read(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cfg_syntax, "_plain_rules", lambda _: [])
        assert quick == read(text)


def test_a_plain_rule_needs_no_parser(monkeypatch):
    monkeypatch.setattr(cfg_syntax, "_get_parser", lambda: pytest.fail("it was asked for"))
    assert CFG.from_string("S -> a S | b\n\n# more\nT::=a\tS  |c\n  S → T").start == "S"
