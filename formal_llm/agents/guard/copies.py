"""How far one copy of rules ``for each`` is from being kept, with nothing else in the way.

Copies of rules with the same keys move together: what one of them owes, another may forbid. So they are followed
together, over all that can come. What cannot be kept so cannot be kept at all, whatever other copies and rules do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from formal_llm.agents.guard.machines import Letters, Machine, State

Vector = tuple[State, ...]
#: Rules with more states together are measured one by one.
_MOST = 300


class MachineMove(NamedTuple):
    """What an event does to a rule: its place, those of its letters, and what is added to its sum."""

    place: int
    letters: Letters
    weight: Fraction | None


def apply_moves(machines: Sequence[Machine], vector: Vector, moves: Sequence[MachineMove]) -> Vector | None:
    """Where an event leads; None where it breaks a rule."""
    if not moves:
        return vector
    made = list(vector)
    for place, letters, weight in moves:
        after = machines[place].step(vector[place], letters, weight)
        if after is None:
            return None
        made[place] = after
    return tuple(made)


class CopyDistances:
    """Distances of copies.

    Args:
        machines: the rules.
        events: of each event that can come, what it does to all copies, and what besides to the copy that it is about.
    """

    def __init__(
        self, machines: Sequence[Machine], events: Iterable[tuple[Sequence[MachineMove], Sequence[MachineMove]]]
    ) -> None:
        self._machines = tuple(machines)
        self._events = [*dict.fromkeys((tuple(every), tuple(one)) for every, one in events if every or one)]
        self._known: dict[Vector, int | None] = {}

    def measure_distance(self, vector: Vector) -> int | None:
        """The fewest events after which all rules of a copy are kept; None where they cannot be.

        Where they have too many states together, the sum of what each rule by itself needs.
        """
        if vector not in self._known:
            self._known[vector] = self._search_distance(vector)
        return self._known[vector]

    def _search_distance(self, vector: Vector) -> int | None:
        seen, level, found = {vector}, [vector], 0
        while level and len(seen) <= _MOST:
            if any(self._is_accepting(one) for one in level):
                return found
            found += 1
            further = [after for one in level for after in self._find_successors(one)]
            level = [one for one in dict.fromkeys(further) if one not in seen]
            seen.update(level)
        if not level:
            return None
        apart = [machine.distance_to_acceptance(state) for machine, state in zip(self._machines, vector, strict=True)]
        return None if None in apart else sum(one for one in apart if one is not None)

    def _is_accepting(self, vector: Vector) -> bool:
        return all(machine.is_accepting(state) for machine, state in zip(self._machines, vector, strict=True))

    def _find_successors(self, vector: Vector) -> Iterable[Vector]:
        for every, one in self._events:
            other = apply_moves(self._machines, vector, every)
            if other is None:
                continue
            yield other
            mine = apply_moves(self._machines, other, one)
            if mine is not None:
                yield mine
