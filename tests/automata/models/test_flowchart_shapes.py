"""Names, texts and shapes of flowcharts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.models import flowchart_shapes
from formal_llm.automata.models.flowchart_shapes import ID, PLACEHOLDER, RESERVED, SHAPES, one_line, plain
from formal_llm.automata.notation.mermaid_text import BRACKETS, REFUSED_SHAPES
from tests.automata.charts import NASTY


class TestTexts:
    @given(NASTY | st.text())
    def test_bringing_into_form_twice_is_once(self, text):
        assert plain(plain(text)) == plain(text)
        assert one_line(one_line(text)) == one_line(text)
        assert one_line(plain(text)) == one_line(text)

    @given(NASTY | st.text())
    def test_only_blanks_and_line_ends_change(self, text):
        assert plain(text).split() == one_line(text).split() == text.split()
        assert "\n" not in one_line(text)
        for line in plain(text).split("\n"):
            assert line == " ".join(line.split())

    def test_lines_are_kept(self):
        assert plain("\n  Pay\t the\n\n buyer \n\n") == "Pay the\n\nbuyer"

    def test_placeholders(self):
        assert PLACEHOLDER.findall("{who} pays {sum_2} { not} {} {a b}") == ["who", "sum_2"]


class TestNames:
    @pytest.mark.parametrize("name", ["a", "A1", "é_1", "12", "a-b", "c.d", "a:b", "x/y", *RESERVED])
    def test_words(self, name):
        assert ID.fullmatch(name)

    @pytest.mark.parametrize("name", ["", "a b", "-a", "a-", "a--b", "a[", "a&b", "a\n"])
    def test_other_signs_make_no_word(self, name):
        assert not ID.fullmatch(name)


class TestShapes:
    def test_each_name_is_in_one_group(self):
        listed = flowchart_shapes._NAMES.replace("|", " ").split()
        assert len(listed) == len(set(listed)) == len(SHAPES)

    def test_the_name_used_here_stands_for_itself(self):
        assert all(SHAPES[short] == short for short in SHAPES.values())

    def test_brackets_are_for_shapes_that_there_are(self):
        assert {shape for group in BRACKETS.values() for _, shape in group} <= set(SHAPES.values())
        assert not set(REFUSED_SHAPES) & set(SHAPES)
