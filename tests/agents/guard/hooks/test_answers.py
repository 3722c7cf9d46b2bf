"""What hooks read and write."""

from __future__ import annotations

import json

import pytest

from formal_llm.agents.guard import Decision
from formal_llm.agents.guard.hooks.answers import (
    HookAnswer,
    InvalidHookInput,
    answer_call,
    read_input,
    refuse_stop,
    show_message,
)


def test_decisions() -> None:
    assert answer_call(Decision("allow")) == HookAnswer()
    assert answer_call(Decision("log", "r", "why")) == HookAnswer()
    for action, said in (("block", "deny"), ("ask", "ask")):
        found = json.loads(answer_call(Decision(action, "r", "why")).out)["hookSpecificOutput"]  # type: ignore[arg-type]
        assert found["hookEventName"] == "PreToolUse"
        assert found["permissionDecision"] == said
        assert "why" in found["permissionDecisionReason"]
    assert "why" in json.loads(answer_call(Decision("warn", "r", "why")).out)["systemMessage"]
    assert json.loads(refuse_stop("tests").out) == {"decision": "block", "reason": "tests"}
    assert "x" in show_message("x").out


def test_input() -> None:
    assert read_input(b'{"hook_event_name": "Stop", "session_id": "x"}')["session_id"] == "x"
    with pytest.raises(InvalidHookInput, match="session_id"):
        read_input(b'{"hook_event_name": "Stop", "session_id": 3}')
