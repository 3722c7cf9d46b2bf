"""Which events the conditions of rules can distinguish: the plant of a guard.

An agent may call any tool and write any text. A result belongs to a call that was made, and may be any that the
conditions distinguish; the user may write anything at any time. Looking ahead, a tool is called again only when its
last call has returned; pending calls, whatever their number, are all counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import islice, product
from math import prod

from formal_llm.control.machines import Letters
from formal_llm.control.plant import Plant, PlantSymbol
from formal_llm.guard.events import Call, GuardEvent, Result, Said
from formal_llm.guard.rules.data import Value, is_number, to_number
from formal_llm.guard.rules.expressions import (
    BinaryOperation,
    Constant,
    Expression,
    FieldPath,
    ForAll,
    FunctionCall,
    LastValue,
    PastLetter,
    Steps,
    ValueRange,
    ValueSet,
)
from formal_llm.guard.rules.labels import Labeller
from formal_llm.guard.rules.rule_set import EventPattern
from formal_llm.planning.json_data import JSON

#: The maximum number of events tried for one tool, how many are tried of more, and the maximum number of letters of
#: which all sets are considered doubtful.
_MOST, _TRIED, _MOST_DOUBTFUL = 4_000, 100, 6
#: The difference between a constant and an amount just above or below it.
_NEAR = Fraction(1, 1_000_000_000)
#: The same for times and durations, none of which lies between two that are this far apart.
_TICK, _DAY = timedelta.resolution, timedelta(days=1)
_GONE = object()
#: Where the tools are not known, the name of one that no letter names.
ANY_TOOL = "…"
#: What is tried for functions: of lists, an empty one and one with an unknown text.
_SAMPLES: Mapping[str, tuple[Value, ...]] = {
    **dict.fromkeys(("len", "inside", "reaches", "runs", "overlap", "within"), ((), ("~",))),
}
_TEXTS = ("contains", "starts with", "ends with", "like")
_PLAIN = ("==", "!=", "<", "<=", ">", ">=", "in")


@dataclass
class EventVariants:
    """The possible variants of events of one kind and tool.

    Attributes:
        least: for each set of letters the minimum that such an event adds to each quantity.
        doubtful: sets of letters for which it is unknown whether an event can have them.
        unbounded: for each set of letters the quantities that no condition keeps from being negative.
    """

    least: dict[Letters, dict[str, Fraction]] = field(default_factory=dict)
    doubtful: set[Letters] = field(default_factory=set)
    unbounded: dict[Letters, set[str]] = field(default_factory=dict)


class _TrialValues:
    """The values to try for each path in some conditions."""

    def __init__(self) -> None:
        self.values: dict[Steps, list[Value]] = {}
        self.exact = True

    def add(self, path: FieldPath, values: Iterable[Value]) -> None:
        if not all(isinstance(step, str) for step in path.steps):
            self.exact = False
            return
        self.values.setdefault(path.steps, []).extend(values)

    def add_condition(self, one: Expression) -> None:
        """Collect the values to try from a condition."""
        if isinstance(one, FieldPath):
            self.add(one, (True, False))
        elif isinstance(one, PastLetter | LastValue | ForAll):
            self._add_inexact(one)
        elif isinstance(one, FunctionCall) and one.name in ("has", "missing") and isinstance(one.given[0], FieldPath):
            self.add(one.given[0], (_GONE, "x"))
        elif isinstance(one, FunctionCall) and one.name == "holds":
            self.add_condition(one.given[0])  # one that is undetermined is like one that does not hold
        elif isinstance(one, BinaryOperation):
            self._add_comparison(one)
        elif isinstance(one, FunctionCall):
            self._add_inexact(one)
        else:
            for part in one.parts:
                self.add_condition(part)

    def add_value(self, one: Expression) -> None:
        """Collect the values to try from the value of a field; numbers are tried from 0."""
        if isinstance(one, FieldPath):
            self.add(one, (Fraction(0),))
        elif not isinstance(one, Constant):
            self._add_inexact(one)

    def _add_comparison(self, one: BinaryOperation) -> None:
        left, right = one.left, one.right
        if isinstance(right, FieldPath) and isinstance(left, Constant):
            left, right = right, left
        constants = _read_constants(right)
        timed = (
            isinstance(left, FunctionCall) and left.name in ("time", "weekday") and left.given == (FieldPath(("now",)),)
        )
        if one.sign in _PLAIN and constants is not None and (isinstance(left, FieldPath) or timed):
            if timed:
                self.add(FieldPath(("now",)), [one for one in constants if isinstance(one, time)] or [time(12)])
            else:
                assert isinstance(left, FieldPath)
                self.add(left, constants)
            return
        if one.sign in _TEXTS and isinstance(left, FieldPath) and constants is not None:
            self.add(left, _sample_texts(one.sign, constants))
        self._add_inexact(one)

    def _add_inexact(self, one: Expression) -> None:
        self.exact = False
        constants = [part.value for part in one.walk() if isinstance(part, Constant)]
        for part in one.walk():
            if isinstance(part, FieldPath):
                self.add(part, constants or [Fraction(0), Fraction(1)])
            elif isinstance(part, FunctionCall) and part.name in _SAMPLES:
                for given in part.given:
                    if isinstance(given, FieldPath):
                        self.add(given, _SAMPLES[part.name])

    def list_trials(self) -> list[tuple[Steps, list[Value]]]:
        """List each path with the values to try, one from each region."""
        return [
            (steps, _sample_moments(values) if steps == ("now",) else _sample_regions(values))
            for steps, values in self.values.items()
        ]


def _read_constants(one: Expression) -> list[Value] | None:
    if isinstance(one, Constant):
        return [one.value]
    if isinstance(one, ValueSet) and all(isinstance(item, Constant) for item in one.items):
        return [item.value for item in one.items if isinstance(item, Constant)]
    if isinstance(one, ValueRange) and isinstance(one.first, Constant) and isinstance(one.last, Constant):
        return [one.first.value, one.last.value]
    return None


def _sample_texts(sign: str, constants: Sequence[Value]) -> list[Value]:
    texts = [one for one in constants if isinstance(one, str)]
    return [text.replace("*", "x").replace("?", "x").replace("[", "") for text in texts] if sign == "like" else [*texts]


def _sample_regions(values: Sequence[Value]) -> list[Value]:
    """Choose a value from each region between the constants, and the constants themselves."""
    samples: list[Value] = [*dict.fromkeys(value for value in values if isinstance(value, tuple))]
    samples += [one for one in (True, False) if any(value is one for value in values)]
    if any(value is None for value in values):
        samples.append(None)
    if any(value is _GONE for value in values):
        samples.append(_GONE)
    numbers = sorted({Fraction(to_number(value)) for value in values if is_number(value)})
    for place, one in enumerate(numbers):
        samples += [one - _NEAR, one, one + _NEAR]
        if place:
            samples.append((numbers[place - 1] + one) / 2)
    if numbers:
        samples += [numbers[0] - 1, numbers[-1] + 1]
    texts = list(dict.fromkeys(value for value in values if isinstance(value, str)))
    if texts:
        samples += [*texts, "".join(texts) + "~"]
        samples += [one + other for one in texts for other in texts if one != other] if len(texts) <= 4 else []
        samples.append("~")
    days = sorted({value for value in values if type(value) is date})
    for each in days:
        samples += [(each + timedelta(days=step)).isoformat() for step in (-1, 0, 1)]
    stamps = [value for value in values if isinstance(value, datetime)]
    for stamp in stamps:
        samples += [(stamp + step * _TICK).isoformat() for step in (-1, 0, 1)]
    for clock in (value for value in values if isinstance(value, time)):
        start = datetime.combine(date(2026, 1, 1), clock)
        samples += [(start + step * _TICK).time().isoformat() for step in (-1, 0, 1)]
    for length in (value for value in values if isinstance(value, timedelta)):
        samples += [Fraction((length + step * _TICK) // _TICK, 1_000_000) for step in (-1, 0, 1)]
    return [*dict.fromkeys(samples)] if all(_is_hashable(one) for one in samples) else samples


def _is_hashable(value: Value) -> bool:
    return value.__hash__ is not None


def _sample_moments(values: Sequence[Value]) -> list[Value]:
    """Choose moments on each day of a week around each time of day, and around the given moments."""
    clocks = {value for value in values if isinstance(value, time)} or {time(12)}
    week = [datetime(2026, 1, 5, tzinfo=UTC) + timedelta(days=step) for step in range(7)]
    moments: list[Value] = []
    for start in week:
        for clock in sorted(clocks):
            at = datetime.combine(start.date(), clock, tzinfo=UTC)
            moments += [at + step * _TICK for step in (-1, 0, 1)]
    for value in values:
        if isinstance(value, date):
            at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
            at = at.replace(tzinfo=at.tzinfo or UTC)
            moments += [at + step for step in (-_DAY, -_TICK, timedelta(), _TICK, _DAY)]
    return moments


def find_possible_events(labeller: Labeller, kind: str, tool: str) -> EventVariants:
    """Find the possible variants of calls of a tool, or of texts."""
    patterns = labeller.find_patterns(kind, tool)
    variants = EventVariants()
    trials = _collect_trials(patterns)
    events, exact = _generate_events(kind, tool, trials, Call(tool))
    for event in events:
        _note_event(variants, labeller, event)
    _add_doubtful_sets(variants, patterns, exact)
    if kind == "call":
        doubtful = {letters.union(labeller.list_other_letters(letters)) for letters in variants.doubtful}
        variants.doubtful = doubtful.difference(variants.least)
    return variants


def find_possible_results(labeller: Labeller, tool: str) -> dict[Letters, EventVariants]:
    """Find the possible variants of results for each set of letters of their call."""
    calls, results = labeller.find_patterns("call", tool), labeller.find_patterns("result", tool)
    of_calls, of_results = _collect_trials(calls), _collect_trials(results)
    shared = {steps[0] for steps in of_calls.values}
    # A result takes the fields that it shares with its call from the call.
    shared_paths = [steps for steps in of_results.values if steps[0] in shared]
    for steps in shared_paths:
        of_calls.add(FieldPath(steps), of_results.values.pop(steps))
    generated, exact = _generate_events("call", tool, of_calls, Call(tool))
    found: dict[Letters, EventVariants] = {}
    samples: dict[tuple[Letters, str], Call] = {}
    for call in generated:
        assert isinstance(call, Call)
        passed_on = str([call.arguments.get(str(steps[0]), _GONE) for steps in shared_paths])
        samples.setdefault((frozenset(labeller.label_event(call).letters), passed_on), call)
    for (letters, _), call in samples.items():
        returned, results_exact = _generate_events("result", tool, of_results, call)
        exact = exact and results_exact
        variants = found.setdefault(letters, EventVariants())
        for event in returned:
            _note_event(variants, labeller, event)
    for variants in found.values():
        _add_doubtful_sets(variants, results, exact)
    return found


def _collect_trials(patterns: Iterable[tuple[str, EventPattern]]) -> _TrialValues:
    trials = _TrialValues()
    for _, pattern in patterns:
        if pattern.condition is not None:
            trials.add_condition(pattern.condition)
        for _, value in pattern.fields:
            trials.add_value(value)
    return trials


def _generate_events(kind: str, tool: str, terms: _TrialValues, call: Call) -> tuple[Iterator[GuardEvent], bool]:
    trials = terms.list_trials()
    few = prod(len(values) for _, values in trials) <= _MOST
    exact = terms.exact and few
    paths = [one for one, _ in trials]
    heads = {one[0] for one in paths}
    nested = any(one[0] in heads and len(one) > 1 and (one[0],) in paths for one in paths)

    def iterate_events() -> Iterator[GuardEvent]:
        for values in islice(product(*(values for _, values in trials)), _MOST if few else _TRIED):
            yield _build_event(kind, tool, dict(zip(paths, values, strict=True)), call)

    return iterate_events(), exact and not nested


def _build_event(kind: str, tool: str, values: Mapping[Steps, Value], call: Call) -> GuardEvent:
    now = values.get(("now",), datetime(2026, 1, 5, 12, tzinfo=UTC))
    assert isinstance(now, datetime)
    data: dict[str, JSON] = {}
    for steps, value in values.items():
        if value is not _GONE and steps[0] not in ("now", "approved", "error", "tool") and steps != ("value",):
            _put_value(data, steps, value)
    if kind == "call":
        return Call(tool, data, "", values.get(("approved",)) is True, now)
    if kind == "result":
        whole = values.get(("value",), _GONE)
        value = data if whole is _GONE or data else whole
        return Result(tool, call.arguments, value, "", values.get(("error",)) is True, call.at or now)  # type: ignore[arg-type]
    text = values.get(("text",), "~")
    return Said(kind, text if isinstance(text, str) else "~", now)


def _put_value(data: dict[str, JSON], steps: Steps, value: Value) -> None:
    """Set the value at a path; missing objects on the way are created."""
    name, *rest = steps
    target = data
    for step in rest:
        inner = target.get(str(name))
        if not isinstance(inner, dict):
            inner = {}
            target[str(name)] = inner
        target, name = inner, step
    target[str(name)] = value  # type: ignore[assignment]  # fractions stand for JSON numbers


def _note_event(found: EventVariants, labeller: Labeller, event: GuardEvent) -> None:
    labels = labeller.label_event(event)
    if labels.unsure:
        return
    amounts: dict[str, Fraction] = {}
    letters = frozenset(labels.letters)
    for fields in labels.letters.values():
        for name, value in fields.items():
            if is_number(value):
                amount = Fraction(to_number(value))
                if amount < 0:
                    found.unbounded.setdefault(letters, set()).add(name)
                    continue
                amounts.setdefault(name, amount)
    known = found.least.get(letters)
    if known is None:
        found.least[letters] = amounts
    else:
        for name, amount in amounts.items():
            known[name] = min(amount, known.get(name, amount))


def _add_doubtful_sets(found: EventVariants, patterns: Sequence[tuple[str, EventPattern]], exact: bool) -> None:
    if exact:
        return
    always = {name for name, pattern in patterns if pattern.condition is None}
    names = [name for name in dict.fromkeys(name for name, _ in patterns) if name not in always][:_MOST_DOUBTFUL]
    for mask in range(1 << len(names)):
        letters = frozenset(name for place, name in enumerate(names) if mask >> place & 1) | always
        if letters not in found.least:
            found.doubtful.add(letters)


def build_plant(labeller: Labeller, tools: Collection[str] = ()) -> Plant:
    """The plant of rules: all kinds of events that they distinguish.

    Args:
        labeller: the letters.
        tools: the available tools; empty if they are unknown.
    """
    named = [
        pattern.tool for letter in labeller.letters for pattern in letter.patterns if pattern.kind in ("call", "result")
    ]
    named += ["*"] * bool(labeller.others)  # these are letters of all tools
    if tools:
        found = [tool for tool in dict.fromkeys(tools) if any(fnmatchcase(tool, name) for name in named)]
    else:
        # Where the tools are not known, a name with a star stands for one tool that nothing else names.
        found = list(dict.fromkeys(_instantiate_pattern(name) for name in named))
    answering = frozenset(tool for tool in found if labeller.find_patterns("result", tool))
    return Plant(tuple(_build_symbols(labeller, found, answering)), tuple(found), answering)


def _build_symbols(labeller: Labeller, tools: Sequence[str], answering: Collection[str]) -> Iterator[PlantSymbol]:
    for tool in tools:
        yield from _build_event_symbols("call", tool, find_possible_events(labeller, "call", tool))
        if tool in answering:
            yield from _build_result_symbols(labeller, tool)
    for role in ("assistant", "user"):
        if labeller.find_patterns(role, ""):
            yield from _build_event_symbols(role, "", find_possible_events(labeller, role, ""))


def _instantiate_pattern(name: str) -> str:
    """Make a tool name that a pattern matches, and that hardly any other pattern does."""
    return name.replace("*", ANY_TOOL).replace("?", ANY_TOOL)


def _build_event_symbols(kind: str, tool: str, found: EventVariants) -> Iterable[PlantSymbol]:
    for letters, least in found.least.items():
        yield PlantSymbol(kind, tool, letters, least, unbounded=frozenset(found.unbounded.get(letters, ())))
    for letters in sorted(found.doubtful, key=sorted):
        yield PlantSymbol(kind, tool, letters, {}, doubtful=True)


def _build_result_symbols(labeller: Labeller, tool: str) -> Iterable[PlantSymbol]:
    """Build the symbols of a tool's results; the same letters after several calls are one symbol."""
    sure: dict[Letters, set[Letters]] = {}
    doubtful: dict[Letters, set[Letters]] = {}
    for call, found in find_possible_results(labeller, tool).items():
        for letters in found.least:
            sure.setdefault(letters, set()).add(call)
        for letters in found.doubtful:
            doubtful.setdefault(letters, set()).add(call)
    for letters, calls in sure.items():
        yield PlantSymbol("result", tool, letters, {}, after=frozenset(calls))
    for letters, calls in doubtful.items():
        yield PlantSymbol("result", tool, letters, {}, doubtful=True, after=frozenset(calls))
