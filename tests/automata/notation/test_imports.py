"""Files that import files."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from formal_llm import CFG, PDA
from formal_llm.automata.notation import imports
from formal_llm.automata.notation.imports import imported_files
from formal_llm.errors import GrammarError, GrammarWarning, NotationError


@pytest.fixture
def write(tmp_path):
    def write(**files: str):
        for name, text in files.items():
            (tmp_path / f"{name}.cfg").write_text(text)
        return tmp_path / f"{next(iter(files))}.cfg"

    return write


def test_rules_labels_and_limits_come_along(write) -> None:
    path = write(
        main='%import "tools.cfg"  # what there is\n%limit 1 x\nS -> A Q',
        tools='%start A\n%import "more.cfg"\nA -> x | y\nx "Ex"\n%limit 2 y',
        more="Q -> q",
    )
    found = CFG.from_file(path)
    assert found == CFG.from_string('%limit 1 x\n%limit 2 y\nS -> A Q\nA -> x | y\nQ -> q\nx "Ex"')
    assert CFG.from_string(str(found)) == found
    assert [one.name for one in imported_files(path)] == ["tools.cfg", "more.cfg"]


def test_a_file_without_rules_begins_where_the_imported_one_does(write) -> None:
    assert CFG.from_file(write(main='%import "tools.cfg"', tools="A -> B\nB -> b A | b\n%start B")).start == "B"


def test_folders_and_files_that_several_import(write, tmp_path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.cfg").write_text('%import "../b.cfg"\nA -> a B')
    path = write(main='%import "lib/a.cfg"\n%import "b.cfg"\nS -> A B', b="B -> b")
    assert CFG.from_file(path) == CFG.from_string("S -> A B\nA -> a B\nB -> b")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a": '%import "a.cfg"\nS -> x'}, "a.cfg:1:1: a circle of imports: a.cfg imports a.cfg"),
        (
            {"a": '%import "b.cfg"\nS -> x', "b": 'B -> b\n%import "c.cfg"', "c": '%import "b.cfg"\nC -> c'},
            "c.cfg:1:1: a circle of imports: b.cfg imports c.cfg imports b.cfg",
        ),
        ({"a": 'S -> x\n%import "no.cfg"'}, "a.cfg:2:1: no.cfg cannot be imported: there is no such file"),
        ({"a": '%import "b.cfg"\nS -> B', "b": "# b\nB -> b b ->"}, "b.cfg:2:10: unexpected '->'"),
        ({"a": '%import "b.cfg"\nS -> x', "b": "S -> y"}, "b.cfg:1:1: S has rules in two files; the others are in"),
        ({"a": '%import "b.cfg"\nS -> x', "b": "  | y"}, "b.cfg:1:1: the file begins with '|'"),
        ({"a": "%import b.cfg\nS -> x"}, "a.cfg:1:1: %import needs the name of a file"),
        ({"a": "%import\nS -> x"}, "a.cfg:1:1: %import needs the name of a file"),
        ({"a": '%import "/etc/passwd"\nS -> x'}, "a.cfg:1:1: /etc/passwd is an absolute path"),
        ({"a": '%import "b.cfg"\n%limit 1 b\nS -> b', "b": "%limit 2 b"}, "b.cfg:1:10: a second %limit for b"),
        ({"a": '%import "b.cfg"\n%order forward\nS -> b', "b": "%order backward"}, "b.cfg:1:8: a second order"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(write, files, said) -> None:
    with pytest.raises(GrammarError, match=re.escape(said)):
        CFG.from_file(write(**files))


def test_automata_import_transitions_labels_and_limits(tmp_path) -> None:
    (tmp_path / "more.pda").write_text('%start r\n%name "more"\n%accept r\nr, b, ε -> q, ε\nb "Bee"\n%limit 2 b\n')
    path = tmp_path / "main.pda"
    path.write_text('%import "more.pda"\n%accept q\nq, a, ε -> r, ε\n')
    found = PDA.from_file(path)
    assert (found.start_state, found.name) == ("q", "more")
    assert found.accepts(("a",))
    assert found.accepts(("a", "b", "a", "b"))
    assert not found.accepts(("a", "b") * 3)
    assert found.symbols["b"].label == "Bee"
    assert str(PDA.from_string(str(found))) == str(found)
    (tmp_path / "more.pda").write_text("r, b, ε -> q")
    with pytest.raises(NotationError, match=r"more\.pda:1:\d+: "):
        PDA.from_file(path)
    (tmp_path / "more.pda").write_text('%import "main.pda"\nr, b, ε -> q, ε')
    with pytest.raises(NotationError, match=r"a circle of imports: main\.pda imports more\.pda imports main\.pda"):
        PDA.from_file(path)


def test_what_is_imported_twice_is_told(write) -> None:
    with pytest.warns(GrammarWarning, match=r"main.cfg:2:1: b.cfg is imported twice"):
        CFG.from_file(write(main='%import "b.cfg"\n%import "b.cfg"\nS -> B', b="B -> b"))


def test_warnings_name_the_imported_file(write) -> None:
    with pytest.warns(GrammarWarning, match=r"b.cfg:2:1: C cannot be reached") as caught:
        CFG.from_file(write(main='%import "b.cfg"\nS -> B', b="B -> b\nC -> c"))
    assert (caught[0].message.line, caught[0].message.column) == (2, 1)


def test_a_text_without_a_file_imports_nothing() -> None:
    with pytest.raises(GrammarError, match="comes from no file"):
        CFG.from_string('%import "b.cfg"\nS -> B')


def test_there_is_a_bound(write, monkeypatch) -> None:
    monkeypatch.setattr(imports, "MOST_FILES", 2)
    names = [f"f{n}" for n in range(4)]
    files = {name: f'%import "{after}.cfg"' for name, after in pairwise(names)}
    with pytest.raises(GrammarError, match="more than 2 files"):
        CFG.from_file(write(**files, f3="S -> x"))
