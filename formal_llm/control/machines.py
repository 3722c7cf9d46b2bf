"""The memory of a rule: a state, how events change it, and whether the rule is currently kept.

An event is a set of letters, since a payment over 100 is a payment too. A machine receives those of its own letters
that an event has, never none. It returns the next state, or None if the event breaks the rule for good. The distance is
the minimum number of events until the rule is kept; if no other rule interferes, that many suffice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, cast

if TYPE_CHECKING:  # rules in words need none of these, and a hook of a guard starts often
    from formal_llm.automata.languages.prefixes import ConfigurationSet
    from formal_llm.automata.models.pda import PDA

Letters = frozenset[str]
State = Hashable
Times = tuple[datetime, ...]
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


def get_configurations(state: State) -> frozenset[Hashable] | None:
    """Return the configurations that the state of a :class:`ConfigurationMachine` is; None if they are too many."""
    return cast("ConfigurationSet", state).configurations


def measure_effort(*states: State) -> int:
    """Measure what steps from some states cost at most, in steps of a rule with few states."""
    sets = [get_configurations(one) for one in states if hasattr(one, "configurations")]
    return max((_UNFOLLOWED if one is None else _FOLLOWED * len(one) for one in sets), default=1)


@dataclass(frozen=True)
class TableMachine(Machine):
    """A finite automaton over which of some groups of letters an event has.

    Attributes:
        groups: sets of letters. Bit n of an event's symbol is set if the event has a letter of ``groups[n]``.
        rows: for each state where the symbols lead; a symbol that is missing breaks the rule.
        accepting: the states in which the rule is kept if no event follows.
    """

    letters: tuple[str, ...]
    groups: tuple[Letters, ...]
    rows: Mapping[int, Mapping[int, int]]
    accepting: frozenset[int]
    start: State = 0
    _symbols: dict[Letters, int] = field(default_factory=dict, compare=False, repr=False)

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        symbol = self._symbols.get(letters)
        if symbol is None:
            symbol = self._symbols[letters] = get_symbol(self.groups, letters)
        return self.rows[cast("int", state)].get(symbol)

    def is_accepting(self, state: State) -> bool:
        return state in self.accepting

    @cached_property
    def _distances(self) -> Mapping[int, int]:
        before: dict[int, set[int]] = {}
        for source, row in self.rows.items():
            for target in row.values():
                before.setdefault(target, set()).add(source)
        distances = dict.fromkeys(self.accepting, 0)
        todo = list(distances)
        for state in todo:
            for source in before.get(state, ()):
                if source not in distances:
                    distances[source] = distances[state] + 1
                    todo.append(source)
        return distances

    def distance_to_acceptance(self, state: State) -> int | None:
        return self._distances.get(cast("int", state))


def get_symbol(groups: Sequence[Letters], letters: Letters) -> int:
    """Return the symbol of an event for a :class:`TableMachine`: bit n is whether it has a letter of ``groups[n]``."""
    return sum(1 << place for place, group in enumerate(groups) if not group.isdisjoint(letters))


def _build_table(
    letters: tuple[str, ...], groups: tuple[Letters, ...], start: int, move: Callable[..., int | None], due: range
) -> TableMachine:
    """Build the table of a rule from its moves.

    ``move`` takes a state, and for each group whether the event has a letter of it. An event is due in the states of
    ``due``.
    """
    flags = [[bool(symbol >> place & 1) for place in range(len(groups))] for symbol in range(1 << len(groups))]
    rows: dict[int, dict[int, int]] = {}
    todo = [start]
    for state in todo:
        if state not in rows:
            after = ((symbol, move(state, *flags[symbol])) for symbol in range(1, len(flags)))
            rows[state] = {symbol: target for symbol, target in after if target is not None}
            todo += rows[state].values()
    return TableMachine(letters, groups, rows, frozenset(state for state in rows if state not in due), start)


def build_never(letters: tuple[str, ...], names: Letters, after: Letters) -> TableMachine:
    """Build a rule that forbids ``names``; if there are letters in ``after``, only after one of these."""

    def move(closed: int, named: bool, closes: bool) -> int | None:
        return None if closed and named else int(closed or closes)

    return _build_table(letters, (names, after), int(not after), move, range(0))


def build_before(letters: tuple[str, ...], first: Letters, then: Letters, count: int, *, each: bool) -> TableMachine:
    """Build a rule that requires ``count`` times ``first`` before ``then``; if ``each``, anew before each one.

    The state counts ``first`` up to that number.
    """

    def move(counted: int, is_first: bool, is_then: bool) -> int | None:
        if is_then and counted < count:
            return None
        return min((0 if is_then and each else counted) + is_first, count)

    return _build_table(letters, (first, then), 0, move, range(0))


def build_after(letters: tuple[str, ...], first: Letters, then: Letters) -> TableMachine:
    """Build a rule that requires a ``first`` after each ``then``: the state is whether one is due."""

    def move(due: int, is_first: bool, is_then: bool) -> int:
        return 1 if is_then else 0 if is_first else due

    return _build_table(letters, (first, then), 0, move, range(1, 2))


def build_at_least(letters: tuple[str, ...], count: int) -> TableMachine:
    """Build a rule that requires a minimum number of its letters: the state is how many are missing."""
    return _build_table(letters, (frozenset(letters),), count, lambda left, _: max(0, left - 1), range(1, count + 1))


def build_within(letters: tuple[str, ...], first: Letters, then: Letters, calls: int, *, late: bool) -> TableMachine:
    """Build a rule that requires a ``first`` within ``calls`` calls, the events with ``ANY_CALL``, after each ``then``.

    The state is how many calls are left for what is due; -1 if nothing is. ``late`` is whether events that are no calls
    can be a ``first``, so that one may still follow the last call.
    """

    def move(left: int, is_first: bool, is_then: bool, is_call: bool) -> int | None:
        if is_call and left == 0:
            return None
        left = -1 if is_first else max(left - is_call, -1)
        if is_then and left < 0:
            left = calls
        return None if left == 0 and not late else left

    groups = (first, then, frozenset((ANY_CALL,)))
    return _build_table((*letters, ANY_CALL), groups, -1, move, range(calls + 1))


@dataclass(frozen=True)
class AtMostMachine(Machine):
    """Limits the number of ``names`` since the last of ``since``: the state is how many are left."""

    letters: tuple[str, ...]
    names: Letters
    since: Letters
    start: State
    resource: ClassVar[bool] = True

    def step(self, state: State, letters: Letters, weight: Fraction | None) -> State | None:
        left = cast("int", state) - bool(letters & self.names)
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
class ConfigurationMachine(Machine):
    """Rules in another notation, as sets of configurations. Of the letters of an event the first declared counts.

    ``pda`` is their automaton, if it has a stack and no limits.
    """

    letters: tuple[str, ...]
    start: ConfigurationSet
    pda: PDA | None = field(default=None, compare=False, repr=False)
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
    def step(self, state: Times, letters: Letters, now: datetime) -> tuple[Times, str | None]:
        """Return the state after an event, and why the event breaks the rule; None if it does not."""


@dataclass(frozen=True)
class RateMachine(TimedMachine):
    """Limits events to ``most`` ``within`` a duration: the state is the times of the last ones."""

    letters: tuple[str, ...]
    most: int
    within: timedelta

    def step(self, state: Times, letters: Letters, now: datetime) -> tuple[Times, str | None]:
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

    def step(self, state: Times, letters: Letters, now: datetime) -> tuple[Times, str | None]:
        problem = None
        if state and now - state[0] > self.within and (ANY_CALL in letters or letters & self.first):
            problem = f"it was due until {(state[0] + self.within).isoformat(' ', 'seconds')}"
        if letters & self.first:
            state = ()
        return state or ((now,) if letters & self.then else ()), problem
