"""What a rule remembers: a state, how events change it, and whether the rule is kept where things stand.

An event is a set of letters, since a payment over 100 is a payment too. A machine is told those of its own letters that
an event has, never none. It answers the next state, or None where the event breaks the rule for good. ``distance`` is
how many events it takes at least until the rule is kept; where the rule looks at nothing else, so many do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from formal_llm.automata.languages.fronts import ConfigurationSet
from formal_llm.automata.models.dfa import DFA

Letters = frozenset[str]
State = Hashable


class Machine(ABC):
    """A rule as it runs.

    Attributes:
        letters: what it looks at, in the order in which they were declared.
        start: the state before any event.
        resource: whether its states are numbers of which more is never worse, whatever comes.
    """

    letters: tuple[str, ...]
    start: State
    resource: ClassVar[bool] = False

    @abstractmethod
    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        """The state after an event that has these of its letters; ``weight`` is what the event adds to its sum."""

    def is_accepting(self, state: State) -> bool:
        """Whether the rule is kept if nothing more comes."""
        return self.distance_to_acceptance(state) == 0

    def distance_to_acceptance(self, state: State) -> int | None:
        """How many events it takes at least until it is kept; None where it cannot be any more."""
        return 0


@dataclass(frozen=True)
class NeverMachine(Machine):
    """No ``names``; where ``after`` is given, none after one of these."""

    letters: tuple[str, ...]
    names: Letters
    after: Letters
    start: State

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        if state and letters & self.names:
            return None
        return state or bool(letters & self.after)


@dataclass(frozen=True)
class BeforeMachine(Machine):
    """So many ``first`` before ``then``: the state counts them, as far as they are needed."""

    letters: tuple[str, ...]
    first: Letters
    then: Letters
    count: int
    each: bool
    start: State = 0

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        assert isinstance(state, int)
        if letters & self.then:
            if state < self.count:
                return None
            state = 0 if self.each else state
        return min(state + 1, self.count) if letters & self.first else state


@dataclass(frozen=True)
class AfterMachine(Machine):
    """A ``first`` behind each ``then``: the state is whether one is owed."""

    letters: tuple[str, ...]
    first: Letters
    then: Letters
    start: State = False

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        return True if letters & self.then else False if letters & self.first else state

    def distance_to_acceptance(self, state: State) -> int | None:
        return int(bool(state))


@dataclass(frozen=True)
class AtLeastMachine(Machine):
    """So many of its letters at least: the state is how many are lacking."""

    letters: tuple[str, ...]
    start: State

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        assert isinstance(state, int)
        return max(0, state - 1)

    def distance_to_acceptance(self, state: State) -> int | None:
        assert isinstance(state, int)
        return state


@dataclass(frozen=True)
class AtMostMachine(Machine):
    """So many ``names`` at most, since the last of ``since``: the state is how many are left."""

    letters: tuple[str, ...]
    names: Letters
    since: Letters
    start: State
    resource: ClassVar[bool] = True

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        assert isinstance(state, int)
        assert isinstance(self.start, int)
        left = state
        if letters & self.names:
            left -= 1
            if left < 0:
                return None
        # What comes with the event that begins anew still belongs to what was before.
        return self.start if letters & self.since else left


@dataclass(frozen=True)
class BudgetMachine(Machine):
    """A sum of what events add: the state is what is left. What adds no amount from 0 breaks the rule."""

    letters: tuple[str, ...]
    quantity: str
    start: State
    resource: ClassVar[bool] = True

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        assert isinstance(state, Fraction)
        return None if weight is None or weight < 0 or weight > state else state - weight


@dataclass(frozen=True)
class TableMachine(Machine):
    """A finite automaton over sets of letters, from a formula."""

    letters: tuple[str, ...]
    dfa: DFA
    symbols: Mapping[Letters, str]
    start: State = 0

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        assert isinstance(state, int)
        symbol = self.symbols.get(letters)
        return None if symbol is None else self.dfa.table[state].get(symbol)

    def is_accepting(self, state: State) -> bool:
        return state in self.dfa.accepting

    @cached_property
    def _distances(self) -> Mapping[int, int]:
        before: dict[int, set[int]] = {}
        for source, row in enumerate(self.dfa.table):
            for target in row.values():
                before.setdefault(target, set()).add(source)
        found = dict.fromkeys(self.dfa.accepting, 0)
        todo = list(found)
        for state in todo:
            for source in before.get(state, ()):
                if source not in found:
                    found[source] = found[state] + 1
                    todo.append(source)
        return found

    def distance_to_acceptance(self, state: State) -> int | None:
        assert isinstance(state, int)
        return self._distances.get(state)


@dataclass(frozen=True)
class ConfigurationMachine(Machine):
    """Rules in another notation, as fronts. An event that has several of their letters is the one declared first."""

    letters: tuple[str, ...]
    start: ConfigurationSet
    _order: Mapping[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_order", {name: place for place, name in enumerate(self.letters)})

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        assert isinstance(state, ConfigurationSet)
        name = min(letters, key=self._order.__getitem__) if len(letters) > 1 else next(iter(letters))
        after = state.after_terminal(name)
        return None if after.is_viable is False else after

    def is_accepting(self, state: State) -> bool:
        assert isinstance(state, ConfigurationSet)
        return state.may_stop

    def distance_to_acceptance(self, state: State) -> int | None:
        assert isinstance(state, ConfigurationSet)
        if state.is_viable is False:
            return None
        return state.shortest_length or 0


# -- rules about when --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimedMachine:
    """``most`` events ``within`` so long: the state is when the last of them were.

    Time passes by itself, so such a rule can always be kept by waiting; it plays no part in looking ahead.
    """

    letters: tuple[str, ...]
    most: int
    within: timedelta

    @property
    def start(self) -> tuple[datetime, ...]:
        """No event yet."""
        return ()

    def find_wait_end(self, state: Sequence[datetime], now: datetime) -> datetime | None:
        """Until when an event has to wait; None where it may come now."""
        if not self.most:
            return datetime.max.replace(tzinfo=now.tzinfo)
        if len(state) < self.most or state[-self.most] + self.within <= now:
            return None
        return state[-self.most] + self.within

    def step(self, state: tuple[datetime, ...], now: datetime) -> tuple[datetime, ...]:
        """The state after an event."""
        return (*state, now)[-self.most :] if self.most else ()


def list_letter_sets(letters: Sequence[str], together: Iterable[tuple[str, str]], most: int) -> list[Letters] | None:
    """The sets of letters that one event may have, none empty; None where there are more than ``most``."""
    friends = {frozenset(pair) for pair in together}
    found: list[Letters] = []
    grown: list[tuple[str, ...]] = [()]
    for name in letters:
        new = [(*old, name) for old in grown if all(frozenset((name, other)) in friends for other in old)]
        grown += new
        found += [frozenset(one) for one in new]
        if len(found) > most:
            return None
    return found
