"""Agents over questions: what is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.agents.tools import agent_toolkit
from formal_llm.llms.text_doubles import FunctionTextLLM
from formal_llm.packs.questions import QuizQuestion, published_tables
from formal_llm.packs.questions.benchmark import (
    find_answer,
    format_cells,
    published_figure,
    render_markdown,
    run_agent,
)


def test_the_table_of_react() -> None:
    table, _ = published_tables()
    assert "2210.03629" in table.source and table.model == "PaLM-540B"
    assert list(table.rows) == ["Standard", "CoT", "CoT-SC", "Act", "ReAct", "CoT-SC → ReAct", "ReAct → CoT-SC"]
    assert table.rows["ReAct"] == {"hotpotqa": 27.4, "fever": 60.9}
    for row in table.rows.values():
        assert row.keys() == table.measures.keys() and all(0 < value < 100 for value in row.values())


def test_the_tables_of_pass() -> None:
    _, table = published_tables()
    assert "2310.08535" in table.source and table.model == "Llama-2-70b"
    assert table.rows["PASS"]["hotpotqa"] == 34.7 and table.rows["PASS, no summarizer"]["hotpotqa"] == 25.7
    for row in table.rows.values():
        assert row.keys() == table.measures.keys() and all(0 < value < 100 for value in row.values())


QUESTIONS = [QuizQuestion("1", "2 + 2?", ("4",), "number"), QuizQuestion("2", "Which sea?", ("the Black Sea",), "text")]


def llm_of(*answers: str) -> FunctionTextLLM:
    """Knows the answers by the number of the question."""
    return FunctionTextLLM(lambda asked: f" {answers['Which sea?' in asked.prompt]}")


def test_answers_are_scored_and_what_they_took_is_counted(tmp_path: Path) -> None:
    row = run_agent("direct", llm_of("4", "Black Sea then"), agent_toolkit, QUESTIONS, tmp_path, called="a|b")
    assert (row.questions, row.failed, row.exact, row.requests, row.published) == (2, 0, 50.0, 1.0, None)
    assert row.f1 == pytest.approx(100 * (1 + 0.8) / 2)
    assert format_cells(row)[:4] == ("a|b", "direct", "2", "0") and "| a\\|b | direct | 2 |" in render_markdown([row])
    assert [one.name for one in tmp_path.iterdir()] == ["direct-a_b.jsonl"]


def test_votes_are_asked_k_times(tmp_path: Path) -> None:
    row = run_agent("cot-sc", llm_of("4", "x"), agent_toolkit, QUESTIONS, tmp_path, k=3)
    assert (row.exact, row.requests) == (50.0, 6.0)


def test_a_test_set_cannot_be_scored(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without an answer"):
        run_agent("direct", llm_of("4", "x"), agent_toolkit, [QuizQuestion("1", "q", (), "text")], tmp_path)


def test_published_figures() -> None:
    tables = published_tables()
    assert published_figure("cot-sc-react", "hotpotqa", tables) == 34.2
    assert published_figure("react", "fever", tables) == 60.9
    assert published_figure("rewoo", "hotpotqa", tables) == 27.0 and published_figure("react", "gsm8k", tables) == 53.8
    assert published_figure("react", "own", tables) is None is published_figure("reflexion", "hotpotqa", tables)


def test_an_answer_in_the_last_text() -> None:
    assert find_answer("It is so. [Answer] the Rhine\n") == "the Rhine" and find_answer("the Elbe") == "the Elbe"
