"""The process of an isolated tool: answers calls until nobody is left who makes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from formal_llm.tools.isolated import read_message, write_message

ROOT = str(Path(__file__).parent.parent.parent)


def worker(tool: str, calls: list[list[bytes]]) -> tuple[list[tuple[dict[str, str], list[bytes]]], str, int]:
    """The answers of a worker to all calls, what it said on standard error, and its exit code."""
    process = subprocess.Popen(
        [sys.executable, "-m", "formal_llm.tools.worker", f"tests.tools.isolated_tools:{tool}", "0"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        for payloads in calls:
            write_message(process.stdin, {}, payloads)
        answers = [read_message(process.stdout) for _ in calls]
        process.stdin.close()
        said = process.stderr.read().decode()
        return answers, said, process.wait(60)


def test_a_worker_answers_in_order_and_ends_with_its_input() -> None:
    answers, said, code = worker("shout", [["grüße".encode()], [b""], [b"b"]])
    assert answers == [({}, ["GRÜSSE".encode()]), ({}, [b""]), ({}, [b"B"])]
    assert said.splitlines() == ["this must not get among the answers"] * 3
    assert code == 0


def test_what_a_tool_raises_is_an_answer() -> None:
    answers, _, code = worker("fail", [[b"x"], [b"\xff"], []])
    assert [told["error"] for told, _ in answers] == ["ValueError", "UnicodeDecodeError", "ValueError"]
    assert answers[0] == ({"error": "ValueError", "text": "not x"}, [])
    assert code == 0
