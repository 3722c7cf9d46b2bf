"""``formal-llm act``, run as a program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import formal_llm
from formal_llm.cli.procedures import read_known
from formal_llm.procedures import Procedure
from tests.cli.inside import invoke

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
    return invoke("act", *arguments)


def test_a_goal_is_done_declined_or_handed_over(folder: Path) -> None:
    tools = ("--tools", "act_tools_of_a_test:toolkit", "--goal", "act")
    done = run_act(
        "my.procedure", "Do it.", *tools, "--known", "x=2", "--evidence", "evidence.json", "--journal", "run.log",
    )  # fmt: skip
    assert (done.exit_code, done.stdout) == (0, "done: act(x=2)\n  result: true\n"), done.stdout + done.stderr
    assert "evidence: checked" in done.stderr
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


WAITING = """
import time
from pathlib import Path
from formal_llm.tools import Toolkit, tool

def wait(name):
    if not Path("go").exists() and name in Path("slow").read_text():
        Path("begun").touch()
        time.sleep(60)
    return 3

@tool
def look(x: int) -> int:
    return wait("look")

@tool
def act(x: int) -> int:
    return wait("act")

tools = Toolkit([look, act])
"""


@pytest.mark.slow
@pytest.mark.parametrize("slow", ["look", "act"])
def test_a_run_that_is_interrupted_goes_on_from_its_journal(folder: Path, slow: str) -> None:
    (folder / "waiting_tools_of_a_test.py").write_text(WAITING)
    (folder / "slow").write_text(slow)
    options = ["--tools", "waiting_tools_of_a_test:tools", "--goal", "act", "--known", "x=2", "--journal", "run.log"]
    command = [sys.executable, "-m", "formal_llm", "act", "my.procedure", *options]
    path = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(formal_llm.__file__).parents[1]), str(folder)])}
    process = subprocess.Popen(command, env=path, stderr=subprocess.PIPE, text=True)
    while not (folder / "begun").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    (folder / "go").touch()
    again = subprocess.run(command, env=path, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    if slow == "look":
        assert (again.returncode, again.stdout) == (0, "done: act(x=2)\n  result: 3\n"), again.stderr
    else:  # it is an action
        assert again.returncode == 2
        assert "act(x=2) was begun when the run was interrupted" in " ".join(again.stderr.split())


def test_a_model_that_calls_no_tools_cannot_call_the_goal(folder: Path) -> None:
    options = ("--tools", "act_tools_of_a_test:toolkit", "--llm", "test:first", "--native")
    found = run_act("my.procedure", "Act on 3.", *options)
    assert found.exit_code != 0
    assert "cannot call the goal" in found.stderr


def test_values_are_read_as_their_type(folder: Path) -> None:
    (folder / "typed.procedure").write_text("check look(x: integer)\ngoal action act(x: integer)\n    look(x) > 1\n")
    tools = ("--tools", "act_tools_of_a_test:toolkit", "--goal", "act")
    wrong = run_act("typed.procedure", *tools, "--known", "x=two")
    assert wrong.exit_code == 2
    assert "the value of x does not fit: 'two' is no integer" in wrong.stderr
    procedure = Procedure.from_string("goal check f(code: text, number: integer, any)")
    known = read_known(procedure, ["code=4711", "number=12", "any=[1]"])
    assert known == {"code": "4711", "number": 12, "any": [1]}
    assert read_known(procedure, ['code="4711"', "number=x"]) == {"code": "4711", "number": "x"}


def test_check_describes_a_procedure(folder: Path) -> None:
    found = invoke("check", "hole.procedure", "--strict")
    assert found.exit_code == 1
    assert "1 checks, 1 actions, 0 facts" in found.stdout
    assert "act: It seems right." in found.stdout
    assert invoke("check", "my.procedure", "--strict").exit_code == 0


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
