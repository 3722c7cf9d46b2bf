"""How plans, and what happens while they are made, look at the command line."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from formal_llm import CFG, Planner
from formal_llm.cli.show import Show, Trace, print_plan
from tests.cli.inside import runner

RULES = 'Plan "lunch" -> cook Plan | wait Plan | eat\ncook "Cook"'


def test_every_form_with_an_empty_line_between(capsys: pytest.CaptureFixture[str]) -> None:
    plan = Planner(CFG.from_string(RULES), "test:script=1,3").plan("eat")
    print_plan(plan, [Show.steps, Show.call, Show.word])
    assert capsys.readouterr().out == f"{plan}\n\nlunch = cook(eat)\n\ncook eat\n"
    print_plan(plan, [Show.json])
    assert json.loads(capsys.readouterr().out)["word"] == ["cook", "eat"]
    print_plan(plan, [Show.mermaid])
    assert capsys.readouterr().out.rstrip() == plan.to_mermaid().rstrip()
    print_plan(plan, [Show.tree])
    assert "Cook" in capsys.readouterr().out
    print_plan(Planner(CFG.from_string("S -> a b")).plan("x"), [Show.call])
    assert capsys.readouterr().out == "s = a(b)\n"


def test_a_trace_tells_questions_answers_and_dead_ends() -> None:
    said = io.StringIO()
    trace = Trace(Console(file=said, width=60))
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
    trace = Trace(Console(file=said, width=60))
    cfg = CFG.from_string("S -> a S | b S | c")
    Planner(cfg, "test:first", limits=type(cfg.limits)({"a": 0, "b": 0}), on_event=trace).plan("x")
    assert "taken without a question: c (2 ruled out)" in said.getvalue()
    outcomes = Planner(cfg, "test:script=9", tries=1, on_event=trace).plan_all(["x"])
    assert outcomes[0].error is not None
    assert "failed: InvalidAnswer" in said.getvalue()


def test_forms_are_names_of_the_option() -> None:
    code, _, said = runner("plan")("openagi", "3", "--show", "picture")
    assert code == 2
    for form in Show:
        assert f"'{form.value}'" in said
