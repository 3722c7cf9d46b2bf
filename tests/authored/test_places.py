"""Authored files are found by name and by path."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from formal_llm import CFG, authored
from formal_llm.authored.places import user_cache
from formal_llm.automata.notation.files import ENDINGS, read_rules
from formal_llm.errors import ResourceNotFound
from tests.packages import put


def test_names_and_paths(tmp_path: Path) -> None:
    assert "openagi" in authored.names("grammars")
    assert "openagi" in authored.names("tasks")
    found = authored.find("grammars", "openagi", (".cfg",))
    assert CFG.from_file(found).start == "plan"
    own = tmp_path / "openagi.cfg"
    own.write_text("S -> a", encoding="utf-8")
    assert authored.find("grammars", str(own), (".cfg",)) == own
    assert authored.find("tasks", "openagi").is_dir()


def test_a_name_means_what_is_shipped_and_a_path_has_a_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = authored.find("tasks", "openagi")
    (tmp_path / "openagi").mkdir()
    assert authored.find("tasks", "openagi") == shipped
    assert authored.find("tasks", "./openagi") == Path("openagi")
    assert authored.find("tasks", str(tmp_path / "openagi")) == tmp_path / "openagi"
    (tmp_path / "own").mkdir()
    assert authored.find("tasks", "own") == Path("own")
    assert authored.find("tasks", ".") == Path()


def test_the_task_pack_of_another_package_is_found_as_a_task_pack_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "elsewhere_pack"
    folder.mkdir()
    (folder / "pack.toml").write_text("")
    code = f"from pathlib import Path\n\ndef make():\n    return Path({str(folder)!r})\n"
    put(tmp_path, "elsewhere_packs", "formal_llm.packs", "elsewhere_pack = elsewhere_packs:make", code)
    monkeypatch.syspath_prepend(tmp_path)
    assert authored.find("tasks", "elsewhere_pack") == folder
    with pytest.raises(ResourceNotFound) as caught:
        authored.find("tasks", "elsewhere_pick")
    assert {"elsewhere_pack", "openagi"} <= set(caught.value.known)
    with pytest.raises(ResourceNotFound) as caught:
        authored.find("grammars", "elsewhere_pack", (".cfg",))
    assert "elsewhere_pack" not in caught.value.known
    sys.modules.pop("elsewhere_packs")


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


def test_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/caches")
    assert user_cache() == Path("/somewhere/caches/formal-llm")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert user_cache() == Path("/home/somebody/.cache/formal-llm")
