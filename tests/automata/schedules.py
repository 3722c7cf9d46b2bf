"""Random small schedules, and a slow judge of them that uses nothing of the library but the fields of its values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from formal_llm import Symbol
from formal_llm.automata.models.quantities import TIME, Amount
from formal_llm.automata.models.timetable import Clock, Gap, Span, Timetable, Window

NAMES = ("a", "b", "c")
QUARTER = 900
#: The clock runs from 8:00 for so many quarters of an hour at most.
QUARTERS = 6


@st.composite
def spans(draw: st.DrawFn, *, deadline: bool = False) -> Span:
    low = draw(st.integers(0, QUARTERS - 1))
    high = draw(st.integers(low + 1, QUARTERS + 1))
    at = 8 * 3600
    return Span(None if deadline else at + low * QUARTER, at + high * QUARTER)


@st.composite
def schedules(draw: st.DrawFn) -> tuple[Timetable, dict[str, Symbol]]:
    """A timetable over three steps, and how long each takes; some take no time."""
    takes = {name: draw(st.sampled_from((0, QUARTER, QUARTER, 2 * QUARTER))) for name in NAMES}
    symbols = {name: Symbol(numbers={"time": Amount(seconds, TIME)}) for name, seconds in takes.items()}
    named = st.sampled_from(NAMES)
    windows = [
        Window(name, tuple(sorted(set(draw(st.lists(spans(), min_size=1, max_size=2))), key=lambda one: one.edges)))
        for name in draw(st.lists(named, max_size=2, unique=True))
    ]
    windows += [Window(name, (draw(spans(deadline=True)),)) for name in draw(st.lists(named, max_size=1))]
    some = st.lists(named, min_size=1, max_size=2, unique=True).map(tuple)
    gaps = []
    for _ in range(draw(st.integers(0, 2))):
        least, before = Amount(draw(st.integers(1, 3)) * QUARTER, TIME), draw(some)
        gaps.append(Gap(least, before, draw(st.just(before) | some)))
    clock = Clock("time", Span("8:00", 8 * 3600 + draw(st.integers(1, QUARTERS)) * QUARTER))
    return Timetable(clock, tuple(windows), tuple(gaps)), symbols


def sequences(longest: int) -> Iterator[tuple[str, ...]]:
    for size in range(longest + 1):
        yield from itertools.product(NAMES, repeat=size)


def keeps(table: Any, symbols: Any, steps: Sequence[str]) -> bool:
    """Whether steps, as they are carried out, keep a timetable."""
    begins, ends, now = [], [], int(table.clock.span.begin)
    for name in steps:
        begins.append(now)
        now += int(symbols[name].numbers["time"])
        ends.append(now)
    if now > int(table.clock.span.end):
        return False
    for place, name in enumerate(steps):
        for window in table.windows:
            if window.terminal == name and not any(
                (span.begin is None or begins[place] >= span.begin) and ends[place] <= span.end for span in window.spans
            ):
                return False
        for earlier in range(place):
            for gap in table.gaps:
                apart = begins[place] - ends[earlier]
                if steps[earlier] in gap.before and name in gap.after and apart < int(gap.least):
                    return False
    return True
