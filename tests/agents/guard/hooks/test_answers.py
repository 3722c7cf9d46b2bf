"""What hooks read and write."""

from __future__ import annotations

import json

import pytest

from formal_llm.agents.guard import Decision
from formal_llm.agents.guard.hooks.answers import Answer, Refused, not_yet, permission, read_input, shown


def test_decisions() -> None:
    assert permission(Decision("allow")) == Answer()
    assert permission(Decision("log", "r", "why")) == Answer()
    for action, said in (("block", "deny"), ("ask", "ask")):
        found = json.loads(permission(Decision(action, "r", "why")).out)["hookSpecificOutput"]  # type: ignore[arg-type]
        assert found["hookEventName"] == "PreToolUse"
        assert found["permissionDecision"] == said
        assert "why" in found["permissionDecisionReason"]
    assert "why" in json.loads(permission(Decision("warn", "r", "why")).out)["systemMessage"]
    assert json.loads(not_yet("tests").out) == {"decision": "block", "reason": "tests"}
    assert "x" in shown("x").out


def test_input() -> None:
    assert read_input(b'{"hook_event_name": "Stop", "session_id": "x"}')["session_id"] == "x"
    with pytest.raises(Refused, match="session_id"):
        read_input(b'{"hook_event_name": "Stop", "session_id": 3}')
