"""What is shown while a plan is made."""

from __future__ import annotations

import io

from rich.console import Console

from formal_llm import CFG, Planner
from formal_llm.cli.trace import TracePrinter


def test_a_trace_tells_questions_answers_and_dead_ends() -> None:
    said = io.StringIO()
    trace = TracePrinter(Console(file=said, width=60))
    rules = CFG.from_string("S -> a T | b T | c\nT -> d e | d f\n%limit 0 e f")
    Planner(rules, "test:first", lookahead="off", on_event=trace).plan("x")
    text = said.getvalue()
    assert text.count("dead end; back to ") == 2
    assert "question 1 " in text
    assert "-> 1: " in text
    assert "finished" in text
    assert "dead ends: 2; " in text


def test_a_trace_tells_what_is_taken_without_a_question_and_what_failed() -> None:
    said = io.StringIO()
    trace = TracePrinter(Console(file=said, width=60))
    cfg = CFG.from_string("S -> a S | b S | c")
    Planner(cfg, "test:first", limits=type(cfg.limits)({"a": 0, "b": 0}), on_event=trace).plan("x")
    assert "taken without a question: c (2 ruled out)" in said.getvalue()
    outcomes = Planner(cfg, "test:script=9", tries=1, on_event=trace).plan_all(["x"])
    assert outcomes[0].error is not None
    assert "failed: InvalidAnswer" in said.getvalue()
