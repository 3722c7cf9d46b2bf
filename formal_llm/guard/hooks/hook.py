"""One event of a coding agent: the hook reads its session from disk, consults the guard, and adds the event.

A session is a log (:mod:`formal_llm.guard.audit`) in a separate folder for each set of rules. The log is locked
while an event is judged: concurrent hooks run one after the other, so two calls of one turn cannot both use the last
call that a limit allows.

A call counts from the moment it is allowed. A call that requires the approval of a person counts when its result
arrives, since a hook is not notified of the answer.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from formal_llm.errors import AuditError, FormalLLMError
from formal_llm.guard.audit import AuditLog, Entry, HeldLog, build_row, read_event, replay_entries
from formal_llm.guard.events import Call, Decision, GuardEvent, Result, Said
from formal_llm.guard.guard import Guard, GuardState
from formal_llm.guard.shell.commands import add_effects
from formal_llm.guard.traces.trace import get_text
from formal_llm.planning.json_data import JSON

#: The maximum number of bytes of input.
MOST_INPUT = 32_000_000
#: The exit code of a denial: the model receives the text on standard error.
DENIED = 2
#: The exit code of an error that stops nothing: the user sees the text on standard error.
TOLD = 1


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The output of a hook: its standard output, its standard error, its exit code."""

    out: str = ""
    err: str = ""
    code: int = 0


class InvalidHookInput(Exception):
    """The input of a hook is invalid; the message explains why."""


def read_input(data: bytes) -> Mapping[str, JSON]:
    """Read the event that a hook receives.

    Raises:
        InvalidHookInput: it is too large, not a JSON object, or names no event or session.
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
    """Deny a tool call, and send the reason to the model."""
    return _write_permission("deny", reason)


def answer_call(decision: Decision) -> HookAnswer:
    """Answer a tool call; the answer to an allowed one is empty, so that the agent's own permissions still apply."""
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
    """Refuse to let the agent stop."""
    return _write_json({"decision": "block", "reason": reason})


def show_message(text: str) -> HookAnswer:
    """Show a message to the user without stopping anything."""
    return _write_json({"systemMessage": f"formal-llm guard: {text}"})


def _write_json(data: JSON) -> HookAnswer:
    return HookAnswer(json.dumps(data, ensure_ascii=False))


#: A function that makes the guard; it is called only after the input was recognized as an event.
Guarded = Callable[[], Guard]
Input = Mapping[str, JSON]


def find_state_folder() -> Path:
    """Return the default folder of sessions: ``$XDG_STATE_HOME/formal-llm/guard``."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "formal-llm" / "guard"


def answer_event(data: bytes, guarded: Guarded, folder: Path) -> HookAnswer:
    """Answer an event as a hook.

    Args:
        data: the standard input.
        guarded: makes the guard.
        folder: the folder of the sessions.

    Returns:
        The answer. A call that cannot be judged (damaged input, unreadable rules, a modified session) is denied;
        other events are not stopped in these cases.
    """
    try:
        row = read_input(data)
    except InvalidHookInput as error:
        return HookAnswer(err=f"formal-llm guard: {error}", code=DENIED)
    name = str(row["hook_event_name"])
    handler = _HANDLERS.get(name)
    if handler is None:
        return HookAnswer(err=f"formal-llm guard: the event {name} is not one that rules look at; it passes")
    try:
        guard = guarded()
        with AuditLog(find_session_file(folder, guard, str(row["session_id"])), guard.fingerprint).held() as held:
            return handler(_HookSession(guard, held), row)
    except (FormalLLMError, OSError) as error:
        if name == "PreToolUse":
            return deny_call(f"The guard cannot judge this call, so it does not run. Tell the user: {error}")
        return HookAnswer(err=f"formal-llm guard: {error}", code=TOLD)


def find_session_file(folder: Path, guard: Guard, session: str) -> Path:
    """Return the file of a session; whatever the session's name, it is in the folder of its rules."""
    return folder / guard.fingerprint[:16] / f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.jsonl"


