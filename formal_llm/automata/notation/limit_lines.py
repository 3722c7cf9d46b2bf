"""The lines of limits, shared by all notations.

``%limit 2 fetch`` and ``%require 1 fetch`` bound how often a terminal is used; the number may also come last.
``%limit cost <= 12.50``, ``%limit 8h <= work <= 10h`` and ``%limit cost = 100`` bound a sum. ``%clock``, ``%window``,
``%deadline`` and ``%gap`` are the lines of a timetable (:mod:`formal_llm.automata.models.timetable`). What stands
behind ``%rule`` is a sentence or a formula (:mod:`formal_llm.automata.notation.sentences`).

A notation passes the words of each line, with their places, to a :class:`LimitsReader`. :func:`read_line` reads a
line that is a complete text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TypeVar

from formal_llm.automata.models.limits import Limits, SumLimit
from formal_llm.automata.models.quantities import (
    DIGITS,
    TIME,
    Amount,
    Number,
    clock_text,
    format_amount,
    read_amount,
    read_clock,
)
from formal_llm.automata.models.symbols import Symbol, unquote_text
from formal_llm.automata.models.timetable import Clock, Gap, Span, Timetable, Window
from formal_llm.automata.notation.formula import read_rule
from formal_llm.automata.notation.source import Place, PlacedWord, SourceText, Word
from formal_llm.errors import did_you_mean, unknown

#: A word of a whole line; a name with spaces is in quotes.
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,]+')
#: The separators of the two times of a span.
_DASH = re.compile(r"[-–—]")
_DAY = 86_400
_ARROWS = ("->", "→", "::=")
T = TypeVar("T")
#: An example of each line of a timetable.
EXAMPLES: Mapping[str, str] = {
    "%clock": "%clock time 8:00-20:00",
    "%window": "%window NAME 9:00-12:00",
    "%deadline": "%deadline NAME 17:00",
    "%gap": "%gap 30min NAME NAME",
}
#: The directives of all lines.
DIRECTIVES = ("%limit", "%require", *EXAMPLES)


class WrongWord(ValueError):
    """A word that is invalid at its position in a line.

    Attributes:
        at: the index of the word, from 0; the number of words if one is missing at the end.
        suggestion: the correction to propose.
    """

    def __init__(self, at: int, problem: str, suggestion: str | None = None) -> None:
        super().__init__(problem)
        self.at, self.suggestion = at, suggestion


# -- sums -------------------------------------------------------------------------------------------------------------

_SIGNS = ("<=", ">=", "=")
#: Common alternative signs, and their meanings.
_MEANT = {"<": "<=", ">": ">=", "≤": "<=", "≥": ">=", "==": "=", "=<": "<=", "=>": ">="}


def is_sum(words: Sequence[str]) -> bool:
    """Return whether the words after ``%limit`` bound a sum rather than a number of uses (``<`` may be a name)."""
    first = words[0] if words else ""
    counted = first == "*" or (len(words) != 5 and first.isascii() and first.isdigit())
    return any(word in _SIGNS or (word in _MEANT and not counted) for word in words[1:4:2])


def read_sum(words: Sequence[str]) -> tuple[SumLimit, int]:
    """Read a limit on a sum and return it with the index of the word that names its quantity.

    Raises:
        WrongWord: a word that cannot be where it is, or is missing.
    """
    for at, word in enumerate(words):
        if word in _MEANT:
            corrected = " ".join(_MEANT.get(one, one) for one in words)
            hint = f"write %limit {corrected}" + (", which allows that amount too" if word in "<>" else "")
            raise WrongWord(at, f"unexpected {word!r}", hint)
    if len(words) == 3 and words[1] in _SIGNS:
        return _one_bound(words)
    if len(words) == 5 and words[1] in _SIGNS and words[3] in _SIGNS:
        _, first, quantity, second, _ = words
        if first != second or first == "=":
            raise WrongWord(3, "a range has the same sign twice", f"write, for instance, %limit 1 <= {quantity} <= 5")
        ends = (0, 4) if first == "<=" else (4, 0)
        least, most = (_read_word(read_amount, words[at], at) for at in ends)
        if least > most:
            raise WrongWord(0, f"the range from {format_amount(least)} to {format_amount(most)} is empty")
        return SumLimit(quantity, most, least), 2
    if len(words) == 4 and words[1] in _SIGNS:
        raise WrongWord(3, f"unexpected {words[3]!r}", "an amount is one word: 4h, 30min, 1h30, 12.50EUR")
    raise WrongWord(
        min(3, len(words)), "a limit on a sum has one or two bounds", "write, for instance, %limit 1 <= kg <= 5"
    )


def _one_bound(words: Sequence[str]) -> tuple[SumLimit, int]:
    """Read ``kg <= 5`` or the reverse, ``5 >= kg``."""
    turned = words[0][:1].isdigit() and not words[2][:1].isdigit()
    named, valued = (2, 0) if turned else (0, 2)
    value, quantity, sign = _read_word(read_amount, words[valued], valued), words[named], words[1]
    if sign == "=":
        return SumLimit(quantity, value, value), named
    return (SumLimit(quantity, value) if (sign == "<=") != turned else SumLimit(quantity, at_least=value)), named


def _read_word(read: Callable[[str], T], word: str, at: int, suggestion: str | None = None) -> T:
    """Read one word by a function whose ``ValueError`` says what is wrong with it."""
    try:
        return read(word)
    except ValueError as error:
        raise WrongWord(at, str(error), suggestion) from None


# -- any line ---------------------------------------------------------------------------------------------------------


class CollectedLimits:
    """The limits of the lines read so far."""

    def __init__(self) -> None:
        #: By directive, the count of each terminal; that of all terminals under the empty name.
        self._counts: dict[str, dict[str, int | None]] = {"%limit": {}, "%require": {}}
        self._sums: list[SumLimit] = []
        self.times = Timetable()

    @property
    def limits(self) -> Limits:
        """All limits read so far."""
        at_most, at_least = self._counts["%limit"], self._counts["%require"]
        most = {name: count for name, count in at_most.items() if name}
        least = {name: count for name, count in at_least.items() if count is not None}
        return Limits(most, least, at_most.get(""), tuple(self._sums), self.times)

    def read_line(self, directive: str, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Read another line, and return the indices of the words that name terminals and quantities.

        Raises:
            WrongWord: a word that cannot be where it is, or is missing; a second line for one terminal that differs.
        """
        if directive in EXAMPLES:
            line = _READERS[directive](words)
            self.times = _with_times(self.times, line)
            clocks = [] if line.clock is None else [words.index(line.clock.quantity)]
            return [at for at, word in enumerate(words) if word in line.names], clocks
        if directive not in DIRECTIVES:
            near = did_you_mean(directive, DIRECTIVES)
            hint = f"did you mean {near}?" if near else f"limits are {', '.join(DIRECTIVES)}"
            raise WrongWord(0, f"{' '.join((directive, *words))!r} is no limit", hint)
        if directive == "%limit" and is_sum(words):
            limit, named = read_sum(words)
            self._sums.append(limit)
            return [], [named]
        return self._read_counts(directive, words), []

    def _read_counts(self, directive: str, words: Sequence[str]) -> list[int]:
        """Record the count of a line for each of its names, and return the indices of these."""
        last = len(words) - 1
        counts = [word.isascii() and (word.isdigit() or (word == "*" and directive == "%limit")) for word in words]
        at = next((at for at in (0, last) if words and counts[at]), None)
        if at is None:
            raise _no_count(directive, words)
        if len(words[at]) > DIGITS:
            raise WrongWord(at, f"a number of {len(words[at])} digits", "write * for no limit")
        if directive == "%require" and not last:
            raise WrongWord(at, "%require needs the names of terminals", "write: %require 1 NAME ...")
        count = None if words[at] == "*" else int(words[at])
        names = [place for place in range(len(words)) if place != at]
        known = self._counts[directive]
        for place in names or [at]:
            name = words[place] if names else ""
            if known.setdefault(name, count) != count:
                first = "*" if known[name] is None else known[name]
                raise WrongWord(place, f"a second {directive} {f'for {name}' if name else 'without names'}; "
                                f"the first was {first}")  # fmt: skip
        return names


