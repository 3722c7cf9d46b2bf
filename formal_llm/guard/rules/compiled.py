"""Compiled rules: each sentence of a rule file as a machine over the letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from formal_llm.control.machines import (
    ANY_CALL,
    AtMostMachine,
    BudgetMachine,
    DeadlineMachine,
    Letters,
    Machine,
    RateMachine,
    TimedMachine,
    build_after,
    build_at_least,
    build_before,
    build_never,
    build_within,
)  # fmt: skip
from formal_llm.errors import FormalLLMError, NotationError
from formal_llm.guard.rules import rule_set as bodies
from formal_llm.guard.rules.rule_set import GuardRule, GuardRuleSet


@dataclass(frozen=True)
class RulePart:
    """A machine of a rule. A rule in words has one; a line of limits may have several.

    Attributes:
        keyed: those of its letters that have the rule's keys; empty if the rule has none.
    """

    rule: GuardRule
    machine: Machine
    keyed: Letters

    @property
    def name(self) -> str:
        """The name of the rule."""
        return self.rule.name

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the rule: the fields of which each value has its own copy of it."""
        return self.rule.keys


@dataclass(frozen=True)
class TimedRulePart:
    """A timed machine with its rule."""

    rule: GuardRule
    machine: TimedMachine
    keyed: Letters

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the rule."""
        return self.rule.keys


def compile_rules(
    rules: GuardRuleSet, file: str | None = None
) -> tuple[tuple[RulePart, ...], tuple[TimedRulePart, ...]]:
    """Compile the machines of all rules; the timed ones are returned separately.

    Raises:
        NotationError: a rule in another notation cannot be read, names an unknown letter, or cannot be kept.
    """
    plain: list[RulePart] = []
    timed: list[TimedRulePart] = []
    fields = {letter.name: {name for name, _ in letter.patterns[0].fields} for letter in rules.letters}
    for rule in rules.rules:
        try:
            machines = _build_machines(rule, rules, fields)
        except (FormalLLMError, OSError) as error:
            if isinstance(error, NotationError) and error.file == file and error.file is not None:
                raise
            raise NotationError(f"rule {rule.name} cannot be used: {error}", file=file) from error
        for machine in machines:
            keyed = frozenset(name for name in machine.letters if rule.keys and rule.keys[0] in fields.get(name, ()))
            if isinstance(machine, TimedMachine):
                timed.append(TimedRulePart(rule, machine, keyed))
            else:
                plain.append(RulePart(rule, machine, keyed))
    return tuple(plain), tuple(timed)


def _build_machines(
    rule: GuardRule, rules: GuardRuleSet, fields: Mapping[str, set[str]]
) -> Sequence[Machine | TimedMachine]:
    def order_letters(*names: Sequence[str]) -> tuple[str, ...]:
        members = {name for some in names for name in some}
        return tuple(letter.name for letter in rules.letters if letter.name in members)

    match rule.body:
        case bodies.NeverBody(names, after):
            return [build_never(order_letters(names, after), frozenset(names), frozenset(after))]
        case bodies.BeforeBody(first, then, count, each):
            return [build_before(order_letters(first, then), frozenset(first), frozenset(then), count, each=each)]
        case bodies.AfterBody(first, then, within) if not isinstance(within, int):
            letters, both = order_letters(first, then), (frozenset(first), frozenset(then))
            due = [] if within is None else [DeadlineMachine((*letters, ANY_CALL), *both, within)]
            return [build_after(letters, *both), *due]
        case bodies.OnlyBody() | bodies.AfterBody():
            return [_build_call_machine(rule.body, rules)]
        case bodies.AtLeastBody(count, names):
            return [build_at_least(order_letters(names), count)]
        case bodies.AtMostBody(count, names, _, within) if within is not None:
            return [RateMachine(order_letters(names), count, within)]
        case bodies.AtMostBody(count, names, since):
            return [AtMostMachine(order_letters(names, since), frozenset(names), frozenset(since), count)]
        case bodies.ApartBody(least, names):
            return [RateMachine(order_letters(names), 1, least)]
        case bodies.BudgetBody(quantity, most):
            return [build_budget_machine(quantity, most, fields)]
    from formal_llm.guard.rules.notations import build_notation_machines  # which few rules need, and loads the automata

    return build_notation_machines(rule.body, rules, fields)


def _build_call_machine(body: bodies.OnlyBody | bodies.AfterBody, rules: GuardRuleSet) -> Machine:
    """Build the machine of a rule about all calls, whether they have a declared letter or not."""
    if isinstance(body, bodies.OnlyBody):
        return build_never((body.others,), frozenset((body.others,)), frozenset())
    assert isinstance(body.within, int)
    late = any(one.kind != "call" for name in body.first for one in rules.by_name[name].patterns)
    letters = tuple(letter.name for letter in rules.letters if letter.name in (*body.first, *body.then))
    return build_within(letters, frozenset(body.first), frozenset(body.then), body.within, late=late)


def build_budget_machine(quantity: str, most: Fraction, fields: Mapping[str, set[str]]) -> BudgetMachine:
    """Build the machine of a limit on the sum of a field over all letters that give it."""
    return BudgetMachine(tuple(name for name in fields if quantity in fields[name]), quantity, most)
