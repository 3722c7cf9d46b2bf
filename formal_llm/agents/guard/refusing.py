"""What a model is told of a call that is not made: the rule, what is allowed, and the shortest way on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from formal_llm.agents.guard.core import GuardCore
from formal_llm.agents.guard.events import ALLOW, Call, Decision, Said
from formal_llm.agents.guard.position import Position
from formal_llm.agents.guard.rules import Severity
from formal_llm.agents.guard.supervisor import describe_way


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
