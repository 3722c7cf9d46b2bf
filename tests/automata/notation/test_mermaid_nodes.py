"""Nodes in Mermaid: brackets, attributes, names."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.models.flowgraph import SHAPES, normalize_text
from formal_llm.automata.notation.mermaid_nodes import BRACKETS, SPACE, NodeScanner, read_text, write_text
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError
from tests.automata.charts import NASTY
from tests.automata.drawings import read
from tests.automata.messages import from_caret
from tests.strategies import examples


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
        assert scanner.take_match(re.compile("b")) is None
        assert scanner.at == 0
        assert scanner.take_match(re.compile("ab"))[0] == "ab"
        scanner.take_match(SPACE)
        assert scanner.at == 4
        assert scanner.is_ahead("d", "c")
        assert not scanner.is_ahead("b")

    def test_fails_where_it_stands_or_elsewhere(self):
        scanner = NodeScanner(SourceText("ab\ncd", None, error=NotationError))
        scanner.at = 4
        with pytest.raises(NotationError) as caught:
            scanner.fail_here("wrong")
        assert from_caret(caught.value) == "d"
        with pytest.raises(NotationError) as caught:
            scanner.fail_here("wrong", 0)
        assert from_caret(caught.value) == "ab"

    @given(NASTY | st.text())
    def test_a_text_in_quotes_is_read_back_from_any_bracket(self, text):
        for opening, ((closing, shape), *_) in BRACKETS.items():
            scanner = NodeScanner(SourceText(f"{opening}{write_text(text)}{closing} rest", None))
            assert scanner.read_bracketed_text(opening) == (normalize_text(text), shape)
            assert scanner.is_ahead(" rest")


class TestTexts:
    @given(NASTY | st.text())
    @examples(500)
    def test_reading_what_was_written(self, text):
        text = normalize_text(text)
        written = write_text(text)
        assert '"' not in written[1:-1]
        assert "\n" not in written
        assert read_text(written[1:-1]) == text

    @pytest.mark.parametrize(
        ("written", "text"),
        [
            ("a <br> b<br/>c<BR />d", "a\nb\nc\nd"), ("#quot;x#quot; #35;1 #9829; &lt;b&gt; #nbsp;", '"x" #1 ♥ <b>'),
            ("fa:fa-car Car", "Car"),
            ("<b>Yes</b>, <i class='x'>no</i>", "Yes, no"), ("a < b > c & d", "a < b > c & d"),
            ("  a \t  b ", "a b"), ("#nosuch; &nosuch; #99999999;", "#nosuch; &nosuch; #99999999;"),
        ],
    )  # fmt: skip
    def test_entities_and_markup(self, written, text):
        assert read_text(written) == text

    def test_markdown(self):
        assert read_text("The **cat** in __the__ _hat_ snake_case 2*3*4", markdown=True) == (
            "The cat in the hat snake_case 2*3*4"
        )
