"""Several rules that all have to hold, in groups that share no terminal.

Fifty rules with two states each have 2^50 states together, so rules are not multiplied out at once. A terminal is
*neutral* to a rule that stays where it is when the terminal is read, in whatever state. Rules belong together only
where they have a terminal that is neutral to neither, or where a limit counts terminals of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from formal_llm.automata import PDA, Limits, Source, Symbol
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.quantities import carriers
from formal_llm.automata.models.timetable import Timetable
from formal_llm.errors import AutomatonError, Undecided

#: More transitions are not made by multiplying the rules of one group.
_MOST = 200_000


class _RuleCluster(NamedTuple):
    """Rules, by number, and the terminals that keep them together."""

    rules: tuple[int, ...]
    letters: frozenset[str]


def group_rules(sources: Sequence[Source], limits: Limits | None) -> list[tuple[Source, frozenset[str] | None]]:
    """Automata for groups of rules that share no terminal, each with the terminals that are not neutral to it."""
    if not sources:
        raise ValueError("a monitor needs at least one rule")
    made = [as_automaton(source) for source in sources]
    if len(made) == 1:
        return [(as_automaton(made[0], limits), None)]
    rules = [rule for rule in made if isinstance(rule, PDA)]
    if len(rules) < len(made):
        raise AutomatonError("several rules are a grammar, a PDA, a flowchart or a behaviour each")
    names = dict.fromkeys(name for rule in rules for name in rule.terminals)
    symbols = _merge_symbols(rules)
    for rule in rules:
        limits = rule.limits if limits is None else limits & rule.limits
    assert limits is not None
    if (problem := limits.problem(names, symbols)) is not None:
        raise AutomatonError(problem)
    bare = [rule.without_limits for rule in rules]
    parts = [
        _RuleCluster((number,), frozenset(names) - _find_neutral_terminals(rule)) for number, rule in enumerate(bare)
    ]
    if limits.times:
        parts.append(_RuleCluster((), frozenset(names)))
    numbers = {name: symbol.numbers for name, symbol in symbols.items()}
    parts += [_RuleCluster((), frozenset(bound.weights)) for bound in limits.bounds(names, numbers) if bound.weights]
    parts = _join_clusters(parts)
    return [
        (
            _multiply_rules([bare[number] for number in part.rules], part, names, symbols, limits, place == 0),
            part.letters,
        )
        for place, part in enumerate(parts)
    ]


def _find_neutral_terminals(rule: PDA) -> set[str]:
    """The terminals that leave an automaton in the state where it is, whichever that is."""
    if rule.uses_stack:
        return set()
    loops: dict[str, set[object]] = {}
    moving = set()
    for transition in rule.transitions:
        if transition.read is not None:
            if transition.state == transition.target:
                loops.setdefault(transition.read, set()).add(transition.state)
            else:
                moving.add(transition.read)
    return {name for name, states in loops.items() if name not in moving and len(states) == len(rule.states)}


def _join_clusters(parts: Iterable[_RuleCluster]) -> list[_RuleCluster]:
    """Put together what shares terminals, the first rules first."""
    found: list[_RuleCluster] = []
    for part in parts:
        apart = [other for other in found if not other.letters & part.letters]
        for other in found:
            if other.letters & part.letters:
                part = _RuleCluster(tuple(sorted((*part.rules, *other.rules))), part.letters | other.letters)
        found = [*apart, part]
    return sorted(found, key=lambda part: part.rules or (1 << 60,))


def _merge_symbols(rules: Iterable[PDA]) -> dict[str, Symbol]:
    """What is known of each symbol: of several labels the first; an amount may not be given twice."""
    found: dict[str, Symbol] = {}
    for rule in rules:
        for name, new in rule.symbols.items():
            old = found.get(name, Symbol())
            for quantity, number in new.numbers.items():
                if old.numbers.get(quantity, number) != number:
                    raise AutomatonError(f"{name} has {quantity}={old.numbers[quantity]} and {quantity}={number}")
            numbers = {**new.numbers, **old.numbers}
            found[name] = Symbol(old.label or new.label, old.description or new.description, numbers)
    return found


def _multiply_rules(
    rules: Sequence[PDA],
    part: _RuleCluster,
    names: Iterable[str],
    symbols: dict[str, Symbol],
    limits: Limits,
    first: bool,
) -> Source:
    """The automaton of a group, under those of the limits that count its terminals."""
    # On top of an automaton that allows everything each rule is a constraint, so that messages can name it.
    loops = [("any", name, None, "any") for name in names]
    whole = PDA(loops, start="any", accepting=["any"], symbols=symbols)
    for rule in rules:
        whole = whole & rule
        if len(whole.transitions) > _MOST:
            called = ", ".join(rule.name or "a rule without a name" for rule in rules)
            raise Undecided(f"these rules share terminals and have too many states together: {called}")
    numbers = {name: symbol.numbers for name, symbol in symbols.items()}
    carried = {quantity: {name for name, number in pairs if number} for quantity, pairs in carriers(numbers).items()}
    # A sum of nothing but zeros belongs to no terminal; the first group keeps it.
    idle = part.letters if first else frozenset()
    kept = replace(
        limits,
        default=None,
        at_most={name: limits.most(name) for name in part.letters},
        at_least={name: count for name, count in limits.at_least.items() if name in part.letters},
        sums=tuple(one for one in limits.sums if part.letters & (carried[one.quantity] or idle)),
        times=limits.times if part.letters.issuperset(names) else Timetable(),
    )
    return as_automaton(whole.without_limits, kept)
