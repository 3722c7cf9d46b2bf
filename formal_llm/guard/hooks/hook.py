"""One event of a coding agent: its session is read from disk, the guard is asked, the event is added.

A session is a log (:mod:`formal_llm.guard.audit`) in a folder of its own for each set of rules. While an event
is judged, the log is held: hooks that run at the same time come one after the other, so two calls of one turn cannot
both use the last one that a limit allows.

A call counts from the moment when it is let through. One for which a person has to be asked counts when its result
comes, since a hook is not told the answer.
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
from formal_llm.guard.shell.commands import add_shell_commands
from formal_llm.guard.traces.trace import get_text
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


#: Makes the guard; called only once the input is known to be an event.
Guarded = Callable[[], Guard]
Input = Mapping[str, JSON]


def find_state_folder() -> Path:
    """Where sessions are kept if nothing else is said: ``$XDG_STATE_HOME/formal-llm/guard``."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "formal-llm" / "guard"


def answer_event(data: bytes, guarded: Guarded, folder: Path) -> HookAnswer:
    """What a hook answers to an event.

    Args:
        data: what came on standard input.
        guarded: makes the guard.
        folder: where sessions are kept.

    Returns:
        The answer. Where a call cannot be judged (damaged input, rules that cannot be read, a session that was
        changed), it is denied; nothing else is held up by that.
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
    """The file of a session; whatever its name, it lies in the folder of its rules."""
    return folder / guard.fingerprint[:16] / f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.jsonl"


class _HookSession:
    """A session while it is held."""

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
        """Something happened, whatever the rules say of it."""
        self.state = self.state.after(event)
        self.held.append(build_row(event))

    def find_call_status(self, id_: str) -> tuple[bool, bool]:
        """Whether the call with an id was told to the state, and whether a person was asked about it."""
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
        return HookAnswer()  # the same hook, called again
    decision = session.state.check(call)
    session.held.append(build_row(call, decision, told=decision.runs))
    return answer_call(decision)


def _handle_result(session: _HookSession, row: Input) -> HookAnswer:
    call = _read_call(row)
    known, asked = session.find_call_status(call.id) if call.id else (True, False)
    if not known:
        # It ran, so it happened: a person approved it, or the guard was not asked.
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
        if again:  # it was held up, and did nothing: it would never end
            return show_message(f"the agent stopped although the rules are not kept. {decision.message}")
        return refuse_stop(decision.message)
    if decision.action in ("ask", "warn"):
        return show_message(decision.message)
    return HookAnswer()


def _has_stopped_in_vain(entries: Sequence[Entry]) -> bool:
    """Whether the agent was held up when it wanted to stop, and has called nothing since."""
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
    given = row.get("tool_input")
    arguments: Mapping[str, JSON] = given if isinstance(given, Mapping) else {} if given is None else {"value": given}
    return Call(tool, add_shell_commands(tool, arguments), get_text(row, "tool_use_id"), at=datetime.now(UTC))


_HANDLERS: Mapping[str, Callable[[_HookSession, Input], HookAnswer]] = {
    "PreToolUse": _handle_call,
    "PostToolUse": _handle_result,
    "PostToolUseFailure": _handle_result,
    "UserPromptSubmit": _handle_prompt,
    "Stop": _handle_stop,
}
