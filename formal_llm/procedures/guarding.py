"""A procedure as rules of a guard, for agents that people already have.

Each tool with needs becomes a rule: never call it early. *Early* is a condition on the earlier calls and their results:
the need with each fact replaced by what it means, and each call by the last result with the same arguments. The guard
refuses what the procedure does not allow; it makes no checks by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from formal_llm.guard.core import GuardRules
from formal_llm.guard.rules.expressions import (
    BinaryOperation,
    Constant,
    Expression,
    FieldPath,
    FunctionCall,
    LastValue,
    Negation,
    PastLetter,
    join_conditions,
)  # fmt: skip
from formal_llm.guard.rules.rule_set import EventPattern, GuardRule, GuardRuleSet, Letter, NeverBody
from formal_llm.procedures.procedure import (
    NO_NEED,
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
from formal_llm.procedures.terms import Bindings, CallSucceeds, CallValue, bind_names, list_names, map_parts

#: The fields of the letters of results: what a call returned, and whether it did not fail.
_VALUE, _WORKED = "returned", "worked"
#: The arguments of a call, in a condition on its result.
_ARGUMENTS = "called_with"
_FAILED = FieldPath(("failed",))
_NEVER = BinaryOperation("==", Constant("never"), Constant("ever"))


def compile_guard_rules(procedure: Procedure) -> GuardRules:
    """Compile a procedure to the rules of a guard.

    A value that a condition needs and that is no argument of the guarded call, such as a password, may have any value
    in the earlier call. A sentence that was not understood never holds.
    """
    return GuardRules(_GuardCompiler(procedure).compile())


class _GuardCompiler:
    def __init__(self, procedure: Procedure) -> None:
        self.procedure = procedure
        self._letters: dict[str, Letter] = {}

    def compile(self) -> GuardRuleSet:
        rules = []
        for tool in self.procedure.tools.values():
            if tool.need == NO_NEED:
                continue
            own = {one.name: FieldPath((one.name,)) for one in tool.parameters}
            early = f"{tool.name}_early"
            condition = Negation(self._convert(tool.need, own, wanted=True))
            self._letters[early] = Letter(early, (EventPattern("call", tool.name, condition),))
            needs = "; ".join(dict.fromkeys(_list_leaves(tool.need)))
            rules.append(GuardRule(f"{tool.name}_needs", NeverBody((early,)), says=f"{tool.name} needs: {needs}"))
        # Letters are declared before those that refer to them, for readers.
        letters = sorted(self._letters.values(), key=lambda letter: letter.name.endswith("_early"))
        return GuardRuleSet(tuple(letters), tuple(rules))

    def _convert(self, need: Need, own: Bindings, *, wanted: bool) -> Expression:
        """Return a condition that holds if a need is known to hold, or, unless it is ``wanted``, known not to hold."""
        match need:
            case NotNeed(inner):
                return self._convert(inner, own, wanted=not wanted)
            case NeedGroup("none of", items):
                return self._convert(NeedGroup("any of", items), own, wanted=not wanted)
            case NeedGroup(grouping, items):
                if grouping == "first of":
                    return self._convert_sources(items, own, wanted=wanted)
                parts = tuple(self._convert(item, own, wanted=wanted) for item in items)
                return _join("or" if (grouping == "any of") is wanted else "and", parts)
            case FactNeed(name, given):
                fact = self.procedure.facts[name]
                values = {one: self._bind(value, own) for one, value in zip(fact.parameters, given, strict=True)}
                action = self.procedure.find_action(fact)
                if action is None:
                    return self._convert(fact.need, values, wanted=wanted)
                held = PastLetter(self._declare_fact(fact, action), tuple(values[one] for one in fact.parameters))
                return held if wanted else Negation(held)
            case ConditionNeed(condition):
                bound = self._bind(condition, own)
                worked = tuple(dict.fromkeys(self._find_result(call, own, _WORKED) for call in _list_values(condition)))
                return FunctionCall("holds", (_join("and", (*worked, bound if wanted else Negation(bound))),))
            case Hole():
                return _NEVER

    def _convert_sources(self, items: Sequence[Need], own: Bindings, *, wanted: bool) -> Expression:
        """Return a condition that holds if the first source that shows anything shows it.

        That an action was not done shows nothing.
        """
        ways, earlier = [], tuple[Expression, ...]()
        for item in items:
            is_done = (
                isinstance(item, FactNeed) and self.procedure.find_action(self.procedure.facts[item.fact]) is not None
            )
            if wanted or not is_done:
                ways.append(_join("and", (self._convert(item, own, wanted=wanted), *earlier)))
            if wanted and is_done:
                continue
            earlier = (*earlier, Negation(self._convert(item, own, wanted=not wanted)))
        return _join("or", tuple(ways)) if ways else _NEVER

    def _bind(self, expression: Expression, own: Bindings) -> Expression:
        """Replace names by what they stand for, and calls by their last results."""
        match expression:
            case FieldPath((str(name), *_)) if name in own:
                return bind_names(expression, own, lambda part: self._bind(part, own))
            case FieldPath((str(name),)) if name in self.procedure.constants:
                return Constant(self.procedure.constants[name])
            case CallSucceeds(call):
                return _join("and", (self._find_result(call, own, _WORKED), *_is_something(self._bind(call, own))))
            case CallValue():
                return self._find_result(expression, own)
        return map_parts(expression, lambda part: self._bind(part, own))

    def _find_result(self, call: CallValue, own: Bindings, field: str = _VALUE) -> LastValue:
        names = [one.name for one in self.procedure.tools[call.tool].parameters]
        given = {name: one for name, one in zip(names, call.given, strict=False) if self._is_bound(one, own)}
        letter = self._declare_result(self.procedure.tools[call.tool], tuple(given))
        steps = tuple(self._bind(step, own) if isinstance(step, Expression) else step for step in call.steps)
        keys = tuple(self._bind(one, own) for one in given.values())
        return LastValue(letter, field, keys, steps if field == _VALUE else ())

    def _is_bound(self, expression: Expression, own: Bindings) -> bool:
        return list_names(expression.walk()) <= own.keys() | self.procedure.constants.keys()

    def _declare_result(self, tool: ProcedureTool, names: tuple[str, ...]) -> str:
        """Declare the letter of a tool's results that is distinguished by some of its arguments."""
        name = "_".join((tool.name, "result", *names))
        if name not in self._letters:
            keys = tuple((one, FieldPath((_ARGUMENTS, one))) for one in names)
            values = (*keys, (_VALUE, FieldPath((_VALUE,))), (_WORKED, FunctionCall("holds", (Negation(_FAILED),))))
            pattern = EventPattern("result", tool.name, None, values)
            self._letters[name] = Letter(name, (pattern,))  # it exists before the letters that end it
            enders = [one for one in self.procedure.tools.values() if one.makes_obsolete(tool.name)]
            until = tuple(self._declare_call(one) for one in enders)
            self._letters[name] = Letter(name, (pattern,), until)
        return name

    def _declare_call(self, tool: ProcedureTool) -> str:
        name = f"{tool.name}_called"
        self._letters.setdefault(name, Letter(name, (EventPattern("call", tool.name),)))
        return name

    def _declare_fact(self, fact: Fact, action: CallValue) -> str:
        """Declare the letter of the call that establishes a fact; its fields are the values that the fact is about."""
        assert isinstance(fact.need, ConditionNeed)
        if fact.name in self._letters:
            return fact.name
        arguments = _find_arguments(self.procedure.tools[action.tool], action.given)
        values = tuple((one, arguments[one]) for one in fact.parameters if one in arguments)
        condition = _replace_result(fact.need.condition)
        until = []
        for number, one in enumerate(fact.until):
            ender = f"{fact.name}_ended_{number + 1}"
            given = _find_arguments(self.procedure.tools[one.tool], one.given)
            own = tuple((name, given[name]) for name in fact.parameters if name in given)
            self._letters[ender] = Letter(ender, (EventPattern("result", one.tool, _succeeds(), own),))
            until.append(ender)
        self._letters[fact.name] = Letter(
            fact.name, (EventPattern("result", action.tool, condition, values),), tuple(until)
        )
        return fact.name


