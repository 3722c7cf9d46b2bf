"""``formal-llm plugins``: what is installed, and what of it cannot be used."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.inside import runner
from tests.packages import put

plugins = runner("plugins")


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


def test_where_nothing_is_installed_the_page_is_named() -> None:
    code, printed, said = plugins()
    assert (code, said) == (0, "")
    assert "docs/howto/extend.md" in printed
    assert json.loads(plugins("--json")[1]) == []


def test_the_list_imports_nothing(tmp_path: Path) -> None:
    put(tmp_path, "broken_mill", "formal_llm.toolkits", "mill = broken_mill:mill", "1 / 0")
    code, printed, said = plugins()
    assert (code, said) == (0, "")
    assert printed.splitlines()[1].split() == ["toolkit", "mill", "broken_mill", "1.0", "broken_mill:mill"]
    assert "broken_mill" not in sys.modules


def test_what_cannot_be_imported_is_told_where_it_is_asked_for(tmp_path: Path) -> None:
    put(tmp_path, "broken_mill", "formal_llm.toolkits", "mill = broken_mill:mill", "1 / 0")
    put(tmp_path, "good_mill", "formal_llm.estimators", "grind = good_mill:grind", "def grind(): ...")
    code, printed, said = plugins("--load")
    assert code == 2
    assert "grind" in printed
    assert "cannot be imported: ZeroDivisionError" in said
    assert [bool(row["problem"]) for row in json.loads(plugins("--load", "--json")[1])] == [True, False]
    del sys.modules["good_mill"]


@pytest.mark.parametrize(
    ("group", "name"),
    [("providers", "builtin"), ("packs", "openagi"), ("toolkits", "classical"), ("notations", "cfg"),
     ("estimators", "rloo")],
)  # fmt: skip
def test_the_names_of_formal_llm_are_refused_to_all_kinds(tmp_path: Path, group: str, name: str) -> None:
    put(tmp_path, "thief", f"formal_llm.{group}", f"{name} = thief:make")
    code, _, said = plugins()
    assert code == 2
    assert f"{name!r} of the package thief 1.0 is not used: formal_llm has one" in said.replace("\n", " ")


def test_one_name_of_two_packages_is_told_once(tmp_path: Path) -> None:
    for package in ("one", "two"):
        put(tmp_path, package, "formal_llm.providers", f"mine = {package}:make")
    code, printed, said = plugins()
    assert code == 2
    assert printed.count("mine") == 2
    assert said.count("more than one provider 'mine'") == 1


def test_a_pack_that_cannot_be_used_does_not_hide_the_others(tmp_path: Path) -> None:
    put(tmp_path, "lost", "formal_llm.packs", "attic = lost:folder", "def folder(): return 'attic'")
    code, printed, said = runner("tasks")()
    assert code == 0
    assert "openagi" in printed
    assert "left out: the task pack 'attic' (lost:folder, of the package lost 1.0) has to give the path" in said
    del sys.modules["lost"]
