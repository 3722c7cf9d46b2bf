"""``formal-llm act`` and ``bench sop``, run as programs."""

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


def run_act(*arguments: str):
    return CliRunner().invoke(app, ["act", *arguments])


def test_a_goal_is_done_declined_or_handed_over(folder: Path) -> None:
    tools = ("--tools", "act_tools_of_a_test:toolkit", "--goal", "act")
    done = run_act(
        "my.procedure", "Do it.", *tools, "--known", "x=2", "--evidence", "evidence.json", "--journal", "run.log",
        "--page", "page.html",
    )  # fmt: skip
    assert (done.exit_code, done.stdout) == (0, "done: act(x=2)\n  result: true\n"), done.output
    assert "evidence: checked" in done.stderr
    assert "look(x) &gt; 1: <strong>yes</strong>" in (folder / "page.html").read_text()
    assert json.loads((folder / "evidence.json").read_text())["outcome"]["ending"] == "done"
    declined = run_act("my.procedure", *tools, "--known", "x=1", "--json")
    assert declined.exit_code == 1
    assert json.loads(declined.stdout)["why"][0]["leaf"] == "look(x) > 1"
    over = run_act("hole.procedure", *tools, "--known", "x=2")
    assert over.exit_code == 5
    assert "warning: act: not understood, so it never holds: It seems right." in over.stderr


def test_the_model_chooses_the_goal(folder: Path) -> None:
    done = run_act(
        "my.procedure", "Act on it.", "--tools", "act_tools_of_a_test:toolkit", "--llm", "test:first", "--known", "x=3"
    )
    assert done.exit_code == 0


def test_check_describes_a_procedure(folder: Path) -> None:
    found = CliRunner().invoke(app, ["check", "hole.procedure", "--strict"])
    assert found.exit_code == 1
    assert "1 checks, 1 actions, 0 facts" in found.stdout
    assert "act: It seems right." in found.stdout
    assert CliRunner().invoke(app, ["check", "my.procedure", "--strict"]).exit_code == 0


def test_rules_of_a_guard_are_written(folder: Path) -> None:
    assert run_act("my.procedure", "--guard", "my.guard").exit_code == 0
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
    found = run_act(*arguments)
    assert found.exit_code == 2
    assert problem in " ".join(found.stderr.split())


FOLDER = Path(__file__).parents[3] / "shared" / "data" / "sopbench"


def run_sop(*arguments: str):
    return CliRunner().invoke(app, ["bench", "sop", *arguments])


def test_a_folder_without_the_benchmark_and_a_domain_without_a_procedure(tmp_path: Path) -> None:
    found = run_sop(str(tmp_path))
    assert found.exit_code == 2
    assert "has no env/evaluator.py" in " ".join(found.stderr.split())


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no copy of SOPBench beside the repository")
def test_the_table_of_a_domain() -> None:
    found = run_sop(str(FOLDER), "--llm", "test:random", "--goal-given", "--domain", "dmv", "--failed")
    assert found.exit_code == 0, found.output
    assert found.stdout.splitlines()[-1].startswith("| dmv | 115 | 115 | 100.0 | 115 |")
    unknown = run_sop(str(FOLDER), "--domain", "library")
    assert unknown.exit_code == 2
    assert "there is no procedure for library" in " ".join(unknown.stderr.split())
