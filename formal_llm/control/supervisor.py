"""Which rules together can still be kept, and which are to blame where they cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from formal_llm.control.component import Component, ControlledRule, Position, project_node
from formal_llm.control.plant import Plant, PlantSymbol
from formal_llm.control.search import Guarantee, ViabilitySearch

#: So many answers about which rules look at an event are kept.
_KEPT = 10_000


class Supervisor:
    """Looks ahead for some of the rules.

    Args:
        numbers: which of them.
        rules: all rules.
        plant: what can happen.
        guarantee: what is asked for.
        max_states: how many nodes one question may visit.

    Rules that look at different tools are looked at apart: the whole can be kept just if each part can.
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
        self.lookouts = tuple(
            ViabilitySearch(Component(some, plant), plant, guarantee, max_states)
            for some in _group_independent_rules(parts, plant)
        )
        self._looking: dict[tuple[str, ...], tuple[ViabilitySearch, ...]] = {}
        self._blamed: dict[frozenset[int], Supervisor] = {}

    def is_viable(self, position: Position, changed: Sequence[ViabilitySearch] | None = None) -> bool | None:
        """Whether the rules can still be kept; None where that is not known. ``changed``: only these are looked at."""
        unknown = False
        for lookout in self.lookouts if changed is None else changed:
            found = lookout.is_viable(project_node(position, lookout.component))
            if found is False:
                return False
            unknown = unknown or found is None
        return None if unknown else True

    def select_searches(self, letters: Iterable[str], tool: str) -> Sequence[ViabilitySearch]:
        """What looks at an event."""
        asked = (*letters, tool)
        found = self._looking.get(asked)
        if found is None:
            if len(self._looking) > _KEPT:
                self._looking.clear()
            found = self._looking[asked] = tuple(
                lookout
                for lookout in self.lookouts
                if tool in lookout.component.answering or not lookout.component.letters.isdisjoint(asked[:-1])
            )
        return found

    def find_unmet_rules(self, position: Position) -> tuple[int, ...]:
        """The rules that are not kept if nothing more comes."""
        found = []
        for number in sorted(self.numbers):
            part = self._rules[number]
            states = position.live[number].values() if part.keys else (position.states[number],)
            if not all(part.machine.is_accepting(state) for state in states):
                found.append(number)
        return tuple(found)

    def find_way(self, position: Position) -> tuple[PlantSymbol, ...] | None:
        """The symbols of a way to where all rules are kept; None where none is known."""
        found: list[PlantSymbol] = []
        for lookout in self.lookouts:
            way = lookout.find_way(project_node(position, lookout.component))
            if way is None:
                return None
            found += way
        return tuple(found)

    def find_closed_tools(self, position: Position) -> frozenset[str]:
        """The tools of which no call is allowed; rules that are looked at apart share no tool."""
        return frozenset().union(
            *(lookout.find_closed_tools(project_node(position, lookout.component)) for lookout in self.lookouts)
        )

    def without_rules(self, numbers: Collection[int]) -> Supervisor:
        """The same without some rules."""
        left = self.numbers.difference(numbers)
        found = self._blamed.get(left)
        if found is None:
            found = self._blamed[left] = Supervisor(left, *self._made_with)
        return found

    def find_minimal_conflict(self, position: Position) -> tuple[int, ...]:
        """A smallest set of rules, of which none can be left out, that cannot be kept together from here."""
        dead = [
            lookout for lookout in self.lookouts
            if lookout.is_viable(project_node(position, lookout.component)) is False
        ]  # fmt: skip
        if not dead:
            return ()
        needed = set(dead[0].component.parts)
        smaller = self.without_rules(self.numbers - needed)
        for number in sorted(needed, reverse=True):
            without = smaller.without_rules((number,))
            if without.is_viable(position) is False:
                smaller = without
        return tuple(sorted(smaller.numbers))


def _group_independent_rules(parts: Mapping[int, ControlledRule], plant: Plant) -> list[dict[int, ControlledRule]]:
    """Rules in groups that share nothing that can happen."""
    found: list[tuple[set[tuple[str, str]], list[int]]] = []
    places: dict[str, set[tuple[str, str]]] = {}
    for symbol in plant.symbols:
        for name in symbol.letters:
            # A call and its result belong together: one comes only after the other.
            kind = "tool" if symbol.kind in ("call", "result") else symbol.kind
            places.setdefault(name, set()).add((kind, symbol.tool))
    for number, part in parts.items():
        mine = {place for name in part.machine.letters for place in places.get(name, ())}
        numbers = [number]
        apart = []
        for others, some in found:
            if others & mine:
                mine = mine | others
                numbers = some + numbers
            else:
                apart.append((others, some))
        found = [*apart, (mine, numbers)]
    return [
        {number: parts[number] for number in sorted(numbers)}
        for _, numbers in sorted(found, key=lambda one: min(one[1]))
    ]


def describe_way(way: Sequence[PlantSymbol], shown: Mapping[str, str]) -> tuple[str, ...]:
    """A way in words: each step as the tool to call, or what has to come."""
    found = []
    for symbol in way:
        names = [shown.get(name, name) for name in sorted(symbol.letters)]
        if symbol.kind == "call":
            found.append(names[0] if names else symbol.tool)
        elif symbol.kind == "result":
            found.append(names[0] if names else f"{symbol.tool}.result")
        else:
            found.append(names[0] if names else symbol.kind)
    return tuple(found)
