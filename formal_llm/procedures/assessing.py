"""Whether a need holds, what has to be done to find out, and why it does not hold.

A need *holds*, it is *refuted*, it is *open*, since a call or a value that is still to come decides it, or it is
*stuck*: no call that may be made decides it. Groups combine these as strong three-valued logic does (Kleene 1952):
nothing is done that cannot change the outcome any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from formal_llm.guard.rules.data import Undetermined, Value
from formal_llm.guard.rules.expressions import Expression, FieldPath, Scope
from formal_llm.planning.json_data import JSON
from formal_llm.procedures.procedure import (
    ConditionNeed,
    Fact,
    FactNeed,
    Hole,
    Need,
    NeedGroup,
    NotNeed,
    Procedure,
    ProcedureTool,
)
from formal_llm.procedures.record import Call, CallHistory, MadeCall, as_json, matches_arguments
from formal_llm.procedures.terms import CallScope, CallValue, list_names

State = Literal["holds", "refuted", "open", "stuck"]
#: The cost of asking the user for a value, in the unit of the tools' costs.
ASKING_COST = 1.0
_OPPOSITE: Mapping[State, State] = {"holds": "refuted", "refuted": "holds", "open": "open", "stuck": "stuck"}


@dataclass(frozen=True)
class NeedFinding:
    """What was found about a leaf of a need: an item of a reason.

    Attributes:
        leaf: the fact or the condition, as written.
        state: what was found.
        values: the values that it is about.
        calls: the calls that showed it.
        reason: why it could not be determined; empty if it was.
        absent: the value that the user does not have, if that is the reason.
    """

    leaf: str
    state: State
    values: Mapping[str, JSON] = field(default_factory=dict)
    calls: tuple[MadeCall, ...] = ()
    reason: str = ""
    absent: str = ""

    @property
    def is_decided(self) -> bool:
        """Whether it is known that it does not hold, or the user lacks what would show it."""
        return self.state == "refuted" or bool(self.absent)

    def to_data(self) -> dict[str, JSON]:
        """Return the finding as JSON data."""
        return {
            "leaf": self.leaf, "state": self.state, "values": dict(self.values),
            "calls": [made.to_data() for made in self.calls], "reason": self.reason,
        }  # fmt: skip

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        words = {"holds": "holds", "refuted": "does not hold", "open": "is open", "stuck": "cannot be established"}
        shown = "".join(f"; {made}" for made in self.calls)
        return f"{self.leaf}{f' [{values}]' if values else ''} {words[self.state]}{shown}" + (
            f" ({self.reason})" if self.reason else ""
        )


@dataclass(frozen=True)
class CallStep:
    """A call to make next; ``acts`` if it is an action."""

    call: Call
    acts: bool = False

    def __str__(self) -> str:
        return str(self.call)


@dataclass(frozen=True)
class ValueStep:
    """A value to obtain next from the user."""

    name: str

    def __str__(self) -> str:
        return f"ask for {self.name}"


@dataclass(frozen=True)
class WayStep:
    """Several ways that cost the same, one of which is to be chosen.

    Attributes:
        key: identifies the choice.
        ways: for each way what it establishes, and its first step.
    """

    key: str
    ways: tuple[tuple[str, Step], ...]

    def __str__(self) -> str:
        return " or ".join(text for text, _ in self.ways)


Step: TypeAlias = CallStep | ValueStep | WayStep


@dataclass(frozen=True)
class Assessment:
    """What is known about a need.

    Attributes:
        state: whether it holds.
        steps: what can be done next to decide it, the best first; empty unless it is open.
        cost: the least cost until it may hold.
        findings: what shows that it holds, is refuted or stuck.
    """

    state: State
    steps: tuple[Step, ...] = ()
    cost: float = 0
    findings: tuple[NeedFinding, ...] = ()


class AbsentValue(Undetermined):
    """A value that the user does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not known")
        self.name = name


