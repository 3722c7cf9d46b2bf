"""Nodes in Mermaid: brackets, attributes, names."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import NotationError
from formal_llm.automata.models.flowchart_shapes import SHAPES, plain
from formal_llm.automata.notation.mermaid_nodes import SPACE, NodeScanner
from formal_llm.automata.notation.mermaid_text import BRACKETS, write_text
from formal_llm.automata.notation.source import SourceText
from tests.automata.charts import NASTY
from tests.automata.drawings import read
from tests.automata.messages import from_caret


class TestNodes:
    @pytest.mark.parametrize("quoted", [False, True])
    @pytest.mark.parametrize(("opening", "closing", "shape"), [(o, c, s) for o, g in BRACKETS.items() for c, s in g])
    def test_brackets(self, opening, closing, shape, quoted):
        text = '"Do (this)"' if quoted else " Do this "
        vertex = read(f"a{opening}{text}{closing} --> b").vertices["a"]
        assert (vertex.text, vertex.shape) == ("Do (this)" if quoted else "Do this", shape)

    @pytest.mark.parametrize("name", SHAPES)
    def test_attributes(self, name):
        vertex = read(f'a@{{ shape: {name}, label: "A }} b", icon: x }} --> b').vertices["a"]
        assert (vertex.text, vertex.shape) == ("A } b", SHAPES[name])

    def test_attributes_on_lines_of_their_own(self):
        vertex = read("a@{\n  label: Say it\n  shape: 'diamond'\n}").vertices["a"]
        assert (vertex.text, vertex.shape) == ("Say it", "diam")

    def test_texts_over_lines_and_placeholders(self):
        found = read('a[Pay\n  the {buyer}] --> b["two\n  lines"] --> c{Is {x} ok?}').vertices
        assert [vertex.text for vertex in found.values()] == ["Pay\nthe {buyer}", "two\nlines", "Is {x} ok?"]

    def test_a_name_may_come_before_its_text(self):
        drawing = read("a --> b\nb[Do it]\na[Go]:::big\na --> b[Do it]")
        assert {vertex.id: vertex.text for vertex in drawing.vertices.values()} == {"a": "Go", "b": "Do it"}

    def test_names(self):
        assert list(read("a-b --> c.d --> é_1 --> 12 --> ends --> End").vertices) == [
            "a-b", "c.d", "é_1", "12", "ends", "End",
        ]  # fmt: skip


class TestScanner:
    def test_goes_past_what_matches_only(self):
        scanner = NodeScanner(SourceText("ab  c", None))
        assert scanner.take(re.compile("b")) is None
        assert scanner.at == 0
        assert scanner.take(re.compile("ab"))[0] == "ab"
        scanner.take(SPACE)
        assert scanner.at == 4
        assert scanner.sees("d", "c")
        assert not scanner.sees("b")

    def test_fails_where_it_stands_or_elsewhere(self):
        scanner = NodeScanner(SourceText("ab\ncd", None, error=NotationError))
        scanner.at = 4
        with pytest.raises(NotationError) as caught:
            scanner.fail("wrong")
        assert from_caret(caught.value) == "d"
        with pytest.raises(NotationError) as caught:
            scanner.fail("wrong", 0)
        assert from_caret(caught.value) == "ab"

    @given(NASTY | st.text())
    def test_a_text_in_quotes_is_read_back_from_any_bracket(self, text):
        for opening, ((closing, shape), *_) in BRACKETS.items():
            scanner = NodeScanner(SourceText(f"{opening}{write_text(text)}{closing} rest", None))
            assert scanner.bracketed(opening) == (plain(text), shape)
            assert scanner.sees(" rest")
