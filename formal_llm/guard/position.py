"""The positions of a guard: which events have moved which rules where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.control.component import Cases, Key, Pending, Position
from formal_llm.control.machines import ANY_CALL, DeadlineMachine, State, Times
from formal_llm.guard.events import Call, GuardEvent, Said
from formal_llm.guard.rules.compiled import RulePart, TimedRulePart
from formal_llm.guard.rules.data import Undetermined, read_value, to_number, write_value
from formal_llm.guard.rules.labels import EventLabels, Fields, make_key
from formal_llm.planning.json_data import JSON

#: The maximum number of pending calls to remember, in case results are not recorded.
_MOST_CALLS = 63


class BrokenMachine(NamedTuple):
    """A machine that an event breaks.

    Attributes:
        place: its index.
        said: an additional explanation.
        late: whether the event is what was due, and only too late.
    """

    place: int
    timed: bool = False
    said: str = ""
    late: bool = False


class Movement(NamedTuple):
    """The effect of an event: the new position, in which broken machines keep their states, and these machines."""

    position: Position
    refused: tuple[BrokenMachine, ...]


def _begin_cases(parts: Sequence[RulePart], keys: tuple[str, ...]) -> Cases:
    return Cases(tuple(place for place, part in enumerate(parts) if part.keys == keys), FrozenDict(), FrozenDict())


class _MovedCases:
    """The cases that one event moves; all others are shared with the position before."""

    def __init__(self, live: Mapping[tuple[str, ...], Cases]) -> None:
        self._live = live
        self._moved: dict[tuple[str, ...], dict[Key, list[State | None]]] = {keys: {} for keys in live}

    def get_state(self, keys: tuple[str, ...], number: int, case: Key, base: State | None) -> State | None:
        """Return the state of a machine in a case; ``base`` if the case is new."""
        cases = self._live[keys]
        states = self._moved[keys].get(case) or cases.states.get(case)
        return base if states is None else states[cases.numbers.index(number)]

    def set_state(self, keys: tuple[str, ...], number: int, case: Key, state: State) -> None:
        """Set the state of a machine in a case."""
        cases = self._live[keys]
        states = self._moved[keys].setdefault(case, list(cases.states.get(case, ())))
        states[cases.numbers.index(number)] = state

    def open_case(self, keys: tuple[str, ...], case: Key, states: Sequence[State | None]) -> None:
        """Add a case if it is new."""
        cases = self._live[keys]
        if case not in cases.states:
            self._moved[keys].setdefault(case, [states[number] for number in cases.numbers])

    def move_all(self, keys: tuple[str, ...], number: int, step: Callable[[State], State | None]) -> Key | None:
        """Move a machine in all cases; return the first case in which it breaks, and keeps its state."""
        cases, moved = self._live[keys], self._moved[keys]
        index = cases.numbers.index(number)
        vectors = (*cases.counts, *moved.values())
        after = {state: step(state) for state in {one[index] for one in vectors} if state is not None}
        broken: Key | None = None
        if all(state == now for state, now in after.items()):
            return broken
        for case in dict.fromkeys((*cases.states, *moved)):
            state = self.get_state(keys, number, case, None)
            now = None if state is None else after[state]
            if now is not None and now != state:
                self.set_state(keys, number, case, now)
            elif now is None and state is not None:
                broken = broken or case
        return broken

    def build_cases(self) -> Mapping[tuple[str, ...], Cases]:
        """Return all cases after the event."""
        if not any(self._moved.values()):
            return self._live
        return FrozenDict(
            {
                keys: cases.with_states(moved) if (moved := self._moved[keys]) else cases
                for keys, cases in self._live.items()
            }
        )


class PositionTracker:
    """Computes positions.

    Args:
        parts: the machines that are considered when looking ahead.
        answers: returns the letters that results of a tool may have; if there are any, its pending calls matter.
    """

    def __init__(
        self, parts: Sequence[RulePart], timed: Sequence[TimedRulePart], answers: Callable[[str], Collection[str]]
    ) -> None:
        self._answers = answers
        self.parts = tuple(parts)
        self.timed = tuple(timed)
        keys = dict.fromkeys(part.keys for part in parts if part.keys)
        self.start = Position(
            tuple(part.machine.start for part in parts),
            FrozenDict({each: _begin_cases(parts, each) for each in keys}),
            tuple(FrozenDict[Key, Times]() for _ in timed),
            (),
        )
        #: The machines that depend on a letter.
        self._looking: dict[str, list[int]] = {}
        self._looking_timed: dict[str, list[int]] = {}
        for place, part in enumerate(self.parts):
            for name in part.machine.letters:
                self._looking.setdefault(name, []).append(place)
        for place, when in enumerate(self.timed):
            for name in when.machine.letters:
                self._looking_timed.setdefault(name, []).append(place)

    def apply_event(self, position: Position, event: GuardEvent, labels: Mapping[str, Fields]) -> Movement:
        """Return where an event with these letters leads."""
        refused: list[BrokenMachine] = []
        states, live = position.states, position.live
        if labels:
            places = dict.fromkeys(place for name in labels for place in self._looking.get(name, ()))
            if places:
                changed, moved = list(states), _MovedCases(live)
                for place in places:
                    refused += self._move_machine(place, changed, moved, labels)
                states, live = tuple(changed), moved.build_cases()
        times = (
            self._move_timed_machines(position.times, event, labels, refused)
            if self._looking_timed and labels
            else position.times
        )
        return Movement(
            Position(states, live, times, self._update_pending_calls(position.calls, event, labels)), tuple(refused)
        )

    def write_position(self, position: Position) -> dict[str, JSON]:
        """Convert a position to plain data for JSON.

        Raises:
            TypeError: a rule in another notation has states that are none.
        """
        return {
            "states": write_value(position.states),
            "live": write_value([list(cases.states.items()) for cases in position.live.values()]),
            "times": write_value([list(times.items()) for times in position.times]),
            "calls": [[name, tool, sorted(letters)] for name, (tool, letters) in position.calls],
        }

    def read_position(self, data: Mapping[str, JSON]) -> Position:
        """Read a position that :meth:`write_position` has converted.

        Raises:
            KeyError, TypeError, ValueError: the data is no position of these rules.
        """
        rows: Mapping[str, Any] = {name: read_value(value) for name, value in data.items()}
        live = {}
        for (keys, cases), written in zip(self.start.live.items(), rows["live"], strict=True):
            states = {tuple(case): self._check_states(cases.numbers, vector) for case, vector in written}
            live[keys] = cases.with_states(states)
        return Position(
            self._check_states(range(len(self.parts)), rows["states"]),
            FrozenDict(live),
            tuple(FrozenDict({tuple(case): tuple(at) for case, at in times}) for times in rows["times"]),
            tuple((name, (tool, frozenset(letters))) for name, tool, letters in rows["calls"]),
        )

    def _check_states(self, numbers: Sequence[int], states: Sequence[State | None]) -> tuple[State | None, ...]:
        for number, state in zip(numbers, states, strict=True):
            if state is not None and type(state) is not type(self.parts[number].machine.start):
                raise ValueError(f"{state!r} is no state of {self.parts[number].name}")
        return tuple(states)

    def _move_machine(
        self, place: int, states: list[State | None], live: _MovedCases, labels: Mapping[str, Fields]
    ) -> list[BrokenMachine]:
        part = self.parts[place]
        letters = frozenset(name for name in part.machine.letters if name in labels)
        weight, explanation = _read_weight(part, letters, labels)
        base = states[place]
        if not part.keys:
            after = part.machine.step(base, letters, weight)
            if after is None:
                return [BrokenMachine(place, said=explanation)]
            states[place] = after
            return []
        if not letters & part.keyed:
            states[place] = None if base is None else part.machine.step(base, letters, weight)
            broken = live.move_all(part.keys, place, lambda state: part.machine.step(state, letters, weight))
            return [BrokenMachine(place, said=f"for {', '.join(broken)}")] if broken else []
        broken_machines = []
        for case in _find_cases(part, letters, labels):
            if case is None:
                broken_machines.append(BrokenMachine(place, said=f"{' and '.join(part.keys)} cannot be told"))
                continue
            state = live.get_state(part.keys, place, case, base)
            after = None if state is None else part.machine.step(state, letters, weight)
            if base is not None:
                live.open_case(part.keys, case, states)
            if after is None:
                broken_machines.append(BrokenMachine(place, said=explanation or f"for {', '.join(case)}"))
            else:
                live.set_state(part.keys, place, case, after)
        return broken_machines

    def _move_timed_machines(
        self,
        times: tuple[Mapping[Key, Times], ...],
        event: GuardEvent,
        labels: Mapping[str, Fields],
        refused: list[BrokenMachine],
    ) -> tuple[Mapping[Key, Times], ...]:
        places = dict.fromkeys(place for name in labels for place in self._looking_timed.get(name, ()))
        if not places:
            return times
        assert event.at is not None
        changed = list(times)
        for place in places:
            part = self.timed[place]
            letters = frozenset(name for name in part.machine.letters if name in labels)
            cases: Iterable[Key | None] = _find_cases(part, letters, labels) if part.keys else [()]
            if isinstance(part.machine, DeadlineMachine):
                if part.keys and not letters & part.keyed:
                    cases = changed[place]
                if isinstance(event, Call) and not part.machine.first.isdisjoint(self._answers(event.tool)):
                    letters -= {ANY_CALL}  # what is due may be its result
            for case in cases:
                if case is None:
                    refused.append(BrokenMachine(place, True, f"{' and '.join(part.keys)} cannot be told"))
                    continue
                before = changed[place].get(case, ())
                after, problem = part.machine.step(before, letters, event.at)
                if after != before:
                    changed[place] = FrozenDict({**changed[place], case: after})
                if problem is not None:
                    refused.append(BrokenMachine(place, True, problem, after != before))
        return tuple(changed)

    def _update_pending_calls(
        self, calls: tuple[tuple[str, Pending], ...], event: GuardEvent, labels: Mapping[str, Fields]
    ) -> tuple[tuple[str, Pending], ...]:
        """Return the pending calls after an event."""
        if isinstance(event, Said) or not self._answers(event.tool):
            return calls
        if isinstance(event, Call):
            return (*calls[-_MOST_CALLS:], (event.id, (event.tool, frozenset(labels))))
        for call_id in (event.id, None):
            for place, (name, (tool, _)) in enumerate(calls):
                if tool == event.tool and call_id in (None, name):
                    return calls[:place] + calls[place + 1 :]
        return calls


def _read_weight(part: RulePart, letters: frozenset[str], labels: Mapping[str, Fields]) -> tuple[Fraction | None, str]:
    """Read the amount that an event adds to a budget, and an explanation if it has no valid amount."""
    quantity = getattr(part.machine, "quantity", None)
    if quantity is None:
        return None, ""
    fields = next((labels[name] for name in part.machine.letters if name in letters), {})
    if quantity not in fields:
        return None, f"{quantity} cannot be told"
    try:
        amount = Fraction(to_number(fields[quantity]))
    except Undetermined as error:
        return None, f"{quantity}: {error}"
    return amount, f"{quantity} would be negative" if amount < 0 else ""


def _find_cases(
    part: RulePart | TimedRulePart, letters: frozenset[str], labels: Mapping[str, Fields]
) -> list[Key | None]:
    """Find the cases that an event belongs to; None stands for one whose key is missing."""
    keys = part.keys
    found: dict[Key | None, None] = {}
    for name in letters:
        if name in part.keyed:
            given = labels[name]
            found[tuple(make_key(given[each]) for each in keys) if all(each in given for each in keys) else None] = None
    return sorted(found, key=str) or [()]


def select_letters(labels: EventLabels, *, unsure: bool = False) -> Mapping[str, Fields]:
    """Return the letters of an event; with ``unsure`` also those that it may have."""
    return {**labels.letters, **labels.unsure} if unsure else labels.letters
