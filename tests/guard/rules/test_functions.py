"""Functions of conditions."""

from __future__ import annotations

import pytest

from formal_llm.guard.rules.data import Undetermined
from formal_llm.guard.rules.functions import FUNCTIONS, OPERATORS


def test_folders() -> None:
    inside = FUNCTIONS["inside"].work
    assert inside("src/a", "src")
    assert inside("a/b", ".")
    assert not any(inside(path, "src") for path in ("srcx/a", "src/../a", "/src/a"))
    assert not any(inside(path, ".") for path in ("../a", "/a", ".."))
    assert inside(["src/a", "src/b"], "src") and inside([], "src") and inside(["a/x", "b/y"], ["a", "b"])
    assert not inside(["src/a", "b"], "src") and not inside(["a"], [])
    reaches = FUNCTIONS["reaches"].work
    assert reaches(["a", ".git/config"], ".git") and reaches(".git", ["a", "."])
    assert not reaches(["a", ".gitignore"], ".git") and not reaches([], ".")


def test_hosts() -> None:
    host = FUNCTIONS["host"].work
    assert host("https://example.com@evil.org/x") == "evil.org"
    assert host("example.com:80") == "example.com"
    with pytest.raises(Undetermined):
        host("https://")


def test_lists() -> None:
    assert FUNCTIONS["max"].work([1, "3", 2]) == "3"
    with pytest.raises(Undetermined):
        FUNCTIONS["min"].work([])


def test_what_a_shell_line_runs() -> None:
    runs = FUNCTIONS["runs"].work
    assert runs([["git", "push", "origin"]], "git push")
    assert runs("cd lib && sudo git -C . push", "git push") and runs("python3 -m pytest -q", "python* -m pytest")
    assert not runs('echo "git push"', "git push") and not runs("", "git push")
    assert runs("git push origin main -f", "git push ... -f") and runs("git push -f", "git push ... -f")
    assert runs("a b c d e", "a ... c d") and runs("a b c b d", "a ... b d") and runs("a", "a ...")
    assert not runs("a b c d", "a ... d c") and not runs("a b", "a ... b c") and not runs("b a", "a ... b")
    with pytest.raises(Undetermined):
        runs(3, "git push")


def test_operators() -> None:
    assert OPERATORS["contains"][1]([1, 2], "2")
    assert OPERATORS["-"][1]("2026-01-03", "2026-01-01").days == 2
