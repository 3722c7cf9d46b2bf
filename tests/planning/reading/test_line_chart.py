"""The chart of lines: what it reads is what trying all readings finds."""

from __future__ import annotations

import random

import pytest

from formal_llm.automata.languages.word_lists import words as all_words
from formal_llm.errors import Undecided
from formal_llm.planning.reading import line_chart
from formal_llm.planning.reading.line_chart import LineChart, LinePart, PartBody, PartWays, drop_dead_bodies

ROOT, OTHER = LinePart("S", 0), LinePart("T", 0)


def body(*items: str | LinePart) -> PartBody:
    return PartBody(items, tuple(item for item in items if isinstance(item, LinePart)))


def some_table(rng: random.Random, lines: int) -> dict[LinePart, PartWays]:
    """A table in which every part ends sooner or later."""

    def bodies(*parts: LinePart) -> list[PartBody]:
        made = [body(*(item for item in ("x", *parts) if rng.random() < 0.6)) for _ in range(rng.randrange(3))]
        return list(dict.fromkeys(made))

    def ways(*parts: LinePart) -> PartWays:
        return PartWays(bodies(*parts), {at: bodies(*parts) for at in range(lines)}, {"go": [body()]})

    return {ROOT: ways(OTHER, OTHER), OTHER: ways()}


def readings(table: dict[LinePart, PartWays], part: LinePart, at: int, lines: int) -> set[tuple[int, tuple[str, ...]]]:
    """All ways to read a part from a line on: the line after it, and its word."""
    found = set()
    begun = [(at, one) for one in table[part].free]
    begun += [(at + 1, one) for one in table[part].on.get(at, ())] if at < lines else []
    for start, one in begun:
        ends = {(start, ())}
        for item in one.items:
            if isinstance(item, str):
                ends = {(end, (*word, item)) for end, word in ends}
            else:
                ends = {(to, word + more) for end, word in ends for to, more in readings(table, item, end, lines)}
        found |= ends
    return found


@pytest.mark.parametrize("seed", range(60))
def test_readings_are_those_of_trying_all(seed: int) -> None:
    rng = random.Random(seed)
    lines = rng.randrange(4)
    table = drop_dead_bodies(some_table(rng, lines))
    chart = LineChart(table, ROOT, lines)
    words = {word for end, word in readings(table, ROOT, 0, lines) if end == lines}
    told = chart.build_candidates()
    found = set() if told is None else set(all_words(told.pda, 3 * lines + 6))
    assert found == words
    # What stands on a line is what the table has for it, so a beginning of the lines is a plan of its own.
    ends = {end for end, _ in readings(table, ROOT, 0, lines)}
    assert chart.longest >= max(ends, default=0)


def test_what_could_come_next_is_told_where_the_lines_go_wrong() -> None:
    table = {
        ROOT: PartWays([], {0: [body(OTHER)]}, {"begin": [body()]}),
        OTHER: PartWays([], {}, {"go on": [body()], "stop": [body()]}),
    }
    chart = LineChart(table, ROOT, 2)
    assert (chart.longest, list(chart.could), chart.build_candidates()) == (1, ["go on", "stop"], None)


def test_parts_that_never_end_are_left_out() -> None:
    table = {ROOT: PartWays([body(ROOT), body("x")]), OTHER: PartWays([body(OTHER)])}
    assert drop_dead_bodies(table) == {ROOT: PartWays([body(ROOT), body("x")]), OTHER: PartWays([])}


def test_too_many_ways_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_chart, "_BUDGET", 1_000)
    table = {ROOT: PartWays([body(ROOT, ROOT)], {at: [body()] for at in range(30)})}
    assert LineChart(table, ROOT, 3).build_candidates() is not None
    with pytest.raises(Undecided, match="too many ways"):
        LineChart(table, ROOT, 30)


def test_the_terminals_between_parts() -> None:
    made = body("x", "y", OTHER, ROOT, "z")
    assert [made.list_terminals_before(passed) for passed in range(4)] == [("x", "y"), (), ("z",), ()]