def _no_count(directive: str, words: Sequence[str]) -> WrongWord:
    """Return the error of a line that should have a number of uses and has none."""
    at = next((at for at, word in enumerate(words) if word[-1:].isdigit() and word.lstrip("+-")[:1].isdigit()), 0)
    word = words[at] if words else ""
    if re.fullmatch(r"[-+]\d+|[-+]?\d+[.,]\d+", word):
        hint = f"uses are counted in whole numbers, from 0: {directive} 1 NAME ..."
        return WrongWord(at, f"{word} is no number of uses", hint)
    return WrongWord(at, "the limit has no number", f"write: {directive} 1 {' '.join(words) or 'NAME ...'}")


def read_line(text: str) -> Limits:
    """Read the limits of one whole line, such as ``%limit 2 retry`` or ``%window "the shop" 9:00-12:00``.

    Raises:
        WrongWord: the line is invalid; words are counted from the one after the directive.
    """
    found = CollectedLimits()
    found.read_line(*split_line(text))
    return found.limits


def split_line(text: str) -> tuple[str, list[str]]:
    """Split a whole line into its directive and its words; a name with spaces is in quotes."""
    directive, *words = [unquote_text(word) if word[:1] == '"' else word for word in _WORD.findall(text)] or [""]
    return directive, words


