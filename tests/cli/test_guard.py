"""``formal-llm guard``, run as a program."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from formal_llm.cli.main import app
from formal_llm.guard import Call, Guard, GuardRules, Said
from formal_llm.guard.audit import AuditLog, make_audit, read_log
from formal_llm.guard.live import GuardedRun
from tests.guard.adapters.scripted_server import serving

RULES = "approve: approve\npay: pay\nrule approved: approve before pay\n"


def run(*arguments: str):
    return CliRunner().invoke(app, ["guard", *arguments])


def rules(folder: Path) -> str:
    path = folder / "rules.guard"
    path.write_text(RULES)
    return str(path)


def chat(folder: Path, *tools: str) -> str:
    path = folder / "chat.jsonl"
    calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in tools]
    path.write_text(json.dumps({"messages": [{"role": "assistant", "content": None, "tool_calls": calls}]}) + "\n")
    return str(path)


def test_traces_that_break_rules(tmp_path: Path) -> None:
    done = run("verify", chat(tmp_path, "pay", "approve"), rules(tmp_path))
    assert done.exit_code == 1
    assert "message 1, call 1, approved (block): pay()" in done.stdout
    assert "nearest valid trace: leave out message 1, call 1" in done.stdout
    assert "1 traces, 1 of them break rules" in done.stdout
    assert run("verify", chat(tmp_path, "approve", "pay"), rules(tmp_path)).exit_code == 0


def test_as_json(tmp_path: Path) -> None:
    done = run("verify", chat(tmp_path, "pay"), rules(tmp_path), "--json")
    data = json.loads(done.stdout)
    assert data["rules"] == {"approved": {"violations": 1, "traces": 1}}
    assert data["traces"][0]["violations"][0]["place"] == "message 1"
    assert data["log"] is None


def written(folder: Path, key: bytes = b"") -> Path:
    guard = Guard(GuardRules.from_string(RULES))
    path = folder / "audit.jsonl"
    live = GuardedRun(guard, audit=make_audit(AuditLog(path, guard.fingerprint, key)))
    live.said(Said("user", "pay"))
    live.begin(Call("approve", {}, "1"))
    live.begin(Call("pay", {}, "2"))
    return path


def test_a_log(tmp_path: Path) -> None:
    path = written(tmp_path)
    done = run("verify", str(path), rules(tmp_path))
    assert done.exit_code == 0
    head = read_log(path).head
    assert f"the log is as it was written; its last hash is {head}" in done.stdout
    assert run("verify", str(path), rules(tmp_path), "--head", head).exit_code == 0
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    cut = run("verify", str(path), rules(tmp_path), "--head", head)
    assert cut.exit_code == 1
    assert "taken away at the end" in cut.stdout
    path.write_text("".join([*lines[:2], lines[2].replace('"approve"', '"approve2"'), *lines[3:]]))
    changed = run("verify", str(path), rules(tmp_path))
    assert changed.exit_code == 1
    assert "the log was changed: line 3: it was changed" in changed.stdout


def test_a_signed_log(tmp_path: Path) -> None:
    path, key, other = written(tmp_path, b"0123456789abcdef"), tmp_path / "key", tmp_path / "other"
    key.write_text("0123456789abcdef\n")
    other.write_text("another key of one's own")
    assert run("verify", str(path), rules(tmp_path), "--key", str(key)).exit_code == 0
    assert "the log is signed" in run("verify", str(path), rules(tmp_path)).stderr
    changed = run("verify", str(path), rules(tmp_path), "--key", str(other))
    assert changed.exit_code == 1
    assert "line 1: it is not signed with this key" in changed.stdout


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    done = run(rules(tmp_path))
    assert done.exit_code == 2
    assert "no MCP server is named" in done.stderr
    assert run(str(tmp_path / "none.guard"), "--", "x").exit_code == 2
    (tmp_path / "text").write_text("nothing")
    done = run("verify", str(tmp_path / "text"), rules(tmp_path))
    assert done.exit_code == 2
    assert "is no JSON" in done.stderr


def test_help() -> None:
    assert "--hook" in run("--help").stdout
    assert "nearest valid trace" in run("verify", "--help").stdout.replace("\n", " ").replace("  ", " ")


def test_an_endpoint_until_a_signal_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving([("approve", {})]) as server:
        command = [sys.executable, "-m", "formal_llm", "guard", rules(tmp_path), "--serve", "--port", "0"]
        process = subprocess.Popen([*command, "--openai", server.url], stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            address = process.stderr.readline().split()[1]
            tools = [{"type": "function", "function": {"name": name}} for name in ("approve", "pay")]
            body = {"model": "m", "messages": [{"role": "user", "content": "pay"}], "tools": tools}
            answer = httpx2.post(f"{address}/v1/chat/completions", json=body)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)
            process.stderr.close()
    assert answer.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "approve"
    assert server.asked[0]["tools"] == tools[:1]


def test_what_an_endpoint_cannot_use(tmp_path: Path) -> None:
    empty = tmp_path / "empty.key"
    empty.write_text("\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for more, why in (
            (["--sign", str(empty)], "has fewer than 16 bytes"), (["--sign", str(tmp_path / "none")], "cannot be read"),
            (["--port", str(taken.getsockname()[1])], "cannot be used"),
        ):  # fmt: skip
            done = CliRunner().invoke(app, ["guard", rules(tmp_path), "--serve", *more])
            assert done.exit_code != 0 and why in " ".join(done.output.split()), done.output
    late = tmp_path / "late.guard"
    late.write_text("pay: pay\nrule slow: at most 1 pay within 1h\n")
    done = CliRunner().invoke(app, ["guard", str(late), "--serve"])
    assert done.exit_code != 0 and "does not record when" in " ".join(done.output.split())
