"""``formal-llm data``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from formal_llm.packs.openagi.data.samples import read_data
from tests.cli.inside import invoke


def test_data_are_made_and_read(tmp_path: Path) -> None:
    command = ["data", "openagi", "--out", str(tmp_path / "d"), "--samples", "1", "--split", "test", "--seed", "7"]
    done = invoke(*command)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).endswith("17 tasks, 17 samples\n")
    assert len(read_data(tmp_path / "d")) == 17
    again = invoke(*command)
    assert again.exit_code == 2
    assert "give another folder" in (again.stdout + again.stderr)


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    for arguments, said in (
        (["openagy", "--out", "x"], "Did you mean 'openagi'"),
        (["openagi", "--out", "x", "--split", "tets"], "Did you mean 'test'"),
    ):
        done = invoke("data", *arguments)
        assert done.exit_code == 2
        assert said in (done.stdout + done.stderr)


@pytest.mark.parametrize("library", ["PIL", "numpy"])
def test_a_missing_library_is_named(library: str, tmp_path: Path) -> None:
    program = f"import sys; sys.modules[{library!r}] = None; from formal_llm.cli.main import main; main()"
    command = [sys.executable, "-c", program, "data", "openagi", "--out", str(tmp_path / "d")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "pip install 'formal-llm[openagi]'" in done.stderr
    assert "Traceback" not in done.stderr