def read_numbers(
    source: SourceText, name: str, pairs: Iterable[tuple[Word, Word]], known: Mapping[str, Number] | None = None
) -> dict[str, Number]:
    """Read the numbers of a terminal.

    Args:
        source: the text that they stand in, for errors.
        name: the terminal.
        pairs: each quantity with its amount.
        known: the numbers that it has already.

    Raises:
        NotationError: a quantity is there twice, or what should be an amount is none.
    """
    numbers = dict(known or {})
    for quantity, amount in pairs:
        if quantity.text in numbers:
            source.fail_at(f"{name} has two numbers for {quantity.text}", quantity.place)
        try:
            numbers[quantity.text] = read_amount(amount.text)
        except ValueError as error:
            source.fail_at(str(error), amount.place)
    return numbers


class LimitsReader:
    """Reads the limits of one text, and reports errors with their places.

    Args:
        prefix: the prefix of each line in this notation.

    Attributes:
        names: the words that name terminals.
    """

    def __init__(self, source: SourceText, prefix: str = "") -> None:
        self._source = source
        self._prefix = prefix
        self._collected = CollectedLimits()
        self.names: list[Word] = []
        self._quantities: list[Word] = []
        self._rules: list[Word] = []
        self._first_time: Word | None = None
        self._window_places: dict[tuple[str, str], Place] = {}

    def read_line(self, directive: Word, words: Sequence[Word]) -> None:
        """Read one line.

        Raises:
            NotationError: a word is misplaced or missing, or a second line differs from the first.
        """
        try:
            terminals, quantities = self._collected.read_line(directive.text, [word.text for word in words])
        except WrongWord as error:
            at = words[min(error.at, len(words) - 1)] if words else directive
            hint = error.suggestion and error.suggestion.replace(directive.text, f"{self._prefix}{directive.text}")
            self._source.fail_at(str(error), at.place, suggestion=hint)
        self.names += [words[at] for at in terminals]
        self._window_places |= {(directive.text, words[at].text): words[at].place for at in terminals}
        self._quantities += [words[at] for at in quantities]
        if directive.text in EXAMPLES and self._first_time is None:
            self._first_time = directive

    def read_rule(self, text: str, place: Place) -> None:
        """Read what stands behind ``%rule`` on a line; its steps are looked up by :meth:`build_limits`."""
        blanks = len(text) - len(text.lstrip())
        self._rules.append(PlacedWord(text.strip(), Place(place.line, place.column + blanks)))

    def build_limits(
        self,
        terminals: Collection[str],
        symbols: Mapping[str, Symbol],
        *,
        called: str = "terminal",
    ) -> Limits:
        """Build all limits of the text.

        Args:
            terminals: the terminals that the limits may name.
            symbols: the data of the terminals.
            called: the word for a terminal in messages.

        Raises:
            NotationError: a terminal or quantity is unknown, a timetable has no clock or two different ones, or amounts
                of one quantity have two units; with the place.
        """
        fail = self._source.fail_at
        for name in self.names:
            if name.text not in terminals:
                fail(unknown(f"{called} in a limit", name.text, terminals), name.place)
        carried = {quantity for symbol in symbols.values() for quantity in symbol.numbers}
        for quantity in self._quantities:
            if quantity.text not in carried:
                fail(unknown("quantity", quantity.text, carried), quantity.place, suggestion="no terminal carries it")
        if self._first_time is not None and self._collected.times.clock is None:
            fail(f"{self._first_time.text} needs a clock", self._first_time.place,
                 suggestion=f"write: {self._prefix}{EXAMPLES['%clock']}")  # fmt: skip
        self._check_windows()
        labels = {name: symbols[name].label if name in symbols else "" for name in terminals}
        rules = [read_rule(rule.text, labels, self._source, rule.place) for rule in self._rules]
        try:
            limits = reduce(and_, map(Limits.from_sentence, rules), self._collected.limits)
            problem = limits.problem(terminals, symbols)
        except ValueError as error:  # two bounds of one quantity have two units
            problem = str(error)
        if problem is not None:
            about = [word for word in self._quantities if problem.startswith(f"{word.text} ")] or self._quantities
            fail(problem, about[-1].place if about else None)
        return limits

    def _check_windows(self) -> None:
        """Raise for a window that lies outside of the clock, and warn of a span of one that was meant a day later.

        Raises:
            NotationError: no span of a window has a moment in common with the clock.
        """
        clock = self._collected.times.clock
        for window in self._collected.times.windows if clock is not None else ():
            assert clock is not None
            outside = [span for span in window.spans if not span.overlaps(clock.span)]
            begin, end = clock.span.edges
            meant = [
                clock_text(last + _DAY)
                if span.begin is None
                else f"{clock_text(first + _DAY)}-{clock_text(last + _DAY)}"
                for span in outside
                for first, last in [span.edges]
                if first + _DAY <= end and begin <= last + _DAY
            ]
            hint = f"times of the next day go on from 24:00: write {' '.join(meant)}" if meant else None
            place = self._window_places[str(window).split(" ")[0], window.terminal]
            if len(outside) == len(window.spans):
                self._source.fail_at(f"{window} lies outside of the clock, {clock.span}", place, suggestion=hint)
            if hint:
                self._source.warn_at(f"{outside[0]} lies outside of the clock, {clock.span}; {hint}", place)


