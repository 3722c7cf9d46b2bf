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
class Answer:
    """What a hook gives back: its standard output, its standard error, its exit code."""

    out: str = ""
    err: str = ""
    code: int = 0


class Refused(Exception):
    """The input of a hook is not one; says why."""


def read_input(data: bytes) -> Mapping[str, JSON]:
    """The event that a hook is told.

    Raises:
        Refused: it is too large, no JSON object, or names no event or session.
    """
    if len(data) > MOST_INPUT:
        raise Refused(f"the input has more than {MOST_INPUT:,} bytes")
    try:
        row = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(f"the input is no JSON: {error}") from None
    if not isinstance(row, dict):
        raise Refused("the input is no JSON object")
    for name in ("hook_event_name", "session_id"):
        if not isinstance(row.get(name), str) or not row[name]:
            raise Refused(f"the input has no {name}; is this a hook of Claude Code or Codex?")
    return row


def denied(reason: str) -> Answer:
    """A tool call does not run; the model is told why."""
    return _permission("deny", reason)


def permission(decision: Decision) -> Answer:
    """What is said of a tool call. To one that may run nothing is said: the agent's own permissions still count."""
    if decision.action == "block":
        return denied(decision.message)
    if decision.action == "ask":
        return _permission("ask", decision.message)
    if decision.action == "warn":
        return _json({"systemMessage": f"formal-llm guard: {decision.message}"})
    return Answer()


def _permission(what: str, reason: str) -> Answer:
    return _json({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": what, "permissionDecisionReason": reason,
        }
    })  # fmt: skip


def not_yet(reason: str) -> Answer:
    """The agent may not stop yet."""
    return _json({"decision": "block", "reason": reason})


def shown(text: str) -> Answer:
    """Something that the user sees, and that stops nothing."""
    return _json({"systemMessage": f"formal-llm guard: {text}"})


def _json(data: JSON) -> Answer:
    return Answer(json.dumps(data, ensure_ascii=False))
