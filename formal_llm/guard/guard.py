"""The guard: which tool calls may be made now, so that the rules can still be kept.

A guard stands above an agent that exists already. It is asked before each call, and told what happened. It looks ahead:
a call after which the rules cannot be kept any more is not allowed, however harmless it looks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from formal_llm.control.component import Position
from formal_llm.control.supervisor import describe_way
from formal_llm.errors import SnapshotError
from formal_llm.guard.core import GuardCore
from formal_llm.guard.events import ALLOW, UNSURE, Call, Decision, GuardEvent, Said, as_row, from_row
from formal_llm.guard.position import Movement, select_letters
from formal_llm.guard.rules.labels import EventLabels, Fields, LetterHistory
from formal_llm.guard.rules.rule_set import Severity
from formal_llm.planning.json_data import JSON

FORMAT = "formal-llm guard 1"
E = TypeVar("E", bound=GuardEvent)
_ORDER = ("block", "ask", "warn", "log")


def _sort_by_severity(trouble: Iterable[Objection]) -> tuple[Objection, ...]:
    return tuple(sorted(trouble, key=lambda one: _ORDER.index(one.severity)))


class _EventHistory:
    """What happened, the last event first; each shares all but its event with the one before."""

    __slots__ = ("before", "event", "length")

    def __init__(self, before: _EventHistory | None, event: GuardEvent) -> None:
        self.before = before
        self.event = event
        self.length: int = 1 if before is None else before.length + 1


class GuardState:
    """Where a run stands. Made by ``guard.start()``; :meth:`after` gives another one.

    Attributes:
        guard: the guard.
        position: where the rules stand.
        lost: the numbers of rules that what happened has broken for good, and that are left out since.
    """

    __slots__ = ("_asked", "_seen", "_told", "guard", "lost", "position")

    def __init__(
        self,
        guard: GuardCore,
        position: Position,
        seen: LetterHistory,
        past: _EventHistory | None,
        lost: frozenset[int],
    ) -> None:
        self.guard = guard
        self.position = position
        self.lost = lost
        self._seen = seen
        self._told = past
        #: What was asked last, with what was found out: what is asked is mostly told right after.
        self._asked: tuple[GuardEvent, EventLabels, Movement, tuple[Objection, ...]] | None = None

    # -- what may come ------------------------------------------------------------------------------------------

    def check_said(self, text: Said) -> Decision:
        """What is to happen with a text that the assistant wants to write."""
        return self._decide_event(text)

    def check(self, call: Call) -> Decision:
        """What is to happen with a call. It is not made yet, and is told with :meth:`after` where it is."""
        return self._decide_event(call)

    def _decide_event(self, call: Call | Said) -> Decision:
        call = self.timed(call)
        labels = self.guard.rules.labeller.label_event(call, self._seen)
        trouble = self._find_objections(call, labels, labels.letters)
        if labels.unsure and not (trouble and trouble[0].severity == "block"):
            # An argument is missing, so it cannot be told which rules it is about: then those on both sides count.
            also = (
                one for one in self._judge_event(call, select_letters(labels, unsure=True))[1] if one not in trouble
            )
            trouble = _sort_by_severity([*trouble, *(replace(one, notes=labels.notes) for one in also)])
        found = [one for one in trouble if not (isinstance(call, Call) and call.approved and one.severity == "ask")]
        strict = [one for one in found if one.rules]
        if not strict:
            return UNSURE if any(one.severity in ("block", "ask") for one in found) else ALLOW
        return decide_refusal(self.guard, self.position, self.lost, call, strict)

    def check_all(self, calls: Iterable[Call]) -> tuple[Decision, ...]:
        """What is to happen with the calls of one turn, each as if those before it that may run had been made."""
        state, found = self, []
        for call in calls:
            call = state.timed(call)
            decision = state.check(call)
            found.append(decision)
            if decision.runs:
                state = state.after(call)
        return tuple(found)

    def allowed_tools(self) -> tuple[str, ...]:
        """Of the tools told to the guard those for which some call is allowed, or a person may allow it."""
        return self.guard.find_allowed_tools(self.position, self.lost) if self.guard.tools else ()

    def allows_tool(self, tool: str) -> bool:
        """Whether some call of a tool is allowed, or a person may allow it."""
        return tool not in self.guard.find_closed_tools(self.position, self.lost)

    def may_stop(self, *, final: bool = True) -> Decision:
        """Whether the run may end here.

        Args:
            final: whether nothing comes any more. Else the agent hands over to the user, which it may do too where
                the next thing on the shortest way is said by the user.
        """
        return decide_stop(self.guard, self.position, self.lost, final=final)

    # -- what happened ------------------------------------------------------------------------------------------

    def after(self, event: GuardEvent) -> GuardState:
        """The state after an event that has happened, whether it was allowed or not.

        A rule that the event breaks stays where it was. Where rules cannot be kept together any more after it, the
        mildest of them, the last written first, are left out from here on (:attr:`lost_rules`).
        """
        event = self.timed(event)
        if self._asked is not None and self._asked[0] == event:
            _, labels, moved, trouble = self._asked
        else:
            labels = self.guard.rules.labeller.label_event(event, self._seen)
            moved, trouble = self._judge_event(event, labels.letters)
        seen = (
            self._seen.with_event(labels, self.guard.rules.labeller.asked)
            if self.guard.rules.labeller.asked
            else self._seen
        )
        lost = self._find_lost_rules(moved.position) if trouble else self.lost
        return GuardState(self.guard, moved.position, seen, _EventHistory(self._told, event), lost)

    @property
    def history(self) -> tuple[GuardEvent, ...]:
        """What happened so far."""
        found = []
        told = self._told
        while told is not None:
            found.append(told.event)
            told = told.before
        return tuple(reversed(found))

    @property
    def lost_rules(self) -> tuple[str, ...]:
        """The rules that can no longer be kept, whatever comes."""
        parts = self.guard.rules.parts
        return tuple(dict.fromkeys(parts[place].rule.name for place in sorted(self.lost)))

    def __len__(self) -> int:
        return 0 if self._told is None else self._told.length

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<GuardState after {len(self)} events>"

    def snapshot(self) -> dict[str, JSON]:
        """The state as plain data for JSON: what happened, and which rules it was under."""
        return {
            "format": FORMAT,
            "fingerprint": self.guard.fingerprint,
            "events": [as_row(event) for event in self.history],
        }

    def replayed(self, rows: Sequence[Mapping[str, JSON]]) -> GuardState:
        """The state after the events of a snapshot.

        Raises:
            SnapshotError: one of them is damaged.
        """
        state = self
        for place, row in enumerate(rows, 1):
            try:
                event = from_row(row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise SnapshotError(f"the snapshot is damaged: event {place} cannot be read ({error})") from error
            state = state.after(event)
        return state

    # -- how ----------------------------------------------------------------------------------------------------

    def timed(self, event: E) -> E:
        """An event with the time at which it came, where the rules look at it; so a record has it too."""
        if event.at is not None or not self.guard.rules.needs_time:
            return event
        return replace(event, at=self.guard.clock())

    def _find_objections(
        self, call: Call | Said, labels: EventLabels, letters: Mapping[str, Fields]
    ) -> tuple[Objection, ...]:
        moved, trouble = self._judge_event(call, letters)
        self._asked = (call, labels, moved, trouble)
        return trouble

    def _judge_event(self, event: GuardEvent, letters: Mapping[str, Fields]) -> tuple[Movement, tuple[Objection, ...]]:
        """Where an event leads, and which rules of which severity mind; of none, what is not known."""
        guard = self.guard
        moved = guard.positions.apply_event(self.position, event, letters)
        found: list[Objection] = []
        parts = guard.rules.parts
        direct = [one for one in moved.refused if one.timed or one.place not in self.lost]
        for one in direct:
            rule = (guard.rules.timed if one.timed else parts)[one.place].rule
            found.append(Objection(rule.severity, (rule.name,), one.said))
        for severity, supervisor in guard.list_supervisors(self.lost):
            looking = supervisor.select_searches(letters, "" if isinstance(event, Said) else event.tool)
            viable = supervisor.is_viable(moved.position, looking) if looking else True
            if viable is False:
                blamed = supervisor.find_minimal_conflict(moved.position)
                names = tuple(dict.fromkeys(parts[place].rule.name for place in blamed))
                found.append(Objection(severity, names, ahead=True))
                break
            if viable is None:
                found.append(Objection(severity, ()))
        return moved, _sort_by_severity(found)

    def _find_lost_rules(self, position: Position) -> frozenset[int]:
        """The rules that are to be left out, so that the others can be kept."""
        lost = self.lost
        tiers = self.guard.list_supervisors(lost)
        for severity, _ in tiers:
            while True:
                supervisor = dict(self.guard.list_supervisors(lost))[severity]
                if supervisor.is_viable(position) is not False:
                    break
                blamed = supervisor.find_minimal_conflict(position) or tuple(supervisor.numbers)
                parts = self.guard.rules.parts
                worst = max(blamed, key=lambda place: (_ORDER.index(parts[place].rule.severity), place))
                lost |= {worst}
        return lost


class Guard(GuardCore):
    """Decides about tool calls.

    Args:
        rules: the rules.
        tools: the names of the tools that the agent has. Where they are told, no way on goes over another one.
        guarantee: ``"some"``: after what is allowed, some continuation keeps the rules (nonblocking supervision).
            ``"whatever"``: the agent can go on so that there always is one, whatever tools return and users say
            (controllable and nonblocking supervision, Ramadge and Wonham 1987).
        clock: what says the time of an event that does not.
        max_states: how many places one look ahead may visit before the answer is that it is not known.
    """

    def start(self) -> GuardState:
        """Where a run begins."""
        return GuardState(self, self.positions.start, LetterHistory(), None, frozenset())

    def resume(self, snapshot: Mapping[str, JSON] | str) -> GuardState:
        """The state that a snapshot was taken of.

        Raises:
            SnapshotError: it is damaged, or was taken under other rules, tools or another guarantee.
        """
        try:
            read = json.loads(snapshot) if isinstance(snapshot, str) else snapshot
        except ValueError as error:
            raise SnapshotError(f"the snapshot is damaged: {error}") from error
        if not isinstance(read, Mapping) or read.get("format") != FORMAT or not isinstance(read.get("events"), list):
            raise SnapshotError("the snapshot is damaged: it is none of a guard")
        if read.get("fingerprint") != self.fingerprint:
            raise SnapshotError("the snapshot was taken under other rules, tools or another guarantee")
        return self.start().replayed(cast("Sequence[Mapping[str, JSON]]", read["events"]))


@dataclass(frozen=True, slots=True)
class Objection:
    """Rules that mind an event.

    Attributes:
        severity: how strict the mildest of them is.
        rules: their names; empty where it is only not known whether they can be kept.
        said: what is to be said besides.
        ahead: whether none of them minds by itself, but together they cannot be kept after the event.
        notes: what could not be told of the event.
    """

    severity: Severity
    rules: tuple[str, ...]
    said: str = ""
    ahead: bool = False
    notes: tuple[str, ...] = ()


def decide_refusal(
    core: GuardCore, position: Position, lost: frozenset[int], call: Call | Said, trouble: Sequence[Objection]
) -> Decision:
    """The decision about a call that rules mind, the strictest of them first."""
    first = trouble[0]
    action = first.severity
    stops = action in ("block", "ask")
    notes = "; ".join(dict.fromkeys(note for one in trouble for note in one.notes))
    who = {"block": "cannot be called now", "ask": "needs the approval of a person"}.get(action, "breaks a rule")
    if isinstance(call, Said):
        who = {"block": "cannot be given now", "ask": "needs the approval of a person"}.get(action, "breaks a rule")
    what = call.tool if isinstance(call, Call) else "An answer"
    reason = f"{what} {who}: {_explain_objection(core, first)}." + (f" ({notes}.)" if notes else "")
    rules = tuple(dict.fromkeys(name for one in trouble if one.severity == action for name in one.rules))
    allowed = core.find_allowed_tools(position, lost) if stops else ()
    return Decision(action, first.rules[0], reason, allowed, _find_way(core, position, lost) if stops else (), rules)


def _explain_objection(core: GuardCore, trouble: Objection) -> str:
    said = [_describe_rule(core, name) for name in trouble.rules]
    if trouble.ahead and len(said) > 1:
        return f"after it these rules could not be kept any more: {'; '.join(said)}"
    if trouble.ahead:
        return f"after it this rule could not be kept any more: {said[0]}"
    return said[0] + (f" ({trouble.said})" if trouble.said else "")


def _describe_rule(core: GuardCore, name: str) -> str:
    rule = next(rule for rule in core.rules.rule_set.rules if rule.name == name)
    return rule.says.rstrip(".") or (f"{name} ({rule.body})" if str(rule.body) != name else name)


def _find_way(core: GuardCore, position: Position, lost: frozenset[int]) -> tuple[str, ...]:
    """The shortest way on that keeps all rules that stop a call."""
    strict = [supervisor for severity, supervisor in core.list_supervisors(lost) if severity in ("block", "ask")]
    found = strict[-1].find_way(position) if strict else None
    return describe_way(found or (), core.letter_texts)


def decide_stop(core: GuardCore, position: Position, lost: frozenset[int], *, final: bool) -> Decision:
    """The decision about ending a run."""
    for severity, supervisor in core.list_supervisors(lost):
        owing = supervisor.find_unmet_rules(position)
        if not owing:
            continue
        stops = severity in ("block", "ask")
        found = supervisor.find_way(position) if stops else None
        if not final and found and found[0].kind == "user":
            return ALLOW
        names = tuple(dict.fromkeys(core.rules.parts[place].rule.name for place in owing))
        reason = f"The run cannot end yet: {'; '.join(_describe_rule(core, name) for name in names)}."
        allowed = core.find_allowed_tools(position, lost) if stops else ()
        return Decision(severity, names[0], reason, allowed, describe_way(found or (), core.letter_texts), names)
    return ALLOW
