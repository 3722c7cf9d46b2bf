"""Supervisors: they decide which rules can still be kept together, and which conflict if they cannot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain

from formal_llm.automata.lookahead.verdicts import Guarantee
from formal_llm.control.component import Component, ControlledRule, Position, project_node
from formal_llm.control.machines import State
from formal_llm.control.plant import Plant, PlantSymbol
from formal_llm.control.search import ViabilitySearch

#: The maximum number of cached answers about which rules depend on an event.
_KEPT = 10_000


class Supervisor:
    """A supervisor, which looks ahead for some of the rules.

    Args:
        numbers: which of them.
        rules: all rules.
        plant: what can happen.
        guarantee: what is asked for.
        max_states: how many nodes one question may visit.

    Rules that depend on different tools are examined separately: all can be kept if and only if each group can.
    """

    def __init__(
        self,
        numbers: Iterable[int],
        rules: Sequence[ControlledRule],
        plant: Plant,
        guarantee: Guarantee,
        max_states: int,
    ) -> None:
        self.numbers = frozenset(numbers)
        self._rules = rules
        self._made_with = (rules, plant, guarantee, max_states)
        parts = {number: rules[number] for number in sorted(self.numbers)}
        self._openers = _find_openers(rules)
        self.searches = tuple(
            ViabilitySearch(Component(some, plant), plant, guarantee, max_states)
            for some in _group_independent_rules(parts, plant, self._openers)
        )
        self._looking: dict[tuple[str, ...], tuple[ViabilitySearch, ...]] = {}
        self._blamed: dict[frozenset[int], Supervisor] = {}

    def is_viable(self, position: Position, changed: Iterable[ViabilitySearch] | None = None) -> bool | None:
        """Return whether the rules can still be kept, None if unknown; with ``changed`` examine only these groups."""
        unknown = False
        for search in self.searches if changed is None else changed:
            verdict = search.is_viable(project_node(position, search.component))
            if verdict is False:
                return False
            unknown = unknown or verdict is None
        return None if unknown else True

    def select_searches(self, letters: Iterable[str], tool: str) -> Sequence[ViabilitySearch]:
        """Select the searches of the rules that depend on an event."""
        key = (*letters, tool)
        searches = self._looking.get(key)
        if searches is None:
            if len(self._looking) > _KEPT:
                self._looking.clear()
            searches = self._looking[key] = tuple(
                search
                for search in self.searches
                if tool in search.component.answering
                or not search.component.letters.isdisjoint(key[:-1])
                or any(not self._openers[keys].isdisjoint(key[:-1]) for keys in search.component.keys)
            )
        return searches

    def find_unmet_rules(self, position: Position) -> tuple[int, ...]:
        """Find the rules that are not kept if no event follows."""

        def list_states(number: int, keys: tuple[str, ...]) -> Iterable[State | None]:
            if not keys:
                return (position.states[number],)
            place = position.live[keys].numbers.index(number)
            return (states[place] for states in position.live[keys].counts)

        parts = [(number, self._rules[number]) for number in sorted(self.numbers)]
        return tuple(
            number
            for number, part in parts
            if any(one is not None and not part.machine.is_accepting(one) for one in list_states(number, part.keys))
        )

    def find_way(self, position: Position) -> tuple[PlantSymbol, ...] | None:
        """Return the symbols of a way to a state in which all rules are kept; None if none is known."""
        ways = [search.find_way(project_node(position, search.component)) for search in self.searches]
        return None if None in ways else tuple(symbol for way in ways for symbol in way or ())

    def find_undecided_rules(self, position: Position, searches: Iterable[ViabilitySearch]) -> tuple[int, ...]:
        """Find the rules of those searches that hit their bound."""
        undecided = [search.component.parts for search in searches if self.is_viable(position, [search]) is None]
        return tuple(sorted(chain(*undecided)))

    def find_closed_tools(self, position: Position, *, unsure: bool = False) -> frozenset[str]:
        """Find the tools of which no call is allowed; separately examined rules share no tool.

        Args:
            position: the position.
            unsure: whether a call is not allowed if it is not known whether the rules can be kept after it.
        """
        nodes = [(search, project_node(position, search.component)) for search in self.searches]
        return frozenset().union(*(search.find_closed_tools(node, unsure=unsure) for search, node in nodes))

    def without_rules(self, numbers: Collection[int]) -> Supervisor:
        """Return the supervisor without some rules."""
        left = self.numbers.difference(numbers)
        supervisor = self._blamed.get(left)
        if supervisor is None:
            supervisor = self._blamed[left] = Supervisor(left, *self._made_with)
        return supervisor

    def find_minimal_conflict(self, position: Position) -> tuple[int, ...]:
        """Find a minimal set of rules that cannot be kept together from here: without any one of them, they can."""
        dead = next((search for search in self.searches if self.is_viable(position, [search]) is False), None)
        if dead is None:
            return ()
        smaller = self.without_rules(self.numbers.difference(dead.component.parts))
        for number in sorted(dead.component.parts, reverse=True):
            without = smaller.without_rules((number,))
            if without.is_viable(position) is False:
                smaller = without
        return tuple(sorted(smaller.numbers))


def _find_openers(rules: Iterable[ControlledRule]) -> dict[tuple[str, ...], set[str]]:
    """Find for each set of keys the letters that begin a new copy of all its rules, if something may be due in one."""
    parts = [part for part in rules if part.keys]
    due = {
        part.keys
        for part in parts
        if not part.machine.is_accepting(part.machine.start) or not part.keyed.issuperset(part.machine.letters)
    }
    openers: dict[tuple[str, ...], set[str]] = {part.keys: set() for part in parts}
    for part in parts:
        openers[part.keys] |= part.keyed if part.keys in due else set()
    return openers


def _group_independent_rules(
    parts: Mapping[int, ControlledRule], plant: Plant, openers: Mapping[tuple[str, ...], Iterable[str]]
) -> list[dict[int, ControlledRule]]:
    """Group rules so that different groups share no events."""
    places: dict[str, set[tuple[str, str]]] = {}
    for symbol in plant.symbols:
        # A call and its result belong together: the result only follows the call.
        kind = "tool" if symbol.kind in ("call", "result") else symbol.kind
        for name in symbol.letters:
            places.setdefault(name, set()).add((kind, symbol.tool))
    groups: list[tuple[set[tuple[str, str]], list[int]]] = []
    for number, part in parts.items():
        letters = (*part.machine.letters, *openers.get(part.keys, ()))
        events = {place for name in letters for place in places.get(name, ())}
        joined = [group for group in groups if not group[0].isdisjoint(events)]
        groups = [group for group in groups if group not in joined]
        groups.append((events.union(*(one for one, _ in joined)), [*chain(*(one for _, one in joined)), number]))
    return [
        {number: parts[number] for number in sorted(numbers)}
        for _, numbers in sorted(groups, key=lambda one: min(one[1]))
    ]


def describe_way(
    way: Sequence[PlantSymbol], describe_letter: Callable[[PlantSymbol, str], str] = lambda _, name: name
) -> tuple[str, ...]:
    """Describe a way in words: each step as the tool to call, or the event that has to happen.

    Args:
        way: the steps.
        describe_letter: describes an event by one of its letters; the letter's name where left out.
    """
    endings = {"call": "", "result": ".result"}
    return tuple(
        describe_letter(symbol, symbol.names[0])
        if symbol.names
        else f"{symbol.tool}{endings[symbol.kind]}"
        if symbol.kind in endings
        else symbol.kind
        for symbol in way
    )