class _Pending(Exception):
    """A value that is not there yet."""

    def __init__(self, step: CallStep | ValueStep) -> None:
        self.step = step


@dataclass(slots=True)
class NeedScope(CallScope):
    """The values that a condition refers to: those of its owner, constants, and what the user has provided."""

    assessor: Assessor | None = None
    owned: Mapping[str, Value] = field(default_factory=dict)

    def look_up(self, name: str) -> Value:
        """Look up a value."""
        assert self.assessor is not None
        return self.assessor.look_up(name, self.owned)


class Assessor:
    """Determines what is known about needs.

    Args:
        history: the calls made so far.
        known: the values that are known, by name.
        absent: the names of values that the user does not have.
        preferred: for choices between ways by their keys, the way chosen.
    """

    def __init__(
        self,
        procedure: Procedure,
        history: CallHistory,
        known: Mapping[str, JSON],
        absent: frozenset[str] = frozenset(),
        preferred: Mapping[str, int] | None = None,
    ) -> None:
        self.procedure = procedure
        self.history = history
        self.known = known
        self.absent = absent
        self.preferred = preferred or {}
        self._visiting: list[str] = []
        self._used: list[MadeCall] = []
        self._fixed: MadeCall | None = None
        self._names: dict[str, JSON] = {}
        self._computed: dict[str, Expression] = {}

    # -- calls ------------------------------------------------------------------------------------------------------

    def assess_tool(self, tool: ProcedureTool, arguments: Mapping[str, Value]) -> Assessment:
        """Determine whether a tool may be called with some arguments; those that are computed may be missing."""
        self._computed = dict(tool.computed)
        return self.assess(tool.need, arguments)

    def assess_call(self, call: Call) -> Assessment:
        """Determine how a call can be made; an open assessment without needs left has the call itself as its step."""
        if call.key in self._visiting:
            return _stuck(str(call), "it needs itself")
        tool = self.procedure.tools[call.tool]
        self._visiting.append(call.key)
        try:
            found = self.assess(tool.need, call.arguments)
        finally:
            self._visiting.pop()
        if found.state == "holds":
            return Assessment("open", (CallStep(call, tool.acts),), tool.cost)
        if found.state == "open":
            return replace(found, cost=found.cost + tool.cost)
        return Assessment("stuck", findings=found.findings)

    def bind_arguments(self, tool: ProcedureTool, owned: Mapping[str, Value]) -> Call | Assessment:
        """Build the call of a goal from values by name; an open assessment if a value is missing."""
        arguments: dict[str, JSON] = {}
        open_parts: list[Assessment] = []
        computed = dict(tool.computed)
        for parameter in tool.parameters:
            if parameter.name in computed:
                value, found = self._evaluate(computed[parameter.name], owned)
                if found is not None:
                    open_parts.append(found)
                else:
                    arguments[parameter.name] = as_json(value)
                continue
            if parameter.optional and parameter.name not in owned and parameter.name not in self.known:
                arguments[parameter.name] = parameter.default
                continue
            try:
                arguments[parameter.name] = as_json(self.look_up(parameter.name, owned))
            except _Pending as pending:
                open_parts.append(Assessment("open", (pending.step,), ASKING_COST))
            except AbsentValue as error:
                return _stuck(parameter.name, str(error), absent=error.name)
        return _join_unfinished(open_parts) if open_parts else Call(tool.name, arguments)

    def look_up(self, name: str, owned: Mapping[str, Value]) -> Value:
        """Look up a value.

        Raises:
            Undetermined: the user does not have it.
        """
        if name in owned:
            self._names[name] = as_json(owned[name])
            return owned[name]
        if name in self.procedure.constants:
            return self.procedure.constants[name]
        if name in self._computed:  # whatever the user says it is
            return self._computed[name].evaluate_in(self._make_scope(owned))
        if name in self.known:
            self._names[name] = self.known[name]
            return self.known[name]
        if name in self.absent:
            raise AbsentValue(name)
        raise _Pending(ValueStep(name))

    # -- needs ------------------------------------------------------------------------------------------------------

    def assess(self, need: Need, owned: Mapping[str, Value], *, negated: bool = False) -> Assessment:
        """Determine what is known about a need.

        Its names refer to the values ``owned`` first. What an action would establish is not done if ``negated``.
        """
        match need:
            case NotNeed(inner):
                found = self.assess(inner, owned, negated=not negated)
                if found.state in ("open", "stuck"):
                    return found
                findings = tuple(_negate(finding) for finding in found.findings)
                return replace(found, state=_OPPOSITE[found.state], findings=findings)
            case NeedGroup():
                return self._assess_group(need, owned, negated)
            case FactNeed():
                return self._assess_fact(need, owned, negated)
            case ConditionNeed(condition):
                return self._assess_condition(condition, owned, str(need))
            case Hole(text):
                return _stuck(str(need), f"this was not understood: {text}")

    def _assess_group(self, group: NeedGroup, owned: Mapping[str, Value], negated: bool) -> Assessment:
        if group.grouping == "none of":
            inner = NeedGroup("any of", group.items)
            return self.assess(NotNeed(inner), owned, negated=negated)
        if group.grouping == "first of":
            return self._assess_sources(group, owned, negated)
        # What decides a conjunction is a part that is refuted; of a disjunction one that holds.
        conjunction = group.grouping != "any of"
        decisive: State = "refuted" if conjunction else "holds"
        found = []
        for item in group.items:
            one = self.assess(item, owned, negated=negated)
            if one.state == decisive:
                return one
            found.append(one)
            if group.grouping == "in order" and one.state != "holds":
                break
        stuck = [one for one in found if one.state == "stuck"]
        open_parts = [one for one in found if one.state == "open"]
        # A stuck part keeps a conjunction from holding, and a negated disjunction from being refuted.
        if stuck and (not open_parts or conjunction is not negated):
            return Assessment("stuck", findings=tuple(finding for one in stuck for finding in one.findings))
        if open_parts:
            return _join_open(open_parts) if conjunction is not negated else self._join_ways(group, open_parts, owned)
        return Assessment(_OPPOSITE[decisive], findings=tuple(finding for one in found for finding in one.findings))

    def _assess_sources(self, group: NeedGroup, owned: Mapping[str, Value], negated: bool) -> Assessment:
        """Determine what the first part that is not stuck shows."""
        findings: tuple[NeedFinding, ...] = ()
        for item in group.items:
            found = self.assess(item, owned, negated=negated)
            if found.state != "stuck":
                return found
            findings += found.findings
        return Assessment("stuck", findings=findings)

    def _join_ways(self, group: NeedGroup, parts: Sequence[Assessment], owned: Mapping[str, Value]) -> Assessment:
        """Join the open parts of a group of which one suffices: the cheapest, or a choice of the cheapest."""
        key = f"{group} {sorted((name, str(value)) for name, value in owned.items())}"
        ordered = sorted(parts, key=lambda part: part.cost)
        cheapest = [part for part in ordered if part.cost == ordered[0].cost]
        firsts = {str(part.steps[0]) for part in cheapest}
        if len(firsts) == 1:
            return ordered[0]
        if key in self.preferred and self.preferred[key] < len(cheapest):
            return cheapest[self.preferred[key]]
        ways = tuple((str(part.steps[0]), part.steps[0]) for part in cheapest)
        return Assessment("open", (WayStep(key, ways),), ordered[0].cost)

    def _assess_fact(self, need: FactNeed, owned: Mapping[str, Value], negated: bool) -> Assessment:
        fact = self.procedure.facts[need.fact]
        values: dict[str, Value] = {}
        open_parts = []
        for parameter, expression in zip(fact.parameters, need.given, strict=True):
            value, found = self._evaluate(expression, owned)
            if found is not None:
                open_parts.append(found)
            values[parameter] = value
        if open_parts:
            return _join_unfinished(open_parts)
        action = self.procedure.find_action(fact)
        if action is None:
            return self.assess(fact.need, values, negated=negated)
        return self._assess_established(fact, action, values, negated)

    def _assess_established(
        self, fact: Fact, action: CallValue, values: Mapping[str, Value], negated: bool
    ) -> Assessment:
        """Determine whether a fact that an action establishes holds; unless it is negated the action can be done."""
        assert isinstance(fact.need, ConditionNeed)
        tool = self.procedure.tools[action.tool]
        wanted = {}
        for parameter, expression in zip(tool.parameters, action.given, strict=False):
            if list_names(expression.walk()) <= values.keys() | self.procedure.constants.keys():
                wanted[parameter.name] = self._evaluate(expression, values)[0]
        leaf = f"{fact.name}({', '.join(fact.parameters)})"
        shown = {name: as_json(value) for name, value in values.items()}
        undone = tuple(one.tool for one in fact.until)
        for made in self.history.list_from_latest((tool.name, *undone)):
            is_it = made.call.tool == tool.name and matches_arguments(made.call, wanted)
            if is_it and self._is_shown_by(fact.need.condition, values, made):
                return Assessment("holds", findings=(NeedFinding(leaf, "holds", shown, (made,)),))
            if self._ends(fact, made, values) and made.succeeded:
                break
        if negated:
            finding = NeedFinding(leaf, "refuted", shown, reason="it was not established")
            return Assessment("refuted", findings=(finding,))
        call, found = self._evaluate_call(action, values)
        if found is not None:
            return found
        assert call is not None
        last = next((made for made in self.history.list_from_latest((tool.name,)) if made.call == call), None)
        if last is not None:
            return Assessment("refuted", findings=(NeedFinding(leaf, "refuted", shown, (last,)),))
        return self.assess_call(call)

    def _ends(self, fact: Fact, made: MadeCall, values: Mapping[str, Value]) -> bool:
        for one in fact.until:
            if one.tool == made.call.tool:
                pairs = zip(self.procedure.tools[one.tool].parameters, one.given, strict=False)
                given = {parameter.name: self._evaluate(expression, values)[0] for parameter, expression in pairs}
                if matches_arguments(made.call, given):
                    return True
        return False

    def _is_shown_by(self, condition: Expression, values: Mapping[str, Value], made: MadeCall) -> bool:
        """Return whether the result of a call makes a condition true."""
        self._fixed = made
        try:
            return condition.is_satisfied(self._make_scope(values)) is True
        finally:
            self._fixed = None

    # -- conditions -------------------------------------------------------------------------------------------------

    def _assess_condition(self, condition: Expression, owned: Mapping[str, Value], leaf: str) -> Assessment:
        self._used, self._names = [], {}
        value, found = self._evaluate(condition, owned)
        if found is not None:
            return replace(found, findings=tuple(_name_leaf(one, leaf) for one in found.findings))
        calls, names = tuple(dict.fromkeys(self._used)), dict(self._names)
        if value is not None and not isinstance(value, bool):
            return _stuck(leaf, f"{condition} is no yes or no", names, calls)
        state: State = "holds" if value else "refuted"
        return Assessment(state, findings=(NeedFinding(leaf, state, names, calls),))

    def _evaluate(self, expression: Expression, owned: Mapping[str, Value]) -> tuple[Value, Assessment | None]:
        """Compute a value; if that is not possible yet, return what has to be done, or why nothing can be."""
        scope = self._make_scope(owned)
        steps: dict[str, CallStep | ValueStep] = {}
        absent = ""
        for term in _inner_first(expression):
            if isinstance(term, CallValue | FieldPath):
                try:
                    term.evaluate_in(scope)
                except _Pending as pending:
                    steps.setdefault(str(pending.step), pending.step)
                except Undetermined as error:  # a function may allow for that: has(x), missing(x)
                    absent = error.name if isinstance(error, AbsentValue) else absent
        if steps:
            parts = [
                self.assess_call(step.call) if isinstance(step, CallStep) else Assessment("open", (step,), ASKING_COST)
                for step in steps.values()
            ]
            return None, _join_unfinished(parts)
        try:
            return expression.evaluate_in(scope), None
        except Undetermined as error:
            used = tuple(dict.fromkeys(self._used))
            return None, _stuck(str(expression), str(error), dict(self._names), used, absent)

    def _evaluate_call(self, call: CallValue, owned: Mapping[str, Value]) -> tuple[Call | None, Assessment | None]:
        try:
            return self._build_call(call, self._make_scope(owned)), None
        except _Pending:
            parts = [found for one in call.given if (found := self._evaluate(one, owned)[1]) is not None]
            return None, _join_unfinished(parts)
        except Undetermined as error:
            absent = error.name if isinstance(error, AbsentValue) else ""
            return None, _stuck(str(call), str(error), absent=absent)

    def _make_scope(self, owned: Mapping[str, Value]) -> NeedScope:
        return NeedScope({}, {}, results=self, assessor=self, owned=owned)

    def _build_call(self, call: CallValue, scope: Scope) -> Call:
        tool = self.procedure.tools[call.tool]
        values = [as_json(one.evaluate_in(scope)) for one in call.given]
        arguments = dict(zip((parameter.name for parameter in tool.parameters), values, strict=False))
        for parameter in tool.parameters[len(values) :]:
            arguments[parameter.name] = parameter.default
        return Call(tool.name, arguments)

    def _find_made(self, call: CallValue, scope: Scope) -> MadeCall:
        built = self._build_call(call, scope)
        made = self._fixed or self.history.find_result(built)
        if made is None:
            raise _Pending(CallStep(built))
        self._used.append(made)
        return made

    def get_result(self, call: CallValue, scope: Scope) -> JSON:
        """Return what a call returned; see :class:`ResultSource`."""
        made = self._find_made(call, scope)
        if made.error:
            raise Undetermined(f"{call.format_call()} failed: {made.error}")
        return made.value

    def has_succeeded(self, call: CallValue, scope: Scope) -> bool:
        """Return whether a call succeeded; see :class:`ResultSource`."""
        return self._find_made(call, scope).succeeded


