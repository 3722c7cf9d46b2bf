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
from typing import NoReturn, TypeVar

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
from formal_llm.errors import NotationError, unknown

#: A word of a whole line; a name with spaces is in quotes.
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,]+')
#: The separators of the two times of a span.
_DASH = re.compile(r"[-–—]")
_DAY = 86_400
_START = Place(1, 1)
_ARROWS = ("->", "→", "::=")
_SIGNS = ("<=", ">=", "=")
#: Common alternative signs, and their meanings.
_MEANT = {"<": "<=", ">": ">=", "≤": "<=", "≥": ">=", "==": "=", "=<": "<=", "=>": ">="}
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


def read_line(text: str) -> Limits:
    """Read the limits of one whole line, such as ``%limit 2 retry`` or ``%window "the shop" 9:00-12:00``.

    Raises:
        NotationError: the line is invalid.
    """
    reader = LimitsReader(SourceText(text, None, error=NotationError))
    reader.read_line(*split_line(text))
    return reader.limits


def split_line(text: str, place: Place = _START) -> tuple[PlacedWord, list[PlacedWord]]:
    """Split a whole line into its directive and its words; a name with spaces is in quotes.

    Args:
        text: the line.
        place: where it begins.
    """
    directive, *words = [
        PlacedWord(unquote_text(found[0]) if found[0][0] == '"' else found[0],
                   Place(place.line, place.column + found.start()))
        for found in _WORD.finditer(text)
    ] or [PlacedWord("", place)]  # fmt: skip
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
        self.names: list[Word] = []
        #: By directive, the count of each terminal; that of all terminals under the empty name.
        self._counts: dict[str, dict[str, int | None]] = {"%limit": {}, "%require": {}}
        self._sums: list[SumLimit] = []
        self._times = Timetable()
        self._quantities: list[Word] = []
        self._rules: list[PlacedWord] = []
        self._first_time: Word | None = None
        self._window_places: dict[tuple[str, str], Place] = {}
        #: The directive of the line that is read, and its last word.
        self._directive = self._last = PlacedWord("", _START)

    @property
    def limits(self) -> Limits:
        """The limits read so far, but for the rules about order; their names may be unknown."""
        at_most, at_least = self._counts["%limit"], self._counts["%require"]
        most = {name: count for name, count in at_most.items() if name}
        least = {name: count for name, count in at_least.items() if count is not None}
        return Limits(most, least, at_most.get(""), tuple(self._sums), self._times)

    def read_line(self, directive: Word, words: Sequence[Word]) -> None:
        """Read one line.

        Raises:
            NotationError: a word is misplaced or missing, or a second line differs from the first.
        """
        self._directive = PlacedWord(directive.text, directive.place)
        self._last = PlacedWord(words[-1].text, words[-1].place) if words else self._directive
        if directive.text in EXAMPLES:
            self._read_times(directive, words)
        elif directive.text not in DIRECTIVES:
            written = " ".join([directive.text, *(word.text for word in words)])
            hint = f"limits are {', '.join(DIRECTIVES)}"
            self._source.fail_near(f"{written!r} is no limit", directive.place, directive.text, DIRECTIVES, hint)
        elif directive.text == "%limit" and _is_sum([word.text for word in words]):
            self._sums.append(self._read_sum(words))
        else:
            self._read_counts(directive.text, words)

    def read_rule(self, text: str, place: Place) -> None:
        """Read what stands behind ``%rule`` on a line; its steps are looked up by :meth:`build_limits`."""
        blanks = len(text) - len(text.lstrip())
        self._rules.append(PlacedWord(text.strip(), Place(place.line, place.column + blanks)))

    def _fail(self, problem: str, word: Word, suggestion: str | None = None) -> NoReturn:
        directive = self._directive.text
        hint = suggestion and suggestion.replace(directive, f"{self._prefix}{directive}")
        self._source.fail_at(problem, word.place, suggestion=hint)

    def _read_word(self, read: Callable[[str], T], word: Word, suggestion: str | None = None) -> T:
        """Read one word by a function whose ``ValueError`` says what is wrong with it."""
        try:
            return read(word.text)
        except ValueError as error:
            self._fail(str(error), word, suggestion)

    # -- numbers of uses, and sums ------------------------------------------------------------------------------

    def _read_counts(self, directive: str, words: Sequence[Word]) -> None:
        """Record the count of a line for each of its names."""
        number = next((word for word in (*words[:1], *words[-1:]) if _is_count(word.text, directive)), None)
        if number is None:
            self._refuse_count(directive, words)
        if len(number.text) > DIGITS:
            self._fail(f"a number of {len(number.text)} digits", number, "write * for no limit")
        count = None if number.text == "*" else int(number.text)
        names = [word for word in words if word is not number]
        if directive == "%require" and not names:
            self._fail("%require needs the names of terminals", number, "write: %require 1 NAME ...")
        known = self._counts[directive]
        for word in names or [number]:
            name = word.text if names else ""
            if known.setdefault(name, count) != count:
                first = "*" if known[name] is None else known[name]
                about = f"for {name}" if name else "without names"
                self._fail(f"a second {directive} {about}; the first was {first}", word)
        self.names += names

    def _refuse_count(self, directive: str, words: Sequence[Word]) -> NoReturn:
        """Raise for a line that should have a number of uses and has none."""
        odd = next((word for word in words if re.fullmatch(r"[-+]\d+|[-+]?\d+[.,]\d+", word.text)), None)
        if odd is not None:
            hint = f"uses are counted in whole numbers, from 0: {directive} 1 NAME ..."
            self._fail(f"{odd.text} is no number of uses", odd, hint)
        names = " ".join(word.text for word in words) or "NAME ..."
        self._fail("the limit has no number", (*words, self._directive)[0], f"write: {directive} 1 {names}")

    def _read_sum(self, words: Sequence[Word]) -> SumLimit:
        """Read a limit on a sum: ``kg <= 5``, ``5 >= kg``, or ``1 <= kg <= 5``."""
        texts = [word.text for word in words]
        for word in words:
            if word.text in _MEANT:
                corrected = " ".join(_MEANT.get(one, one) for one in texts)
                hint = f"write %limit {corrected}" + (", which allows that amount too" if word.text in "<>" else "")
                self._fail(f"unexpected {word.text!r}", word, hint)
        signs = [text for text in texts[1::2] if text in _SIGNS]
        if len(words) == 3 and len(signs) == 1:
            turned = texts[0][:1].isdigit() and not texts[2][:1].isdigit()
            named, valued = (words[2], words[0]) if turned else (words[0], words[2])
            self._quantities.append(named)
            value = self._read_word(read_amount, valued)
            if signs == ["="]:
                return SumLimit(named.text, value, value)
            return SumLimit(named.text, value) if (signs == ["<="]) != turned else SumLimit(named.text, at_least=value)
        if len(words) == 5 and len(signs) == 2:
            if len({*signs}) > 1 or "=" in signs:
                hint = f"write, for instance, %limit 1 <= {texts[2]} <= 5"
                self._fail("a range has the same sign twice", words[3], hint)
            least, most = (self._read_word(read_amount, words[at]) for at in ((0, 4) if signs[0] == "<=" else (4, 0)))
            if least > most:
                self._fail(f"the range from {format_amount(least)} to {format_amount(most)} is empty", words[0])
            self._quantities.append(words[2])
            return SumLimit(texts[2], most, least)
        if len(words) == 4 and signs:
            self._fail(f"unexpected {texts[3]!r}", words[3], "an amount is one word: 4h, 30min, 1h30, 12.50EUR")
        at = words[min(3, len(words) - 1)]
        return self._fail("a limit on a sum has one or two bounds", at, "write, for instance, %limit 1 <= kg <= 5")

    # -- timetables ---------------------------------------------------------------------------------------------

    def _read_times(self, directive: Word, words: Sequence[Word]) -> None:
        """Read a line of a timetable, which repeats no declaration."""
        read = {"%clock": self._read_clock, "%window": self._read_window, "%deadline": self._read_deadline}
        line, known = read.get(directive.text, self._read_gap)(words), self._times
        if known.clock is not None and line.clock is not None:
            self._fail(f"a second clock; the first was {known.clock}", words[0])
        for window in line.windows:
            ends = window.spans[0].begin is None  # a deadline, which may stand beside a window
            same = [one for one in known.windows if one.terminal == window.terminal]
            old = next((one for one in same if (one.spans[0].begin is None) == ends), None)
            if old is not None:
                hint = None if ends else "several spans stand on one line: 9:00-12:00 14:00-18:00"
                self._fail(f"a second line for {window.terminal}; the first was {old}", words[0], hint)
        self._times = Timetable(known.clock or line.clock, known.windows + line.windows, known.gaps + line.gaps)
        self._first_time = self._first_time or directive
        names = [word for word in words if word.text in line.names]
        self.names += names
        self._window_places |= {(directive.text, word.text): word.place for word in names}

    def _read_clock(self, words: Sequence[Word]) -> Timetable:
        names, spans = self._read_spans(words)
        if len(names) != 1 or len(spans) != 1:
            at = words[1] if len(names) > 1 else self._last
            self._fail("a clock has one quantity and one span", at, f"write: {EXAMPLES['%clock']}")
        self._quantities.append(names[0])
        return Timetable(Clock(names[0].text, spans[0]))

    def _read_window(self, words: Sequence[Word]) -> Timetable:
        names, spans = self._read_spans(words)
        ordered = tuple(sorted(spans, key=lambda span: span.edges))
        return Timetable(windows=tuple(Window(name.text, ordered) for name in names))

    def _read_deadline(self, words: Sequence[Word]) -> Timetable:
        if len(words) < 2:
            self._fail("%deadline needs names and a time", self._last, f"write: {EXAMPLES['%deadline']}")
        spans = (Span(None, self._read_word(read_clock, words[-1])),)
        return Timetable(windows=tuple(Window(word.text, spans) for word in words[:-1]))

    def _read_gap(self, words: Sequence[Word]) -> Timetable:
        example = f"write: {EXAMPLES['%gap']}"
        if not words:
            self._fail("%gap has no time", self._directive, example)
        least = self._read_word(read_amount, words[0], example)
        if not isinstance(least, Amount) or least.unit != TIME:
            hint = f"write {words[0].text}min, or {words[0].text}h"
            self._fail(f"a gap is a time, not {format_amount(least)}", words[0], hint)
        texts = [word.text for word in words]
        arrows = [at for at, text in enumerate(texts) if text in _ARROWS]
        if len(arrows) > 1:
            self._fail("a second arrow", words[arrows[1]], "write: %gap 30min NAME -> NAME")
        before, after = (texts[1 : arrows[0]], texts[arrows[0] + 1 :]) if arrows else (texts[1:], texts[1:])
        if not before or not after:
            self._fail("%gap names no steps here", self._last if not after else words[arrows[0]], example)
        return Timetable(gaps=(Gap(least, tuple(before), tuple(after)),))

    def _read_spans(self, words: Sequence[Word]) -> tuple[list[Word], list[Span]]:
        """Read names and spans of time in any order; a span may be one word, ``9:00-12:00``, or three."""
        names: list[Word] = []
        spans: list[Span] = []
        directive, at = self._directive.text, 0
        while at < len(words):
            word, size = words[at], 1
            if at + 2 < len(words) and (_DASH.fullmatch(words[at + 1].text) or words[at + 1].text == "to"):
                word, size = PlacedWord(f"{word.text}-{words[at + 2].text}", word.place), 3
            if word.text[:1].isdigit() and (":" in word.text or _DASH.search(word.text)):
                spans.append(self._read_span(word))
            elif word.text in _ARROWS:
                self._fail(f"unexpected {word.text!r}", word, f"write: {EXAMPLES[directive]}")
            else:
                names.append(word)
            at += size
        for missing, what in ((spans, "no times"), (names, "no name")):
            if not missing:
                self._fail(f"{directive} has {what}", self._last, f"write: {EXAMPLES[directive]}")
        return names, spans

    def _read_span(self, word: Word) -> Span:
        parts = _DASH.split(word.text)
        if len(parts) != 2:
            self._fail(f"{word.text!r} is no span of time", word, "write, for instance, 9:00-12:00")
        first, last = (self._read_word(read_clock, PlacedWord(part, word.place)) for part in parts)
        if last <= first:
            later = f"for the next day write {parts[0]}-{clock_text(last + _DAY)}" if last < _DAY else None
            self._fail(f"{word.text} ends before it begins", word, later)
        return Span(first, last)

    # -- all lines ----------------------------------------------------------------------------------------------

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
        if self._first_time is not None and self._times.clock is None:
            fail(f"{self._first_time.text} needs a clock", self._first_time.place,
                 suggestion=f"write: {self._prefix}{EXAMPLES['%clock']}")  # fmt: skip
        self._check_windows()
        labels = {name: symbols[name].label if name in symbols else "" for name in terminals}
        rules = [read_rule(rule.text, labels, self._source, rule.place) for rule in self._rules]
        try:
            limits = reduce(and_, map(Limits.from_sentence, rules), self.limits)
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
        clock = self._times.clock
        for window in self._times.windows if clock is not None else ():
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


def _is_sum(words: Sequence[str]) -> bool:
    """Return whether the words after ``%limit`` bound a sum rather than a number of uses (``<`` may be a name)."""
    first = words[0] if words else ""
    counted = first == "*" or (len(words) != 5 and first.isascii() and first.isdigit())
    return any(word in _SIGNS or (word in _MEANT and not counted) for word in words[1:4:2])


def _is_count(word: str, directive: str) -> bool:
    return word.isascii() and (word.isdigit() or (word == "*" and directive == "%limit"))
