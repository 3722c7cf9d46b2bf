"""Texts for pictures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.pictures.captions import cut_lines, number_text, shorten, wrap_text
from formal_llm.pictures.picture import printable

some_texts = st.text("ab cd-\n\t漢…", max_size=40) | st.text(max_size=20)


class TestShorten:
    def test_shorten(self) -> None:
        assert shorten("a\nb\tc\x07") == "a b c␇"
        assert shorten("abcdef", 4) == "abc…"
        assert shorten("abcd", 4) == "abcd"

    @given(some_texts, st.integers(2, 30))
    def test_is_the_beginning_on_one_line(self, text, width):
        short = shorten(text, width)
        assert len(short) <= width
        assert not set(short) & set("\n\r\t\x0b")
        if len(printable(text)) <= width:
            assert short == printable(text)
        else:
            assert short.endswith("…")
            assert printable(text).startswith(short[:-1])
            assert len(short) == width or printable(text)[len(short) - 1].isspace()


class TestWrap:
    @given(some_texts, st.integers(2, 20))
    def test_all_words_stay_and_fit_where_they_can(self, text, width):
        rows = wrap_text(text, width).split("\n")
        assert " ".join(rows).split() == " ".join(map(printable, text.splitlines())).split()
        for row in rows:
            assert len(row) <= width or " " not in row.strip(" ")

    def test_the_lines_that_a_text_has_are_kept(self):
        assert wrap_text("one two\n\nthree", 50) == "one two\n\nthree"
        assert wrap_text("one two\nthree four", 5) == "one\ntwo\nthree\nfour"
        assert wrap_text("well-known incomprehensibilities", 8) == "well-known\nincomprehensibilities"


class TestCut:
    @given(st.lists(st.text("ab", max_size=2), max_size=12), st.integers(0, 12))
    def test_says_how_many_are_left_out(self, lines, most):
        found = cut_lines(lines, most)
        if len(lines) <= most + 1:
            assert found == tuple(lines)
        else:
            assert found == (*lines[:most], f"… and {len(lines) - most} more")
            assert len(found) < len(lines)


class TestNumbered:
    @pytest.mark.parametrize(
        ("numbers", "text", "shown"),
        [
            ((), "go", "go"), ((1,), "go", "1: go"), ((1, 3), "go", "1, 3: go"), ((2, 2), "", "2"), ((), "", ""),
            (range(1, 6), "go", "1, 2, 3, 4, 5: go"), (range(1, 7), "go", "1, 2, 3, …, 6: go"),
        ],
    )  # fmt: skip
    def test_a_few_of_many_are_shown(self, numbers, text, shown):
        assert number_text(numbers, text) == shown
