"""``formal-llm plan``: one task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm import Plan
from tests.cli.program import run

TASK = "Given noisy grayscale image, how to return the caption in German step by step?"


def test_plan_prints_steps_and_nothing_else() -> None:
    done = run("plan", "openagi", TASK)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "Step 1: Use Image Denoising on the input image",
        "Step 2: Use Colorization on the result of step 1",
        "Step 3: Use Image Captioning on the result of step 2",
        "Step 4: Use Machine Translation on the result of step 3",
    ]


@pytest.mark.parametrize(
    ("show", "expected"),
    [
        ("call", "text = translation(captioning(colorization(denoising(input_image))))"),
        ("word", "translation captioning colorization denoising input_image"),
        ("tree", "Machine Translation"),
        ("mermaid", "flowchart"),
    ],
)
def test_other_forms_of_a_plan(show: str, expected: str) -> None:
    done = run("plan", "openagi", TASK, "--show", show)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_json_is_read_back() -> None:
    done = run("plan", "openagi", "117", "--llm", "test:random=4", "--show", "json")
    plan = Plan.from_json(done.stdout)
    assert json.loads(done.stdout)["word"] == list(plan.word)


def test_trace_shows_questions_and_answers_on_stderr() -> None:
    done = run("plan", "openagi", TASK, "--trace", "--show", "call")
    assert done.stdout.startswith("text = ")
    assert done.stderr.count("Task description:") == 5
    assert "-> 6: the output of" in done.stderr
    assert "questions: 5; choices taken without one: 0; dead ends: 0" in done.stderr


def test_limits_inputs_and_goals_from_the_command_line(tmp_path: Path) -> None:
    done = run("plan", "openagi", TASK, "--limit", "denoising=0", "--require", "detection=1", "--show", "word")
    assert done.returncode == 0, done.stderr
    assert "denoising" not in done.stdout
    assert "detection" in done.stdout
    done = run("plan", "openagi", "Draw it", "--input", "text", "--goal", "image", "--show", "word")
    assert "text_to_image" in done.stdout
    assert "input_image" not in done.stdout


def test_a_grammar_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "day.cfg").write_text('Day -> eat Day | sleep\neat "Eat"\n', encoding="utf-8")
    done = run("plan", "day.cfg", "my day", "--llm", "test:script=1,2", "--show", "word", cwd=tmp_path)
    assert done.stdout == "eat sleep\n"
    (tmp_path / "w.toml").write_text('order = "forward"', encoding="utf-8")
    done = run("plan", "day.cfg", "--llm", "test:script=1,2", "--wording", "w.toml", cwd=tmp_path)
    assert done.stdout == "Step 1: Use Eat\nStep 2: Use sleep\n"


def test_a_person_answers_on_the_terminal() -> None:
    done = run("plan", "openagi", "3", "--llm", "person", "--show", "word", stdin="2\nwhat\n5\n")
    assert done.stdout == "super_resolution input_image\n"
    assert "'what' is not a number" in done.stderr
    done = run("plan", "openagi", "3", "--llm", "person", stdin="1\n")
    assert done.returncode == 3
    assert "input ended" in done.stderr


def test_search_strategies(tmp_path: Path) -> None:
    (tmp_path / "g.cfg").write_text("S -> a S | b\n", encoding="utf-8")
    first = run("plan", "openagi", "15", "--llm", "test:random=3", "--search", "best-first", "--show", "word")
    assert first.returncode == 0, first.stderr
    favoured = ("--length-penalty", "3", "--max-steps", "6")
    done = run(
        "plan", "g.cfg", "--llm", "test:random=3", "--search", "best-first", *favoured, "--show", "word", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    done = run("plan", "openagi", "15", "--llm", "builtin", "--search", "sample", "--seed", "2", "--show", "word")
    assert "translation" in done.stdout
