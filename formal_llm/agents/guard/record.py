"""What a guard was told and what it decided, as lines of its log; and the state that such lines lead to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from formal_llm.agents.guard.audit import AuditLog, Entry
from formal_llm.agents.guard.events import Decision, GuardEvent, as_row, from_row
from formal_llm.agents.guard.guard import Guard
from formal_llm.agents.guard.live import Audit, Noted
from formal_llm.agents.guard.states import GuardState
from formal_llm.errors import AuditError
from formal_llm.planning.json_data import JSON


def build_row(
    event: GuardEvent | None, decision: Decision | None = None, *, told: bool = True, approved: bool | None = None
) -> dict[str, JSON]:
    """A line of a log.

    Args:
        event: what happened or was wanted; None where the agent wanted to stop.
        decision: what was decided about it.
        told: whether the state took it.
        approved: what a person said of it.
    """
    row: dict[str, JSON] = {"event": None if event is None else as_row(event)}
    if decision is not None:
        row["decision"] = {"action": decision.action}
        if decision.rule:
            row["decision"] = {"action": decision.action, "rule": decision.rule, "reason": decision.reason}
    row["told"] = told
    if approved is not None:
        row["approved"] = approved
    return row


def make_audit(log: AuditLog) -> Audit:
    """What writes the record of a run into a log."""

    def append_line(noted: Noted) -> None:
        log.append(build_row(noted.event, noted.decision, told=noted.told, approved=noted.approved))

    return append_line


def read_event(entry: Entry) -> GuardEvent | None:
    """The event of a line; None for one that has none.

    Raises:
        AuditError: it cannot be read.
    """
    row = entry.row.get("event")
    if not isinstance(row, Mapping):
        return None
    try:
        return from_row(row)
    except (KeyError, TypeError, ValueError) as error:
        raise AuditError(f"the event of line {entry.line} cannot be read: {error!r}") from error


def list_recorded_events(entries: Iterable[Entry]) -> list[tuple[Entry, GuardEvent]]:
    """The events that the state took, each with its line."""
    found = [(entry, read_event(entry)) for entry in entries if entry.row.get("told") is True]
    return [(entry, event) for entry, event in found if event is not None]


def replay_entries(guard: Guard, entries: Iterable[Entry]) -> GuardState:
    """The state that a log leads to.

    Raises:
        AuditError: an event of it cannot be read.
    """
    state = guard.start()
    for _, event in list_recorded_events(entries):
        state = state.after(event)
    return state
