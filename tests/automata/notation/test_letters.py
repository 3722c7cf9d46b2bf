"""The compact notation of papers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG
from formal_llm.errors import GrammarError
from tests.automata.messages import from_caret, quiet
from tests.strategies import examples


class TestLetters:
    @pytest.mark.parametrize(
        ("text", "rules"),
        [
            ("T → BI|DT", [("T", "B I"), ("T", "D T")]),
            ("S->aSb|ε", [("S", "a S b"), ("S", "")]),
            ("S ::= A₁A₂; A₁ -> a; A₂ -> b'", [("S", "A1 A2"), ("A1", "a"), ("A2", "b'")]),
            ("S -> A1 A12\nA1 -> a\n\n  A12 -> b″ | c′", [("S", "A1 A12"), ("A1", "a"), ("A12", "b''"), ("A12", "c'")]),
            ("S → éλ", [("S", "é λ")]),
            ("S -> a ε b", [("S", "a b")]),
        ],
    )
    def test_letters_with_digits_and_primes(self, text, rules):
        cfg = CFG.from_letters(text)
        assert [(p.head, " ".join(p.body)) for p in cfg.productions] == rules
        assert cfg.start == rules[0][0]

    def test_start(self):
        assert CFG.from_letters("A -> aB; B -> bA | b", start="B").start == "B"
        with pytest.raises(GrammarError, match="unknown start symbol: C"):
            CFG.from_letters("A -> a", start="C")

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "empty"),
            (" ; \n ", "empty"),
            ("S aB", "arrow is missing"),
            ("S -> a -> b", "second arrow"),
            ("SA -> a", "one symbol"),
            ("ε -> a", "one symbol"),
            ("S -> a | ", "empty side"),
            (" -> a", "empty side"),
            ("S -> a+b+c", "is no symbol"),
            ("S -> a_b", "is no symbol"),
            ("S -> 1a", "is no symbol"),
            ("S -> aS", "the language is empty"),
        ],
    )
    def test_errors(self, text, problem):
        with pytest.raises(GrammarError, match=problem):
            CFG.from_letters(text)

    @pytest.mark.parametrize(
        ("text", "line", "pointed"),
        [("S -> aB\nB -> a!\n", 2, "!"), ("S -> aB; B -> a! c", 1, "!"), ("S -> a(b", 1, "(b")],
    )
    def test_error_shows_the_place(self, text, line, pointed):
        with pytest.raises(GrammarError) as caught:
            CFG.from_letters(text)
        assert caught.value.line == line
        assert from_caret(caught.value).startswith(pointed)

    @given(st.text(st.sampled_from("SABab1'|;->→ε \n+_=!₂"), max_size=20))
    @examples(150)
    def test_any_text_is_read_or_refused(self, text):
        with quiet():
            try:
                cfg = CFG.from_letters(text)
            except GrammarError as error:
                assert error.column is None or from_caret(error) == error.source_line[error.column - 1 :]
            else:
                assert CFG.from_string(str(cfg)) == cfg
