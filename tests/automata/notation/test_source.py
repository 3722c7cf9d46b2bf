"""Texts that know their places, and errors that show them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import GrammarError, NotationError
from tests.automata.messages import from_caret

lines = st.lists(st.text("ab é\t漢", max_size=4), min_size=1, max_size=5)


class TestOf:
    @given(lines, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
    def test_marks_and_line_ends_of_every_kind_are_one(self, rows, end, marked):
        written = ("\ufeff" if marked else "") + end.join(rows)
        assert SourceText.from_text(written, None).text == "\n".join(rows)

    def test_a_zero_byte_shows_that_it_is_no_text(self):
        with pytest.raises(NotationError, match=r"this is not a text \(zero byte at 2\)") as caught:
            SourceText.from_text("ab\0", "some file", NotationError)
        assert (caught.value.file, caught.value.line) == ("some file", None)
        assert type(caught.value) is NotationError


class TestPlaces:
    @given(lines, st.data())
    def test_every_character_is_found_at_its_place(self, rows, data):
        source = SourceText("\n".join(rows), None)
        offset = data.draw(st.integers(0, len(source.text)))
        place = source.place_of(offset)
        # Walked through one by one.
        line, column = 1, 1
        for sign in source.text[:offset]:
            line, column = (line + 1, 1) if sign == "\n" else (line, column + 1)
        assert place == Place(line, column)


class TestFail:
    @given(lines, st.data())
    def test_the_caret_stands_under_the_place(self, rows, data):
        source = SourceText("\n".join(rows), "some file")
        offset = data.draw(st.integers(0, len(source.text)))
        place = source.place_of(offset)
        with pytest.raises(GrammarError) as caught:
            source.fail_at("this is wrong", place)
        error = caught.value
        assert (error.file, error.line, error.column, error.source_line) == ("some file", *place, rows[place.line - 1])
        assert from_caret(error) == rows[place.line - 1][place.column - 1 :].replace("\t", " ")

    def test_what_was_expected_and_the_way_out(self):
        with pytest.raises(NotationError) as caught:
            SourceText("a b", None, error=NotationError).fail_at(
                "this is wrong", Place(1, 3), expected=["c", "d"], suggestion="write c"
            )
        assert str(caught.value) == ("<string>:1:3: this is wrong\n  1 | a b\n    |   ^\n  expected: c, d\n  write c")

    def test_without_a_place_nothing_is_shown(self):
        with pytest.raises(GrammarError) as caught:
            SourceText("a b", "some file").fail_at("it is all wrong", None)
        assert str(caught.value) == "some file: it is all wrong"
