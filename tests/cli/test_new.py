"""``formal-llm new``: folders to start from."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from formal_llm.cli.new import PLACEHOLDER, TemplateName
from tests.cli.inside import runner

new = runner("new")


@pytest.mark.slow
@pytest.mark.parametrize("like", list(TemplateName))
def test_the_tests_of_a_new_folder_pass(like: TemplateName, tmp_path: Path) -> None:
    folder = tmp_path / "first-try"
    code, printed, _ = new(str(folder), "--like", like.value)
    assert code == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert all(str(path) in printed for path in files)
    assert not any(PLACEHOLDER in path.name or PLACEHOLDER in path.read_text() for path in files)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(folder)],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("like", list(TemplateName))
def test_the_commands_of_its_readme_run(like: TemplateName, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    assert new(str(folder), "--like", like.value)[0] == 0
    lines = [line.partition("#")[0] for line in (folder / "README.md").read_text().splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("formal-llm ")]
    assert commands
    for command in commands:
        if not {"try", "COMMAND", "--serve"} & set(command):  # those wait for a person, or serve
            done = subprocess.run(
                [sys.executable, "-m", "formal_llm", *command], capture_output=True, text=True, cwd=folder, timeout=100,
            )  # fmt: skip
            assert done.returncode == (1 if command[0] == "act" else 0), done.stderr
            assert command[0] != "act" or done.stdout.startswith("declined: refund(")


def test_sentences_become_the_rules(tmp_path: Path) -> None:
    code, _, _ = new(str(tmp_path / "laundry"), "steps: wash, dry, fold. wash before dry. last fold.")
    assert code == 0
    assert "wash before dry. last fold." in (tmp_path / "laundry" / "laundry.rules").read_text()
    assert (tmp_path / "laundry" / "laundry.examples").read_text().endswith("\nfold\n")
    code, printed, _ = runner("plan")(str(tmp_path / "laundry"), "--llm", "test:random=1", "--show", "word")
    assert (code, printed.split()[-1]) == (0, "fold")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a b"], "a name has letters, digits, - and _"),
        (["x", "Hello there."], "a file of rules begins with its steps"),
        (["x", "steps: a", "--like", "guard"], "leave out --like guard"),
    ],
)
def test_what_cannot_be_made_leaves_nothing(arguments: list[str], message: str, tmp_path: Path) -> None:
    code, _, told = new(str(tmp_path / arguments[0]), *arguments[1:])
    assert code == 2
    assert message in told
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "laundry").mkdir()
    code, _, told = new(str(tmp_path / "laundry"))
    assert (code, "it is there already" in told) == (2, True)
