"""``formal-llm count`` and ``formal-llm sample``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.program import run


def test_count_prints_the_number_alone_on_its_last_line(tmp_path: Path) -> None:
    assert run("count", "openagi", "15", "--limit", "input_image=1").stdout.splitlines()[-1] == "2617716"
    (tmp_path / "g.cfg").write_text("S -> S S | a\n", encoding="utf-8")
    done = run("count", "g.cfg", cwd=tmp_path)
    assert done.returncode == 2
    assert "(--max-length)" in done.stderr
    assert "max_length" not in done.stderr
    assert run("count", "g.cfg", "--max-length", "5", cwd=tmp_path).stdout == "5\n"
    done = run("count", "g.cfg", "--max-length", "5", "--of", "derivations", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"count": 23, "of": "derivations", "max_length": 5}


def test_goals_and_inputs_mean_the_same_to_plan_count_and_sample(tmp_path: Path) -> None:
    given = ("--input", "text", "--goal", "image")
    task = "Given English text, how to generate a image step by step?"
    assert run("count", "openagi", task).stdout == run("count", "openagi", *given).stdout
    assert run("count", "openagi", "15", *given).stdout == run("count", "openagi", *given).stdout
    drawn = run("sample", "openagi", task, "--number", "3", "--seed", "1").stdout
    assert run("sample", "openagi", *given, "--number", "3", "--seed", "1").stdout == drawn
    assert "input_image" not in drawn
    (tmp_path / "g.cfg").write_text("Day -> eat Night | skip Night\nNight -> sleep | dance\n", encoding="utf-8")
    assert run("count", "g.cfg", "--goal", "Night", cwd=tmp_path).stdout == "2\n"
    assert run("sample", "g.cfg", "--goal", "Night", cwd=tmp_path).stdout in ("sleep\n", "dance\n")


def test_samples_are_reproducible() -> None:
    once = run("sample", "openagi", "0", "--number", "3", "--seed", "5", "--json")
    assert once.stdout == run("sample", "openagi", "0", "--number", "3", "--seed", "5", "--json").stdout
    assert len(json.loads(once.stdout)) == 3
    assert run("sample", "openagi", "0", "--max-length", "1").returncode == 1
