"""Which letters an event has, and the values that it gives."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.guard.events import Call, GuardEvent, Result, Said
from formal_llm.guard.rules.data import Undetermined, Value
from formal_llm.guard.rules.expressions import Expression, LastValue, LetterMemory, PastLetter, Scope, read_json
from formal_llm.guard.rules.rule_set import EventPattern, Kind, Letter

Fields = Mapping[str, Value]
_NOTHING: Fields = FrozenDict()


@dataclass(frozen=True, slots=True)
class EventLabels:
    """What the rules see of an event.

    Attributes:
        letters: its letters, each with the values that it gives; a value that is missing is not among them.
        unsure: letters of which it cannot be told whether the event has them, with the values.
        notes: why that cannot be told, and which values are missing.
    """

    letters: Mapping[str, Fields]
    unsure: Mapping[str, Fields] = FrozenDict()
    notes: tuple[str, ...] = ()


NO_LABELS = EventLabels(FrozenDict())


def classify_event(event: GuardEvent) -> tuple[Kind | str, str]:
    """What an event is, and of which tool."""
    if isinstance(event, Said):
        return event.role, ""
    return ("call" if isinstance(event, Call) else "result"), event.tool


class Labeller:
    """Gives events their letters.

    Args:
        letters: the letters there are.

    Attributes:
        asked: the letters whose past conditions ask for, with the fields that each gives.
    """

    def __init__(self, letters: Iterable[Letter]) -> None:
        self.letters = tuple(letters)
        self._known: dict[tuple[str, str], tuple[tuple[str, EventPattern], ...]] = {}
        self.asked: dict[str, tuple[str, ...]] = {}
        fields = {letter.name: [name for name, _ in letter.patterns[0].fields] for letter in self.letters}
        for letter in self.letters:
            for pattern in letter.patterns:
                for expression in _list_expressions(pattern):
                    for part in expression.walk():
                        if isinstance(part, PastLetter | LastValue):
                            self.asked[part.letter] = tuple(fields[part.letter])

    def find_patterns(self, kind: str, tool: str) -> tuple[tuple[str, EventPattern], ...]:
        """The patterns that may mean an event, each with its letter."""
        found = self._known.get((kind, tool))
        if found is None:
            found = tuple(
                (letter.name, pattern)
                for letter in self.letters
                for pattern in letter.patterns
                if pattern.kind == kind and (not tool or fnmatchcase(tool, pattern.tool))
            )
            if len(self._known) < 10_000:  # tools may be called whatever a model makes up
                self._known[kind, tool] = found
        return found

    def label_event(self, event: GuardEvent, memory: LetterMemory | None = None) -> EventLabels:
        """What the rules see of an event; its time is needed where conditions ask for ``now``."""
        patterns = self.find_patterns(*classify_event(event))
        if not patterns:
            return NO_LABELS
        scope = _build_scope(event, memory)
        letters: dict[str, Fields] = {}
        unsure: dict[str, Fields] = {}
        notes: list[str] = []
        for name, pattern in patterns:
            if name in letters:
                continue
            holds: bool | None = True
            if pattern.condition is not None:
                scope.unsaid.clear()
                holds = pattern.condition.is_satisfied(scope)
                if holds is None:
                    notes += [f"{said}, so it cannot be told whether this is {name}" for said in scope.unsaid[:1]]
            if holds is False:
                continue
            given = _NOTHING
            if pattern.fields:
                given, lacking = _evaluate_fields(pattern, scope)
                notes += [f"{field} of {name}: {why}" for field, why in lacking]
            if holds is None:
                unsure.setdefault(name, given)
            else:
                letters[name] = given
                unsure.pop(name, None)
        return EventLabels(letters, unsure, tuple(dict.fromkeys(notes)))


def _build_scope(event: GuardEvent, memory: LetterMemory | None) -> Scope:
    if isinstance(event, Said):
        return Scope({}, {"text": event.text, "role": event.role, "now": event.at}, memory=memory)
    names: dict[str, Value] = {"tool": event.tool, "now": event.at, "arguments": event.arguments}
    if isinstance(event, Result):
        return Scope(event.arguments, names, read_json(event.value), True, event.error, memory)
    names["approved"] = event.approved
    return Scope(event.arguments, names, memory=memory)


def _evaluate_fields(pattern: EventPattern, scope: Scope) -> tuple[Fields, list[tuple[str, str]]]:
    found: dict[str, Value] = {}
    lacking = []
    for name, expression in pattern.fields:
        try:
            found[name] = expression.evaluate_in(scope)
        except Undetermined as error:
            lacking.append((name, str(error)))
    return found, lacking


def _list_expressions(pattern: EventPattern) -> list[Expression]:
    return [*([pattern.condition] if pattern.condition is not None else []), *(value for _, value in pattern.fields)]


def make_key(value: Value) -> str:
    """A value as what tells one case from another: 5 and "5" are the same, "05" is another."""
    if isinstance(value, str):
        return value
    if isinstance(value, Fraction | float | int) and not isinstance(value, bool):
        return str(Fraction(repr(value)) if isinstance(value, float) else Fraction(value))
    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError):
        return str(value)


@dataclass(frozen=True)
class LetterHistory:
    """What was seen of the letters that conditions ask for; immutable, as all that a guard's state is made of."""

    values: Mapping[str, frozenset[tuple[str, ...]]] = field(default_factory=FrozenDict)
    latest: Mapping[str, Fields] = field(default_factory=FrozenDict)

    def has_happened(self, letter: str, values: tuple[Value, ...]) -> bool:
        """Whether a letter came with these values of its first fields."""
        asked = tuple(map(make_key, values))
        return any(one[: len(asked)] == asked for one in self.values.get(letter, ()))

    def get_last_value(self, letter: str, name: str) -> Value:
        """The value of a field of the letter that came last.

        Raises:
            Unsaid: it did not come, or without that value.
        """
        if name not in self.latest.get(letter, _NOTHING):
            raise Undetermined(f"there was no {letter} with {name} before")
        return self.latest[letter][name]

    def with_event(self, labels: EventLabels, asked: Mapping[str, tuple[str, ...]]) -> LetterHistory:
        """What was seen after an event."""
        values, latest = dict(self.values), dict(self.latest)
        for letter, fields in asked.items():
            given = labels.letters.get(letter)
            if given is None:
                continue
            latest[letter] = given
            known = []
            for name in fields:
                if name not in given:
                    break
                known.append(make_key(given[name]))
            values[letter] = values.get(letter, frozenset()) | {tuple(known)}
        return LetterHistory(FrozenDict(values), FrozenDict(latest))
