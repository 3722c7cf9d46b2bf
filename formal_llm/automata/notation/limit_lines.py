"""What every notation writes alike: limits on sums, and the lines of a timetable.

``%limit cost <= 12.50``, ``%limit 8h <= work <= 10h`` and ``%limit cost = 100`` bound a sum; ``%clock``, ``%window``,
``%deadline`` and ``%gap`` say when steps may be (:mod:`formal_llm.automata.models.timetable`). A notation hands over
the words of a line; what is wrong with one comes back with its number, so that the notation can tell the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from formal_llm.automata.models.limits import Limits, SumLimit
from formal_llm.automata.models.quantities import DIGITS, TIME, Amount, clock_text, read_amount, read_clock, shown
from formal_llm.automata.models.symbols import unquote
from formal_llm.automata.models.timetable import Clock, Gap, Span, Timetable, Window
from formal_llm.errors import did_you_mean

#: A word of a whole line; a name with blanks stands in quotes.
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,]+')
#: What separates the two times of a span.
_DASH = re.compile(r"[-–—]")
_ARROWS = ("->", "→", "::=")
#: How each line of a timetable is written.
EXAMPLES: Mapping[str, str] = {
    "%clock": "%clock time 8:00-20:00",
    "%window": "%window NAME 9:00-12:00",
    "%deadline": "%deadline NAME 17:00",
    "%gap": "%gap 30min NAME NAME",
}


class WrongWord(ValueError):
    """A word of a line that cannot stand there.

    Attributes:
        at: its number, from 0; the number of words where one is missing at the end.
        suggestion: what to write.
    """

    def __init__(self, at: int, problem: str, suggestion: str | None = None) -> None:
        super().__init__(problem)
        self.at, self.suggestion = at, suggestion


# -- sums -------------------------------------------------------------------------------------------------------------

_SIGNS = ("<=", ">=", "=")
#: Signs that people write, and what is meant.
_MEANT = {"<": "<=", ">": ">=", "≤": "<=", "≥": ">=", "==": "=", "=<": "<=", "=>": ">="}


def is_sum(words: list[str]) -> bool:
    """Whether the words behind ``%limit`` bound a sum, and not how often something is used (``<`` may be a name)."""
    counted = words[:1] == ["*"] or (len(words) not in (0, 5) and words[0].isascii() and words[0].isdigit())
    return any(word in _SIGNS or (word in _MEANT and not counted) for word in words[1:4:2])


def read_sum(words: Sequence[str]) -> tuple[SumLimit, int]:
    """What a limit on a sum says, and the number of the word that names its quantity.

    Raises:
        WrongWord: a word that cannot stand there, or is missing.
    """
    for at, word in enumerate(words):
        if word in _MEANT:
            meant = " ".join(_MEANT.get(one, one) for one in words)
            hint = f"write %limit {meant}" + (", which allows that amount too" if word in "<>" else "")
            raise WrongWord(at, f"unexpected {word!r}", hint)
    if len(words) == 3 and words[1] in _SIGNS:
        return _one_bound(words)
    if len(words) == 5 and words[1] in _SIGNS and words[3] in _SIGNS:
        _, first, quantity, second, _ = words
        if first != second or first == "=":
            raise WrongWord(3, "a range has the same sign twice", f"write, for instance, %limit 1 <= {quantity} <= 5")
        ends = (0, 4) if first == "<=" else (4, 0)
        least, most = (_amount(words[at], at) for at in ends)
        if least > most:
            raise WrongWord(0, f"the range from {shown(least)} to {shown(most)} is empty")
        return SumLimit(quantity, most, least), 2
    raise WrongWord(
        min(3, len(words)), "a limit on a sum has one or two bounds", "write, for instance, %limit 1 <= kg <= 5"
    )


def _one_bound(words: Sequence[str]) -> tuple[SumLimit, int]:
    """``kg <= 5`` or, the other way round, ``5 >= kg``."""
    turned = words[0][:1].isdigit() and not words[2][:1].isdigit()
    named, valued = (2, 0) if turned else (0, 2)
    value, quantity, sign = _amount(words[valued], valued), words[named], words[1]
    if sign == "=":
        return SumLimit(quantity, value, value), named
    return (SumLimit(quantity, value) if (sign == "<=") != turned else SumLimit(quantity, at_least=value)), named


def _amount(word: str, at: int) -> int | Decimal:
    try:
        return read_amount(word)
    except ValueError as error:
        raise WrongWord(at, str(error)) from None


# -- counts -----------------------------------------------------------------------------------------------------------


def no_count(directive: str, word: str, names: Sequence[str] = ()) -> tuple[str, str]:
    """What is wrong with a word that should count uses, and what to write."""
    if re.fullmatch(r"[-+]\d+|[-+]?\d+[.,]\d+", word):
        return f"{word} is no number of uses", f"uses are counted in whole numbers, from 0: {directive} 1 NAME ..."
    return "the limit has no number", f"write: {directive} 1 {' '.join(names) or 'NAME ...'}"


# -- any line ---------------------------------------------------------------------------------------------------------


def read_line(text: str) -> Limits:
    """The limits that one whole line says, such as ``%limit 2 retry`` or ``%window "the shop" 9:00-12:00``.

    Raises:
        WrongWord: it cannot be read; words are counted from that after the directive.
    """
    directive, *words = [unquote(word) if word[:1] == '"' else word for word in _WORD.findall(text)] or [""]
    if directive in EXAMPLES:
        return Limits(times=read_times(directive, words))
    if directive not in ("%limit", "%require"):
        known = ("%limit", "%require", *EXAMPLES)
        near = did_you_mean(directive, known)
        raise WrongWord(
            0, f"{text!r} is no limit", f"did you mean {near}?" if near else f"limits are {', '.join(known)}"
        )
    if directive == "%limit" and words and is_sum(words):
        return Limits(sums=(read_sum(words)[0],))
    count, names = (words[0] if words else ""), words[1:]
    if count == "*" and directive == "%limit":
        return Limits(dict.fromkeys(names))
    if not (count.isascii() and count.isdigit()) or len(count) > DIGITS:
        raise WrongWord(0, *no_count(directive, count))
    if directive == "%require":
        return Limits(at_least=dict.fromkeys(names, int(count)))
    return Limits(dict.fromkeys(names, int(count))) if names else Limits(default=int(count))


# -- timetables -------------------------------------------------------------------------------------------------------


def read_times(directive: str, words: Sequence[str]) -> Timetable:
    """What a line says.

    Args:
        directive: what it begins with, such as ``"%window"``.
        words: what stands behind it; a span may be one word (``9:00-12:00``) or three.

    Raises:
        WrongWord: a word that cannot stand there, or is missing.
    """
    return _READERS[directive](words)


def with_times(known: Timetable, line: Timetable) -> Timetable:
    """A timetable with one more line.

    Raises:
        WrongWord: it says a second time what is said already.
    """
    if known.clock is not None and line.clock is not None:
        raise WrongWord(0, f"a second clock; the first was {known.clock}")
    for window in line.windows:
        old = next((one for one in known.windows if one.terminal == window.terminal and _alike(one, window)), None)
        if old is not None:
            hint = "several spans stand on one line: 9:00-12:00 14:00-18:00" if old.spans[0].begin is not None else None
            raise WrongWord(0, f"a second line for {window.terminal}; the first was {old}", hint)
    return Timetable(known.clock or line.clock, known.windows + line.windows, known.gaps + line.gaps)


def _alike(one: Window, other: Window) -> bool:
    return (one.spans[0].begin is None) == (other.spans[0].begin is None)


# -- each line --------------------------------------------------------------------------------------------------------


def _clock(words: Sequence[str]) -> Timetable:
    names, spans = _named_spans("%clock", words)
    if len(names) != 1 or len(spans) != 1:
        at = 1 if len(names) > 1 else len(words)
        raise WrongWord(at, "a clock has one quantity and one span", f"write: {EXAMPLES['%clock']}")
    return Timetable(Clock(names[0], spans[0]))


def _window(words: Sequence[str]) -> Timetable:
    names, spans = _named_spans("%window", words)
    return Timetable(windows=tuple(Window(name, tuple(sorted(spans, key=lambda span: span.edges))) for name in names))


def _named_spans(directive: str, words: Sequence[str]) -> tuple[list[str], list[Span]]:
    names: list[str] = []
    spans: list[Span] = []
    at = 0
    while at < len(words):
        word, size = words[at], 1
        # 9:00 - 12:00 is three words.
        if at + 2 < len(words) and (_DASH.fullmatch(words[at + 1]) or words[at + 1] == "to"):
            word, size = f"{word}-{words[at + 2]}", 3
        if word[:1].isdigit() and (":" in word or _DASH.search(word)):
            spans.append(_span(word, at))
        elif word in _ARROWS:
            raise WrongWord(at, f"unexpected {word!r}", f"write: {EXAMPLES[directive]}")
        else:
            names.append(word)
        at += size
    for missing, what in ((spans, "no times"), (names, "no name")):
        if not missing:
            raise WrongWord(len(words), f"{directive} has {what}", f"write: {EXAMPLES[directive]}")
    return names, spans


def _span(word: str, at: int) -> Span:
    parts = _DASH.split(word)
    if len(parts) != 2:
        raise WrongWord(at, f"{word!r} is no span of time", "write, for instance, 9:00-12:00")
    first, last = (_time(part, at) for part in parts)
    if last <= first:
        later = f"for the next day write {parts[0]}-{clock_text(last + 86_400)}" if last < 86_400 else None
        raise WrongWord(at, f"{word} ends before it begins", later)
    return Span(first, last)


def _time(word: str, at: int) -> int:
    try:
        return read_clock(word)
    except ValueError as error:
        raise WrongWord(at, str(error)) from None


def _deadline(words: Sequence[str]) -> Timetable:
    if len(words) < 2:
        raise WrongWord(len(words), "%deadline needs names and a time", f"write: {EXAMPLES['%deadline']}")
    end = _time(words[-1], len(words) - 1)
    return Timetable(windows=tuple(Window(name, (Span(None, end),)) for name in words[:-1]))


def _gap(words: Sequence[str]) -> Timetable:
    example = f"write: {EXAMPLES['%gap']}"
    if not words:
        raise WrongWord(0, "%gap has no time", example)
    try:
        least = read_amount(words[0])
    except ValueError as error:
        raise WrongWord(0, str(error), example) from None
    if not isinstance(least, Amount) or least.unit != TIME:
        raise WrongWord(0, f"a gap is a time, not {shown(least)}", f"write {words[0]}min, or {words[0]}h")
    arrows = [at for at, word in enumerate(words) if word in _ARROWS]
    if len(arrows) > 1:
        raise WrongWord(arrows[1], "a second arrow", "write: %gap 30min NAME -> NAME")
    before, after = (words[1 : arrows[0]], words[arrows[0] + 1 :]) if arrows else (words[1:], words[1:])
    if not before or not after:
        raise WrongWord(len(words) if not after else arrows[0], "%gap names no steps here", example)
    return Timetable(gaps=(Gap(least, tuple(before), tuple(after)),))


_READERS: Mapping[str, Callable[[Sequence[str]], Timetable]] = {
    "%clock": _clock,
    "%window": _window,
    "%deadline": _deadline,
    "%gap": _gap,
}
