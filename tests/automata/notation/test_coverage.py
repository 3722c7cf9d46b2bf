"""What a reader makes of each part of another standard."""

import warnings

import pytest

from formal_llm.automata.notation.coverage import Coverage
from formal_llm.automata.notation.source import SourceText
from formal_llm.automata.notation.xml_tree import read_xml
from formal_llm.errors import NotationError

COVERAGE = Coverage(
    "Letters",
    meant={"a", "b", "@id", "b@late"},
    harmless={"note": "a remark", "@color": "how it is drawn"},
    warned={"timer": "plans have no clock", "b@loop": "a step is done once", "@when": "plans have no clock"},
    refused={"or": "any of its branches may be followed together"},
)


def check(text: str) -> list[str]:
    source = SourceText.from_text(text, "x.xml", NotationError)
    with warnings.catch_warnings(record=True, action="always") as caught:
        COVERAGE.check_tree(read_xml(source), source)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("name", "treatment"),
    [
        ("a", "meant"),
        ("a@id", "meant"),
        ("b@late", "meant"),
        ("a@late", "unknown"),
        ("a@color", "harmless"),
        ("b@loop", "warned"),
        ("a@loop", "unknown"),
        ("b@when", "warned"),
        ("or", "refused"),
        ("id", "unknown"),
    ],
)
def test_a_name_is_in_one_table(name: str, treatment: str) -> None:
    assert COVERAGE.get_treatment(name) == treatment


def test_what_means_something_or_is_harmless_is_quiet() -> None:
    assert check('<a id="1"><b late="2" color="red"/><note><odd/></note></a>') == []


def test_extensions_are_quiet() -> None:
    assert check('<a xmlns="u" xmlns:v="w" v:odd="1"><v:odd/></a>') == []


def test_what_is_left_out_and_what_is_unknown_are_reported_with_their_places() -> None:
    first, second, third, fourth = check('<a>\n<b id="x" loop="1" when="2"/>\n<timer name="t"/>\n<odd/></a>')
    assert "2:1" in first
    assert "the attribute loop of <b> x is left out: a step is done once" in first
    assert "the attribute when of <b> x is left out: plans have no clock" in second
    assert "3:1" in third
    assert "<timer> t is left out: plans have no clock" in third
    assert "<odd> is left out: Letters has no such part" in fourth


def test_what_is_refused_gives_the_reason_and_the_place() -> None:
    with pytest.raises(NotationError, match="<or> o is not covered: any of its branches") as caught:
        check('<a><b/>\n <or id="o"/></a>')
    assert (caught.value.line, caught.value.column) == (2, 2)


def test_an_unknown_part_is_reported_once() -> None:
    (first, second) = check('<a wide="1"><odd/><odd wide="2"/><b wide="3"><odd/></b></a>')
    assert "the attribute wide of <a> is left out" in first
    assert "<odd> is left out" in second
