"""Timetables: when the steps of a plan may be.

A clock starts with the first step and is moved by a quantity that terminals carry, such as ``time=1h30``; a step
without it takes no time. So every step begins and ends at a time of day, and these can be bounded::

    %clock time 8:00-20:00              # the day begins at 8:00, and is over by 20:00
    %window shop bank 9:00-12:00 14:00-18:00    # opening hours: each is within one of these
    %deadline shop 17:00                # is over by then
    %gap 30min lunch supper             # at least that long between two of these
    %gap 1h lunch -> swim               # at least that long from the end of the one to the beginning of the other

All of it is about the sequence of steps as they are carried out, whichever way the rules are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import time, timedelta

from formal_llm.automata.models.quantities import (
    TIME,
    Amount,
    Number,
    amount,
    clock_text,
    format_amount,
    seconds_since_midnight,
    unit_of,
)
from formal_llm.automata.models.symbols import Symbol
from formal_llm.errors import unknown

#: A time of day: ``"9:15"``, a ``datetime.time``, or seconds since midnight.
ClockTime = str | time | int
#: (a time in seconds since midnight, the seconds since the last step that a gap counts from), as far as they count.
Moment = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Span:
    """From one time of day to another; ``begin`` is None where only the end counts. Both are kept in seconds.

    Raises:
        ValueError: what is no time of day; an end before the beginning.
    """

    begin: ClockTime | None
    end: ClockTime

    def __post_init__(self) -> None:
        object.__setattr__(self, "begin", None if self.begin is None else seconds_since_midnight(self.begin))
        object.__setattr__(self, "end", seconds_since_midnight(self.end))
        first, last = self.edges
        if last <= first:
            later = f"; for the next day write {clock_text(last + 86_400)}" if self.begin is not None else ""
            raise ValueError(f"{self} ends before it begins{later}")

    @property
    def edges(self) -> tuple[int, int]:
        """Beginning and end in seconds since midnight."""
        return (0 if self.begin is None else int(self.begin)), int(self.end)  # type: ignore[arg-type]  # made so above

    def __str__(self) -> str:
        first, last = map(clock_text, self.edges)
        return last if self.begin is None else f"{first}-{last}"

    def holds(self, begin: int, end: int) -> bool:
        """Whether what is from ``begin`` to ``end`` is within it."""
        first, last = self.edges
        return first <= begin and end <= last

    def overlaps(self, other: Span) -> bool:
        """Whether both have some moment in common."""
        (first, last), (begin, end) = self.edges, other.edges
        return first <= end and begin <= last


@dataclass(frozen=True, slots=True)
class Clock:
    """What moves the clock, and from when to when it runs."""

    quantity: str
    span: Span

    def __str__(self) -> str:
        return f"%clock {self.quantity} {self.span}"


@dataclass(frozen=True, slots=True)
class Window:
    """A step of ``terminal`` is within one of some spans: opening hours, or a deadline where it has no beginning."""

    terminal: str
    spans: tuple[Span, ...]

    def __str__(self) -> str:
        deadline = len(self.spans) == 1 and self.spans[0].begin is None
        return f"%{'deadline' if deadline else 'window'} {self.terminal} {' '.join(map(str, self.spans))}"


@dataclass(frozen=True, slots=True)
class Gap:
    """At least a while from the end of any step of ``before`` to the beginning of a later one of ``after``.

    Raises:
        ValueError: ``least`` is no time, or a negative one.
    """

    least: str | timedelta | Amount
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __post_init__(self) -> None:
        made = amount(self.least)
        if unit_of(made) != TIME:
            raise ValueError(f"a gap is a time such as 30min, not {format_amount(made)}")
        if made < 0:
            raise ValueError(f"a gap is a time from 0, not {format(made, 'f')} seconds")
        object.__setattr__(self, "least", made)

    @classmethod
    def between(cls, least: str | timedelta | Amount, *names: str) -> Gap:
        """A gap between any two of some steps, whichever comes first."""
        return cls(least, names, names)

    @property
    def seconds(self) -> int:
        """How long it is at least."""
        return int(amount(self.least))

    def __str__(self) -> str:
        first, second = " ".join(self.before), " ".join(self.after)
        return f"%gap {self.least} {first}" + ("" if first == second else f" -> {second}")


@dataclass(frozen=True)
class Timetable:
    """A clock, and what it bounds. Timetables, as limits, only ever narrow a language: ``&`` keeps both.

    Raises:
        ValueError: with ``&``, two clocks that do not start together.
    """

    clock: Clock | None = None
    windows: tuple[Window, ...] = ()
    gaps: tuple[Gap, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "windows", tuple(sorted(set(self.windows), key=str)))
        object.__setattr__(self, "gaps", tuple(sorted(set(self.gaps), key=str)))

    def __bool__(self) -> bool:
        return bool(self.clock or self.windows or self.gaps)

    def __and__(self, other: Timetable) -> Timetable:
        clock = self.clock or other.clock
        if self.clock is not None and other.clock is not None:
            mine, others = self.clock.span, other.clock.span
            if (self.clock.quantity, mine.begin) != (other.clock.quantity, others.begin):
                raise ValueError(f"two clocks: {self.clock} and {other.clock}; they must start together")
            clock = self.clock if mine.edges[1] <= others.edges[1] else other.clock
        return Timetable(clock, self.windows + other.windows, self.gaps + other.gaps)

    def lines(self, written: Callable[[str], str] = str) -> list[str]:
        """The timetable as lines of the notations; ``written`` writes the name of a terminal in that notation."""
        return [str(rule) for rule in self.renamed({name: written(name) for name in self.names}).rules]

    @property
    def rules(self) -> tuple[Clock | Window | Gap, ...]:
        """Its parts, each with a line of its own: the clock, the windows, the gaps."""
        return (*((self.clock,) if self.clock else ()), *self.windows, *self.gaps)

    @property
    def names(self) -> tuple[str, ...]:
        """The terminals that it names."""
        gaps = (name for gap in self.gaps for name in (*gap.before, *gap.after))
        return tuple(dict.fromkeys((*(window.terminal for window in self.windows), *gaps)))

    def renamed(self, names: Mapping[str, str]) -> Timetable:
        """The same timetable for terminals of other names."""
        gaps = (Gap(g.least, tuple(names[n] for n in g.before), tuple(names[n] for n in g.after)) for g in self.gaps)
        return Timetable(self.clock, tuple(Window(names[w.terminal], w.spans) for w in self.windows), tuple(gaps))

    def problem(self, terminals: Collection[str], symbols: Mapping[str, Symbol]) -> str | None:
        """What is wrong with it for rules with these terminals; None where nothing is."""
        for name in self.names:
            if name not in terminals:
                return unknown("terminal in a timetable", name, terminals)
        if self.clock is None:
            return None
        carried = {q: name for name, symbol in symbols.items() for q in symbol.numbers}
        quantity = self.clock.quantity
        if quantity not in carried:
            return f"{unknown('quantity of a clock', quantity, carried)}; no terminal carries it"
        for name, symbol in symbols.items():
            value = symbol.numbers.get(quantity, 0)
            if value and unit_of(value) != TIME:
                shown = f"{quantity}={format_amount(value)}"
                return f"{name} carries {shown}, which moves no clock; write a time such as 15min"
        return None

    # -- what it determines of a plan -----------------------------------------------------------------------------

    def seconds(self, numbers: Mapping[str, Mapping[str, Number]], name: str) -> int:
        """How long a step takes."""
        value = numbers.get(name, {}).get(self.clock.quantity, 0) if self.clock is not None else 0
        return int(value)

    def begin(self, rule: Clock | Window | Gap) -> Moment:
        """The moment before the first step, for one of its rules; there is a clock."""
        assert self.clock is not None
        return self.clock.span.edges[0], rule.seconds if isinstance(rule, Gap) else 0

    def advance(self, rule: Clock | Window | Gap, moment: Moment, name: str, seconds: int) -> Moment | None:
        """The moment after a step that takes so long, for one of its rules; None where that or the clock forbids it.

        What the rule need not know of a moment is left out, so that there are few of them.
        """
        assert self.clock is not None
        now, since = moment
        end = now + seconds
        if end > self.clock.span.edges[1]:
            return None
        if isinstance(rule, Window) and name == rule.terminal and not any(span.holds(now, end) for span in rule.spans):
            return None
        if not isinstance(rule, Gap):
            return end, 0
        if name in rule.after and since < rule.seconds:
            return None
        return end, 0 if name in rule.before else min(rule.seconds, since + seconds)

    def holds(self, steps: Sequence[str], numbers: Mapping[str, Mapping[str, Number]]) -> bool:
        """Whether a sequence of steps, as they are carried out, keeps it."""
        for rule in self.rules if self.clock is not None else ():
            moment = self.begin(rule)
            for name in steps:
                after = self.advance(rule, moment, name, self.seconds(numbers, name))
                if after is None:
                    return False
                moment = after
        return True
