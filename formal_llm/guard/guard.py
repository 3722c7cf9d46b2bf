"""The guard: it decides which tool calls may be made now so that the rules can still be kept.

A guard supervises an existing agent. It is consulted before each call, and notified of what happened. It looks ahead:
a call after which the rules cannot be kept any more is not allowed, however harmless it looks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from formal_llm.authored.tables import AlternativeShape, Items, Keys, NamedEntries, Shape, problems
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.control.component import Position
from formal_llm.control.supervisor import describe_way
from formal_llm.errors import RecordError
from formal_llm.guard.core import GuardCore
from formal_llm.guard.events import ALLOW, Action, Call, Decision, GuardEvent, Said, as_row, from_row
from formal_llm.guard.position import Movement, select_letters
from formal_llm.guard.rules.data import read_value, to_moment, write_value
from formal_llm.guard.rules.labels import EventLabels, Fields, LetterHistory
from formal_llm.guard.rules.possible_events import ANY_TOOL
from formal_llm.guard.rules.rule_set import Severity
from formal_llm.planning.json_data import JSON

_FORMAT = "formal-llm guard 1"
E = TypeVar("E", bound=GuardEvent)
_ORDER: tuple[Action, ...] = ("block", "ask", "warn", "log", "allow")


def _sort_by_severity(trouble: Iterable[Objection]) -> tuple[Objection, ...]:
    return tuple(sorted(trouble, key=lambda one: (_ORDER.index(one.severity), not one.certain)))


class GuardState:
    """The state of a run, an immutable value. ``guard.start()`` creates it; :meth:`after` returns the next one.

    Attributes:
        guard: the guard.
        position: the position in the rules.
        lost: the numbers of the rules that past events have broken for good, and that are ignored since then.
    """

    __slots__ = ("_asked", "_past", "_seen", "guard", "lost", "position")

    def __init__(
        self,
        guard: GuardCore,
        position: Position,
        seen: LetterHistory,
        past: tuple[GuardEvent, ...],
        lost: frozenset[int],
    ) -> None:
        self.guard = guard
        self.position = position
        self.lost = lost
        self._seen = seen
        self._past = past
        #: The last event that was checked, with the results: most checked events happen immediately afterwards.
        self._asked: tuple[GuardEvent, EventLabels, Movement, tuple[Objection, ...]] | None = None

    # -- decisions ----------------------------------------------------------------------------------------------

    def check_said(self, text: Said) -> Decision:
        """Decide about a text that the assistant wants to write."""
        return self._decide_event(text)

    def check(self, call: Call) -> Decision:
        """Decide about a call before it is made; if it is made, record it with :meth:`after`."""
        return self._decide_event(call)

    def _decide_event(self, call: Call | Said) -> Decision:
        call = self.timed(call)
        labels = self.guard.rules.labeller.label_event(call, self._seen)
        trouble = self._find_objections(call, labels, labels.letters)
        if labels.unsure and not (trouble and trouble[0].certain and trouble[0].severity == "block"):
            # An argument is missing, so it is unknown which letters the event has: all that it may have count.
            doubtful = (
                one for one in self._judge_event(call, select_letters(labels, unsure=True))[1] if one not in trouble
            )
            trouble = _sort_by_severity([*trouble, *(replace(one, notes=labels.notes) for one in doubtful)])
        relevant = [one for one in trouble if not (isinstance(call, Call) and call.approved and one.severity == "ask")]
        sure = [one for one in relevant if one.certain]
        decision = decide_refusal(self.guard, self.position, self.lost, call, sure) if sure else ALLOW
        unknown = [one for one in relevant if not one.certain and one.severity in ("block", "ask")]
        return decide_unknown(self.guard, self.position, self.lost, call, unknown, decision) if unknown else decision

    def check_all(self, calls: Iterable[Call]) -> tuple[Decision, ...]:
        """Decide about the calls of one turn, each as if the allowed calls before it had been made."""
        state, decisions = self, []
        for call in calls:
            call = state.timed(call)
            decision = state.check(call)
            decisions.append(decision)
            if decision.runs:
                state = state.after(call)
        return tuple(decisions)

    def allowed_tools(self) -> tuple[str, ...]:
        """Return those of the guard's tools for which some call is allowed, or may be allowed by a person."""
        return self.guard.find_allowed_tools(self.position, self.lost) if self.guard.tools else ()

    def allows_tool(self, tool: str) -> bool:
        """Return whether some call of a tool is allowed, or may be allowed by a person."""
        known = tool in self.guard.plant.tools or self.guard.rules.labeller.find_patterns("call", tool)
        return (tool if known else ANY_TOOL) not in self.guard.find_closed_tools(self.position, self.lost)

    def may_stop(self, *, final: bool = True) -> Decision:
        """Decide whether the run may end here.

        Args:
            final: whether no event follows. Otherwise the agent hands over to the user, which is also allowed if
                the next event on the shortest way is a text of the user.
        """
        return decide_stop(self.guard, self.position, self.lost, final=final)

    # -- events -------------------------------------------------------------------------------------------------

    def after(self, event: GuardEvent) -> GuardState:
        """Return the state after an event that has happened, whether it was allowed or not.

        A rule that the event breaks keeps its state. If rules cannot be kept together any more after the event, the
        mildest of them, the last in the file first, are ignored from now on (:attr:`lost_rules`).
        """
        event = self.timed(event)
        if self._asked is not None and self._asked[0] == event:
            _, labels, movement, objections = self._asked
        else:
            labels = self.guard.rules.labeller.label_event(event, self._seen)
            movement, objections = self._judge_event(event, labels.letters)
        labeller = self.guard.rules.labeller
        letter_history = self._seen.with_event(labels, labeller.asked, labeller.until) if labeller.asked else self._seen
        lost = self._find_lost_rules(movement.position) if objections else self.lost
        return GuardState(self.guard, movement.position, letter_history, (*self._past, event), lost)

    @property
    def history(self) -> tuple[GuardEvent, ...]:
        """The events so far; after a snapshot was resumed, those since then."""
        return self._past

    def without_history(self) -> GuardState:
        """Return the state without its events; its decisions are the same, and it needs less memory."""
        return GuardState(self.guard, self.position, self._seen, (), self.lost)

    @property
    def lost_rules(self) -> tuple[str, ...]:
        """The names of the rules that can no longer be kept, whatever happens."""
        parts = self.guard.rules.parts
        return tuple(dict.fromkeys(parts[place].rule.name for place in sorted(self.lost)))

    def __len__(self) -> int:
        return len(self._past)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<GuardState after {len(self)} events>"

    def snapshot(self) -> dict[str, JSON]:
        """Return the state as plain data for JSON, with a fingerprint of the rules.

        Its size depends on what the rules remember and not on the number of events. Only rules in another notation,
        whose states are no plain data, need all events.
        """
        try:
            rows: list[dict[str, JSON]] = [{"state": self._write_state()}]
        except TypeError:
            rows = [as_row(event) for event in self.history]
        return {"format": _FORMAT, "fingerprint": self.guard.fingerprint, "events": rows}

    def _write_state(self) -> dict[str, JSON]:
        """Convert the state to plain data; raises a TypeError where a rule has a state that is none."""
        seen = {name: list(occurrences.items()) for name, occurrences in self._seen.occurrences.items()}
        position = self.guard.positions.write_position(self.position)
        return {"position": position, "seen": write_value(seen), "lost": sorted(self.lost)}

    def _read_state(self, data: Mapping[str, Any]) -> GuardState:
        seen: Any = read_value(data["seen"])
        occurrences = {name: FrozenDict({tuple(key): one for key, one in items}) for name, items in seen.items()}
        letter_history = LetterHistory(FrozenDict(occurrences), self.guard.rules.labeller.asked)
        position = self.guard.positions.read_position(data["position"])
        return GuardState(self.guard, position, letter_history, (), frozenset(data["lost"]))

    def replayed(self, rows: Sequence[Mapping[str, JSON]]) -> GuardState:
        """Return the state after the events of a snapshot.

        Raises:
            RecordError: an event is damaged.
        """
        state = self
        for place, row in enumerate(rows, 1):
            try:
                if "state" in row:
                    state = self._read_state(cast("Mapping[str, Any]", row["state"]))
                    continue
                event = from_row(row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise RecordError(f"the snapshot is damaged: event {place} cannot be read ({error})") from error
            state = state.after(event)
        return state

    # -- details ------------------------------------------------------------------------------------------------

    def timed(self, event: E) -> E:
        """Return an event with its time if the rules depend on it, so that records contain it too."""
        if not self.guard.rules.needs_time:
            return event
        return replace(event, at=to_moment(event.at or self.guard.clock()))

    def find_broken_rules(self, event: GuardEvent) -> tuple[Objection, ...]:
        """Find the rules that an event breaks which nobody can refuse, such as a result."""
        event = self.timed(event)
        labels = self.guard.rules.labeller.label_event(event, self._seen)
        return tuple(one for one in self._find_objections(event, labels, labels.letters) if not one.ahead)

    def _find_objections(
        self, call: GuardEvent, labels: EventLabels, letters: Mapping[str, Fields]
    ) -> tuple[Objection, ...]:
        movement, objections = self._judge_event(call, letters)
        self._asked = (call, labels, movement, objections)
        return objections

    def _judge_event(self, event: GuardEvent, letters: Mapping[str, Fields]) -> tuple[Movement, tuple[Objection, ...]]:
        """Return where an event leads and the objections."""
        guard = self.guard
        movement = guard.positions.apply_event(self.position, event, letters)
        objections: list[Objection] = []
        parts = guard.rules.parts
        direct = [one for one in movement.refused if one.timed or one.place not in self.lost]
        for one in direct:
            rule = (guard.rules.timed if one.timed else parts)[one.place].rule
            # What comes too late is better than nothing: a person may let it through.
            severity = "ask" if one.late and rule.severity == "block" else rule.severity
            objections.append(Objection(severity, (rule.name,), one.said))
        for severity, supervisor in guard.list_supervisors(self.lost):
            searches = supervisor.select_searches(letters, "" if isinstance(event, Said) else event.tool)
            viable = supervisor.is_viable(movement.position, searches) if searches else True
            if viable is False:
                conflict = supervisor.find_minimal_conflict(movement.position)
                names = tuple(dict.fromkeys(parts[place].rule.name for place in conflict))
                objections.append(Objection(severity, names, ahead=True))
                break
            if viable is None:
                undecided = supervisor.find_undecided_rules(movement.position, searches)
                names = tuple(dict.fromkeys(parts[place].rule.name for place in undecided))
                objections.append(Objection(severity, names, ahead=True, certain=False))
        return movement, _sort_by_severity(objections)

    def _find_lost_rules(self, position: Position) -> frozenset[int]:
        """Find the rules that have to be ignored so that the others can be kept."""
        lost = self.lost
        tiers = self.guard.list_supervisors(lost)
        for severity, _ in tiers:
            while True:
                supervisor = dict(self.guard.list_supervisors(lost))[severity]
                if supervisor.is_viable(position) is not False:
                    break
                conflict = supervisor.find_minimal_conflict(position) or tuple(supervisor.numbers)
                parts = self.guard.rules.parts
                worst = max(conflict, key=lambda place: (_ORDER.index(parts[place].rule.severity), place))
                lost |= {worst}
        return lost


class Guard(GuardCore):
    """A guard, which decides about tool calls.

    Args:
        rules: the rules.
        tools: the names of the agent's tools. If they are specified, no continuation uses any other tool.
        guarantee: ``"some"``: after each allowed call, some continuation keeps the rules (nonblocking supervision).
            ``"whatever"``: the agent can act so that there always is one, whatever tools return and users write
            (controllable and nonblocking supervision, Ramadge and Wonham 1987).
        unsure: what happens to a call if the search hits its bound, so that it is not known whether the rules can be
            kept after it: ``"allow"``, ``"ask"`` or ``"block"``; by default what the file of rules says
            (``%unsure``), or else ``"ask"``. The decision has ``certain=False``.
        clock: returns the time for events without one; a time without a zone is in UTC.
        max_states: the maximum number of nodes that one look ahead may visit before the answer is "unknown".
    """

    def start(self) -> GuardState:
        """Return the state at the beginning of a run."""
        return GuardState(self, self.positions.start, LetterHistory(), (), frozenset())

    def resume(self, snapshot: Mapping[str, JSON] | str) -> GuardState:
        """Restore the state from a snapshot.

        Raises:
            RecordError: it is damaged, or was taken under other rules, other tools or another guarantee.
        """
        try:
            data: Any = json.loads(snapshot) if isinstance(snapshot, str) else snapshot
        except ValueError as error:
            raise RecordError(f"the snapshot is damaged: {error}") from error
        known: dict[str, Shape] = {
            "format": AlternativeShape(texts=(_FORMAT,)), "fingerprint": str, "events": Items(NamedEntries(object)),
        }  # fmt: skip
        for found in problems(data, Keys(known, needed=tuple(known))):
            raise RecordError(f"the snapshot is damaged: {found.problem}")
        if data["fingerprint"] != self.fingerprint:
            raise RecordError("the snapshot was taken under other rules, tools or another guarantee")
        return self.start().replayed(data["events"])


@dataclass(frozen=True, slots=True)
class Objection:
    """An objection of rules to an event.

    Attributes:
        severity: the severity of the mildest of the rules.
        rules: their names.
        said: an additional explanation.
        ahead: whether the event breaks none of them directly, but they cannot be kept together after it.
        notes: what could not be determined about the event.
        certain: False if the search hit its bound, so that they might be kept.
    """

    severity: Severity
    rules: tuple[str, ...]
    said: str = ""
    ahead: bool = False
    notes: tuple[str, ...] = ()
    certain: bool = True


def decide_refusal(
    core: GuardCore, position: Position, lost: frozenset[int], call: Call | Said, trouble: Sequence[Objection]
) -> Decision:
    """Build the decision about a call or text to which rules object, the strictest objection first."""
    first = trouble[0]
    action = first.severity
    stops = action in ("block", "ask")
    notes = "; ".join(dict.fromkeys(note for one in trouble for note in one.notes))
    reason = f"{_describe_action(call, action)}: {_explain_objection(core, first)}." + (f" ({notes}.)" if notes else "")
    rules = tuple(dict.fromkeys(name for one in trouble if one.severity == action for name in one.rules))
    allowed = core.find_allowed_tools(position, lost, call.at) if stops else ()
    way = _find_way(core, position, lost) if stops else ()
    return Decision(action, first.rules[0], reason, allowed, way, rules, refused=_get_tool(call))


def decide_unknown(
    core: GuardCore,
    position: Position,
    lost: frozenset[int],
    call: Call | Said,
    trouble: Sequence[Objection],
    decision: Decision,
) -> Decision:
    """Build the decision about a call or text after which it is not known whether rules can be kept.

    Args:
        core: the guard.
        position: the position before the call.
        lost: the rules to ignore.
        call: the call or text.
        trouble: the objections of these rules, the strictest first.
        decision: the decision if they can be kept.
    """
    if decision.action == "block":
        return decision
    action: Action = max(core.unsure, trouble[0].severity, key=_ORDER.index)
    if action == "ask" and isinstance(call, Call) and call.approved:
        action = "allow"
    names = tuple(dict.fromkeys(name for one in trouble for name in one.rules))
    reason = (
        f"{_describe_action(call, action)}: it is not known whether these rules could be kept after it: "
        f"{'; '.join(_describe_rule(core, name) for name in names)}. (The guard's author can state the least amounts, "
        f"raise max_states, now {core.max_states}, or write these rules in a simpler way; formal-llm check tells more.)"
    )
    if _ORDER.index(action) >= _ORDER.index(decision.action):
        return replace(decision, reason=decision.reason or reason, certain=False)
    allowed = core.find_allowed_tools(position, lost)
    return Decision(action, names[0], reason, allowed, _find_way(core, position, lost), names, False, _get_tool(call))


def _get_tool(call: Call | Said) -> str:
    return call.tool if isinstance(call, Call) else ""


def _describe_action(call: Call | Said, action: Action) -> str:
    subject, verb = (call.tool, "called") if isinstance(call, Call) else ("An answer", "given")
    actions = {"block": f"cannot be {verb} now", "ask": "needs the approval of a person", "allow": "is allowed"}
    return f"{subject} {actions.get(action, 'breaks a rule')}"


def _explain_objection(core: GuardCore, trouble: Objection) -> str:
    descriptions = [_describe_rule(core, name) for name in trouble.rules]
    if trouble.ahead and len(descriptions) > 1:
        return f"after it these rules could not be kept any more: {'; '.join(descriptions)}"
    if trouble.ahead:
        return f"after it this rule could not be kept any more: {descriptions[0]}"
    return descriptions[0] + (f" ({trouble.said})" if trouble.said else "")


def _describe_rule(core: GuardCore, name: str) -> str:
    rule = next(rule for rule in core.rules.rule_set.rules if rule.name == name)
    return rule.says.rstrip(".") or (f"{name} ({rule.body})" if str(rule.body) != name else name)


def _find_way(core: GuardCore, position: Position, lost: frozenset[int]) -> tuple[str, ...]:
    """Return the shortest continuation that keeps all rules that can stop a call."""
    strict = [supervisor for severity, supervisor in core.list_supervisors(lost) if severity in ("block", "ask")]
    way = strict[-1].find_way(position) if strict else None
    return describe_way(way or (), core.describe_letter)


def decide_stop(core: GuardCore, position: Position, lost: frozenset[int], *, final: bool) -> Decision:
    """Decide whether a run may end."""
    for severity, supervisor in core.list_supervisors(lost):
        unmet = supervisor.find_unmet_rules(position)
        if not unmet:
            continue
        stops = severity in ("block", "ask")
        way = supervisor.find_way(position) if stops else None
        if not final and way and way[0].kind == "user":
            return ALLOW
        names = tuple(dict.fromkeys(core.rules.parts[place].rule.name for place in unmet))
        reason = f"The run cannot end yet: {'; '.join(_describe_rule(core, name) for name in names)}."
        allowed = core.find_allowed_tools(position, lost) if stops else ()
        return Decision(severity, names[0], reason, allowed, describe_way(way or (), core.describe_letter), names)
    return ALLOW
