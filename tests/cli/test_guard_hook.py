"""``formal-llm guard --hook``: arguments, exit codes, and the process that answers hooks."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import formal_llm
from formal_llm.cli.guard_hook import run_hook

ROOT = Path(formal_llm.__file__).parent.parent
RULES = "pay: pay\nrule once: at most 1 pay\n"
CALL = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "pay", "tool_input": {}}
#: The command, which tells in the end what it has loaded.
PROGRAM = """
import sys
from formal_llm.cli.guard_hook import run_hook
code = run_hook(sys.argv[1:])
sys.stderr.write(" ".join(name for name in sys.modules if name in ("typing", "json") or name.startswith("formal_llm")))
sys.exit(code)
"""


def answered(monkeypatch: pytest.MonkeyPatch, data: bytes, *arguments: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return run_hook(["--hook", "--alone", *arguments])


def test_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules.guard").write_text("pay: pay\nrule no: never pay\n")
    where = ("--state", str(tmp_path / "state"))
    assert answered(monkeypatch, json.dumps(CALL).encode(), str(tmp_path / "rules.guard"), *where) == 0
    assert '"deny"' in capfd.readouterr().out
    assert answered(monkeypatch, b"junk", str(tmp_path / "rules.guard"), *where) == 2
    assert "no JSON" in capfd.readouterr().err


def test_wrong_arguments_are_a_denial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for arguments in ((), ("a", "b"), ("a", "--what"), ("a", "--key", str(tmp_path / "none")), ("a", "--state")):
        assert answered(monkeypatch, json.dumps(CALL).encode(), *arguments) == 2
        told = capfd.readouterr()
        assert told.out == ""
        assert "formal-llm guard" in told.err


def test_whatever_goes_wrong_is_a_denial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert answered(monkeypatch, json.dumps(CALL).encode(), "rules.guard") == 2
    assert "FileNotFoundError" in capfd.readouterr().err


class User:
    """A user with hooks, and at most one process that answers them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hooks = folder / "formal-llm" / "hooks"
        self.library = ROOT
        self.calls = 0
        (folder / "rules.guard").write_text(RULES)

    def call(self) -> tuple[int, str, str]:
        """A call of ``pay``: the exit code, the decision, and what was loaded."""
        self.calls += 1
        told = subprocess.run(
            [sys.executable, "-c", PROGRAM, "--hook", "rules.guard", "--state", "state"],
            input=json.dumps({**CALL, "tool_use_id": f"{self.calls}"}).encode(), capture_output=True, timeout=60,
            check=False, cwd=self.folder,
            env={**os.environ, "XDG_RUNTIME_DIR": str(self.folder), "PYTHONPATH": str(self.library)},
        )  # fmt: skip
        decision = json.loads(told.stdout)["hookSpecificOutput"]["permissionDecision"] if told.stdout else ""
        return told.returncode, decision, told.stderr.decode()

    def find_process(self) -> int:
        """The number of the process, as soon as it answers."""
        for _ in range(600):
            if any(self.hooks.glob("*.sock")):
                (lock,) = self.hooks.glob("*.lock")
                return int(lock.read_text())
            time.sleep(0.05)
        raise AssertionError("there is no process")

    def kill_process(self, number: int) -> None:
        """Kill the process; return when nobody listens any more."""
        os.kill(number, signal.SIGKILL)
        (path,) = self.hooks.glob("*.sock")
        for _ in range(600):
            with socket.socket(socket.AF_UNIX) as client:
                if client.connect_ex(str(path)) != 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the process lives on")


@pytest.fixture
def user() -> Iterator[User]:
    with tempfile.TemporaryDirectory() as name:
        one = User(Path(name))
        yield one
        for lock in one.hooks.glob("*.lock"):
            if lock.read_text():
                with suppress(ProcessLookupError):
                    os.kill(int(lock.read_text()), signal.SIGKILL)


def test_the_first_hook_becomes_the_process_that_answers_the_others(user: User) -> None:
    code, decision, loaded = user.call()
    assert (code, decision) == (0, "")
    assert "formal_llm.guard.hooks.hook" in loaded
    first = user.find_process()
    code, decision, loaded = user.call()
    assert (code, decision) == (0, "deny")
    assert loaded == "formal_llm formal_llm.cli formal_llm.cli.guard_hook"
    user.kill_process(first)
    for _ in range(2):  # what happened is in the log, whoever answers
        assert user.call()[:2] == (0, "deny")
    assert user.find_process() != first


def test_a_process_of_an_older_library_judges_nothing(user: User) -> None:
    user.library = user.folder / "library"
    shutil.copytree(ROOT / "formal_llm", user.library / "formal_llm", ignore=shutil.ignore_patterns("__pycache__"))
    user.call()
    first = user.find_process()
    os.utime(user.library / "formal_llm" / "guard" / "guard.py")
    code, decision, loaded = user.call()
    assert (code, decision) == (0, "deny")
    assert "formal_llm.guard.hooks.hook" in loaded
    for _ in range(600):
        if user.find_process() != first:
            break
        user.call()
    assert user.find_process() != first


def test_without_an_answer_a_call_is_denied(user: User) -> None:
    user.call()
    os.kill(user.find_process(), signal.SIGKILL)
    (place,) = user.hooks.glob("*.sock")
    (lock,) = user.hooks.glob("*.lock")
    lock.unlink()
    place.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()

        def answer() -> None:
            for text in (b"", b"0 100 0\n{", b"0 0\n"):
                connection = server.accept()[0]
                connection.sendall(text)
                connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        for _ in range(3):
            code, decision, told = user.call()
            assert (code, decision) == (2, "")
            assert "did not answer" in told
        thread.join()


def test_nobody_else_may_answer(user: User) -> None:
    """In a folder that others may write to there is no process."""
    user.hooks.mkdir(parents=True)
    user.hooks.chmod(0o777)
    for expected in ("", "deny"):
        code, decision, loaded = user.call()
        assert (code, decision) == (0, expected)
        assert "formal_llm.guard.hooks.hook" in loaded
    assert not list(user.hooks.iterdir())


def test_a_process_that_is_not_needed_ends(user: User) -> None:
    place = user.folder / "x.sock"
    program = (
        "import sys\nfrom pathlib import Path\nfrom formal_llm.guard.hooks.hook import HookMemory, serve_hooks\n"
        "serve_hooks(Path(sys.argv[1]), HookMemory(), 0.1)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(place)], check=True, timeout=60)
    assert not place.exists()
