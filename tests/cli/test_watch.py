"""``formal-llm watch``: rules are checked again when they are saved."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from formal_llm.cli import watch
from formal_llm.cli.main import app
from formal_llm.cli.watch import changes, watched


class Script:
    """Something done at each pause, instead of waiting; when nothing is left, the watch is over."""

    def __init__(self, *acts) -> None:
        self.acts = list(acts)

    def __call__(self) -> None:
        if not self.acts:
            raise KeyboardInterrupt
        act = self.acts.pop(0)
        if act is not None:
            act()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "g.cfg"
    path.write_text("S -> a")
    return path


def seen(file: Path, *acts) -> list[int]:
    """After how many pauses changes were told."""
    script = Script(*acts)
    found = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(len(acts) - len(script.acts) for _ in changes(lambda: watched(file), script))
    return found


def save(file: Path, text: str):
    return lambda: file.write_text(text)


def replaced(file: Path, text: str):
    def act() -> None:
        new = file.with_suffix(".new")
        new.write_text(text)
        new.replace(file)

    return act


def test_a_save_is_told_once_the_file_is_left_alone(file: Path) -> None:
    assert seen(file, None, None) == []
    assert seen(file, None, save(file, "S -> b c"), None, None) == [3]
    assert seen(file, save(file, "S -> 1"), save(file, "S -> 12"), save(file, "S -> 123"), None, None) == [4]


def test_editors_that_replace_the_file_or_take_it_away_for_a_moment(file: Path) -> None:
    assert seen(file, replaced(file, "S -> b c"), None, None) == [2]
    assert seen(file, file.unlink, None, None, save(file, "S -> new one"), None, None) == [5]


def test_a_file_that_never_rests_is_told_of_all_the_same(file: Path) -> None:
    acts = [save(file, "S -> " + "x" * n) for n in range(1, 40)]
    assert seen(file, *acts)[0] == 26


def test_imports_and_examples_are_watched(file: Path) -> None:
    other = file.with_name("tools.cfg")
    other.write_text("T -> t")
    file.write_text('%import "tools.cfg"\nS -> T')
    assert seen(file, save(other, "T -> other"), None, None) == [2]
    assert seen(file, save(file.with_suffix(".examples"), "t"), None, None) == [2]


def run(*arguments: str):
    return CliRunner().invoke(app, ["watch", *arguments])


def test_it_checks_says_what_is_wrong_and_goes_on(file: Path, monkeypatch) -> None:
    script = Script(save(file, "S -> b ("), None, save(file, "S -> b | c"), None)
    monkeypatch.setattr(watch.time, "sleep", lambda _: script())
    done = run(str(file))
    assert done.exit_code == 0
    assert "unexpected" in done.stderr or "too early" in done.stderr
    assert done.stdout.count("start symbol") == 2
    assert "no longer watching" in done.stderr
    assert "plans          2" in done.stdout


def test_it_ends_after_so_many_checks_with_the_code_of_the_last(file: Path, monkeypatch) -> None:
    assert run(str(file), "--checks", "1").exit_code == 0
    file.write_text("S -> a ->")
    assert run(str(file), "--checks", "1").exit_code == 2
    file.write_text("S -> a\nB -> b")
    assert run(str(file), "--checks", "1", "--strict").exit_code == 1
    assert run(str(file.with_name("none.cfg"))).exit_code == 2


def test_ctrl_c_ends_it_cleanly(file: Path) -> None:
    command = [sys.executable, "-m", "formal_llm", "watch", str(file)]
    # A suite that was started in the background may ignore SIGINT, and children inherit that.
    default = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, preexec_fn=default) as process:
        killer = threading.Timer(60, process.kill)
        killer.start()
        for line in process.stderr:
            if line.startswith("watching"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        killer.cancel()
        assert process.wait() == 0
    assert rest == "no longer watching\n"
