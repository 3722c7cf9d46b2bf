"""The subset construction, made as words are read: how a finite automaton reads a letter with one look into a table.

After a word a nondeterministic automaton may be in several states; the sets of these are the states of a deterministic
one (Rabin and Scott 1959). Only the sets that some word led to are made, and each set keeps where its letters lead, so
that what was read before is read again at the price of a dictionary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.symbols import find_reachable
from formal_llm.automata.models.transition import Transition

#: How many sets are kept: a few automata have as many as 2 to the number of their states.
_KEPT = 10_000


class StateSet(dict[str, "StateSet | None"]):
    """The states after some word; and for each letter the states after that, None where there are none."""

    __slots__ = ("accepting", "owner", "states")

    def __init__(self, owner: SubsetConstruction, states: frozenset[State]) -> None:
        super().__init__()
        self.owner = owner
        self.states = states
        self.accepting = not owner.accepting.isdisjoint(states)

    def __missing__(self, letter: str) -> StateSet | None:
        after = self.owner.states_after(self.states, letter)
        self[letter] = after
        return after


class SubsetConstruction:
    """Membership for a finite automaton.

    Args:
        transitions: none of which touches a stack.
        start: the initial state.
        accepting: the final states.
    """

    def __init__(self, transitions: Iterable[Transition], start: State, accepting: Collection[State]) -> None:
        self.accepting = frozenset(accepting)
        self._silent: dict[State, list[State]] = {}
        self._reading: dict[tuple[State, str], list[State]] = {}
        for transition in transitions:
            if transition.read is None:
                self._silent.setdefault(transition.state, []).append(transition.target)
            else:
                self._reading.setdefault((transition.state, transition.read), []).append(transition.target)
        self._sets: dict[frozenset[State], StateSet] = {}
        self._start = self._close_states([start])

    def accepts(self, word: Iterable[str]) -> bool:
        """Whether some run reads ``word`` and ends in a final state."""
        if len(self._sets) > _KEPT:
            self._sets.clear()
            self._start = self._close_states(self._start.states)
        now: StateSet | None = self._start
        for letter in word:
            now = now[letter]  # type: ignore[index]  # it was looked at one letter ago
            if now is None:
                return False
        return now is not None and now.accepting

    def states_after(self, states: Iterable[State], letter: str) -> StateSet | None:
        """Where a letter leads from a set of states; None: nowhere."""
        targets = [target for state in states for target in self._reading.get((state, letter), ())]
        return self._close_states(targets) if targets else None

    def _close_states(self, states: Iterable[State]) -> StateSet:
        """These states, and those that moves without input lead to."""
        closed = frozenset(find_reachable(states, lambda state: self._silent.get(state, ())))
        found = self._sets.get(closed)
        if found is None:
            found = self._sets[closed] = StateSet(self, closed)
        return found
