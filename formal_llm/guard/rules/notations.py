"""Compiled rules in other notations: formulas, limits, and the grammars and automata of this library.

Files of rules in words load none of this: a hook starts often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import combinations
from pathlib import Path

from formal_llm.automata import CFG, PDA, Behaviour, Flowchart, Limits, Lookahead
from formal_llm.automata.languages.prefixes import ConfigurationSets
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.dfa import minimal_dfa
from formal_llm.automata.models.formula import Atom, Formula, quote_name
from formal_llm.automata.models.rules import Rules, automaton_of
from formal_llm.automata.notation.files import read_rules as read_file
from formal_llm.automata.notation.formula import read_formula
from formal_llm.automata.notation.limit_lines import read_line
from formal_llm.control.machines import (
    AtMostMachine,
    ConfigurationMachine,
    Letters,
    Machine,
    TableMachine,
    build_at_least,
    get_symbol,
)
from formal_llm.errors import NotationError, did_you_mean
from formal_llm.guard.rules.compiled import build_budget_machine
from formal_llm.guard.rules.rule_set import GuardRuleSet, Letter, NotationBody

#: The maximum number of sets of letters of one formula.
_MOST_SYMBOLS = 512
_NOTATIONS: Mapping[str, type[CFG | PDA | Flowchart | Behaviour]] = {
    "grammar": CFG, "automaton": PDA, "flowchart": Flowchart, "behaviour": Behaviour,
}  # fmt: skip


def build_notation_machines(
    body: NotationBody, rules: GuardRuleSet, fields: Mapping[str, set[str]]
) -> Sequence[Machine]:
    """Build the machines of a rule in another notation.

    Raises:
        NotationError: it cannot be read, names something that is not a letter, or cannot be kept.
    """
    if body.notation == "limit":
        return _build_limit_machines(read_line(body.text), fields)
    return [_compile_formula(body.text, rules) if body.notation == "formula" else _compile_notation(body, rules)]


def _build_limit_machines(limits: Limits, fields: Mapping[str, set[str]]) -> list[Machine]:
    machines: list[Machine] = [
        AtMostMachine((name,), frozenset((name,)), frozenset(), count)
        for name, count in limits.at_most.items()
        if count is not None
    ]
    machines += [build_at_least((name,), count) for name, count in limits.at_least.items()]
    machines += [
        build_budget_machine(bound.quantity, Fraction(Decimal(bound.edges[0] or 0)), fields) for bound in limits.sums
    ]
    return machines


# -- formulas ---------------------------------------------------------------------------------------------------------


def _compile_formula(text: str, rules: GuardRuleSet) -> TableMachine:
    """Compile a formula over letters to an automaton over the sets of letters that an event may have."""
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
    names = tuple(letter.name for letter in letters)
    groups = tuple(frozenset((name,)) for name in names)
    numbers = {symbol: get_symbol(groups, one) for one, symbol in symbols.items()}
    rows = {state: {numbers[symbol]: target for symbol, target in row.items()} for state, row in enumerate(dfa.table)}
    return TableMachine(names, groups, rows, dfa.accepting)


def list_letter_sets(letters: Sequence[str], together: Iterable[tuple[str, str]], most: int) -> list[Letters] | None:
    """List the nonempty sets of letters that one event may have; return None if there are more than ``most``."""
    compatible = {frozenset(pair) for pair in together}
    sets: list[Letters] = []
    chains: list[tuple[str, ...]] = [()]
    for name in letters:
        new = [(*chain, name) for chain in chains if all(frozenset((name, other)) in compatible for other in chain)]
        chains += new
        sets += [frozenset(one) for one in new]
        if len(sets) > most:
            return None
    return sets


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


def _compile_notation(body: NotationBody, rules: GuardRuleSet) -> ConfigurationMachine:
    source: Rules
    if body.notation == "file":
        source = read_file(Path(rules.folder, body.text))
    else:
        source = _NOTATIONS[body.notation].from_string(body.text)
    automaton = as_automaton(automaton_of(source))
    fronts = ConfigurationSets(Lookahead(automaton))
    for name in fronts.terminals:
        if name not in rules.by_name:
            near = did_you_mean(name, rules.by_name)
            raise NotationError(f"{name} is no letter" + (f"; did you mean {near}?" if near else ""))
    if fronts.start.is_viable is False:
        raise NotationError("nothing keeps it")
    order = [letter.name for letter in rules.letters if letter.name in set(fronts.terminals)]
    counted = fronts.lookahead.pda is not None and not fronts.lookahead.bounds
    return ConfigurationMachine(tuple(order), fronts.start, fronts.lookahead.pda if counted else None)
