"""A run as plain data: the procedure as nested lists, and the outcome with all calls, for :mod:`.checker`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from fractions import Fraction

from formal_llm.guard.rules.data import Value
from formal_llm.guard.rules.expressions import (
    BinaryOperation,
    Connective,
    Constant,
    Expression,
    FieldPath,
    FunctionCall,
    ItemChoice,
    ItemField,
    Negation,
    ValueRange,
    ValueSet,
)
from formal_llm.planning.json_data import JSON
from formal_llm.procedures.procedure import ConditionNeed, Fact, FactNeed, Hole, Need, NeedGroup, NotNeed, Procedure
from formal_llm.procedures.run import ProcedureOutcome
from formal_llm.procedures.terms import CallSucceeds, CallValue


def write_evidence(procedure: Procedure, outcome: ProcedureOutcome) -> dict[str, JSON]:
    """Return what :func:`formal_llm.procedures.checker.check_evidence` needs to check a run."""
    return {"procedure": _write_procedure(procedure), "outcome": outcome.to_data()}


def _write_procedure(procedure: Procedure) -> JSON:
    return {
        "tools": {
            tool.name: {
                "parameters": [one.name for one in tool.parameters],
                "defaults": {one.name: one.default for one in tool.parameters if one.optional},
                "acts": tool.acts, "changes": tool.changes, "need": _write_need(tool.need),
                "computed": [[name, _write_expression(one)] for name, one in tool.computed],
            }
            for tool in procedure.tools.values()
        },
        "facts": {fact.name: _write_fact(procedure, fact) for fact in procedure.facts.values()},
        "constants": {name: _write_constant(value) for name, value in procedure.constants.items()},
    }  # fmt: skip


def _write_fact(procedure: Procedure, fact: Fact) -> Mapping[str, JSON]:
    action = procedure.find_action(fact)
    return {
        "parameters": fact.parameters, "body": _write_need(fact.need),
        "action": None if action is None else _write_expression(action),
        "until": [[one.tool, [_write_expression(value) for value in one.given]] for one in fact.until],
    }  # fmt: skip


def _write_need(need: Need) -> JSON:
    match need:
        case NeedGroup(grouping, items):
            return [grouping, [_write_need(item) for item in items]]
        case NotNeed(inner):
            return ["not", _write_need(inner)]
        case FactNeed(fact, given):
            return ["fact", fact, [_write_expression(one) for one in given]]
        case ConditionNeed(condition):
            return ["condition", _write_expression(condition)]
        case Hole(text):
            return ["hole", text]


def _write_expression(one: Expression) -> JSON:
    match one:
        case Constant(value):
            return ["constant", *_write_constant(value)]
        case FieldPath(steps) | ItemField(steps):
            return ["item" if isinstance(one, ItemField) else "name", _write_steps(steps)]
        case ItemChoice(condition, every):
            return ["every" if every else "one", _write_expression(condition)]
        case Connective(word, items):
            return [word, [_write_expression(item) for item in items]]
        case Negation(inner):
            return ["not", _write_expression(inner)]
        case CallValue(tool, given, steps):
            return ["call", tool, [_write_expression(part) for part in given], _write_steps(steps)]
        case CallSucceeds(call):
            return ["ok", _write_expression(call)]
        case FunctionCall(name, given):
            return ["function", name, [_write_expression(part) for part in given]]
        case ValueSet(items):
            return ["set", [_write_expression(item) for item in items]]
        case ValueRange(first, last):
            return ["range", _write_expression(first), _write_expression(last)]
        case BinaryOperation(sign, left, right):
            return ["sign", sign, _write_expression(left), _write_expression(right)]
    raise TypeError(f"{type(one).__name__} is no part of a procedure")


def _write_steps(steps: tuple[str | int | Expression | None, ...]) -> JSON:
    return [_write_expression(step) if isinstance(step, Expression) else step for step in steps]


def _write_constant(value: Value) -> tuple[str, JSON]:
    match value:
        case bool() | None | str():
            return ("plain", value)
        case Fraction():
            return ("number", str(value))
        case timedelta():
            return ("duration", value.total_seconds())
        case datetime():
            return ("moment", value.isoformat())
        case date():
            return ("date", value.isoformat())
        case time():
            return ("time", value.isoformat())
    raise TypeError(f"{value!r} is no constant of a procedure")
