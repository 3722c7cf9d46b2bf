"""Labels of events: the letters that an event has, and their field values."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.guard.events import Call, GuardEvent, Result, Said
from formal_llm.guard.rules.data import Undetermined, Value
from formal_llm.guard.rules.expressions import Expression, LastValue, LetterMemory, PastLetter, Scope, read_json
from formal_llm.guard.rules.functions import has_common_text
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
        others: the letters that calls have by what they are not: each with the letters that a call with it has not.

    Attributes:
        asked: the letters whose history conditions refer to, with the fields of each.
        until: the letters that end others, by the names of these.
    """

    def __init__(self, letters: Iterable[Letter], others: Mapping[str, frozenset[str]] = FrozenDict()) -> None:
        self.letters = tuple(letters)
        self.others = others
        self._known: dict[tuple[str, str], tuple[tuple[str, EventPattern], ...]] = {}
        self.asked: dict[str, tuple[str, ...]] = {}
        self.until = {letter.name: letter.until for letter in self.letters if letter.until}
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

    def list_other_letters(self, letters: Collection[str]) -> list[str]:
        """List the letters that a call with these letters has by what it is not."""
        return [name for name, absent in self.others.items() if absent.isdisjoint(letters)]

    def label_event(self, event: GuardEvent, memory: LetterMemory | None = None) -> EventLabels:
        """Label an event; its time is required if conditions refer to ``now``."""
        patterns = self.find_patterns(*classify_event(event))
        if not patterns and not (self.others and isinstance(event, Call)):
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
        if isinstance(event, Call) and self.others:
            certain = self.list_other_letters({*letters, *unsure})
            unsure |= {name: _NOTHING for name in self.list_other_letters(letters) if name not in certain}
            letters |= dict.fromkeys(certain, _NOTHING)
        return EventLabels(letters, unsure, tuple(dict.fromkeys(notes)))


def _build_scope(event: GuardEvent, memory: LetterMemory | None) -> Scope:
    if isinstance(event, Said):
        return Scope({}, {"text": event.text, "role": event.role, "now": event.at}, memory=memory)
    names: dict[str, Value] = {"tool": event.tool, "now": event.at, "arguments": event.arguments}
    if isinstance(event, Result):
        value = read_json(event.value)
        names |= {"returned": value, "called_with": event.arguments, "failed": event.error}
        return Scope(event.arguments, names, value, True, event.error, memory)
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


#: Before the name of a letter: the events of which it is not known whether they had it.
_UNSURE = "? "
#: The occurrences of a letter: for each combination of values of its fields the last one, the latest at the end.
Occurrences = FrozenDict[tuple[str, ...], Fields]


@dataclass(frozen=True)
class LetterHistory:
    """The history of the letters that conditions refer to; immutable, like every part of a guard's state.

    Attributes:
        asked: the letters whose occurrences are remembered, with all fields of each.
    """

    occurrences: Mapping[str, Occurrences] = field(default_factory=FrozenDict)
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenDict)

    def has_happened(self, letter: str, values: tuple[Value, ...]) -> bool:
        """Return whether a letter has occurred with these values of its first fields."""
        return self._find(letter, values) is not None

    def has_given_text(self, letter: str, value: Value) -> bool:
        """Return whether a text in a value occurs in a field that a letter has given.

        Raises:
            Undetermined: such a field is not known, or it is not known whether an event had the letter.
        """
        certain, doubtful = ([*self.occurrences.get(one, {}).values()] for one in (letter, _UNSURE + letter))
        if any(has_common_text(value, [*one.values()]) for one in certain):
            return True
        incomplete = any(len(one) < len(self.asked[letter]) for one in (*certain, *doubtful))
        if incomplete or any(has_common_text(value, [*one.values()]) for one in doubtful):
            raise Undetermined(f"it is not known what {letter} gave")
        return False

    def get_last_value(
        self, letter: str, name: str, keys: tuple[Value, ...] = (), fits: Callable[[Value], bool] | None = None
    ) -> Value:
        """Return a field of the last occurrence of a letter with these values of its first fields that ``fits``.

        Raises:
            Undetermined: the letter has not occurred so, or not with that value.
        """
        fields = self._find(letter, keys, fits)
        if fields is None or name not in fields:
            such = "such " if keys or fits else ""
            raise Undetermined(f"there was no {such}{letter} with {name} before")
        return fields[name]

    def _find(
        self, letter: str, values: tuple[Value, ...], fits: Callable[[Value], bool] | None = None
    ) -> Fields | None:
        keys = tuple(map(make_key, values))
        occurrences = self.occurrences.get(letter, _NO_OCCURRENCES)
        if fits is None and len(keys) == len(self.asked.get(letter, ())):
            return occurrences.get(keys)
        found = (occurrences[one] for one in reversed(occurrences) if one[: len(keys)] == keys)
        return next((one for one in found if fits is None or fits(one)), None)

    def with_event(
        self, labels: EventLabels, asked: Mapping[str, tuple[str, ...]], until: Mapping[str, tuple[str, ...]]
    ) -> LetterHistory:
        """Return the history after an event; an event that has a letter and what ends it begins it anew."""
        now = dict(self.occurrences)
        for letter, enders in until.items():
            for ender in enders:
                fields = labels.letters.get(ender)
                if fields is not None and letter in now:
                    left = {key: one for key, one in now[letter].items() if not _has_same_values(one, fields)}
                    now[letter] = FrozenDict(left)
        found = {**labels.letters, **{_UNSURE + name: fields for name, fields in labels.unsure.items()}}
        for letter, names in [(sign + name, names) for name, names in asked.items() for sign in ("", _UNSURE)]:
            event_fields = found.get(letter)
            if event_fields is None:
                continue
            keys: list[str] = []
            for name in names:
                if name not in event_fields:
                    break
                keys.append(make_key(event_fields[name]))
            last = tuple(keys)
            others = dict(now.get(letter, _NO_OCCURRENCES))
            others.pop(last, None)  # what comes again is the latest
            now[letter] = FrozenDict({**others, last: event_fields})
        return LetterHistory(FrozenDict(now), asked)


_NO_OCCURRENCES: Occurrences = FrozenDict()


def _has_same_values(one: Fields, other: Fields) -> bool:
    return all(name not in one or make_key(one[name]) == make_key(value) for name, value in other.items())
