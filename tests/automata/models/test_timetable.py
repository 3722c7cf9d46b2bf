"""Timetables as values: what they say, how they print, how they narrow each other."""

from __future__ import annotations

import pytest
from hypothesis import given

from formal_llm import CFG, Limits, Symbol
from formal_llm.automata.models.timetable import Clock, Gap, Span, Timetable, Window
from formal_llm.automata.notation.limit_lines import read_line
from tests.automata.schedules import keeps, schedules, sequences


@given(schedules())
def test_what_is_printed_is_read_back(case: tuple[Timetable, dict[str, Symbol]]) -> None:
    table, _ = case
    again = Limits()
    for line in table.lines():
        again &= read_line(line)
    assert again.times == table
    assert again.times.lines() == table.lines()
    assert hash(again.times) == hash(table)


@given(schedules(), schedules())
def test_it_holds_what_the_oracle_says_and_both_hold_both(
    one: tuple[Timetable, dict[str, Symbol]], other: tuple[Timetable, dict[str, Symbol]]
) -> None:
    (table, symbols), (more, _) = one, other
    numbers = {name: symbol.numbers for name, symbol in symbols.items()}
    both = table & more
    for steps in sequences(4):
        assert table.holds(steps, numbers) == keeps(table, symbols, steps)
        assert both.holds(steps, numbers) == (table.holds(steps, numbers) and more.holds(steps, numbers))


def test_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="ends before it begins; for the next day write 26:00"):
        Span("8:00", "2:00")
    with pytest.raises(ValueError, match="a gap is a time"):
        Gap("30", ("a",), ("b",))
    early, late = (Timetable(Clock("time", Span(hour, "20:00"))) for hour in ("8:00", "9:00"))
    with pytest.raises(ValueError, match="must start together"):
        _ = early & late
    table = Timetable(early.clock, (Window("sop", (Span("9:00", "12:00"),)),))
    assert "did you mean shop?" in str(table.problem(["shop"], {"shop": Symbol(numbers={"time": "1h"})}))  # type: ignore[dict-item]
    assert "did you mean time?" in str(
        Timetable(Clock("tim", Span("8:00", "9:00"))).problem(["a"], CFG.from_string("S -> a\na time=1h").symbols)
    )