class _HookSession:
    """A session while its log is locked."""

    def __init__(self, guard: Guard, held: HeldLog) -> None:
        self.guard = guard
        self.held = held
        reading = held.read()
        if reading.faults:
            raise AuditError(
                f"the record of this session was changed ({reading.faults[0]}); keep it as evidence, and begin a new "
                "session"
            )
        self.entries: Sequence[Entry] = reading.entries
        self.state: GuardState = replay_entries(guard, self.entries)

    def record_event(self, event: GuardEvent) -> None:
        """Record an event that happened, whether the rules allow it or not."""
        self.state = self.state.after(event)
        self.held.append(build_row(event))

    def find_call_status(self, id_: str) -> tuple[bool, bool]:
        """Return whether the state contains the call with an id, and whether a person was asked about it."""
        for entry in reversed(self.entries):
            event = read_event(entry)
            if isinstance(event, Call) and event.id == id_:
                decision = entry.row.get("decision")
                asked = isinstance(decision, Mapping) and decision.get("action") == "ask"
                return entry.row.get("told") is True, asked
        return False, False


def _handle_call(session: _HookSession, row: Input) -> HookAnswer:
    call = _read_call(row)
    if call.id and session.find_call_status(call.id)[0]:
        return HookAnswer()  # the same hook was called again
    decision = session.state.check(call)
    session.held.append(build_row(call, decision, told=decision.runs))
    return answer_call(decision)


def _handle_result(session: _HookSession, row: Input) -> HookAnswer:
    call = _read_call(row)
    known, asked = session.find_call_status(call.id) if call.id else (True, False)
    if not known:
        # It ran, so it counts: a person approved it, or the guard was not consulted.
        session.record_event(Call(call.tool, call.arguments, call.id, approved=asked, at=call.at))
    failed = row["hook_event_name"] == "PostToolUseFailure"
    value = row.get("error") if failed else row.get("tool_response")
    if isinstance(value, Mapping) and (value.get("is_error") is True or value.get("isError") is True):
        failed = True
    session.record_event(Result(call.tool, call.arguments, value, call.id, failed, call.at))
    return HookAnswer()


def _handle_prompt(session: _HookSession, row: Input) -> HookAnswer:
    session.record_event(Said("user", get_text(row, "prompt"), datetime.now(UTC)))
    return HookAnswer()


def _handle_stop(session: _HookSession, row: Input) -> HookAnswer:
    if text := get_text(row, "last_assistant_message"):
        session.record_event(Said("assistant", text, datetime.now(UTC)))
    decision = session.state.may_stop(final=False)
    again = row.get("stop_hook_active") is True and _has_stopped_in_vain(session.entries)
    session.held.append(build_row(None, decision, told=False))
    if decision.action == "block":
        if again:  # it was refused before, and did nothing: it would never end
            return show_message(f"the agent stopped although the rules are not kept. {decision.message}")
        return refuse_stop(decision.message)
    if decision.action in ("ask", "warn"):
        return show_message(decision.message)
    return HookAnswer()


def _has_stopped_in_vain(entries: Sequence[Entry]) -> bool:
    """Return whether the agent was refused when it wanted to stop, and has called nothing since."""
    for entry in reversed(entries):
        event = read_event(entry)
        if isinstance(event, Call | Result):
            return False
        decision = entry.row.get("decision")
        if event is None and isinstance(decision, Mapping) and decision.get("action") == "block":
            return True
    return False


def _read_call(row: Input) -> Call:
    tool = get_text(row, "tool_name")
    value = row.get("tool_input")
    arguments: Mapping[str, JSON] = value if isinstance(value, Mapping) else {} if value is None else {"value": value}
    arguments = add_effects(tool, arguments, get_text(row, "cwd"))
    return Call(tool, arguments, get_text(row, "tool_use_id"), at=datetime.now(UTC))


_HANDLERS: Mapping[str, Callable[[_HookSession, Input], HookAnswer]] = {
    "PreToolUse": _handle_call,
    "PostToolUse": _handle_result,
    "PostToolUseFailure": _handle_result,
    "UserPromptSubmit": _handle_prompt,
    "Stop": _handle_stop,
}
