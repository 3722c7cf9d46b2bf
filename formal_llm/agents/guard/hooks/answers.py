"""What Claude Code and Codex send to a hook, and what they read of its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from formal_llm.agents.guard.events import Decision
from formal_llm.planning.json_data import JSON

#: More bytes are not read.
MOST_INPUT = 32_000_000
#: A denial: what is written on standard error is told to the model.
DENIED = 2
#: An error that stops nothing: what is written on standard error is shown to the user.
TOLD = 1


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook gives back: its standard output, its standard error, its exit code."""

    out: str = ""
    err: str = ""
    code: int = 0


class InvalidHookInput(Exception):
    """The input of a hook is not one; says why."""


def read_input(data: bytes) -> Mapping[str, JSON]:
    """The event that a hook is told.

    Raises:
        Refused: it is too large, no JSON object, or names no event or session.
    """
    if len(data) > MOST_INPUT:
        raise InvalidHookInput(f"the input has more than {MOST_INPUT:,} bytes")
    try:
        row = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidHookInput(f"the input is no JSON: {error}") from None
    if not isinstance(row, dict):
        raise InvalidHookInput("the input is no JSON object")
    for name in ("hook_event_name", "session_id"):
        if not isinstance(row.get(name), str) or not row[name]:
            raise InvalidHookInput(f"the input has no {name}; is this a hook of Claude Code or Codex?")
    return row


def deny_call(reason: str) -> HookAnswer:
    """A tool call does not run; the model is told why."""
    return _write_permission("deny", reason)


def answer_call(decision: Decision) -> HookAnswer:
    """What is said of a tool call. To one that may run nothing is said: the agent's own permissions still count."""
    if decision.action == "block":
        return deny_call(decision.message)
    if decision.action == "ask":
        return _write_permission("ask", decision.message)
    if decision.action == "warn":
        return _write_json({"systemMessage": f"formal-llm guard: {decision.message}"})
    return HookAnswer()


def _write_permission(what: str, reason: str) -> HookAnswer:
    return _write_json({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": what, "permissionDecisionReason": reason,
        }
    })  # fmt: skip


def refuse_stop(reason: str) -> HookAnswer:
    """The agent may not stop yet."""
    return _write_json({"decision": "block", "reason": reason})


def show_message(text: str) -> HookAnswer:
    """Something that the user sees, and that stops nothing."""
    return _write_json({"systemMessage": f"formal-llm guard: {text}"})


def _write_json(data: JSON) -> HookAnswer:
    return HookAnswer(json.dumps(data, ensure_ascii=False))
