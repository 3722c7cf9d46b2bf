"""The memory of a rule: a state, how events change it, and whether the rule is currently kept.

An event is a set of letters, since a payment over 100 is a payment too. A machine receives those of its own letters
that an event has, never none. It returns the next state, or None if the event breaks the rule for good. The distance is
the minimum number of events until the rule is kept; if no other rule interferes, that many suffice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, cast

if TYPE_CHECKING:  # rules in words need none of these, and a hook of a guard starts often
    from formal_llm.automata.languages.prefixes import ConfigurationSet
    from formal_llm.automata.lookahead.lookahead import Lookahead
    from formal_llm.automata.models.dfa import DFA

Letters = frozenset[str]
State = Hashable
#: The name of the letter of calls that have none of some letters begins so; and the letter of all calls.
OTHERS = "* but "
ANY_CALL = f"{OTHERS}nothing"
#: What a step from a configuration costs, in steps of a rule with few states; and if there are too many to follow.
_FOLLOWED, _UNFOLLOWED = 20, 10_000


class Machine(ABC):
    """A rule as an executable state machine.

    Attributes:
        letters: the letters it depends on, in the order of their declaration.
        start: the state before any event.
        resource: whether its states are numbers of which a larger one is never worse, whatever follows.
    """

    letters: tuple[str, ...]
    start: State
    resource: ClassVar[bool] = False

    @abstractmethod
    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        """Return the state after an event with these of its letters; ``weight`` is what the event adds to its sum."""

    def measure_use(self, letters: Letters, weight: Fraction | None) -> Fraction | int | None:
        """Return what an event takes from what is left for the whole run; None if the rule bounds nothing of this."""
        return None

    def is_accepting(self, state: State) -> bool:
        """Return whether the rule is kept if no event follows."""
        return self.distance_to_acceptance(state) == 0

    def distance_to_acceptance(self, state: State) -> int | None:
        """Return the minimum number of events until the rule is kept; None if it cannot be kept any more."""
        return 0


def measure_effort(*states: State) -> int:
    """Measure what steps from some states cost at most, in steps of a rule with few states."""
    sets = [cast("ConfigurationSet", one).configurations for one in states if hasattr(one, "configurations")]
    return max((_UNFOLLOWED if one is None else _FOLLOWED * len(one) for one in sets), default=1)


@dataclass(frozen=True)
class NeverMachine(Machine):
    """Forbids ``names``; if there are letters in ``after``, only after one of these."""

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
    """Requires ``count`` times ``first`` before ``then``: the state counts them up to that number."""

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
    """Requires a ``first`` after each ``then``: the state is whether one is due."""

    letters: tuple[str, ...]
    first: Letters
    then: Letters
    start: State = False

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        return True if letters & self.then else False if letters & self.first else state

    def distance_to_acceptance(self, state: State) -> int | None:
        return int(bool(state))


@dataclass(frozen=True)
class WithinMachine(Machine):
    """Requires a ``first`` within ``calls`` calls, the events with ``ANY_CALL``, after each ``then``.

    The state is how many calls are left for what is due; -1 if nothing is. ``late`` is whether events that are no calls
    can be a ``first``, so that one may still follow the last call.
    """

    letters: tuple[str, ...]
    first: Letters
    then: Letters
    calls: int
    late: bool
    start: State = -1

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        assert isinstance(state, int)
        left = state
        if ANY_CALL in letters:
            if left == 0:
                return None
            left = max(left - 1, -1)
        if letters & self.first:
            left = -1
        if letters & self.then and left < 0:
            left = self.calls
        return None if left == 0 and not self.late else left

    def distance_to_acceptance(self, state: State) -> int | None:
        return int(state != -1)


@dataclass(frozen=True)
class AtLeastMachine(Machine):
    """Requires a minimum number of its letters: the state is how many are missing."""

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
    """Limits the number of ``names`` since the last of ``since``: the state is how many are left."""

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
        # The letters of the event that restarts the count still belong to the time before it.
        return self.start if letters & self.since else left

    def measure_use(self, letters: Letters, weight: Fraction | None) -> int | None:
        return None if self.since else int(bool(letters & self.names))


@dataclass(frozen=True)
class BudgetMachine(Machine):
    """Limits a sum over events: the state is what is left. An event without an amount of at least 0 breaks the rule."""

    letters: tuple[str, ...]
    quantity: str
    start: State
    resource: ClassVar[bool] = True

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        assert isinstance(state, Fraction)
        return None if weight is None or weight < 0 or weight > state else state - weight

    def measure_use(self, letters: Letters, weight: Fraction | None) -> Fraction | int | None:
        return weight or 0


@dataclass(frozen=True)
class TableMachine(Machine):
    """A finite automaton over sets of letters, compiled from a formula."""

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
        distances = dict.fromkeys(self.dfa.accepting, 0)
        todo = list(distances)
        for state in todo:
            for source in before.get(state, ()):
                if source not in distances:
                    distances[source] = distances[state] + 1
                    todo.append(source)
        return distances

    def distance_to_acceptance(self, state: State) -> int | None:
        assert isinstance(state, int)
        return self._distances.get(state)


@dataclass(frozen=True)
class ConfigurationMachine(Machine):
    """Rules in another notation, as sets of configurations. Of the letters of an event the first declared counts.

    ``lookahead`` is that of their automaton, if this is one with a stack and no limits.
    """

    letters: tuple[str, ...]
    start: ConfigurationSet
    lookahead: Lookahead | None = field(default=None, compare=False, repr=False)
    _order: Mapping[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_order", {name: place for place, name in enumerate(self.letters)})

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        after = cast("ConfigurationSet", state).after_terminal(self.select_letter(letters))
        return None if after.is_viable is False else after

    def select_letter(self, letters: Letters) -> str:
        """Return the letter of an event that counts."""
        return min(letters, key=self._order.__getitem__) if len(letters) > 1 else next(iter(letters))

    def is_accepting(self, state: State) -> bool:
        return cast("ConfigurationSet", state).may_stop

    def distance_to_acceptance(self, state: State) -> int | None:
        front = cast("ConfigurationSet", state)
        return None if front.is_viable is False else front.shortest_length or 0


# -- rules about time --------------------------------------------------------------------------------------------------


class TimedMachine(ABC):
    """A rule about the times of events: the state is times, none before any event.

    Time passes by itself, so looking ahead ignores such a rule.
    """

    letters: tuple[str, ...]

    @abstractmethod
    def step(
        self, state: tuple[datetime, ...], letters: Letters, now: datetime
    ) -> tuple[tuple[datetime, ...], str | None]:
        """Return the state after an event, and why the event breaks the rule; None if it does not."""


@dataclass(frozen=True)
class RateMachine(TimedMachine):
    """Limits events to ``most`` ``within`` a duration: the state is the times of the last ones."""

    letters: tuple[str, ...]
    most: int
    within: timedelta

    def step(
        self, state: tuple[datetime, ...], letters: Letters, now: datetime
    ) -> tuple[tuple[datetime, ...], str | None]:
        if not self.most:
            return state, ""
        if len(state) >= self.most and now < (end := state[-self.most] + self.within):
            return state, f"wait until {end.isoformat(' ', 'seconds')}"
        return (*state, now)[-self.most :], None


@dataclass(frozen=True)
class DeadlineMachine(TimedMachine):
    """Requires a ``first`` ``within`` a duration after each ``then``: the state is the time since which one is due.

    Once the time has passed, each call breaks the rule; a ``first`` does so as well, but nothing is due after it.
    """

    letters: tuple[str, ...]
    first: Letters
    then: Letters
    within: timedelta

    def step(
        self, state: tuple[datetime, ...], letters: Letters, now: datetime
    ) -> tuple[tuple[datetime, ...], str | None]:
        problem = None
        if state and now - state[0] > self.within and (ANY_CALL in letters or letters & self.first):
            problem = f"it was due until {(state[0] + self.within).isoformat(' ', 'seconds')}"
        if letters & self.first:
            state = ()
        return state or ((now,) if letters & self.then else ()), problem


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
