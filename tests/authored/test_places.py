"""Authored files are found by name and by path."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from formal_llm import CFG, authored
from formal_llm.automata.notation.files import ENDINGS, read_rules
from formal_llm.errors import ResourceNotFound


def test_names_and_paths(tmp_path: Path) -> None:
    assert "openagi" in authored.names("grammars")
    assert "openagi" in authored.names("tasks")
    found = authored.find("grammars", "openagi", (".cfg",))
    assert CFG.from_file(found).start == "plan"
    own = tmp_path / "openagi.cfg"
    own.write_text("S -> a", encoding="utf-8")
    assert authored.find("grammars", str(own), (".cfg",)) == own
    assert authored.find("tasks", "openagi").is_dir()


def test_what_is_not_there_is_told_with_what_is() -> None:
    with pytest.raises(ResourceNotFound, match="Did you mean 'openagi'") as caught:
        authored.find("grammars", "open_agi", (".cfg",))
    assert "openagi" in caught.value.known


def test_all_shipped_rules_are_read_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("grammars", "agents", "gallery"):
            for name in authored.names(kind):
                assert not getattr(read_rules(authored.find(kind, name, ENDINGS)), "warnings", ())
