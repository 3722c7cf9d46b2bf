"""One event of a coding agent: the hook reads its session from disk, consults the guard, and adds the event.

A session is a log (:mod:`formal_llm.guard.audit`), whose name depends on the session and the path of the rules, not on
what they say. The log is locked while an event is judged: concurrent hooks run one after the other, so two calls of one
turn cannot both use the last call that a limit allows. A list of the sessions shows whether the log of one was removed.

If the rules change, what happened so far counts under the new ones, and a person is asked before the next call.

A call counts from the moment it is allowed. A call that requires the approval of a person counts when its result
arrives, since a hook is not notified of the answer.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

from formal_llm.automata.lookahead.verdicts import Guarantee
from formal_llm.errors import FormalLLMError, RecordError
from formal_llm.guard.audit import AuditLog, HeldLog, build_row, read_event
from formal_llm.guard.core import GuardRules
from formal_llm.guard.events import Call, Decision, GuardEvent, Result, Said, as_row
from formal_llm.guard.guard import Guard, GuardState
from formal_llm.guard.shell import add_effects
from formal_llm.guard.traces import get_text
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

    def encode_lines(self) -> tuple[int, bytes, bytes]:
        """Return the exit code, and what is written to the standard output and the standard error."""
        out, err = ((f"{text}\n" if text else "").encode("utf-8", "backslashreplace") for text in (self.out, self.err))
        return self.code, out, err


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
_CHANGED = "The rules have changed since the last call of this session, so a person has to approve that they count now."


def answer_event(
    data: bytes,
    guarded: Guarded,
    folder: Path,
    *,
    rules: Path | None = None,
) -> HookAnswer:
    """Answer an event as a hook.

    Args:
        data: the standard input.
        guarded: makes the guard.
        folder: the folder of the sessions.
        rules: the path of the rules; hooks with different ones do not share a session.

    Returns:
        The answer. A call that cannot be judged (damaged input, unreadable rules, a session whose log was modified or
        removed) is denied; other events are not stopped in these cases.
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
        path = find_session_file(folder, str(row["session_id"]), rules)
        with AuditLog(path, guard.fingerprint).held() as held:
            return handler(_open_session(held, guard), row)
    except (FormalLLMError, OSError, InvalidHookInput) as error:
        if name == "PreToolUse":
            return deny_call(f"The guard cannot judge this call, so it does not run. Tell the user: {error}")
        return HookAnswer(err=f"formal-llm guard: {error}", code=TOLD)


def find_session_file(folder: Path, session: str, rules: Path | None = None) -> Path:
    """Return the file of a session under the rules at a path; whatever the session's name, it is in the folder."""
    name = session if rules is None else f"{rules.resolve()}\0{session}"
    return folder / f"{hashlib.sha256(name.encode('utf-8', 'backslashreplace')).hexdigest()[:32]}.jsonl"


class _CallStatus(NamedTuple):
    """What is known of a call: whether the state contains it, whether a person was asked, and about which new rules.

    ``done`` tells whether its result came: whoever sends it again then makes it again.
    """

    told: bool = False
    asked: bool = False
    new_rules: str = ""
    done: bool = False


class _HookSession:
    """A session: what its log says, as far as later events depend on it, and the log while it is locked.

    Attributes:
        rules: the fingerprint of the rules that count; a person has yet to approve others.
        stopped: whether the agent was refused when it wanted to stop, and has called nothing since.
    """

    def __init__(self, guard: Guard, held: HeldLog) -> None:
        self.guard = guard
        self.held = held
        self.state: GuardState = guard.start()
        self.rules = ""
        self.stopped = False
        self._calls: dict[str, _CallStatus] = {}

    def add_row(self, row: Mapping[str, JSON], event: GuardEvent | None) -> None:
        """Add a line of the log."""
        told = row.get("told") is True
        decision = row.get("decision")
        action = decision.get("action") if isinstance(decision, Mapping) else None
        self.rules = str(row.get("rules", self.rules))
        if isinstance(event, Call) and event.id:
            self._calls[_identify_call(event)] = _CallStatus(told, action == "ask", str(row.get("new_rules", "")))
        elif isinstance(event, Result) and event.id:
            key = _identify_call(event)
            self._calls[key] = self._calls.get(key, _CallStatus())._replace(done=True)
        if isinstance(event, Call | Result):
            self.stopped = False
        elif event is None and action == "block":
            self.stopped = True
        if told and event is not None:
            self.state = self.state.after(event).without_history()

    def append_row(self, event: GuardEvent | None, row: Mapping[str, JSON]) -> None:
        """Write a line to the log; only then it counts."""
        self.held.append(row)
        self.add_row(row, event)

    def record_event(self, event: GuardEvent, *, rules: str = "") -> None:
        """Record an event that happened, whether the rules allow it or not; with ``rules`` if these were approved."""
        self.append_row(event, {**build_row(event), **({"rules": rules} if rules else {})})

    def find_call(self, call: Call) -> _CallStatus:
        """Return what is known of a call: one with the same id, tool and arguments."""
        return self._calls.get(_identify_call(call), _CallStatus()) if call.id else _CallStatus()


