"""Compiled rules: each sentence of a rule file as a machine over the letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.control.machines import (
    ANY_CALL,
    AfterMachine,
    AtLeastMachine,
    AtMostMachine,
    BeforeMachine,
    BudgetMachine,
    ConfigurationMachine,
    DeadlineMachine,
    Letters,
    Machine,
    NeverMachine,
    RateMachine,
    TableMachine,
    TimedMachine,
    WithinMachine,
    list_letter_sets,
)  # fmt: skip
from formal_llm.errors import FormalLLMError, NotationError, did_you_mean
from formal_llm.guard.rules import rule_set as bodies
from formal_llm.guard.rules.rule_set import GuardRule, GuardRuleSet, Letter

if TYPE_CHECKING:
    from formal_llm.automata import Limits
    from formal_llm.automata.models.formula import Formula
    from formal_llm.automata.models.rules import Rules

#: The maximum number of sets of letters of one formula.
_MOST_SYMBOLS = 512


@dataclass(frozen=True)
class RulePart:
    """A machine of a rule. A rule in words has one; a line of limits may have several.

    Attributes:
        rule: the rule.
        machine: the machine.
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
            return [NeverMachine(order_letters(names, after), frozenset(names), frozenset(after), not after)]
        case bodies.BeforeBody(first, then, count, each):
            return [BeforeMachine(order_letters(first, then), frozenset(first), frozenset(then), count, each)]
        case bodies.AfterBody(first, then, within) if not isinstance(within, int):
            letters, both = order_letters(first, then), (frozenset(first), frozenset(then))
            due = [] if within is None else [DeadlineMachine((*letters, ANY_CALL), *both, within)]
            return [AfterMachine(letters, *both), *due]
        case bodies.OnlyBody() | bodies.AfterBody():
            return [_build_call_machine(rule.body, rules)]
        case bodies.AtLeastBody(count, names):
            return [AtLeastMachine(order_letters(names), count)]
        case bodies.AtMostBody(count, names, _, within) if within is not None:
            return [RateMachine(order_letters(names), count, within)]
        case bodies.AtMostBody(count, names, since):
            return [AtMostMachine(order_letters(names, since), frozenset(names), frozenset(since), count)]
        case bodies.ApartBody(least, names):
            return [RateMachine(order_letters(names), 1, least)]
        case bodies.BudgetBody(quantity, most):
            return [_build_budget_machine(quantity, most, fields)]
    return _build_notation_machines(rule.body, rules, fields)


def _build_notation_machines(
    body: bodies.NotationBody, rules: GuardRuleSet, fields: Mapping[str, set[str]]
) -> Sequence[Machine]:
    if body.notation == "limit":
        from formal_llm.automata.notation.limit_lines import read_line

        return _build_limit_machines(read_line(body.text), fields)
    return [_compile_formula(body.text, rules) if body.notation == "formula" else _compile_notation(body, rules)]


def _build_call_machine(body: bodies.OnlyBody | bodies.AfterBody, rules: GuardRuleSet) -> Machine:
    """Build the machine of a rule about all calls, whether they have a declared letter or not."""
    if isinstance(body, bodies.OnlyBody):
        return NeverMachine((body.others,), frozenset((body.others,)), frozenset(), True)
    assert isinstance(body.within, int)
    late = any(one.kind != "call" for name in body.first for one in rules.by_name[name].patterns)
    letters = tuple(letter.name for letter in rules.letters if letter.name in (*body.first, *body.then))
    return WithinMachine((*letters, ANY_CALL), frozenset(body.first), frozenset(body.then), body.within, late)


def _build_budget_machine(quantity: str, most: Fraction, fields: Mapping[str, set[str]]) -> BudgetMachine:
    return BudgetMachine(tuple(name for name in fields if quantity in fields[name]), quantity, most)


