"""XML that anybody may have written."""

import pytest

from formal_llm.automata.notation import xml_tree
from formal_llm.automata.notation.source import SourceText
from formal_llm.automata.notation.xml_tree import read_xml
from formal_llm.errors import NotationError


def source(text: str) -> SourceText:
    return SourceText.from_text(text, "x.xml", NotationError)


def test_a_tree_knows_its_names_and_places() -> None:
    root = read_xml(source('<?xml version="1.0"?>\n<b:a xmlns:b="u" b:id=" 1 ">\n  <c>é &lt; x</c><d/>\n</b:a>'))
    assert (root.name, root.get_attribute("id"), root.get_attribute("other"), tuple(root.place)) == (
        "a",
        "1",
        "",
        (2, 1),
    )
    (inner,) = root.list_children("c")
    assert (inner.text, tuple(inner.place)) == ("é < x", (3, 3))
    assert [one.name for one in root.children] == ["c", "d"]


@pytest.mark.parametrize(
    ("text", "said", "place"),
    [
        ("", "no element found", (1, 1)),
        ("<a>\n<b></a>", "mismatched tag", (2, 6)),
        ("<a/><b/>", "junk after document element", (1, 5)),
        ('<!DOCTYPE a [<!ENTITY b "c">]>\n<a>&b;</a>', "a document type is not read", (1, 1)),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "a document type is not read", (1, 1)),
        ("<a>&b;</a>", "undefined entity", (1, 4)),
        ("<a>" * 200, "more than 100 deep", (1, 301)),
    ],
)
def test_what_is_refused(text: str, said: str, place: tuple[int, int]) -> None:
    with pytest.raises(NotationError, match=said) as caught:
        read_xml(source(text))
    assert (caught.value.line, caught.value.column) == place


def test_a_large_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_tree, "MOST", 50)
    with pytest.raises(NotationError, match="more than 50 elements"):
        read_xml(source("<a>" + "<b/>" * 60 + "</a>"))


def test_other_vocabularies_are_extensions() -> None:
    root = read_xml(
        source('<a xmlns="u" xmlns:v="w" id="1" v:id="2"><v:b/><b v:c="3" d="4"/><v:a xmlns:v="u" v:e="5"/></a>')
    )
    assert root.attributes == {"id": "1"}
    assert root.extensions == {"id": "2"}
    assert [one.is_standard for one in root.children] == [False, True, True]
    assert [one.name for one in root.list_children("a", "b")] == ["b", "a"]
    (plain,) = root.list_children("b")
    assert (plain.attributes, plain.extensions) == ({"d": "4"}, {"c": "3"})
    assert root.children[2].attributes == {"e": "5"}


def test_a_prefix_that_is_not_declared_is_a_vocabulary_of_its_own() -> None:
    root = read_xml(source("<b:a><b:c/><d:c/></b:a>"))
    assert [one.is_standard for one in root.children] == [True, False]
