"""``formal-llm plan --certificate``, run as a program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.inside import invoke

RULES = "S -> wash S | dry S | fold\n%limit 2 wash\n"


def run(*arguments: str):
    return invoke("plan", *arguments, "--llm", "test:first")


def checked(folder: Path) -> tuple[int, str]:
    command = [sys.executable, "-I", "check.py", "rules.json", "certificate.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def rules(tmp_path: Path) -> str:
    (tmp_path / "rules.cfg").write_text(RULES, encoding="utf-8")
    return str(tmp_path / "rules.cfg")


def test_a_plan_comes_with_its_proof_and_what_checks_it(tmp_path: Path, rules: str) -> None:
    folder = tmp_path / "new" / "proof"
    done = run(
        rules,
        "do it",
        "--certificate",
        str(folder),
        "--limit",
        "dry=1",
        "--rule",
        "(eventually dry)",
    )
    assert done.exit_code == 0, done.stderr
    assert f"check it: python {folder}/check.py" in done.stderr
    word = json.loads((folder / "certificate.json").read_text())["word"]
    assert checked(folder) == (0, f"proved: this plan follows the rules: {' '.join(word)}\n")


def test_where_there_is_no_plan_nothing_is_written(tmp_path: Path, rules: str) -> None:
    done = run(rules, "do it", "--certificate", str(tmp_path / "proof"), "--require", "wash=3")
    assert done.exit_code == 1
    assert "%limit 2 wash" in done.stderr
    assert not (tmp_path / "proof").exists()


def test_what_cannot_be_written_or_is_for_one_plan_is_an_error(tmp_path: Path, rules: str) -> None:
    (tmp_path / "file").write_text("")
    done = run(rules, "--certificate", str(tmp_path / "file"), "--limit", "dry=1")
    assert done.exit_code != 0
    assert done.stdout == ""  # said before anybody is asked
    assert "is no folder" in done.stderr
    (tmp_path / "proof" / "rules.json").mkdir(parents=True)
    done = run(rules, "--certificate", str(tmp_path / "proof"), "--limit", "dry=1")
    assert done.exit_code != 0
    assert "Step 1" in done.stdout  # the plan is not lost
    assert "the certificate cannot be written" in done.stderr
    done = run(rules, "--tasks", "t.txt", "--out", "o.jsonl", "--certificate", str(tmp_path / "x"))
    assert "--certificate beside it" in done.stderr
