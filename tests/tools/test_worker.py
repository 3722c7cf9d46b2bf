"""The process of an isolated tool: answers calls until nobody is left who makes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from formal_llm.tools.isolated import read_message, write_message
from formal_llm.tools.worker import enter_memory_group

ROOT = str(Path(__file__).parent.parent.parent)


class Started(subprocess.Popen[bytes]):
    """A process with pipes to it."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]


def start(tool: str) -> Started:
    """A process that serves a tool."""
    return Started(
        [sys.executable, "-m", "formal_llm.tools.worker", f"tests.tools.isolated_tools:{tool}", "0"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip


def worker(tool: str, calls: list[list[bytes]]) -> tuple[list[tuple[dict[str, str], list[bytes]]], str, int]:
    """The answers of a worker to all calls, what it said on standard error, and its exit code."""
    process = start(tool)
    with process:
        for payloads in calls:
            write_message(process.stdin, {"call": "7f"}, payloads)
        answers = [read_message(process.stdout) for _ in calls]
        process.stdin.close()
        said = process.stderr.read().decode()
        return answers, said, process.wait(60)


def test_a_worker_answers_in_order_and_ends_with_its_input() -> None:
    answers, said, code = worker("shout", [["grüße".encode()], [b""], [b"b"]])
    assert answers == [({"call": "7f"}, [text.encode()]) for text in ("GRÜSSE", "", "B")]
    assert said.splitlines() == ["this must not get among the answers"] * 3
    assert code == 0


@pytest.mark.parametrize(
    ("tool", "text", "code"), [("die", b"", 7), ("end", b"SIGTERM", -signal.SIGTERM), ("crash", b"", -signal.SIGSEGV)]
)
def test_the_process_ends_as_its_worker_does(tool: str, text: bytes, code: int) -> None:
    process = start(tool)
    with process:
        write_message(process.stdin, {}, [text])
        assert process.stdout.read() == b""
        assert process.wait(60) == code


@pytest.mark.parametrize("stop", ["its input ends", "SIGTERM"])
def test_processes_that_a_worker_started_end_before_it(stop: str) -> None:
    process = start("start_daemon")
    with process:
        write_message(process.stdin, {}, [b""])
        _, (daemon,) = read_message(process.stdout)
        assert Path("/proc", daemon.decode()).exists()
        if stop == "SIGTERM":
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.close()
        assert process.wait(60) == (-signal.SIGTERM if stop == "SIGTERM" else 0)
        assert not Path("/proc", daemon.decode()).exists()


def test_a_damaged_call_ends_the_worker() -> None:
    process = start("shout")
    with process:
        process.stdin.write(b"\0\0\0\2[]")
        process.stdin.flush()
        assert process.stdout.read() == b""
        assert process.wait(60) == 0


def test_a_memory_group_is_made_and_entered(tmp_path: Path) -> None:
    # A folder in place of a cgroup: the system's part is not tested.
    enter_memory_group(tmp_path / "group", 1_000_000)
    written = {path.name: path.read_text() for path in (tmp_path / "group").iterdir()}
    assert written == {
        "memory.max": "1000000", "memory.swap.max": "0", "memory.oom.group": "1", "cgroup.procs": "0",
    }  # fmt: skip
    with pytest.warns(UserWarning, match="each process alone: .*nowhere"):
        enter_memory_group(tmp_path / "nowhere" / "group", 1_000_000)


def test_what_a_tool_raises_is_an_answer() -> None:
    answers, _, code = worker("fail", [[b"x"], [b"\xff"], []])
    assert [told["error"] for told, _ in answers] == ["ValueError", "UnicodeDecodeError", "TypeError"]
    assert answers[0] == ({"call": "7f", "error": "ValueError", "text": "not x"}, [])
    assert code == 0