# -- timetables -------------------------------------------------------------------------------------------------------


def _with_times(known: Timetable, line: Timetable) -> Timetable:
    """Add a line to a timetable.

    Raises:
        WrongWord: the line repeats a declaration.
    """
    if known.clock is not None and line.clock is not None:
        raise WrongWord(0, f"a second clock; the first was {known.clock}")
    for window in line.windows:
        ends = window.spans[0].begin is None  # a deadline, which may stand beside a window
        same = [one for one in known.windows if one.terminal == window.terminal]
        old = next((one for one in same if (one.spans[0].begin is None) == ends), None)
        if old is not None:
            hint = None if ends else "several spans stand on one line: 9:00-12:00 14:00-18:00"
            raise WrongWord(0, f"a second line for {window.terminal}; the first was {old}", hint)
    return Timetable(known.clock or line.clock, known.windows + line.windows, known.gaps + line.gaps)


# -- each line --------------------------------------------------------------------------------------------------------


def _read_clock_line(words: Sequence[str]) -> Timetable:
    names, spans = _named_spans("%clock", words)
    if len(names) != 1 or len(spans) != 1:
        at = 1 if len(names) > 1 else len(words)
        raise WrongWord(at, "a clock has one quantity and one span", f"write: {EXAMPLES['%clock']}")
    return Timetable(Clock(names[0], spans[0]))


