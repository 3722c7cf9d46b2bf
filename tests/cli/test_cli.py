"""The command line, run as a program."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from formal_llm import Flowchart, Plan, TaskPack

TASK = "Given noisy grayscale image, how to return the caption in German step by step?"


def run(*arguments: str, cwd: Path | None = None, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from formal_llm.cli.main import main; main()", *arguments]
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    environment = {**clean, "NO_COLOR": "1", "COLUMNS": "100", **env}
    return subprocess.run(command, capture_output=True, text=True, input=stdin, cwd=cwd, env=environment, timeout=60)


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


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["plan", "openagi", "3", "--limit", "colorization=0", "--require", "colorization=1"], 1, "these limits clash"),
        (["plan", "openagy", "3"], 2, "Did you mean 'openagi'"),
        (["plan", "missing.cfg", "3"], 2, "no such file"),
        (["plan", "openagi", "999"], 2, "0 to 184"),
        (["plan", "openagi", "3", "--limit", "denoising"], 2, "NAME=N"),
        (["plan", "openagi", "3", "--limit", "denoisin=1"], 2, "did you mean denoising"),
        (["plan", "openagi", "3", "--goal", "sound"], 2, "goal"),
        (["count", "openagi", "3", "--goal", "sound"], 2, "There are: image, text"),
        (["sample", "openagi", "3", "--input", "sound"], 2, "There are: image, text"),
        (["count", "g.cfg", "--goal", "Nigth"], 2, "Did you mean 'Night'"),
        (["count", "g.cfg", "--input", "image"], 2, "--input is for task packs"),
        (["count", "loop.cfg", "--of", "derivations"], 2, "count words instead (--of words)"),
        (["plan", "openagi", "3", "--length-penalty", "1"], 2, "--length-penalty is for --search best-first"),
        (["plan", "openagi", "3", "--search", "best-first", "--length-penalty", "inf"], 2, "a number from 0, not inf"),
        (["plan", "openagi", "15", "--max-steps", "3"], 4, "at least 7 are needed; raise it with --max-steps"),
        (["plan", "openagi", "3", "--llm", "bultin"], 3, "Did you mean 'builtin'"),
        (["plan", "openagi", "3", "--llm", "openai:gpt-6-luna"], 3, "OPENAI_API_KEY"),
        (["plan", "openagi", "3", "--llm", "anthropic:x"], 3, "builtin"),
        (["plan", "openagi", "3", "--llm", "test:script=9,9,9"], 3, "9 is not one of the numbers"),
        (["plan", "openagi", "15", "--max-questions", "1"], 4, "budget of 1 questions is used up with 1 terminals"),
        (["plan", "openagi", "15", "--max-questions", "1"], 4, "in the plan; raise it with --max-questions"),
        (["plan", "openagi", "3", "--lookahead", "sideways"], 2, "sideways"),
        (["plan"], 2, "Missing argument"),
        (["plan", "openagi", "3", "--wording", "none.toml"], 2, "cannot be read"),
        (["tasks", "openagi", "--split", "tset"], 2, "Did you mean 'test'"),
        (["draw", "openagi", "--out", "x.jpg"], 2, ".svg"),
        (["frobnicate"], 2, "frobnicate"),
    ],
)
def test_what_goes_wrong_ends_with_its_code_and_no_traceback(
    arguments: list[str], code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "g.cfg").write_text("Day -> eat Night\nNight -> sleep\n", encoding="utf-8")
    (tmp_path / "loop.cfg").write_text("S -> S | a\n", encoding="utf-8")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    if code != 4:
        assert done.stdout == ""


def test_debug_shows_the_traceback() -> None:
    done = run("--debug", "plan", "openagi", "999")
    assert "Traceback" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the grammar is empty"),
        (b"\xff\xfe\x00S", "not a text file"),
        (b"S = a b\n", "write '->' instead of '='"),
        (b"S -> A\nA -> S\n", "the language is empty"),
        (b"S -> a\n%require 2 a\n%limit 1 a\n", "clash"),
    ],
)
def test_bad_files_are_told_with_their_place(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "g.cfg").write_bytes(content)
    for command in ("check", "plan"):
        done = run(command, "g.cfg", cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
        assert "g.cfg" in done.stderr
        assert "Traceback" not in done.stderr


def test_check_tells_what_a_grammar_is(tmp_path: Path) -> None:
    done = run("check", "openagi")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "17 terminals" in done.stdout
    assert "185 tasks" in done.stdout
    (tmp_path / "w.cfg").write_text("S -> a | Loop\nLoop -> Loop a\n", encoding="utf-8")
    done = run("check", "w.cfg", cwd=tmp_path)
    assert done.returncode == 0
    assert "no word can be derived from Loop" in done.stderr
    assert run("check", "w.cfg", "--strict", cwd=tmp_path).returncode == 1


def test_draw(tmp_path: Path) -> None:
    assert run("draw", "openagi").stdout.startswith("flowchart")
    assert run("draw", "openagi", "--what", "pda", "--format", "dot").stdout.startswith("digraph")
    assert run("draw", "openagi", "--out", "g.mmd", cwd=tmp_path).returncode == 0
    assert (tmp_path / "g.mmd").read_text(encoding="utf-8").startswith("flowchart")


def test_draw_a_plan_over_its_rules() -> None:
    plan = run("plan", "daily").stdout
    drawn = run("draw", "daily", "--plan", "-", "--format", "dot", stdin=plan)
    assert drawn.returncode == 0, drawn.stderr
    assert ">8: supper<" in drawn.stdout.replace("<BR/>", "<")
    product = run("draw", "daily", "--what", "pda", "--plan", "-", stdin=plan)
    assert "linkStyle" in product.stdout
    wrong = run("draw", "daily", "--plan", "-", stdin="lunch\nlunch\n")
    assert wrong.returncode == 2
    assert "no plan of these rules" in wrong.stderr


def test_what_is_too_large_to_read_is_not_drawn() -> None:
    done = run("draw", "daily", "--what", "pda", "--max-boxes", "10")
    assert done.returncode == 2
    assert "--what rules" in done.stderr
    assert "--plan FILE" in done.stderr
    assert run("draw", "react-5", "--max-boxes", "3").returncode == 2


@pytest.mark.parametrize("to", [[], ["--out", "chart.mmd"]])
def test_a_drawn_flowchart_reads_back_equal(tmp_path: Path, to: list[str]) -> None:
    drawn = run("draw", "risk", *to, cwd=tmp_path).stdout
    if to:
        drawn = (tmp_path / "chart.mmd").read_text(encoding="utf-8")
    assert Flowchart.from_mermaid(drawn) == TaskPack.load("risk").rules


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz (dot) is not installed")
def test_draw_png(tmp_path: Path) -> None:
    assert run("draw", "react", "--out", "r.png", cwd=tmp_path).returncode == 0
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def test_svg_without_graphviz_says_what_to_install(tmp_path: Path) -> None:
    done = run("draw", "openagi", "--format", "svg", cwd=tmp_path, PATH=str(tmp_path))
    assert done.returncode == 3
    assert "Graphviz" in done.stderr


def test_tasks_and_llms() -> None:
    packs = json.loads(run("tasks", "--json").stdout)
    assert {(pack["name"], pack["tasks"]) for pack in packs} >= {("openagi", 185), ("daily", 0), ("risk", 0)}
    rows = json.loads(run("tasks", "openagi", "--split", "test", "--json").stdout)
    assert [row["number"] for row in rows][:3] == [2, 3, 10]
    assert len(run("tasks", "openagi").stdout.splitlines()) == 185
    said = run("llms").stdout
    assert "builtin" in said
    assert "[key not set]" in said
    assert "[set]" in run("llms", OPENAI_API_KEY="x").stdout


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


def test_a_budget_of_states() -> None:
    done = run("check", "openagi", "--max-states", "1")
    assert (
        "not decided    the shortest word was not found within the budget of states; raise --max-states" in done.stdout
    )
    assert run("plan", "openagi", "15", "--max-states", "1", "--show", "word").returncode == 0


def test_samples_are_reproducible() -> None:
    once = run("sample", "openagi", "0", "--number", "3", "--seed", "5", "--json")
    assert once.stdout == run("sample", "openagi", "0", "--number", "3", "--seed", "5", "--json").stdout
    assert len(json.loads(once.stdout)) == 3
    assert run("sample", "openagi", "0", "--max-length", "1").returncode == 1


def test_check_counts_and_measures_the_language(tmp_path: Path) -> None:
    (tmp_path / "f.cfg").write_text("S -> a b | a b c d | e\n", encoding="utf-8")
    said = run("check", "f.cfg", cwd=tmp_path).stdout
    assert "plans          3\n" in said
    assert "shortest plan  e\n" in said
    assert "longest plan   4 terminals\n" in said
    assert said.count("at random") == 3
    data = json.loads(run("check", "f.cfg", "--json", cwd=tmp_path).stdout)
    assert (data["plans"], data["warnings"], len(data["at random"])) == ("3", [], 3)
    (tmp_path / "i.cfg").write_text("S -> a S | b\n", encoding="utf-8")
    assert "infinitely many; 5 of at most 5 terminals" in run("check", "i.cfg", cwd=tmp_path).stdout


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


def test_help_has_examples_and_exit_codes() -> None:
    for command in ("plan", "check", "draw", "tasks", "count", "sample", "verify"):
        said = run(command, "--help").stdout
        assert f"formal-llm {command}" in said
        assert "Exit codes" in said
    assert run("--version").stdout.startswith("formal-llm 0")


@pytest.mark.slow
def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from formal_llm.cli.main import main; main()", "plan", "openagi", "3"]
    process = subprocess.Popen(
        [*command, "--llm", "person"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    # The first line of the prompt: the program waits for an answer.
    while "choices" not in process.stderr.readline():
        pass
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stderr


def test_a_closed_pipe_is_no_error() -> None:
    program = "from formal_llm.cli.main import main; main()"
    done = subprocess.run(
        f'"{sys.executable}" -c "{program}" tasks openagi | head -n 1', shell=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout.startswith("   0")
