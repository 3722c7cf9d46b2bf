"""Limits on sums, and timetables, as all notations write them. (The messages stand in ``broken.txt``.)"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Flowchart, Limits, Lookahead, SumLimit
from formal_llm.automata.models.timetable import Gap, Span, Window
from formal_llm.automata.notation.limit_lines import WrongWord, read_line, read_sum
from tests.automata.messages import quiet

amounts = st.sampled_from(["0", "3", "12.50", "1h30", "45min", "€5", "9.99EUR"])


@given(amounts, amounts)
def test_sums_are_read_back(one: str, other: str) -> None:
    for limit in (SumLimit("q", one), SumLimit("q", at_least=one), SumLimit("q", one, one)):
        for line in limit.lines() or ["%limit q >= 0"]:
            assert read_line(line).sums == Limits(sums=(limit,)).sums
    if SumLimit("q", one).edges[0] <= SumLimit("q", other).edges[0]:  # type: ignore[operator]
        (line,) = SumLimit("q", other, one).lines()
        assert read_sum(line.split()[1:])[0] == SumLimit("q", other, one)


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ("%limit cost = 100", SumLimit("cost", 100, 100)),
        ("%limit 8h <= work <= 10h", SumLimit("work", "10h", "8h")),
        ("%limit 10h >= work >= 8h", SumLimit("work", "10h", "8h")),
        ("%limit 5 >= kg", SumLimit("kg", 5)),
        ("%limit 5 <= kg", SumLimit("kg", at_least=5)),
    ],
)
def test_ways_to_write_a_sum(line: str, limit: SumLimit) -> None:
    assert read_line(line) == Limits(sums=(limit,))


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("%window shop 9:00 - 12:00", (Window("shop", (Span("9:00", "12:00"),)),)),
        ("%window 14:00-18:00 shop 9:00–12:00", (Window("shop", (Span("9:00", "12:00"), Span("14:00", "18:00"))),)),
        ("%deadline shop, bank 17:00", tuple(Window(name, (Span(None, "17:00"),)) for name in ("bank", "shop"))),
    ],
)  # fmt: skip
def test_ways_to_write_a_window(line: str, made: tuple[Window, ...]) -> None:
    assert read_line(line).times.windows == made


def test_gaps_have_a_direction_where_an_arrow_stands() -> None:
    assert read_line("%gap 1h a b").times.gaps == (Gap.between("1h", "a", "b"),)
    assert read_line("%gap 1h a b -> c").times.gaps == (Gap("1h", ("a", "b"), ("c",)),)


def test_what_is_missing_is_told_with_its_place() -> None:
    with pytest.raises(WrongWord, match="has no times") as caught:
        read_line("%window shop")
    assert (caught.value.at, caught.value.suggestion) == (1, "write: %window NAME 9:00-12:00")


LIMITS = ["%limit cost <= €3", "%clock time 8:00-9:00", "%deadline a 8:30", "%gap 15min a"]
NUMBERS = "a time=15min cost=€1\nb time=15min"


def test_all_notations_say_the_same() -> None:
    head = "\n".join(LIMITS)
    comments = "\n".join(f"%% {line}" for line in [*LIMITS, *(f"%numbers {line}" for line in NUMBERS.split("\n"))])
    quoted = " ".join(f'"{line}"' for line in LIMITS)
    rules = [
        CFG.from_string(f"%order forward\n{head}\nS -> a S | b S | a | b\n{NUMBERS}"),
        PDA.from_string(f"{head}\n%accept q\n%start p\n{{s}}, {{x}}, ε -> q, ε for s in p, q for x in a, b\n{NUMBERS}"),
        Behaviour.from_string(
            "(define x (:states (a (:numbers (time 15min) (cost €1))) (b (:numbers (time 15min))))"
            f"(:limits {quoted}) (:behavior (and (not empty) (always any))))"
        ),
    ]
    with quiet():
        assert len({one.limits for one in rules}) == 1
        assert len({Lookahead(one).count() for one in rules}) == 1
        for one in rules:
            assert type(one).from_string(str(one)) == one
        chart = Flowchart.from_string(
            f"flowchart TD\n{comments}\ns([Start]) --> a[A] --> b[B] --> c{{?}}\nc -->|x| a\nc -->|y| e([End])"
        )
    assert chart.limits == rules[0].limits
    assert Flowchart.from_string(str(chart)) == chart
    assert Lookahead(chart).count() == 1
