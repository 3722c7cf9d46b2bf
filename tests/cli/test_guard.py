"""``formal-llm guard``, run as a program."""

from __future__ import annotations

import json
from pathlib import Path

from formal_llm.guard import Call, Guard, GuardRules, Said
from formal_llm.guard.audit import AuditLog, make_audit, read_log
from formal_llm.guard.live import GuardedRun
from tests.cli.inside import invoke

RULES = "approve: approve\npay: pay\nrule approved: approve before pay\n"


def run(*arguments: str):
    return invoke("guard", *arguments)


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
    assert "1 traces, 1 of them break rules" in done.stdout
    assert run("verify", chat(tmp_path, "approve", "pay"), rules(tmp_path)).exit_code == 0


def test_as_json(tmp_path: Path) -> None:
    done = run("verify", chat(tmp_path, "pay"), rules(tmp_path), "--json")
    data = json.loads(done.stdout)
    assert data["rules"] == {"approved": {"violations": 1, "traces": 1}}
    assert data["traces"][0]["violations"][0]["place"] == "message 1"
    assert data["log"] is None


def written(folder: Path) -> Path:
    guard = Guard(GuardRules.from_string(RULES))
    path = folder / "audit.jsonl"
    live = GuardedRun(guard, audit=make_audit(AuditLog(path, guard.fingerprint)))
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
    assert "which rules a trace breaks" in run("verify", "--help").stdout.replace("\n", " ").replace("  ", " ")
