"""The audit log: a chain of hashes that finds what was changed, written by many, cut off at any place."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import RecordError
from formal_llm.guard import Call, Guard, GuardRules, Result, Said, audit
from formal_llm.guard.audit import (
    NOTHING,
    AuditLog,
    Entry,
    make_audit,
    read_event,
    read_lines,
    read_log,
    seal_line,
)
from formal_llm.guard.live import GuardedRun
from tests.strategies import examples

ROWS = [
    {"event": {"call": "pay", "arguments": {"amount": number, "text": "ä\u2028\ud800" * number}}} for number in range(5)
]


def written(path: Path, rows: list[dict[str, object]]) -> list[str]:
    log = AuditLog(path, "rules")
    return [log.append(row) for row in rows]  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.jsonl"
    hashes = written(path, ROWS)
    reading = read_log(path)
    assert reading.faults == ()
    assert not reading.torn
    assert reading.rules == "rules"
    assert [entry.hash for entry in reading.entries[1:]] == hashes
    assert reading.head == hashes[-1]
    assert [entry.row["event"] for entry in reading.entries[1:3]] == [row["event"] for row in ROWS[:2]]
    assert all("at" in entry.row for entry in reading.entries[1:])
    # Anybody can check the chain with a few lines.
    before = NOTHING
    for line in path.read_bytes().splitlines():
        row = json.loads(line)
        assert row["before"] == before
        assert row["hash"] == hashlib.sha256(line[: -len(',"hash":""}') - 64]).hexdigest()
        before = row["hash"]


def chain() -> bytes:
    head, data = NOTHING, b""
    for row in [{"format": "formal-llm guard log 1", "rules": ""}, *ROWS]:
        line, head = seal_line(row, head)  # type: ignore[arg-type]
        data += line
    return data


@examples(100)
@given(st.data())
def test_any_change_is_found_with_its_line(data: st.DataObject) -> None:
    lines = chain().splitlines(keepends=True)
    number = data.draw(st.integers(0, len(lines) - 1))
    place = data.draw(st.integers(0, len(lines[number]) - 2))
    sign = data.draw(st.integers(0, 255).filter(lambda one: one not in (10, lines[number][place])))
    lines[number] = lines[number][:place] + bytes([sign]) + lines[number][place + 1 :]
    assert number + 1 in [fault.line for fault in read_lines(b"".join(lines)).faults]


def test_lines_that_are_taken_out_put_in_or_moved() -> None:
    lines = chain().splitlines(keepends=True)
    assert read_lines(b"".join(lines)).faults == ()
    for changed, line in (
        (lines[:2] + lines[3:], 3),
        ([lines[0], lines[2], lines[1], *lines[3:]], 2),
        ([*lines[:3], lines[1], *lines[3:]], 4),
        (lines[1:], 1),
    ):
        assert read_lines(b"".join(changed)).faults[0].line == line
    # A line that somebody sealed anew does not fit the one after it.
    forged, _ = seal_line({"event": "other"}, read_lines(lines[0]).head)
    assert [fault.line for fault in read_lines(b"".join([lines[0], forged, *lines[2:]])).faults] == [3]


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_was_cut_off_is_told(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log"
    written(path, ROWS[:2])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    reading = read_log(path)
    assert reading.faults == ()
    assert reading.torn
    written(path, [{"event": "next"}])
    after = read_log(path)
    assert after.faults == ()
    assert not after.torn
    assert [entry.row.get("event") for entry in after.entries] == [None, ROWS[0]["event"], "next"]


def test_a_last_line_that_was_changed_is_not_built_on(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, ROWS[:2])
    path.write_bytes(path.read_bytes().replace(b'"amount":1', b'"amount":9'))
    with pytest.raises(RecordError, match="was changed; keep the file"):
        written(path, ROWS[:1])
    with pytest.raises(RecordError, match="folder"):
        written(tmp_path, ROWS[:1])
    with pytest.raises(RecordError, match="cannot be read"):
        read_log(tmp_path / "none")


def test_logs_and_their_lines_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog(tmp_path / "log")
    log.append({"event": None})
    monkeypatch.setattr(audit, "MOST_LOG", 10)
    for read in (log.read_events, lambda: read_log(log.path)):
        with pytest.raises(RecordError, match="more than 10 bytes"):
            read()
    monkeypatch.setattr(audit, "MOST_LINE", 10)
    with pytest.raises(RecordError, match="a line of a log has at most 10 bytes"):
        log.append({"event": None})


WRITER = """
import sys
from formal_llm.guard.audit import AuditLog
log = AuditLog(sys.argv[1])
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    log.append({"event": [sys.argv[3], number, "x" * 3000]})
    print(number, flush=True)
"""


def test_several_processes_write_and_are_killed(tmp_path: Path) -> None:
    """What was told to be written is there after kill -9, and the chain holds."""
    path = tmp_path / "log"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), "100000", name], stdout=subprocess.PIPE, text=True)
        for name in "ab"
    ]
    told: dict[str, int] = {}
    for name, writer in zip("ab", writers, strict=True):
        assert writer.stdout is not None
        for _ in range(15):
            told[name] = int(writer.stdout.readline().replace("ready", "-1"))
    for name, writer in zip("ab", writers, strict=True):
        writer.kill()
        rest = writer.communicate()[0].split("\n")
        told[name] = max([told[name], *(int(line) for line in rest[:-1])])
    written(path, [{"event": "after"}])
    reading = read_log(path)
    assert reading.faults == ()
    for name in "ab":
        numbers = [entry.row["event"][1] for entry in reading.entries if entry.row.get("event", "")[0:1] == [name]]  # type: ignore[index,union-attr]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > told[name]


RULES = "pay: pay\nbig: pay[amount > 9]\nrule few: at most 2 pay\nrule dear ask: never big\n"
GUARD = Guard(GuardRules.from_string(RULES))


def test_the_log_of_a_run_leads_back_to_its_state(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "log", GUARD.fingerprint)
    run = GuardedRun(GUARD, audit=make_audit(log))
    run.said(Said("user", "go"))
    assert run.begin(Call("pay", {"amount": 1}, "1")).runs
    run.result(Result("pay", {"amount": 1}, {"ok": True}, "1"))
    assert run.begin(Call("pay", {"amount": 10}, "2")).action == "ask"
    assert run.begin(Call("pay", {"amount": 10}, "2"), approved=True).runs
    assert run.begin(Call("pay", {"amount": 1}, "3")).action == "block"
    run.stop()
    reading = read_log(tmp_path / "log")
    assert reading.faults == ()
    assert reading.rules == GUARD.fingerprint
    state = GUARD.start()
    for event in log.read_events():
        state = state.after(event)
    assert state.history == run.state.history
    assert state.check(Call("pay", {"amount": 1})).action == "block"
    assert [entry.row.get("decision", {}).get("rule") for entry in reading.entries][-2:] == ["few", None]  # type: ignore[union-attr]


def test_events_that_cannot_be_read() -> None:
    assert read_event(Entry(1, {"event": None}, "")) is None
    with pytest.raises(RecordError, match="line 7"):
        read_event(Entry(7, {"event": {"call": "x"}}, ""))
