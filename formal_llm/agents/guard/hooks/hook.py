"""One event of a coding agent: its session is read from disk, the guard is asked, the event is added.

A session is a log (:mod:`formal_llm.agents.guard.audit`) in a folder of its own for each set of rules. While an event
is judged, the log is held: hooks that run at the same time come one after the other, so two calls of one turn cannot
both use the last one that a limit allows.

A call counts from the moment when it is let through. One for which a person has to be asked counts when its result
comes, since a hook is not told the answer.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from formal_llm.agents.guard.audit import AuditLog, Entry, HeldLog
from formal_llm.agents.guard.events import Call, GuardEvent, Result, Said
from formal_llm.agents.guard.guard import Guard
from formal_llm.agents.guard.hooks.answers import (
    DENIED,
    TOLD,
    Answer,
    Refused,
    denied,
    not_yet,
    permission,
    read_input,
    shown,
)
from formal_llm.agents.guard.record import event_of, line, state_after
from formal_llm.agents.guard.shell.arguments import with_commands
from formal_llm.agents.guard.states import GuardState
from formal_llm.agents.guard.traces.trace import text_at
from formal_llm.errors import AuditError, FormalLLMError
from formal_llm.planning.json_data import JSON

#: Makes the guard; called only once the input is known to be an event.
Guarded = Callable[[], Guard]
Input = Mapping[str, JSON]


def state_folder() -> Path:
    """Where sessions are kept if nothing else is said: ``$XDG_STATE_HOME/formal-llm/guard``."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "formal-llm" / "guard"


def answer(data: bytes, guarded: Guarded, folder: Path) -> Answer:
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
    except Refused as error:
        return Answer(err=f"formal-llm guard: {error}", code=DENIED)
    name = str(row["hook_event_name"])
    handler = _HANDLERS.get(name)
    if handler is None:
        return Answer(err=f"formal-llm guard: the event {name} is not one that rules look at; it passes")
    try:
        guard = guarded()
        with AuditLog(session_file(folder, guard, str(row["session_id"])), guard.fingerprint).held() as held:
            return handler(_Session(guard, held), row)
    except (FormalLLMError, OSError) as error:
        if name == "PreToolUse":
            return denied(f"The guard cannot judge this call, so it does not run. Tell the user: {error}")
        return Answer(err=f"formal-llm guard: {error}", code=TOLD)


def session_file(folder: Path, guard: Guard, session: str) -> Path:
    """The file of a session; whatever its name, it lies in the folder of its rules."""
    return folder / guard.fingerprint[:16] / f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.jsonl"


class _Session:
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
        self.state: GuardState = state_after(guard, self.entries)

    def tell(self, event: GuardEvent) -> None:
        """Something happened, whatever the rules say of it."""
        self.state = self.state.after(event)
        self.held.append(line(event))

    def called(self, id_: str) -> tuple[bool, bool]:
        """Whether the call with an id was told to the state, and whether a person was asked about it."""
        for entry in reversed(self.entries):
            event = event_of(entry)
            if isinstance(event, Call) and event.id == id_:
                decision = entry.row.get("decision")
                asked = isinstance(decision, Mapping) and decision.get("action") == "ask"
                return entry.row.get("told") is True, asked
        return False, False


def _before_call(session: _Session, row: Input) -> Answer:
    call = _call(row)
    if call.id and session.called(call.id)[0]:
        return Answer()  # the same hook, called again
    decision = session.state.check(call)
    session.held.append(line(call, decision, told=decision.runs))
    return permission(decision)


def _after_call(session: _Session, row: Input) -> Answer:
    call = _call(row)
    known, asked = session.called(call.id) if call.id else (True, False)
    if not known:
        # It ran, so it happened: a person approved it, or the guard was not asked.
        session.tell(Call(call.tool, call.arguments, call.id, approved=asked, at=call.at))
    failed = row["hook_event_name"] == "PostToolUseFailure"
    value = row.get("error") if failed else row.get("tool_response")
    if isinstance(value, Mapping) and (value.get("is_error") is True or value.get("isError") is True):
        failed = True
    session.tell(Result(call.tool, call.arguments, value, call.id, failed, call.at))
    return Answer()


def _prompt(session: _Session, row: Input) -> Answer:
    session.tell(Said("user", text_at(row, "prompt"), datetime.now(UTC)))
    return Answer()


def _stop(session: _Session, row: Input) -> Answer:
    if text := text_at(row, "last_assistant_message"):
        session.tell(Said("assistant", text, datetime.now(UTC)))
    decision = session.state.may_stop(final=False)
    again = row.get("stop_hook_active") is True and _in_vain(session.entries)
    session.held.append(line(None, decision, told=False))
    if decision.action == "block":
        if again:  # it was held up, and did nothing: it would never end
            return shown(f"the agent stopped although the rules are not kept. {decision.message}")
        return not_yet(decision.message)
    if decision.action in ("ask", "warn"):
        return shown(decision.message)
    return Answer()


def _in_vain(entries: Sequence[Entry]) -> bool:
    """Whether the agent was held up when it wanted to stop, and has called nothing since."""
    for entry in reversed(entries):
        event = event_of(entry)
        if isinstance(event, Call | Result):
            return False
        decision = entry.row.get("decision")
        if event is None and isinstance(decision, Mapping) and decision.get("action") == "block":
            return True
    return False


def _call(row: Input) -> Call:
    tool = text_at(row, "tool_name")
    given = row.get("tool_input")
    arguments: Mapping[str, JSON] = given if isinstance(given, Mapping) else {} if given is None else {"value": given}
    return Call(tool, with_commands(tool, arguments), text_at(row, "tool_use_id"), at=datetime.now(UTC))


_HANDLERS: Mapping[str, Callable[[_Session, Input], Answer]] = {
    "PreToolUse": _before_call,
    "PostToolUse": _after_call,
    "PostToolUseFailure": _after_call,
    "UserPromptSubmit": _prompt,
    "Stop": _stop,
}
