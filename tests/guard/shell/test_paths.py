"""Where paths lead."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.guard.shell.paths import find_project, is_inside_folder, locate_path, shorten_path
from formal_llm.guard.shell.reader import ShellWord


@pytest.mark.parametrize(
    ("folder", "word", "path"),
    [
        (".", "a/../b", "b"), (".", "../b", "../b"), ("src", "../b", "b"), ("/p", "a", "/p/a"), ("/p", "//a/", "/a"),
        (None, "/a", "/a"), (None, "a", "/?/a"), (".", "a/..", "."),
    ],
)  # fmt: skip
def test_known_words(folder: str | None, word: str, path: str) -> None:
    assert locate_path(folder, ShellWord(word), links=False) == path


@pytest.mark.parametrize(
    ("word", "inside"),
    [
        ("build/*", True), ("build/*.o", True), ("build/.*", False), ("build/*/x", False), ("build/$X", False),
        ("build/{a,b}", False), ("build/[a]", False), ("~/build", False), ('"build"/*', False),
    ],
)  # fmt: skip
def test_unknown_words(word: str, inside: bool) -> None:
    """Only stars at the end stay where they are written: others may lead out by dots, links, or values."""
    assert is_inside_folder(locate_path(".", ShellWord(word, False), links=False), "build") is inside


def test_links(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    at = str(tmp_path)
    assert locate_path(at, ShellWord("link/x"), links=True) == f"{at}/real/x"
    assert locate_path(at, ShellWord("link/../x"), links=True) == f"{at}/x"
    assert locate_path(at, ShellWord("link"), links=True, entry=True) == f"{at}/link"
    assert locate_path(at, ShellWord("link/"), links=True, entry=True) == f"{at}/real"
    assert locate_path(at, ShellWord("link"), links=True) == f"{at}/real"
    (tmp_path / "deep").symlink_to("real/inner")
    assert locate_path(at, ShellWord("deep/../x"), links=True) == f"{at}/real/x"
    assert locate_path(at, ShellWord("~/x", False), links=True) == str(Path("~/x").expanduser())


def test_the_project_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "a" / "b").mkdir(parents=True)
    assert find_project(str(tmp_path / "repo" / "a" / "b")) == str(tmp_path / "repo")
    assert find_project(str(tmp_path)) == str(tmp_path)
    assert find_project("") == ""
    assert shorten_path("/p/a/b", "/p") == "a/b"
    assert shorten_path("/q", "/p") == "/q"
    assert shorten_path("/p", "/p") == "."
