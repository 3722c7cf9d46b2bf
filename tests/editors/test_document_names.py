"""Names in the text of rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.editors.document import Names

GRAMMAR = """%start S
%limit 2 wash
S "the day" -> wash* Meal{1,2} (rest | "x" )
# Meal -> never
Meal -> eat
wash "Wash # up"
"""


def test_where_names_have_their_rules_labels_and_first_uses() -> None:
    names = Names(GRAMMAR, Path("g.cfg"))
    assert {name: (place.line, place.column) for name, place in names.rules.items()} == {"S": (2, 0), "Meal": (4, 0)}
    assert (names.definition("wash").line, names.definition("wash").column) == (5, 0)
    assert (names.definition("rest").line, names.definition("rest").column) == (2, 32)
    assert names.definition("never") is names.definition("nobody") is None


def test_the_name_at_a_place() -> None:
    names = Names(GRAMMAR, Path("g.cfg"))
    assert names.at(2, 15) == names.at(2, 19) == "wash"
    assert names.at(2, 21) == "Meal"
    assert names.at(2, 4) is None  # in a text
    assert names.at(3, 3) is names.at(99, 0) is names.at(0, 1) is None
    assert names.at(0, 7) == "S"


def test_what_may_be_meant() -> None:
    names = Names(GRAMMAR + "%lim\nA -> w\n", Path("g.cfg"))
    assert "%limit" in names.completions(6, 4)
    assert "%import" in names.completions(6, 1)
    assert {"wash", "Meal", "S"} <= set(names.completions(7, 6))
    assert "w" not in names.completions(7, 6)
    assert names.completions(2, 5) == []
    assert names.completions(3, 8) == []


def test_imported_files(tmp_path: Path) -> None:
    (tmp_path / "tools.cfg").write_text("# tools\nT -> t\n")
    names = Names('%import "tools.cfg"\nS -> T', tmp_path / "g.cfg")
    assert names.definition("T").file == tmp_path / "tools.cfg"
    assert names.definition("T").line == 1
    assert names.imported_at(0) == tmp_path / "tools.cfg"
    assert names.imported_at(1) is None
    assert "t" in names.completions(1, 6)


@pytest.mark.parametrize(
    ("file", "text", "name", "place"),
    [
        ("a.pda", "%start q\nq, a, ε -> r, ε\nr, b, ε -> q, ε\n", "r", (2, 0)),
        ("a.pda", 'q, a, ε -> q, ε\na "the a"\n', "a", (1, 0)),
        ("a.agent", '(define x (:states\n (Ask (:text "[Q]")))\n (:behavior Ask))', "Ask", (1, 2)),
        ("a.mmd", "flowchart TD\n a --> b\n b[Wash] --> c", "b", (2, 1)),
    ],
)
def test_other_notations(file, text, name, place) -> None:
    found = Names(text, Path(file)).definition(name)
    assert (found.line, found.column) == place
