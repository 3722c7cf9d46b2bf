"""The positions of a guard: which events have moved which rules where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.control.component import Key, Live, Pending, Position, Times
from formal_llm.control.machines import State
from formal_llm.guard.events import Call, GuardEvent, Said
from formal_llm.guard.rules.compiled import RulePart, TimedRulePart
from formal_llm.guard.rules.data import Undetermined, to_number
from formal_llm.guard.rules.labels import EventLabels, Fields, make_key

#: So many calls under way are remembered, where results are not told.
_MOST_CALLS = 63


class BrokenMachine(NamedTuple):
    """A machine that an event breaks: its place, whether it is one about when, and what is to be said besides."""

    place: int
    timed: bool = False
    said: str = ""


class Movement(NamedTuple):
    """Where an event leads: the position, in which what the event would break stays where it was; and what that is."""

    position: Position
    refused: tuple[BrokenMachine, ...]


class PositionTracker:
    """Moves positions.

    Args:
        parts: the machines that look ahead.
        timed: those about when.
        answers: whether the rules look at the results of a tool, so that its calls under way matter.
    """

    def __init__(
        self, parts: Sequence[RulePart], timed: Sequence[TimedRulePart], answers: Callable[[str], bool]
    ) -> None:
        self._answers = answers
        self.parts = tuple(parts)
        self.timed = tuple(timed)
        none: Live = FrozenDict()
        self.start = Position(
            tuple(part.machine.start for part in parts),
            tuple(none for _ in parts),
            tuple(FrozenDict[Key, Times]() for _ in timed),
            (),
        )
        #: The machines that look at a letter.
        self._looking: dict[str, list[int]] = {}
        self._looking_timed: dict[str, list[int]] = {}
        for place, part in enumerate(self.parts):
            for name in part.machine.letters:
                self._looking.setdefault(name, []).append(place)
        for place, when in enumerate(self.timed):
            for name in when.machine.letters:
                self._looking_timed.setdefault(name, []).append(place)
        self._same_keys = {
            keys: [place for place, part in enumerate(parts) if part.keys == keys]
            for keys in {part.keys for part in parts if part.keys}
        }

    def apply_event(self, position: Position, event: GuardEvent, labels: Mapping[str, Fields]) -> Movement:
        """Where an event with these letters leads."""
        refused: list[BrokenMachine] = []
        states, live = position.states, position.live
        if labels:
            looking = dict.fromkeys(place for name in labels for place in self._looking.get(name, ()))
            if looking:
                changed, cases = list(states), list(live)
                for place in looking:
                    refused += self._move_machine(place, changed, cases, labels)
                states, live = tuple(changed), tuple(cases)
        times = (
            self._move_timed_machines(position.times, event, labels, refused)
            if self._looking_timed and labels
            else position.times
        )
        return Movement(
            Position(states, live, times, self._update_pending_calls(position.calls, event, labels)), tuple(refused)
        )

    def _move_machine(
        self, place: int, states: list[State | None], live: list[Live], labels: Mapping[str, Fields]
    ) -> list[BrokenMachine]:
        part = self.parts[place]
        letters = frozenset(name for name in part.machine.letters if name in labels)
        weight, said = _read_weight(part, letters, labels)
        base = states[place]
        if not part.keys:
            after = part.machine.step(base, letters, weight)
            if after is None:
                return [BrokenMachine(place, said=said)]
            states[place] = after
            return []
        if not letters & part.keyed:
            moved = {case: part.machine.step(state, letters, weight) for case, state in live[place].items()}
            states[place] = None if base is None else part.machine.step(base, letters, weight)
            broken = [case for case, state in moved.items() if state is None]
            live[place] = FrozenDict(
                {case: live[place][case] if state is None else state for case, state in moved.items()}
            )
            return [BrokenMachine(place, said=f"for {', '.join(broken[0])}")] if broken else []
        found = []
        for case in _find_cases(part, letters, labels):
            if case is None:
                found.append(BrokenMachine(place, said=f"{' and '.join(part.keys)} cannot be told"))
                continue
            state = live[place].get(case, base)
            after = None if state is None else part.machine.step(state, letters, weight)
            if case not in live[place] and base is not None:
                self._open_case(part.keys, case, states, live)
            if after is None:
                found.append(BrokenMachine(place, said=said or f"for {', '.join(case)}"))
            else:
                live[place] = FrozenDict({**live[place], case: after})
        return found

    def _open_case(self, keys: tuple[str, ...], case: Key, states: Sequence[State | None], live: list[Live]) -> None:
        """Begin a case that comes for the first time, in all machines with these keys."""
        for place in self._same_keys[keys]:
            if case not in live[place] and states[place] is not None:
                live[place] = FrozenDict({**live[place], case: states[place]})

    def _move_timed_machines(
        self,
        times: tuple[Mapping[Key, Times], ...],
        event: GuardEvent,
        labels: Mapping[str, Fields],
        refused: list[BrokenMachine],
    ) -> tuple[Mapping[Key, Times], ...]:
        looking = dict.fromkeys(place for name in labels for place in self._looking_timed.get(name, ()))
        if not looking:
            return times
        assert event.at is not None
        changed = list(times)
        for place in looking:
            part = self.timed[place]
            letters = frozenset(name for name in part.machine.letters if name in labels)
            for case in _find_cases(part, letters, labels) if part.keys else [()]:
                if case is None:
                    refused.append(BrokenMachine(place, True, f"{' and '.join(part.keys)} cannot be told"))
                    continue
                before = changed[place].get(case, ())
                until = part.machine.find_wait_end(before, event.at)
                if until is None:
                    changed[place] = FrozenDict({**changed[place], case: part.machine.step(before, event.at)})
                else:
                    said = "" if until.year > 9000 else f"wait until {until.isoformat(' ', 'seconds')}"
                    refused.append(BrokenMachine(place, True, said))
        return tuple(changed)

    def _update_pending_calls(
        self, calls: tuple[tuple[str, Pending], ...], event: GuardEvent, labels: Mapping[str, Fields]
    ) -> tuple[tuple[str, Pending], ...]:
        """The calls under way after an event."""
        if isinstance(event, Said) or not self._answers(event.tool):
            return calls
        if isinstance(event, Call):
            return (*calls[-_MOST_CALLS:], (event.id, (event.tool, frozenset(labels))))
        for wanted in (event.id, None):
            for place, (name, (tool, _)) in enumerate(calls):
                if tool == event.tool and wanted in (None, name):
                    return calls[:place] + calls[place + 1 :]
        return calls


def _read_weight(part: RulePart, letters: frozenset[str], labels: Mapping[str, Fields]) -> tuple[Fraction | None, str]:
    """What an event adds to the sum of a budget; and what is to be said where it adds no amount."""
    quantity = getattr(part.machine, "quantity", None)
    if quantity is None:
        return None, ""
    given = next((labels[name] for name in part.machine.letters if name in letters), {})
    if quantity not in given:
        return None, f"{quantity} cannot be told"
    try:
        amount = Fraction(to_number(given[quantity]))
    except Undetermined as error:
        return None, f"{quantity}: {error}"
    return amount, f"{quantity} would be negative" if amount < 0 else ""


def _find_cases(
    part: RulePart | TimedRulePart, letters: frozenset[str], labels: Mapping[str, Fields]
) -> list[Key | None]:
    """The cases that an event is about; None for one whose key is missing."""
    keys = part.keys
    found: dict[Key | None, None] = {}
    for name in letters:
        if name in part.keyed:
            given = labels[name]
            found[tuple(make_key(given[each]) for each in keys) if all(each in given for each in keys) else None] = None
    return sorted(found, key=str) or [()]


def select_letters(labels: EventLabels, *, unsure: bool = False) -> Mapping[str, Fields]:
    """The letters of an event; with those of which it cannot be told, where they are asked for."""
    return {**labels.letters, **labels.unsure} if unsure else labels.letters
