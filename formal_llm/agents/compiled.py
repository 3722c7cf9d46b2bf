"""Rules as a monitor follows them: compiled once and shared by all monitors over them.

Several rules that must all hold are divided into groups that share no terminal. A sequence of events satisfies all
rules exactly if its part over the terminals of each group satisfies the rules of that group, and a shortest way to an
end is the shortest way of each group, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from formal_llm.automata import PDA, Behaviour, Limits, Lookahead, Source, Symbol
from formal_llm.automata.languages.prefixes import Allowed, ConfigurationSet, ConfigurationSets
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.automaton import make_fingerprint
from formal_llm.automata.models.quantities import amounts_by_quantity
from formal_llm.automata.models.timetable import Timetable
from formal_llm.errors import AutomatonError, Undecided
from formal_llm.planning.checking.verify import Verifier
from formal_llm.planning.source import source_of

#: The maximum number of transitions when the rules of one group are multiplied.
_MOST = 200_000


class _RuleCluster(NamedTuple):
    """Rules, by number, and the terminals that connect them."""

    rules: tuple[int, ...]
    letters: frozenset[str]


def group_rules(sources: Sequence[Source], limits: Limits | None) -> list[tuple[Source, frozenset[str] | None]]:
    """Group rules so that groups share no terminal; return the automaton of each with its non-neutral terminals."""
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
    if limits.times or limits.rules:
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
    """Find the terminals that never change the state of an automaton."""
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
    """Join clusters that share terminals; the result is ordered by rule numbers."""
    found: list[_RuleCluster] = []
    for part in parts:
        apart = [other for other in found if not other.letters & part.letters]
        for other in found:
            if other.letters & part.letters:
                part = _RuleCluster(tuple(sorted((*part.rules, *other.rules))), part.letters | other.letters)
        found = [*apart, part]
    return sorted(found, key=lambda part: part.rules or (1 << 60,))


def _merge_symbols(rules: Iterable[PDA]) -> dict[str, Symbol]:
    """Merge the symbols of all rules: the first label wins; contradictory amounts are refused."""
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
    """Build the automaton of a group, with the limits that count its terminals."""
    # Start with an automaton that allows everything: each rule is then a constraint that messages can name.
    loops = [("any", name, None, "any") for name in names]
    whole = PDA(loops, start="any", accepting=["any"], symbols=symbols)
    for rule in rules:
        whole = whole & rule
        if len(whole.transitions) > _MOST:
            called = ", ".join(rule.name or "a rule without a name" for rule in rules)
            raise Undecided(f"these rules share terminals and have too many states together: {called}")
    numbers = {name: symbol.numbers for name, symbol in symbols.items()}
    carried = {
        quantity: {name for name, number in pairs if number} for quantity, pairs in amounts_by_quantity(numbers).items()
    }
    # A sum that contains only zeros belongs to no terminal; the first group gets it.
    idle = part.letters if first else frozenset()
    kept = replace(
        limits,
        default=None,
        at_most={name: limits.most(name) for name in part.letters},
        at_least={name: count for name, count in limits.at_least.items() if name in part.letters},
        sums=tuple(one for one in limits.sums if part.letters & (carried[one.quantity] or idle)),
        times=limits.times if part.letters.issuperset(names) else Timetable(),
        rules=limits.rules if part.letters.issuperset(names) else (),
    )
    return as_automaton(whole.without_limits, kept)


#: The maximum number of states of all groups together for which a nearest valid trace is searched.
_MOST_WHOLE = 2_000


class RuleGroup:
    """Rules that share terminals, as one automaton.

    Attributes:
        source: the automaton, with its limits.
        letters: the terminals that are not neutral to it; None for all.
        fronts: the positions to which words lead.
    """

    def __init__(
        self, source: Source, letters: frozenset[str] | None, max_states: int, max_configurations: int
    ) -> None:
        self.lookahead = Lookahead(source, max_states=max_states)
        self.source = self.lookahead.source
        self.letters = letters
        self.fronts = ConfigurationSets(self.lookahead, max_configurations=max_configurations)
        self.max_states = max_states

    @cached_property
    def verifier(self) -> Verifier:
        """The verifier that names the rules to blame.

        Raises:
            AutomatonError: the automaton is not a pushdown automaton.
        """
        return Verifier(self.source, max_states=self.max_states)

    def project_word(self, word: Iterable[str]) -> tuple[str, ...]:
        """Return the part of a word that these rules look at."""
        return tuple(word) if self.letters is None else tuple(name for name in word if name in self.letters)


class CompiledRules:
    """Compiled rules.

    Args:
        rules: one set of rules, or several that must all hold.
        limits: additional limits.
        max_states: how many states of the search a question to lookahead may visit.
        max_configurations: how many configurations after a trace are followed one by one.

    Attributes:
        groups: the rules in groups that share no terminal.
        owners: for each terminal the number of the group that looks at it; None if none does.

    Raises:
        TypeError: ``rules`` are not rules.
        AutomatonError: a limit names an unknown terminal or quantity, or two rules of one group need a stack.
        Undecided: the rules of a group have too many states together.
    """

    def __init__(
        self, rules: Source | Sequence[Source], limits: Limits | None, max_states: int, max_configurations: int
    ) -> None:
        self._made_of = (rules, limits, max_states, max_configurations)
        self.max_states = max_states
        given = rules if isinstance(rules, Sequence) else [rules]
        #: The states whose texts come from the environment.
        self.environment = frozenset(
            name
            for rule in given
            if isinstance(rule, Behaviour)
            for name, state in rule.states.items()
            if state.from_environment
        )
        parts: list[tuple[Source, frozenset[str] | None]]
        if isinstance(rules, Sequence):
            parts = group_rules([source_of(rule, "Monitor") for rule in rules], limits)
        else:
            parts = [(as_automaton(source_of(rules, "Monitor"), limits), None)]
        self.groups = tuple(RuleGroup(source, letters, max_states, max_configurations) for source, letters in parts)
        names = dict.fromkeys(name for group in self.groups for name in group.fronts.terminals)
        self.owners: dict[str, int | None] = dict.fromkeys(names)
        for number, group in enumerate(self.groups):
            self.owners.update(dict.fromkeys(names if group.letters is None else group.letters, number))

    def __reduce__(self) -> tuple[object, ...]:
        # Cached results are not pickled; they are computed again.
        return CompiledRules, self._made_of

    @cached_property
    def start(self) -> tuple[ConfigurationSet, ...]:
        """The fronts of the groups before any event."""
        return tuple(group.fronts.start for group in self.groups)

    @cached_property
    def may_be_satisfiable(self) -> bool:
        """False if no sequence satisfies the rules; True also if that is not known."""
        return all(front.is_viable is not False for front in self.start)

    def apply_event(self, fronts: tuple[ConfigurationSet, ...], name: str) -> tuple[ConfigurationSet, ...] | None:
        """Return the fronts after one more terminal; None if it leads to a dead end."""
        number = self.owners.get(name, -1)
        if number is None:
            return fronts if self.may_be_satisfiable else None
        if number < 0:
            return None
        front = fronts[number].after_terminal(name)
        if front.is_viable is False or not self.may_be_satisfiable:
            return None
        return (front,) if len(fronts) == 1 else (*fronts[:number], front, *fronts[number + 1 :])

    @cached_property
    def fingerprint(self) -> str:
        """A short name that equal rules share.

        Raises:
            AutomatonError: a custom automaton does not provide a fingerprint.
        """
        fingerprints = [getattr(group.lookahead.automaton, "fingerprint", None) for group in self.groups]
        if None in fingerprints:
            raise AutomatonError("this automaton has no fingerprint, so a snapshot could not be recognised")
        return make_fingerprint([*fingerprints, list(self.owners)])

    @cached_property
    def trace_verifier(self) -> Verifier | None:
        """The verifier of whole traces, over the product of all groups; None if that is too large."""
        if len(self.groups) == 1:
            return self.groups[0].verifier if isinstance(self.groups[0].source, PDA) else None
        size = 1
        for group in self.groups:
            assert isinstance(group.source, PDA)
            size *= len(group.source.states)
        if size > _MOST_WHOLE:
            return None
        sources = [group.source for group in self.groups if isinstance(group.source, PDA)]
        whole = sources[0]
        for source in sources[1:]:
            whole = whole & source
        return Verifier(whole, max_states=self.max_states)

    def label(self, name: str) -> str:
        """Return the text to show to a person for a terminal."""
        number = self.owners.get(name)
        return self.groups[number or 0].lookahead.automaton.label(name)


class JointlyAllowed(Mapping[str, Allowed]):
    """The events that several groups of rules without common terminals allow together."""

    def __init__(self, rules: CompiledRules, fronts: tuple[ConfigurationSet, ...]) -> None:
        self._owners = rules.owners
        self._fronts = fronts
        self._rest: tuple[int | None, bool] | None = None

    def __contains__(self, name: object) -> bool:
        number = self._owners.get(name, -1)  # type: ignore[call-overload]  # any object may be asked for
        return number is None or (number >= 0 and name in self._fronts[number].allowed_terminals)

    def __getitem__(self, name: str) -> Allowed:
        number = self._owners[name]
        if self._rest is None:
            lengths = [front.shortest_length for front in self._fronts]
            known = [length for length in lengths if length is not None]
            total = sum(known) if len(known) == len(lengths) else None
            self._rest = total, all(front.is_viable for front in self._fronts)
        total, certain = self._rest
        if number is None:
            return Allowed(total, certain)
        here, found = self._fronts[number].shortest_length, self._fronts[number].allowed_terminals[name]
        if not found.certain or found.shortest is None or total is None or here is None:
            return Allowed(None, found.certain and certain)
        return Allowed(total - here + found.shortest, certain)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._owners if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))
