"""Pictures for the page."""

import xml.etree.ElementTree as ET

import pytest

from formal_llm.planning.plans.overlay import MOST
from formal_llm.studio.drawn import drawn, rules_picture
from formal_llm.studio.rules import read
from tests.pictures.forms import needs_dot
from tests.studio.texts import HOSTILE, TEA


def test_of_large_rules_a_part_is_drawn_around_what_is_named() -> None:
    text = "N0 -> t0 N1 | t0\n" + "".join(f"N{n} -> t{n} N{n + 1} | t{n}\n" for n in range(1, 500)) + "N500 -> t\n"
    written = read(text, ".cfg")
    for near, seen in (("", "N0"), ("N250", "N250"), ("nowhere", "N0")):
        picture = rules_picture(written, near)
        assert len(picture.nodes) == MOST
        assert seen in {box.id for box in picture.nodes}


@needs_dot
def test_the_picture_as_svg_holds_no_markup_of_labels() -> None:
    label = HOSTILE.replace('"', "'")
    part = drawn(rules_picture(read(f'S "{label}" -> a\na "{label}"\n', ".cfg")))
    tree = ET.fromstring(str(part["svg"]))
    names = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert names <= {"svg", "g", "polygon", "path", "text", "ellipse", "polyline", "a", "title"} - {"a"}
    assert not [name for element in tree.iter() for name in element.attrib if name.lower().startswith("on")]
    assert "onerror" in "".join(tree.itertext())  # it is there, as text


def test_without_graphviz_there_is_mermaid_and_a_word_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    part = drawn(rules_picture(read(TEA, ".cfg")))
    assert part["svg"] is None
    assert "Graphviz" in str(part["problem"])
    assert str(part["mermaid"]).startswith("flowchart")
    assert "cup of tea" in str(part["text"])