def _identify_call(call: Call | Result) -> str:
    """An id alone does not tell which call it is: another one with the id of an allowed call must be judged."""
    text = json.dumps([call.id, call.tool, as_row(call)["arguments"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def load_guard(path: Path, guarantee: Guarantee) -> Guard:
    """Make the guard for a file of rules.

    Raises:
        NotationError: the rules cannot be read.
    """
    return Guard(GuardRules.from_file(path), guarantee=guarantee)


def _open_session(held: HeldLog, guard: Guard) -> _HookSession:
    """Return the session of a log.

    Raises:
        RecordError: the log was changed or removed, or cannot be read.
    """
    reading = held.read()
    problem = str(reading.faults[0]) if reading.faults else ""
    session = _HookSession(guard, held)
    session.rules = reading.rules or guard.fingerprint
    if len(reading.entries) < 2 and not problem:
        problem = _list_session(held, is_new=not reading.entries)
    if problem:
        raise RecordError(
            f"the record of this session was changed ({problem}); keep it as evidence, and begin a new session"
        )
    for entry in reading.entries[1:]:
        session.add_row(entry.row, read_event(entry))
    return session


def _list_session(held: HeldLog, *, is_new: bool) -> str:
    """Begin the log of a session that is not in the list of sessions, and list it; return what is wrong with it."""
    path = held.path
    with AuditLog(path.with_name("sessions.log")).held() as sessions:
        reading = sessions.read()
        if reading.faults:
            return f"{sessions.path.name}: {reading.faults[0]}"
        listed = any(entry.row.get("session") == path.stem for entry in reading.entries)
        if listed and is_new:
            return f"{path.name} was removed"
        if is_new:
            held.append()  # before the session is listed: what is listed exists
        if not listed:
            sessions.append({"session": path.stem})
    return ""


def _handle_call(session: _HookSession, row: Input) -> HookAnswer:
    call = _read_call(row)
    known = session.find_call(call)
    if known.told and not known.done:
        return HookAnswer()  # the same hook was called again
    decision = session.state.check(call)
    new_rules = session.guard.fingerprint if session.rules != session.guard.fingerprint else ""
    if new_rules and decision.action != "block":
        decision = replace(decision, action="ask", reason=f"{_CHANGED} {decision.reason}".strip())
    line = build_row(call, decision, told=decision.runs)
    session.append_row(call, {**line, "new_rules": new_rules} if new_rules else line)
    return answer_call(decision)


def _handle_result(session: _HookSession, row: Input) -> HookAnswer:
    call = _read_call(row)
    known = session.find_call(call) if call.id else _CallStatus(told=True)
    if not known.told:
        # It ran, so it counts: a person approved it, or the guard was not consulted.
        approved = replace(call, approved=known.asked)
        session.record_event(approved, rules=known.new_rules if known.new_rules == session.guard.fingerprint else "")
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
    again = row.get("stop_hook_active") is True and session.stopped
    session.append_row(None, build_row(None, decision, told=False))
    if decision.action == "block":
        if again:  # it was refused before, and did nothing: it would never end
            return show_message(f"the agent stopped although the rules are not kept. {decision.message}")
        return refuse_stop(decision.message)
    if decision.action in ("ask", "warn"):
        return show_message(decision.message)
    return HookAnswer()


def _read_call(row: Input) -> Call:
    tool = get_text(row, "tool_name")
    value = row.get("tool_input")
    arguments: Mapping[str, JSON] = value if isinstance(value, Mapping) else {} if value is None else {"value": value}
    try:
        arguments = add_effects(tool, arguments, get_text(row, "cwd"))
    except ValueError as error:
        raise InvalidHookInput(f"cwd or a path of the call has a character that no path can have ({error})") from None
    return Call(tool, arguments, get_text(row, "tool_use_id"), at=datetime.now(UTC))


_HANDLERS: Mapping[str, Callable[[_HookSession, Input], HookAnswer]] = {
    "PreToolUse": _handle_call,
    "PostToolUse": _handle_result,
    "PostToolUseFailure": _handle_result,
    "UserPromptSubmit": _handle_prompt,
    "Stop": _handle_stop,
}


# -- the process ------------------------------------------------------------------------------------------------------


class _HookParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidHookInput(f"--hook: {message}")


def answer_hook(arguments: Sequence[str], folders: tuple[str, str], data: bytes) -> HookAnswer:
    """Answer an event as a hook that was called with arguments.

    Args:
        arguments: the arguments behind ``formal-llm guard``.
        folders: the working directory of the hook, and the default folder of the sessions.
        data: its standard input.
    """
    parser = _HookParser(prog="formal-llm guard", add_help=False, allow_abbrev=False)
    parser.add_argument("--hook", action="store_true")
    parser.add_argument("rules")
    parser.add_argument("--state")
    parser.add_argument("--guarantee", choices=("some", "whatever"), default="some")
    try:
        given = parser.parse_args(arguments)
        here, state = folders
        rules = Path(here, given.rules)
        return answer_event(
            data,
            lambda: load_guard(rules, given.guarantee),
            Path(here, given.state or state),
            rules=rules,
        )
    except (InvalidHookInput, FormalLLMError) as error:
        return HookAnswer(err=f"formal-llm guard: {error}", code=DENIED)
    except Exception as error:  # whatever goes wrong in a guard must not let a call through
        return HookAnswer(err=f"formal-llm guard: {type(error).__name__}: {error}", code=DENIED)
