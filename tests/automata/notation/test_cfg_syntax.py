"""The syntax of grammars: the tree of a text, and what is expected where a text ends it."""

import pytest

from tests.automata.grammar_errors import check, refuse

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
        assert "'<=' or '>='" in refuse("%limit cost = 5\nS -> a").expected

    def test_a_number_sign_in_a_text_does_not_move_the_caret(self):
        error = refuse('S "a#b" -> \nB -> c')
        assert (error.line, error.column) == (1, 11)
