"""Languages of lines, and which of their words follow rules."""

from __future__ import annotations

from formal_llm import PDA, Limits, constraint
from formal_llm.automata.languages.word_lists import words
from formal_llm.planning.reading.candidates import build_run_candidates, has_word, write_step

PDA_ = PDA.from_string('%start p\n%accept p\np, a, ε -> p, ε "Go"\np, b, ε -> p, ε "Go"\np, c, ε -> p, ε "Stop"')
GO = [move for move in PDA_.transitions if move.text == "Go"]
STOP = [move for move in PDA_.transitions if move.text == "Stop"]


def test_all_words_of_the_lines() -> None:
    told = build_run_candidates(PDA_, (), [GO, STOP, GO])
    assert set(words(told.pda, 5)) == {(x, "c", y) for x in "ab" for y in "ab"}
    assert sorted(told.lines.values()) == [0, 0, 1, 2, 2]
    assert not has_word(build_run_candidates(PDA_, (), [GO, []]))
    assert set(words(build_run_candidates(PDA_, (), [STOP], "after").pda, 2)) == {("c",), *(("c", x) for x in "abc")}
    assert set(words(build_run_candidates(PDA_, (), [STOP], "before").pda, 2)) == {("c",), *((x, "c") for x in "abc")}


def test_those_that_follow_the_rules() -> None:
    told = build_run_candidates(PDA_, (), [GO, STOP, GO])
    rules = PDA_ & constraint("(until any b)", PDA_)
    assert told.find_word(rules, 1000) in {("a", "c", "b"), ("b", "c", "b")}
    assert told.find_word(rules.with_limits(Limits({"a": 0})), 1000) == ("b", "c", "b")
    assert told.find_word(rules.with_limits(Limits({"b": 0})), 1000) is None


def test_what_prints() -> None:
    assert [write_step(move, move.read or "") for move in PDA_.transitions] == ["Go", "Go", "Stop"]
    decision = PDA.from_string('%start p\n%accept q\n%decide p "?"\np, a, ε -> q, ε').transitions[0]
    assert write_step(decision, "a") is None
