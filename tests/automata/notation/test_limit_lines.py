"""Limits on sums, and timetables, as all notations write them. (The messages stand in ``broken.txt``.)"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Flowchart, Limits, Lookahead, SumLimit
from formal_llm.automata.models.quantities import amount, unit_of
from formal_llm.automata.models.timetable import Gap, Span, Window
from formal_llm.automata.notation.limit_lines import read_line
from formal_llm.errors import NotationError
from tests.automata.messages import quiet

amounts = st.sampled_from(["0", "3", "12.50", "1h30", "45min", "€5", "9.99EUR"])


@given(amounts, amounts)
def test_sums_are_read_back(one: str, other: str) -> None:
    for limit in (SumLimit("q", one), SumLimit("q", at_least=one), SumLimit("q", one, one)):
        for line in limit.lines() or ["%limit q >= 0"]:
            assert read_line(line).sums == Limits(sums=(limit,)).sums
    low, high = amount(one), amount(other)
    if low <= high and (unit_of(low) == unit_of(high) or not low):
        (line,) = SumLimit("q", other, one).lines()
        assert read_line(line) == Limits(sums=(SumLimit("q", other, one),))


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
    with pytest.raises(NotationError, match="has no times") as caught:
        read_line("%window shop")
    assert (caught.value.column, caught.value.suggestion) == (9, "write: %window NAME 9:00-12:00")


def written(*lines: str) -> dict[str, str]:
    """A text of each notation with these lines of limits; ``a`` costs 1, and ``c`` is in the rules and never read."""
    head, quoted = "\n".join(lines), " ".join(f'"{line}"' for line in lines)
    comments = "\n".join(f"%% {line}" for line in lines)
    return {
        "cfg": f"%order forward\n{head}\nS -> a S | b S | ε\na time=15min cost=1",
        "pda": f"{head}\n%accept p\np, a, ε -> p, ε\np, b, ε -> p, ε\na time=15min cost=1",
        "mmd": f"flowchart TD\n{comments}\n%% %numbers a time=15min cost=1\ns{{?}} -->|one| a[A] --> t{{?}}\n"
        "s -->|two| b[B] --> t\nt -->|x| s\nt -->|y| e([End])",
        "agent": f"(define x (:states (a (:numbers (time 15min) (cost 1))) b c) (:limits {quoted})"
        " (:behavior (always (or a b))))",
    }


READERS = {"cfg": CFG, "pda": PDA, "mmd": Flowchart, "agent": Behaviour}
each = pytest.mark.parametrize("notation", READERS)


def read(notation: str, *lines: str) -> CFG | PDA | Flowchart | Behaviour:
    with quiet():
        return READERS[notation].from_string(written(*lines)[notation])


@each
def test_a_sum_of_at_least_0_says_nothing(notation: str) -> None:
    assert read(notation, "%limit cost >= 0").limits == Limits()
    assert read(notation, "%limit 0 <= cost <= 3").limits == Limits(sums=(SumLimit("cost", 3),))
    with pytest.raises(NotationError, match=r"unknown quantity: cots \(did you mean cost\?\)") as caught:
        read(notation, "%limit cots >= 0")
    assert caught.value.line is not None


def test_a_sum_of_at_least_0_does_not_hinder_planning() -> None:
    with quiet():
        rules = CFG.from_string("%limit 1\n%require 1 c\n%limit cost >= 0\nS -> S c? | d | b\nc cost=1")
    assert Lookahead(rules).shortest_word() in {("d", "c"), ("b", "c")}


@each
def test_the_number_comes_first_or_last(notation: str) -> None:
    assert read(notation, "%limit a b 2").limits == read(notation, "%limit 2 a b").limits == Limits({"a": 2, "b": 2})
    assert read(notation, "%require a 1").limits == Limits(at_least={"a": 1})


@each
def test_a_star_lifts_the_limit_of_all(notation: str) -> None:
    assert read(notation, "%limit 1", "%limit * a").limits == Limits({"a": None}, default=1)


@each
def test_a_line_may_come_twice_and_not_differ(notation: str) -> None:
    assert read(notation, "%limit 1 a", "%limit 1 a").limits == Limits({"a": 1})
    for one, other, first in (("%limit 1 a", "%limit * a", 1), ("%require 1 a", "%require 2 a", 1)):
        said = f"a second {one.split()[0]} for a; the first was {first}"
        with pytest.raises(NotationError, match=said):
            read(notation, one, other)
    with pytest.raises(NotationError, match="a second %limit without names; the first was 3"):
        read(notation, "%limit 3", "%limit 2")


@each
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%limit -1 a", "-1 is no number of uses"),
        ("%limit 1.5 a", "1.5 is no number of uses"),
        ("%limit a", "the limit has no number"),
        ("%require * a", "the limit has no number"),
        ("%require 1", "%require needs the names of terminals"),
        (f"%limit {'9' * 200} a", "a number of 200 digits"),
        ("%limit 1 z", "in a limit: z"),
        ("%limit cost <= much", "'much' is not a number"),
        ("%deadline a 8:15", "%deadline needs a clock"),
        ("%limit cost <= €3", "cost is given in two units"),
    ],
)
def test_all_notations_refuse_the_same(notation: str, line: str, said: str) -> None:
    with pytest.raises(NotationError, match=re.escape(said)) as caught:
        read(notation, line)
    assert caught.value.line is not None


@each
@pytest.mark.parametrize(
    "lines",
    [
        ["%require 2 a", "%limit 1 a"],
        ["%limit 2 <= cost <= 3", "%limit 1 a"],
        ["%clock time 8:00-9:00", "%window a 8:00-8:10", "%require 1 a"],
        ["%clock time 8:00-9:00", "%gap 15min a", "%require 2 a"],
        ["%clock time 8:00-8:45", "%limit cost >= 4"],
    ],
)
def test_rules_without_a_plan_are_refused(notation: str, lines: list[str]) -> None:
    with pytest.raises(NotationError) as caught:
        read(notation, *lines)
    assert caught.value.line is not None
    assert any(line in str(caught.value) for line in lines)
    for left_out in range(len(lines)):
        kept = [line for place, line in enumerate(lines) if place != left_out]
        if not any(line.startswith(("%window", "%gap")) for line in kept) or "%clock" in kept[0]:
            assert read(notation, *kept).limits != Limits()
