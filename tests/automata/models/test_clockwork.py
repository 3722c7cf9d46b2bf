"""Timetables, and the clock that keeps them."""

from __future__ import annotations

from datetime import UTC, time, timedelta
from pathlib import Path

import pytest
from hypothesis import given

from formal_llm import CFG, PDA, Limits, Lookahead, Symbol
from formal_llm.automata.lookahead import flow
from formal_llm.automata.lookahead.limited import as_automaton, count_clock_states
from formal_llm.automata.lookahead.verdicts import TRIES
from formal_llm.automata.models import clockwork
from formal_llm.automata.models.clockwork import apply_timetable, base_with_clock, step_times
from formal_llm.automata.models.symbols import Order
from formal_llm.automata.models.timetable import Clock, Gap, Span, Timetable, Window
from formal_llm.automata.notation.limit_lines import read_line
from formal_llm.errors import GrammarError, Undecided
from tests.automata.schedules import NAMES, keeps, schedules, sequences
from tests.strategies import examples


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
    with pytest.raises(ValueError, match="a gap is a time from 0"):
        Gap(timedelta(minutes=-30), ("a",), ("b",))
    with pytest.raises(ValueError, match="without a time zone"):
        Span(time(9, tzinfo=UTC), "12:00")
    early, late = (Timetable(Clock("time", Span(hour, "20:00"))) for hour in ("8:00", "9:00"))
    with pytest.raises(ValueError, match="must start together"):
        _ = early & late
    table = Timetable(early.clock, (Window("sop", (Span("9:00", "12:00"),)),))
    assert "did you mean shop?" in str(table.problem(["shop"], {"shop": Symbol(numbers={"time": "1h"})}))  # type: ignore[dict-item]
    assert "did you mean time?" in str(
        Timetable(Clock("tim", Span("8:00", "9:00"))).problem(["a"], CFG.from_string("S -> a\na time=1h").symbols)
    )


Case = tuple[Timetable, dict[str, Symbol]]
LOOPS = [("day", name, None, "day") for name in NAMES]
LONGEST = 4
GRAMMARS = Path(__file__).parents[3] / "grammars"


def finite(table: Timetable, symbols: dict[str, Symbol], order: Order) -> PDA:
    limits = Limits(times=table)
    return PDA(LOOPS, start="day", accepting=["day"], symbols=symbols, order=order, limits=limits)


def nested(table: Timetable, symbols: dict[str, Symbol], order: Order) -> CFG:
    rules = [("S", ("a", "S", "b")), ("S", ("c", "S")), ("S", ())]
    return CFG(rules, symbols=symbols, order=order, limits=Limits(times=table))


@given(schedules())
@examples(40)
def test_the_words_are_those_that_the_judge_keeps(case: Case) -> None:
    table, symbols = case
    for order in ("forward", "prefix"):
        for rules in (finite(table, symbols, order), nested(table, symbols, order)):
            clocked = as_automaton(rules)
            assert isinstance(clocked, PDA)
            base = PDA.from_cfg(rules) if isinstance(rules, CFG) else rules.without_limits
            limited = base.with_limits(rules.limits)
            for word in sequences(LONGEST):
                if base.accepts(word):
                    right = keeps(table, symbols, word if order == "forward" else word[::-1])
                    assert clocked.accepts(word) == limited.accepts(word) == right


@pytest.mark.parametrize(
    "rules", ["S -> A B | B A\nA -> a | b\nB -> c A | c", "S -> E S | E\nE -> a | b | c", "S -> a S b | c | ε"]
)
@given(case=schedules())
@examples(30)
def test_symbols_of_whole_stacks_decide_as_others(rules: str, case: Case) -> None:
    table, symbols = case
    limits = Limits(at_most={"a": 1, "b": 2, "c": 1}, at_least={"b": 1}, times=table)
    cfg = CFG(CFG.from_string(rules).productions, symbols=symbols, order="forward", limits=limits)
    plain, base = Lookahead(cfg), PDA.from_cfg(cfg).with_limits(limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "_MANY_STATES", 0)
        lookahead = Lookahead(cfg)
        assert lookahead.count() == sum(base.accepts(word) for word in sequences(LONGEST))
        automaton = lookahead.automaton
        todo = [automaton.start()]
        for now in todo:
            assert lookahead.completable(now).value == plain.completable(now).value
            todo += [automaton.step(now, move) for move in automaton.moves(now)] if len(todo) < 60 else []


def test_texts_tell_the_times_of_forward_plans() -> None:
    times = Timetable(Clock("time", Span("8:00", "9:00")))
    symbols = {"a": Symbol("Eat", numbers={"time": "30min"})}  # type: ignore[dict-item]
    clocked = apply_timetable(PDA(LOOPS[:1], start="day", accepting=["day"], symbols=symbols), times)
    assert {move.text for move in clocked.moves(clocked.start())} == {"8:00 to 8:30: Eat"}
    assert {t.text for t in base_with_clock(clocked).transitions} == {"8:00 to 8:30: Eat", "8:30 to 9:00: Eat"}
    assert step_times(8 * 3600, 8 * 3600) == "8:00"


def test_a_text_whose_clock_has_very_many_moments_is_read_and_its_start_decides() -> None:
    text = "%order forward\nS -> a S b | a\n%clock time 8:00-20:00\n%window a 7:00-8:00\na time=4s\nb time=4s"
    cfg = CFG.from_string(text)
    assert count_clock_states(cfg) == 10_801
    assert count_clock_states(CFG.from_string("S -> a S b | a")) == 0
    assert Lookahead(cfg).completable().value == "no"
    with pytest.raises(GrammarError, match="%window a 7:00-8:00"):
        CFG.from_string(text.replace("4s", "2min"))


def test_what_cannot_be_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Timetable(Clock("time", Span("8:00", "20:00")))
    symbols = {"a": Symbol(numbers={"time": "1min"})}  # type: ignore[dict-item]
    pda = PDA(LOOPS[:1], start="day", accepting=["day"], symbols=symbols)
    monkeypatch.setattr(clockwork, "MAX_STATES", 100)
    with pytest.raises(Undecided, match="use coarser durations"):
        apply_timetable(pda, times)
    assert not pda.with_limits(Limits(times=times)).accepts(("a",) * 721)


def test_a_day_by_the_clock_starts_as_soon_from_a_grammar_as_from_an_automaton() -> None:
    text = (GRAMMARS / "errands.pda").read_text()
    day = PDA.from_string(text)
    names = " | ".join(day.terminals)
    cfg = CFG.from_string(f"%order forward\nday -> E day | E\nE -> {names}\n{text[text.index('%clock') :]}")
    for rules, most in ((day, 250), (cfg, 270)):
        lookahead = Lookahead(rules)
        with lookahead.work.limit_seconds(1.0):
            assert str(lookahead.completable()) == "yes (search)"
            assert lookahead.work.left > TRIES - most
