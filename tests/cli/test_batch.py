"""Many tasks at the command line: interrupted, killed and continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.hosted import finished, stop_and_continue
from formal_llm import CFG
from formal_llm.cli.batch import read_tasks
from formal_llm.cli.sources import LoadedRules
from formal_llm.errors import NotationError
from tests.cli.program import run
from tests.llms.hosted.batches import Batches
from tests.llms.hosted.wire_server import FORMS, WireServer
from tests.slow_server import read_counts, repair, slow_server

RULES = 'S "a plan" -> wash S | dry\n%limit 1\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.cfg").write_text(RULES)
    (tmp_path / "tasks.txt").write_text("# three tasks\nwash and dry\n\ndry only\nwash\n")
    return tmp_path


def results(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_tasks_of_a_file_and_again(folder: Path) -> None:
    command = ("plan", "rules.cfg", "--tasks", "tasks.txt", "--out", "out.jsonl", "--llm", "test:first")
    done = run(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "done: 3 of 3 tasks" in done.stderr
    found = results(folder / "out.jsonl")
    assert [line["task"] for line in found] == ["wash and dry", "dry only", "wash"]
    assert {tuple(line["word"]) for line in found} == {("wash", "dry")}  # type: ignore[arg-type]
    before = (folder / "out.jsonl").read_bytes()
    again = run(*command, cwd=folder)
    assert "3 of them were there before" in again.stderr
    assert (folder / "out.jsonl").read_bytes() == before
    with (folder / "tasks.txt").open("a") as file:
        file.write("one more\n")
    assert "done: 4 of 4" in run(*command, cwd=folder).stderr
    (folder / "tasks.txt").write_text("something else\n")
    changed = run(*command, cwd=folder)
    assert changed.returncode == 2
    assert "has another task 0" in changed.stderr


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0c", "\x0b", "\x1c", "\x1e"])
def test_only_line_ends_part_tasks(sign: str, tmp_path: Path) -> None:
    file = tmp_path / "tasks.txt"
    file.write_bytes(f"wash{sign}and dry\r\n{json.dumps({'task': f'one{sign}two'}, ensure_ascii=False)}\n".encode())
    rules = LoadedRules(rule := CFG.from_string("S -> wash S | dry"), rule)
    assert [task.description for task in read_tasks(str(file), rules)] == [f"wash{sign}and dry", f"one{sign}two"]


@pytest.mark.parametrize("ending", [".json", ".toml", ".yaml"])
def test_a_file_in_another_notation_is_no_list_of_sentences(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"tasks{ending}"
    file.write_text('["wash", "dry"]')
    with pytest.raises(NotationError, match="a task on each line"):
        read_tasks(str(file), LoadedRules(rule := CFG.from_string("S -> wash S | dry"), rule))


def test_tasks_with_settings_of_their_own(folder: Path) -> None:
    lines = [{"task": "t", "limit": {"wash": 0}}, {"task": "t", "require": {"wash": 1}}, {"task": "t", "goal": "S"}]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run("plan", "rules.cfg", "--tasks", "tasks.jsonl", "--out", "o", "--llm", "test:random=1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [line["word"] for line in results(folder / "o")][:2] == [["dry"], ["wash", "dry"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"task": 3}', "tasks:1: task is a text, not 3"),
        ('{"goal": "S"}', "tasks:1: the key 'task' is missing"),
        ('{"task": "t", "limits": {"dry": 1}}', "unknown key: limits; did you mean limit?"),
        ('{"task": "t", "limit": {"dry": "1"}}', "limit, dry is a whole number or null, not '1'"),
        ('{"task": "t", "inputs": "image"}', "inputs is a list or null, not 'image'"),
        ('{"task": "t", "task": "u"}', "the key 'task' is there twice"),
        ('{"task": ' + "[" * 100_000, "nested too deeply"),
        ('{"task": "t", "gaol": "S"}', "unknown key: gaol; did you mean goal?"),
        ('{"task": "t"', "tasks:1:"),
        ('ok\n{"task": "t", "goal": "Q"}', "tasks:2: no goal 'Q'"),
        ("# nothing\n", "there is no task in it"),
        (b"\xff\xfe\x00", "not a text file in UTF-8"),
    ],
)
def test_what_is_no_task(folder: Path, text: str | bytes, said: str) -> None:
    (folder / "tasks").write_bytes(text if isinstance(text, bytes) else text.encode())
    done = run("plan", "rules.cfg", "--tasks", "tasks", "--out", "o", cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "o").exists()


def test_options_that_do_not_go_together(folder: Path) -> None:
    for options, said in (
        (("--tasks", "tasks.txt"), "--tasks needs --out"),
        (("--concurrency", "2"), "for many tasks"),
        (("--retry-failed",), "for many tasks"),
        (("a task", "--tasks", "tasks.txt", "--out", "x"), "--tasks brings the tasks"),
        (("--tasks", "none.txt", "--out", "x"), "no file of tasks 'none.txt'"),
        (("a task", "--max-cost", "1"), "prices"),
        (("a task", "--prices", "cheap"), "--prices takes"),
    ):
        done = run("plan", "rules.cfg", *options, cwd=folder)
        assert done.returncode == 2, options
        assert said in done.stderr


def test_failures_are_kept_and_planned_again_when_that_is_wanted(folder: Path) -> None:
    command = ("plan", "openagi", "--tasks", "test", "--out", "o", "--llm", "test:random")
    done = run(*command, "--max-questions", "3", cwd=folder)
    assert done.returncode == 0
    failed = sum(line["status"] == "failed" for line in results(folder / "o"))
    assert failed
    assert f"{failed} have no plan; --retry-failed" in done.stderr
    again = run(*command, "--retry-failed", cwd=folder)
    assert f"{failed} failed before" in again.stderr
    assert all(line["status"] == "planned" for line in results(folder / "o"))


def test_a_provider_that_cannot_be_reached_ends_the_run(folder: Path) -> None:
    done = run(
        "plan", "openagi", "--tasks", "all", "--out", "o", "--llm", "openai:x", cwd=folder,
        OPENAI_API_KEY="k", OPENAI_BASE_URL="http://127.0.0.1:9/v1",
    )  # fmt: skip
    assert done.returncode == 3
    assert "185 are left; the same command goes on with them" in done.stderr
    assert "OPENAI_BASE_URL" in done.stderr
    assert (folder / "o").read_bytes() == b""


@pytest.mark.slow
def test_money_runs_out_and_comes_again(folder: Path) -> None:
    with slow_server(0) as url:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url}
        options = ("--llm", "openai:x", "--prices", "1,10", "--cache", "answers.sqlite", "--concurrency", "4")
        command = ("plan", "openagi", "--tasks", "test", "--out", "o", *options)
        done = run(*command, "--max-cost", "0.01", cwd=folder, **env)
        assert done.returncode == 4, done.stderr
        assert "are left; the same command goes on" in done.stderr
        assert "cost 0.01" in done.stderr
        assert 0 < len(results(folder / "o")) < 17
        assert run(*command, cwd=folder, **env).returncode == 0
        recorded = run("plan", "openagi", "0", "--llm", "openai:x", "--record", "t.jsonl", cwd=folder, **env)
    replayed = run("plan", "openagi", "0", "--llm", "replay:t.jsonl", cwd=folder)
    assert replayed.stdout == recorded.stdout != ""
    assert sorted(int(str(line["index"])) for line in results(folder / "o")) == list(range(17))


@pytest.mark.slow
def test_an_interrupted_run_goes_on(folder: Path) -> None:
    with slow_server(0.02) as url:
        env = {**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url}
        options = ["--tasks", "all", "--out", "o", "--llm", "openai:x", "--concurrency", "4"]
        command = [sys.executable, "-m", "formal_llm", "plan", "openagi", *options]
        process = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
        file = folder / "o"
        while not (file.exists() and file.read_bytes().count(b"\n") >= 8):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "stopped: " in said
        assert "the same command goes on with them" in said
        assert "Traceback" not in said
        before = len(finished(file))
        assert 8 <= before < 185
        assert subprocess.run(command, cwd=folder, env=env, stderr=subprocess.DEVNULL, timeout=120).returncode == 0
    assert sorted(finished(file)) == list(range(185))


@pytest.mark.slow
def test_a_killed_run_goes_on() -> None:
    with slow_server(0.01) as url:
        stopped = stop_and_continue("kill", 120, 3, 16, 1, url)
    assert all(count < 120 for count in stopped.done)
    assert 0 <= stopped.again <= 3 * 16
    assert stopped.tokens_missing == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["interrupt", "terminate"])
def test_nothing_is_asked_again_after_a_gentle_stop(how: str) -> None:
    with slow_server(0.01) as url:
        stopped = stop_and_continue(how, 60, 2, 16, 1, url)
    assert (stopped.again, stopped.tokens_missing) == (0, 0)


@pytest.mark.slow
def test_a_server_that_breaks_down_costs_nothing(folder: Path) -> None:
    command = ("plan", "openagi", "--tasks", "all", "--llm", "openai:x", "--concurrency", "16", "--out")
    with slow_server(0, breaks=200) as url:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url}
        done = run(*command, "o", cwd=folder, **env)
        assert done.returncode == 3, done.stderr
        assert "are left; the same command goes on with them" in done.stderr
        assert read_counts(url)["answered"] == 200
        repair(url)
        assert run(*command, "o", cwd=folder, **env).returncode == 0
        answered = read_counts(url)["answered"]
        assert run(*command, "whole", cwd=folder, **env).returncode == 0
        assert read_counts(url)["answered"] == 2 * answered
    assert finished(folder / "o") == finished(folder / "whole")


# -- in batches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_tasks_in_batches(folder: Path, name: str) -> None:
    batches, form = Batches(lambda _: '{"choice": 1}', looks=0), FORMS[name]
    with WireServer(batches) as server:
        env = {variable: value.format(server.root) for variable, value in form.variables.items()}
        options = ("--tasks", "tasks.txt", "--out", "o", "--llm", form.model, "--batch", "--prices", "2,8")
        done = run("plan", "rules.cfg", *options, cwd=folder, **env)
    assert done.returncode == 0, done.stderr
    assert batches.sizes == [3]
    usage: dict[str, float] = results(folder / "o")[0]["usage"]  # type: ignore[assignment]
    assert usage["cost"] == pytest.approx(usage["input_tokens"] * 1e-6 + usage["output_tokens"] * 4e-6)
    assert sorted(file.name for file in folder.iterdir()) == ["o", "rules.cfg", "tasks.txt"]


def test_options_that_do_not_go_with_batches(folder: Path) -> None:
    command = ("plan", "rules.cfg", "--tasks", "tasks.txt", "--out", "o", "--batch")
    for options, said in (
        (("--llm", "builtin"), "builtin is not asked in batches"),
        (("--llm", "openai:x", "--max-requests", "5"), "give --concurrency"),
    ):
        done = run(*command, *options, cwd=folder, OPENAI_API_KEY="k")
        assert done.returncode in (2, 3), options
        assert said in done.stderr
    assert "--batch are for many tasks" in run("plan", "rules.cfg", "a", "--batch", cwd=folder).stderr