def _build_limit_machines(limits: Limits, fields: Mapping[str, set[str]]) -> list[Machine]:
    machines: list[Machine] = [
        AtMostMachine((name,), frozenset((name,)), frozenset(), count)
        for name, count in limits.at_most.items()
        if count is not None
    ]
    machines += [AtLeastMachine((name,), count) for name, count in limits.at_least.items()]
    machines += [
        _build_budget_machine(bound.quantity, Fraction(Decimal(bound.edges[0] or 0)), fields) for bound in limits.sums
    ]
    return machines


# -- formulas ---------------------------------------------------------------------------------------------------------


def _compile_formula(text: str, rules: GuardRuleSet) -> TableMachine:
    """Compile a formula over letters to an automaton over the sets of letters that an event may have."""
    from formal_llm.automata.models.dfa import minimal_dfa
    from formal_llm.automata.models.formula import Atom, quote_name
    from formal_llm.automata.notation.formula import read_formula

    formula = read_formula(text, rules.by_name)
    letters = tuple(letter for letter in rules.letters if letter.name in formula.names)
    letter_sets = list_letter_sets([letter.name for letter in letters], pair_compatible_letters(letters), _MOST_SYMBOLS)
    if letter_sets is None:
        raise NotationError(f"one event may have too many sets of the letters of this formula: {text}")
    symbols = {one: "+".join(sorted(one)) for one in letter_sets}

    def expand_formula(part: Formula) -> str:
        if isinstance(part, Atom):
            having = [quote_name(symbol) for one, symbol in symbols.items() if part.name in one]
            return f"(or {' '.join(having)})"
        return f"({' '.join([part.opening, *map(expand_formula, part.parts)])})" if part.parts else part.opening

    dfa = minimal_dfa(read_formula(expand_formula(formula), symbols.values()), symbols.values())
    if not dfa.accepting:
        raise NotationError(f"nothing keeps this formula: {text}")
    return TableMachine(tuple(letter.name for letter in letters), dfa, symbols)


def pair_compatible_letters(letters: Iterable[Letter]) -> list[tuple[str, str]]:
    """List the pairs of letters that one event may have together, judging by their tools."""
    return [
        (one.name, other.name)
        for one, other in combinations(letters, 2)
        if any(_can_overlap(a.kind, a.tool, b.kind, b.tool) for a in one.patterns for b in other.patterns)
    ]


def _can_overlap(kind: str, tool: str, other_kind: str, other: str) -> bool:
    if kind != other_kind:
        return False
    wild = any(sign in tool for sign in "*?[") and any(sign in other for sign in "*?[")
    return wild or tool == other or fnmatchcase(tool, other) or fnmatchcase(other, tool)


# -- other notations --------------------------------------------------------------------------------------------------


def _compile_notation(body: bodies.NotationBody, rules: GuardRuleSet) -> ConfigurationMachine:
    # Rules in words need none of this, and a hook starts often.
    from formal_llm.automata import CFG, PDA, Behaviour, Flowchart, Lookahead
    from formal_llm.automata.languages.fronts import ConfigurationSets
    from formal_llm.automata.lookahead.limited import as_automaton
    from formal_llm.automata.models.rules import automaton_of
    from formal_llm.automata.notation.files import read_rules as read_file

    source: Rules
    if body.notation == "file":
        source = read_file(Path(rules.folder, body.text))
    else:
        notations: Mapping[str, type[CFG | PDA | Flowchart | Behaviour]] = {
            "grammar": CFG, "automaton": PDA, "flowchart": Flowchart, "behaviour": Behaviour,
        }  # fmt: skip
        source = notations[body.notation].from_string(body.text)
    automaton = as_automaton(automaton_of(source))
    fronts = ConfigurationSets(Lookahead(automaton))
    for name in fronts.terminals:
        if name not in rules.by_name:
            near = did_you_mean(name, rules.by_name)
            raise NotationError(f"{name} is no letter" + (f"; did you mean {near}?" if near else ""))
    if fronts.start.is_viable is False:
        raise NotationError("nothing keeps it")
    order = [letter.name for letter in rules.letters if letter.name in set(fronts.terminals)]
    counted = fronts.lookahead.pda is not None and not fronts.limited
    return ConfigurationMachine(tuple(order), fronts.start, fronts.lookahead if counted else None)
