"""Labels of events: the letters that an event has, and their field values."""

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
    """The labels of an event, which the rules depend on.

    Attributes:
        letters: its letters, each with its field values; missing values are omitted.
        unsure: letters for which it is undetermined whether the event has them, with their values.
        notes: why that is undetermined, and which values are missing.
    """

    letters: Mapping[str, Fields]
    unsure: Mapping[str, Fields] = FrozenDict()
    notes: tuple[str, ...] = ()


NO_LABELS = EventLabels(FrozenDict())


def classify_event(event: GuardEvent) -> tuple[Kind | str, str]:
    """Return the kind of an event, and its tool."""
    if isinstance(event, Said):
        return event.role, ""
    return ("call" if isinstance(event, Call) else "result"), event.tool


class Labeller:
    """A labeller, which assigns letters to events.

    Args:
        letters: the declared letters.

    Attributes:
        asked: the letters whose history conditions refer to, with the fields of each.
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
        """Find the patterns that may match an event, each with its letter."""
        patterns = self._known.get((kind, tool))
        if patterns is None:
            patterns = tuple(
                (letter.name, pattern)
                for letter in self.letters
                for pattern in letter.patterns
                if pattern.kind == kind and (not tool or fnmatchcase(tool, pattern.tool))
            )
            if len(self._known) < 10_000:  # a model may invent any number of tool names
                self._known[kind, tool] = patterns
        return patterns

    def label_event(self, event: GuardEvent, memory: LetterMemory | None = None) -> EventLabels:
        """Label an event; its time is required if conditions refer to ``now``."""
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
                    notes += [f"{reason}, so it cannot be told whether this is {name}" for reason in scope.unsaid[:1]]
            if holds is False:
                continue
            values = _NOTHING
            if pattern.fields:
                values, missing = _evaluate_fields(pattern, scope)
                notes += [f"{field} of {name}: {why}" for field, why in missing]
            if holds is None:
                unsure.setdefault(name, values)
            else:
                letters[name] = values
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
    values: dict[str, Value] = {}
    missing = []
    for name, expression in pattern.fields:
        try:
            values[name] = expression.evaluate_in(scope)
        except Undetermined as error:
            missing.append((name, str(error)))
    return values, missing


def _list_expressions(pattern: EventPattern) -> list[Expression]:
    return [*([pattern.condition] if pattern.condition is not None else []), *(value for _, value in pattern.fields)]


def make_key(value: Value) -> str:
    """Convert a value to a key that distinguishes cases: 5 and "5" are the same, "05" is different."""
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
    """The history of the letters that conditions refer to; immutable, like every part of a guard's state."""

    values: Mapping[str, frozenset[tuple[str, ...]]] = field(default_factory=FrozenDict)
    latest: Mapping[str, Fields] = field(default_factory=FrozenDict)

    def has_happened(self, letter: str, values: tuple[Value, ...]) -> bool:
        """Return whether a letter has occurred with these values of its first fields."""
        keys = tuple(map(make_key, values))
        return any(one[: len(keys)] == keys for one in self.values.get(letter, ()))

    def get_last_value(self, letter: str, name: str) -> Value:
        """Return a field of the last occurrence of a letter.

        Raises:
            Undetermined: the letter has not occurred, or not with that value.
        """
        if name not in self.latest.get(letter, _NOTHING):
            raise Undetermined(f"there was no {letter} with {name} before")
        return self.latest[letter][name]

    def with_event(self, labels: EventLabels, asked: Mapping[str, tuple[str, ...]]) -> LetterHistory:
        """Return the history after an event."""
        values, latest = dict(self.values), dict(self.latest)
        for letter, fields in asked.items():
            event_fields = labels.letters.get(letter)
            if event_fields is None:
                continue
            latest[letter] = event_fields
            keys = []
            for name in fields:
                if name not in event_fields:
                    break
                keys.append(make_key(event_fields[name]))
            values[letter] = values.get(letter, frozenset()) | {tuple(keys)}
        return LetterHistory(FrozenDict(values), FrozenDict(latest))
