"""``formal-llm guard --hook``: arguments, exit codes, and the process that answers hooks."""

from __future__ import annotations

import io
import json
import sys
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
    return run_hook(["--hook", *arguments])


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
    for arguments in ((), ("a", "b"), ("a", "--what"), ("a", "--key", "b"), ("a", "--state")):
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