def _inner_first(expression: Expression) -> Iterator[Expression]:
    for part in expression.parts:
        yield from _inner_first(part)
    yield expression


def _join_open(parts: Sequence[Assessment]) -> Assessment:
    """Join assessments all of which have to be decided: the cheapest comes first, and checks before actions."""
    ordered = sorted(parts, key=lambda part: (_begins_with_action(part), part.cost))
    steps = {str(step): step for part in ordered for step in part.steps}
    return Assessment("open", tuple(steps.values()), sum(part.cost for part in parts))


def _join_unfinished(parts: Sequence[Assessment]) -> Assessment:
    """Join assessments of values all of which are needed: one that is stuck decides."""
    return next((part for part in parts if part.state == "stuck"), None) or _join_open(parts)


def _begins_with_action(part: Assessment) -> bool:
    return bool(part.steps) and isinstance(part.steps[0], CallStep) and part.steps[0].acts


def _stuck(
    leaf: str,
    reason: str,
    values: Mapping[str, JSON] | None = None,
    calls: tuple[MadeCall, ...] = (),
    absent: str = "",
) -> Assessment:
    return Assessment("stuck", findings=(NeedFinding(leaf, "stuck", values or {}, calls, reason, absent),))


def _negate(finding: NeedFinding) -> NeedFinding:
    leaf = finding.leaf.removeprefix("not ") if finding.leaf.startswith("not ") else f"not {finding.leaf}"
    return replace(finding, leaf=leaf, state=_OPPOSITE[finding.state])


def _name_leaf(finding: NeedFinding, leaf: str) -> NeedFinding:
    """Return a finding about a part of a condition as one about the condition."""
    return replace(finding, leaf=leaf) if finding.leaf in leaf else finding
