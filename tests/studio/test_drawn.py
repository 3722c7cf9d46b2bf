"""Pictures for the page."""

import xml.etree.ElementTree as ET

import pytest

from formal_llm.automata import Configuration, Stack
from formal_llm.studio.drawn import MOST, drawn, plan_picture, rules_picture, standing_picture
from formal_llm.studio.rules import read
from tests.pictures.forms import needs_dot
from tests.studio.texts import CHART, HOSTILE, NESTED, TEA


def marked(picture):
    return {box.label for box in picture.nodes if box.tone == "marked"}


def test_the_top_of_the_stack_is_marked_and_the_rest_of_it_stays() -> None:
    here = Configuration("loop", Stack.of("S", "close", "close"))
    picture = standing_picture(read(NESTED, ".cfg"), here)
    assert marked(picture) == {"S"}
    assert {box.label for box in picture.nodes if box.tone == "plain"} == {"close"}
    assert {box.label for box in picture.nodes if box.tone == "faded"} >= {"open", "x"}


def test_a_terminal_of_a_class_stands_in_the_box_of_its_class() -> None:
    written = read("S -> A b\nA -> a1 | a2\n", ".cfg")
    assert marked(standing_picture(written, Configuration("loop", Stack.of("a2", "b")))) == {"A: one of"}


def test_of_a_chart_the_node_is_marked() -> None:
    picture = standing_picture(read(CHART, ".mmd"), Configuration("Q", Stack.of()))
    assert marked(picture) == {"Is it late?"}


def test_of_an_automaton_the_state_is_marked_and_never_folded_away() -> None:
    lines = [f"s{n}, a, ε -> s{n + 1}, ε" for n in range(30)]
    text = "\n".join(["%start s0", "%accept s30", *lines])
    written = read(text, ".pda")
    assert "s17" not in {box.label for box in rules_picture(written).nodes}
    assert marked(standing_picture(written, Configuration("s17", Stack.of()))) == {"s17"}


def test_a_very_long_plan_is_not_drawn() -> None:
    picture = plan_picture(read("S -> a S | b\n", ".cfg"), ("a",) * 5000 + ("b",))
    assert not marked(picture)


def test_a_plan_over_its_rules() -> None:
    picture = plan_picture(read(TEA, ".cfg"), ("pour", "boil_water"))
    assert {"pour", "Boil water"} <= marked(picture)
    assert "steep" not in marked(picture)


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
    assert "cup of tea" in str(part["said"])