def _find_arguments(tool: ProcedureTool, given: Sequence[Expression]) -> dict[str, FieldPath]:
    """For each plain name among the values given to a tool, the tool's parameter that it is given to."""
    return {
        str(one.steps[0]): FieldPath((_ARGUMENTS, parameter.name))
        for parameter, one in zip(tool.parameters, given, strict=False)
        if isinstance(one, FieldPath) and len(one.steps) == 1
    }


def _replace_result(condition: Expression) -> Expression:
    """Return the condition of a fact as one on the result of the action that it names."""
    match condition:
        case CallSucceeds():
            return _succeeds()
        case CallValue(steps=steps):
            return FieldPath((_VALUE, *steps))
    return map_parts(condition, _replace_result)


def _succeeds() -> Expression:
    return _join("and", (Negation(_FAILED), *_is_something(FieldPath((_VALUE,)))))


def _is_something(value: Expression) -> tuple[Expression, ...]:
    """Conditions that a value is neither false nor nothing."""
    return tuple(Negation(FunctionCall("holds", (_equals(value, one),))) for one in (False, None))


def _list_values(condition: Expression) -> Iterator[CallValue]:
    """Yield the calls whose values a condition uses: they must have worked."""
    if isinstance(condition, CallValue):
        yield condition
    if not isinstance(condition, CallSucceeds):
        for part in condition.parts:
            yield from _list_values(part)


def _equals(value: Expression, other: object) -> Expression:
    return BinaryOperation("==", value, Constant(other))


def _join(word: str, parts: tuple[Expression, ...]) -> Expression:
    if not parts:  # of no conditions all hold, and none does
        return Negation(_NEVER) if word == "and" else _NEVER
    return join_conditions(word, parts) if len(parts) > 1 else parts[0]


def _list_leaves(need: Need) -> Iterator[str]:
    if isinstance(need, NeedGroup):
        parts: Iterable[str] = (leaf for item in need.items for leaf in _list_leaves(item))
        yield from ([f"{need.grouping} {', '.join(parts)}"] if need.grouping in ("any of", "none of") else parts)
    else:
        yield str(need)
