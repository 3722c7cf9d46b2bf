"""Verification of traces: where a trace breaks which rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from formal_llm.guard.events import Action, Call, Decision, GuardEvent, Result, Said
from formal_llm.guard.guard import Guard
from formal_llm.guard.traces import Trace
from formal_llm.planning.json_data import JSON

_SHOWN = 100
#: The time of the events in a trace without any times.
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Violation:
    """A place where a trace breaks rules.

    Attributes:
        rule: the rule; the first one if several are broken together.
        rules: all of them.
        action: what the guard would have done.
        place: where it is recorded; ``"the end"`` for what is missing there.
        event: a readable description of the event.
        reason: why it breaks the rules.
        way: the shortest way on from there, if one is known.
    """

    rule: str
    rules: tuple[str, ...]
    action: Action
    place: str
    event: str
    reason: str
    way: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, JSON]:
        """Convert it to data for JSON."""
        return {
            "rule": self.rule, "rules": list(self.rules), "action": self.action, "place": self.place,
            "event": self.event, "reason": self.reason, "way": list(self.way),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class TraceReport:
    """The report on a trace.

    Attributes:
        violations: where it breaks rules, in order.
        notes: what could not be judged.
    """

    trace: Trace
    violations: tuple[Violation, ...]
    notes: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether nothing in it would have been refused; violations that are only warned of or logged do not count."""
        return not any(one.action in ("block", "ask") for one in self.violations)

    def __str__(self) -> str:
        heading = f"{self.trace.name}: " + ("it keeps the rules" if self.valid else "it breaks rules")
        lines = [heading]
        for one in self.violations:
            lines.append(f"  {one.place}, {one.rule} ({one.action}): {one.event}")
            lines.append(f"    {one.reason}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, JSON]:
        """Convert it to data for JSON."""
        return {
            "trace": self.trace.name, "valid": self.valid, "violations": [one.to_dict() for one in self.violations],
            "notes": list(self.notes), "facts": dict(self.trace.facts),
        }  # fmt: skip


def verify_trace(guard: Guard, trace: Trace) -> TraceReport:
    """Find the violations of a guard's rules in a trace.

    A call that breaks a rule has happened nevertheless, and later events are judged from there: a broken rule keeps its
    state. Only the logs of a guard record that a person approved a call; in other traces a call that requires approval
    is a violation with the severity ``ask``.

    Args:
        guard: the guard.
        trace: the trace.
    """
    events = _fill_times(guard, trace.events)
    state = guard.start()
    violations: list[Violation] = []
    for event, place in zip(events, trace.places, strict=True):
        if isinstance(event, Call):
            decision = state.check(event)
            if decision.action != "allow":
                violations.append(_build_violation(decision, place, describe_event(event)))
        else:
            for one in state.find_broken_rules(event):
                reason = f"it breaks the rule {one.rules[0]}" + (f" ({one.said})" if one.said else "")
                violations.append(
                    Violation(one.rules[0], one.rules, one.severity, place, describe_event(event), reason)
                )
        lost = state.lost_rules
        state = state.after(event)
        if not isinstance(event, Call):
            for name in state.lost_rules:
                if name not in lost:
                    reason = f"after it the rule {name} could not be kept any more"
                    violations.append(Violation(name, (name,), "block", place, describe_event(event), reason))
    end = state.may_stop()
    if end.action != "allow":
        violations.append(_build_violation(end, "the end", "the trace ends"))
    return TraceReport(trace, tuple(violations), (*trace.notes, *_note_missing_times(guard, trace)))


def _build_violation(decision: Decision, place: str, event: str) -> Violation:
    rules = decision.rules or (decision.rule,)
    return Violation(decision.rule, rules, decision.action, place, event, decision.reason, decision.way)


def count_by_rule(reports: Iterable[TraceReport]) -> dict[str, tuple[int, int]]:
    """Count for each rule how often it is broken, and in how many traces; the most frequent first."""
    violations: Counter[str] = Counter()
    traces: Counter[str] = Counter()
    for report in reports:
        violations.update(one.rule for one in report.violations)
        traces.update({one.rule for one in report.violations})
    return {name: (count, traces[name]) for name, count in violations.most_common()}


def describe_event(event: GuardEvent) -> str:
    """Describe an event in one readable line."""
    if isinstance(event, Said):
        text = f"{event.role}: {event.text}"
    else:
        arguments = ", ".join(f"{name}={value!r}" for name, value in event.arguments.items())
        text = f"{event.tool}({arguments})" + (f" returned {event.value!r}" if isinstance(event, Result) else "")
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _fill_times(guard: Guard, events: Sequence[GuardEvent]) -> list[GuardEvent]:
    """Give each event a time, its own or that of the previous event, so that results are reproducible."""
    if not guard.rules.needs_time:
        return list(events)
    now = next((event.at for event in events if event.at is not None), _NO_TIME)
    timed: list[GuardEvent] = []
    for event in events:
        now = event.at or now
        timed.append(event if event.at is not None else replace(event, at=now))
    return timed


def _note_missing_times(guard: Guard, trace: Trace) -> tuple[str, ...]:
    if guard.rules.needs_time and not all(event.at is not None for event in trace.events):
        return ("some events have no time: rules about time count them at the time of the event before",)
    return ()
