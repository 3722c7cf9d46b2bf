"""The rules in the editor."""

import pytest

from formal_llm.errors import FormalLLMError, NotationError, NoValidPlan
from formal_llm.studio.rules import problem, read
from tests.studio.texts import CHART, TEA


def test_rules_are_read_once() -> None:
    assert read(TEA, ".cfg") is read(TEA, ".cfg")
    assert read(TEA, ".cfg").word(["pour", "boil_water"]) == {
        "names": ["pour", "boil_water"],
        "labels": ["pour", "Boil water"],
    }


def test_errors_have_their_place() -> None:
    with pytest.raises(NotationError) as raised:
        read("S -> a\nS - b\n", ".cfg")
    found = problem(raised.value)
    assert (found["kind"], found["line"], found["column"]) == ("error", 2, 3)
    assert found["message"] == "the arrow is missing"
    assert "'->'" in str(found["way_out"])


def test_warnings_have_their_place() -> None:
    (found,) = read("S -> a | Loop\nLoop -> Loop a\n", ".cfg").warnings
    assert (found["kind"], found["line"]) == ("warning", 2)
    assert str(found["message"]).startswith("no word can be derived from Loop")


def test_what_is_no_notation_has_no_place() -> None:
    with pytest.raises(FormalLLMError) as raised:
        read("S -> a", ".txt")
    assert problem(raised.value)["line"] is None
    assert problem(NoValidPlan("there is none"))["line"] is None


def test_placeholders_of_charts_stand_in_braces() -> None:
    written = read(CHART.replace("Read a page", "Read {book}"), ".mmd")
    assert written.word(["read"])["labels"] == ["Read {book}"]
