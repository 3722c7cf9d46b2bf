"""``formal-llm bench sop``, run as a program."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from formal_llm.cli.main import app

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "sopbench"


def run(*arguments: str):
    return CliRunner().invoke(app, ["bench", "sop", *arguments])


def test_a_folder_without_the_benchmark_and_a_domain_without_a_procedure(tmp_path: Path) -> None:
    found = run(str(tmp_path))
    assert found.exit_code == 2
    assert "has no env/evaluator.py" in " ".join(found.stderr.split())


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no copy of SOPBench beside the repository")
def test_the_table_of_a_domain() -> None:
    found = run(str(FOLDER), "--llm", "test:random", "--goal-given", "--domain", "dmv", "--failed")
    assert found.exit_code == 0, found.output
    assert found.stdout.splitlines()[-1].startswith("| dmv | 115 | 115 | 100.0 | 115 |")
    unknown = run(str(FOLDER), "--domain", "library")
    assert unknown.exit_code == 2
    assert "there is no procedure for library" in " ".join(unknown.stderr.split())
