"""``formal-llm act``, run as a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from formal_llm.cli.main import app

TEXT = """
check look(x) "Looks."
goal action act(x) "Acts on it."
    look(x) > 1
    ? "It seems right."
"""
TOOLS = """
from formal_llm.tools import Toolkit, tool

@tool
def look(x: int) -> int:
    return x

@tool
def act(x: int) -> bool:
    return True

toolkit = Toolkit([look, act])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my.procedure").write_text(TEXT.replace('    ? "It seems right."\n', ""))
    (tmp_path / "hole.procedure").write_text(TEXT)
    (tmp_path / "act_tools_of_a_test.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(app, ["act", *arguments])


def test_a_goal_is_done_declined_or_handed_over(folder: Path) -> None:
    tools = ("--tools", "act_tools_of_a_test:toolkit", "--goal", "act")
    done = run(
        "my.procedure", "Do it.", *tools, "--known", "x=2", "--evidence", "evidence.json", "--journal", "run.log"
    )
    assert (done.exit_code, done.stdout) == (0, "done: act(x=2)\n  result: true\n"), done.output
    assert "evidence: checked" in done.stderr
    assert json.loads((folder / "evidence.json").read_text())["outcome"]["ending"] == "done"
    declined = run("my.procedure", *tools, "--known", "x=1", "--json")
    assert declined.exit_code == 1
    assert json.loads(declined.stdout)["why"][0]["leaf"] == "look(x) > 1"
    over = run("hole.procedure", *tools, "--known", "x=2")
    assert over.exit_code == 5
    assert "warning: act: not understood, so it never holds: It seems right." in over.stderr


def test_the_model_chooses_the_goal(folder: Path) -> None:
    done = run(
        "my.procedure", "Act on it.", "--tools", "act_tools_of_a_test:toolkit", "--llm", "test:first", "--known", "x=3"
    )
    assert done.exit_code == 0


def test_rules_of_a_guard_are_written(folder: Path) -> None:
    assert run("my.procedure", "--guard", "my.guard").exit_code == 0
    assert "rule act_needs: never act_early" in (folder / "my.guard").read_text()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("none.procedure",), "there is no such file"),
        (("my.procedure",), "there are no tools"),
        (("my.procedure", "--tools", "act_tools_of_a_test:toolkit"), "nobody chooses the goal"),
        (
            ("my.procedure", "--tools", "act_tools_of_a_test:toolkit", "--goal", "act", "--known", "x"),
            "is not NAME=VALUE",
        ),
    ],
)
def test_what_is_wrong_is_named(folder: Path, arguments: tuple[str, ...], problem: str) -> None:
    found = run(*arguments)
    assert found.exit_code == 2
    assert problem in " ".join(found.stderr.split())