def _read_window(words: Sequence[str]) -> Timetable:
    names, spans = _named_spans("%window", words)
    return Timetable(windows=tuple(Window(name, tuple(sorted(spans, key=lambda span: span.edges))) for name in names))


def _named_spans(directive: str, words: Sequence[str]) -> tuple[list[str], list[Span]]:
    names: list[str] = []
    spans: list[Span] = []
    at = 0
    while at < len(words):
        word, size = words[at], 1
        # "9:00 - 12:00" is three words.
        if at + 2 < len(words) and (_DASH.fullmatch(words[at + 1]) or words[at + 1] == "to"):
            word, size = f"{word}-{words[at + 2]}", 3
        if word[:1].isdigit() and (":" in word or _DASH.search(word)):
            spans.append(_read_span(word, at))
        elif word in _ARROWS:
            raise WrongWord(at, f"unexpected {word!r}", f"write: {EXAMPLES[directive]}")
        else:
            names.append(word)
        at += size
    for missing, what in ((spans, "no times"), (names, "no name")):
        if not missing:
            raise WrongWord(len(words), f"{directive} has {what}", f"write: {EXAMPLES[directive]}")
    return names, spans


def _read_span(word: str, at: int) -> Span:
    parts = _DASH.split(word)
    if len(parts) != 2:
        raise WrongWord(at, f"{word!r} is no span of time", "write, for instance, 9:00-12:00")
    first, last = (_read_word(read_clock, part, at) for part in parts)
    if last <= first:
        later = f"for the next day write {parts[0]}-{clock_text(last + _DAY)}" if last < _DAY else None
        raise WrongWord(at, f"{word} ends before it begins", later)
    return Span(first, last)


def _read_deadline(words: Sequence[str]) -> Timetable:
    if len(words) < 2:
        raise WrongWord(len(words), "%deadline needs names and a time", f"write: {EXAMPLES['%deadline']}")
    end = _read_word(read_clock, words[-1], len(words) - 1)
    return Timetable(windows=tuple(Window(name, (Span(None, end),)) for name in words[:-1]))


def _read_gap(words: Sequence[str]) -> Timetable:
    example = f"write: {EXAMPLES['%gap']}"
    if not words:
        raise WrongWord(0, "%gap has no time", example)
    least = _read_word(read_amount, words[0], 0, example)
    if not isinstance(least, Amount) or least.unit != TIME:
        raise WrongWord(0, f"a gap is a time, not {format_amount(least)}", f"write {words[0]}min, or {words[0]}h")
    arrows = [at for at, word in enumerate(words) if word in _ARROWS]
    if len(arrows) > 1:
        raise WrongWord(arrows[1], "a second arrow", "write: %gap 30min NAME -> NAME")
    before, after = (words[1 : arrows[0]], words[arrows[0] + 1 :]) if arrows else (words[1:], words[1:])
    if not before or not after:
        raise WrongWord(len(words) if not after else arrows[0], "%gap names no steps here", example)
    return Timetable(gaps=(Gap(least, tuple(before), tuple(after)),))


#: For each line of a timetable what reads its words; a span may be one word (``9:00-12:00``) or three.
_READERS: Mapping[str, Callable[[Sequence[str]], Timetable]] = {
    "%clock": _read_clock_line,
    "%window": _read_window,
    "%deadline": _read_deadline,
    "%gap": _read_gap,
}
