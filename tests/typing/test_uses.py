"""What the types of the library show to those who use it: the marked mistakes, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

USES = Path(__file__).with_name("uses.py")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def consumer(tmp_path: Path) -> Path:
    """A folder that has nothing to do with this repository, with the file in it."""
    return Path(shutil.copy(USES, tmp_path))


def wrong_lines() -> set[int]:
    return {number for number, line in enumerate(USES.read_text().splitlines(), 1) if line.endswith("# wrong")}


@pytest.mark.slow
def test_mypy_flags_the_marked_lines(consumer: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", consumer.name]
    done = subprocess.run(command, cwd=consumer.parent, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert {int(line.split(":")[1]) for line in found} == wrong_lines(), done.stdout


@pytest.mark.slow
def test_pyright_flags_the_marked_lines(consumer: Path) -> None:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, consumer.name]
    done = subprocess.run(command, cwd=consumer.parent, capture_output=True, text=True, check=False)
    if not done.stdout.lstrip().startswith("{"):
        pytest.skip(f"pyright did not run: {done.stderr.strip()[-200:]}")
    found = [d for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    assert {d["range"]["start"]["line"] + 1 for d in found} == wrong_lines(), json.dumps(found, indent=1)
