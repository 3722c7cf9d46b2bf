"""Nodes in Mermaid: brackets, attributes, names."""

import pytest

from formal_llm.automata.models.flowchart_shapes import SHAPES
from formal_llm.automata.notation.mermaid_text import BRACKETS
from tests.automata.drawings import read


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
