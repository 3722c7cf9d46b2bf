"""``formal-llm guard --hook``: arguments and exit codes; what hooks answer is tested with them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from formal_llm.cli.guard_hook import run_hook


def answered(monkeypatch: pytest.MonkeyPatch, data: bytes, *arguments: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return run_hook(["--hook", "--alone", *arguments])


def test_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules.guard").write_text("pay: pay\nrule no: never pay\n")
    row = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "pay", "tool_input": {}, "tool_use_id": "1"}
    where = ("--state", str(tmp_path / "state"))
    assert answered(monkeypatch, json.dumps(row).encode(), str(tmp_path / "rules.guard"), *where) == 0
    assert '"deny"' in capfd.readouterr().out
    assert answered(monkeypatch, b"junk", str(tmp_path / "rules.guard"), *where) == 2
    assert "no JSON" in capfd.readouterr().err


def test_wrong_arguments_are_a_denial(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in ((), ("a", "b"), ("a", "--what")):
        assert answered(monkeypatch, b"{}", *arguments) == 2
        told = capfd.readouterr()
        assert told.out == ""
        assert "formal-llm guard" in told.err
