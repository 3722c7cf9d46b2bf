"""The record of a run: what is written leads back to the state."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.agents.guard import Call, Guard, GuardRules, Result, Said
from formal_llm.agents.guard.audit import AuditLog, Entry, read_log
from formal_llm.agents.guard.live import GuardedRun
from formal_llm.agents.guard.record import make_audit, read_event, replay_entries
from formal_llm.errors import AuditError

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
    state = replay_entries(GUARD, reading.entries)
    assert state.history == run.state.history
    assert state.check(Call("pay", {"amount": 1})).action == "block"
    assert [entry.row.get("decision", {}).get("rule") for entry in reading.entries][-2:] == ["few", None]  # type: ignore[union-attr]


def test_events_that_cannot_be_read() -> None:
    assert read_event(Entry(1, {"event": None}, "")) is None
    with pytest.raises(AuditError, match="line 7"):
        read_event(Entry(7, {"event": {"call": "x"}}, ""))
