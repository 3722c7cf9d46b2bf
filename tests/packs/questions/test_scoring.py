"""Scores of answers, as published."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.tools import agent_toolkit
from formal_llm.llms.doubles import TEXTS, FunctionLLM
from formal_llm.packs.questions import QuizQuestion, mean_score, published_tables, score_answer
from formal_llm.packs.questions.benchmark import (
    find_answer,
    format_cells,
    published_figure,
    render_markdown,
    run_agent,
)
from formal_llm.packs.questions.scoring import AnswerScore, number_of, squad_form, trivia_form


def question(*answers: str, measure: str = "text") -> QuizQuestion:
    return QuizQuestion("q", "Q?", answers, measure)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answers", "given_", "exact", "f1"),
    [
        (("Black Sea",), "the black sea.", True, 1.0),
        (("Black Sea",), "Black", False, 2 / 3),
        (("Black Sea",), "It is the Black Sea", False, 2 / 3),
        (("Black Sea",), "", False, 0.0),
        (("yes",), "Yes!", True, 1.0),
        (("yes",), "yes it is", False, 0.0),
        (("no way",), "no", False, 0.0),
        (("the",), "a", True, 1.0),
        (("Mount Cook", "Aoraki"), "aoraki", True, 1.0),
        (("a a b",), "a b b", False, 1.0 * 2 / (2 + 1)),
    ],
)
def test_texts(answers: tuple[str, ...], given_: str, exact: bool, f1: float) -> None:
    found = score_answer(question(*answers), given_)
    assert found.exact is exact and found.f1 == pytest.approx(f1)


def test_normal_forms() -> None:
    assert squad_form("The  Mary-Ann's, an  Ox!") == "maryanns ox"
    assert trivia_form("The_Mary-Ann’s, an  Ox!") == "mary ann s ox"
    assert squad_form("theatre") == "theatre"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("#### 72", 72),
        ("so it is 3 + 4 = 7\n#### 7,000.50 nuts", Fraction("7000.5")),
        ("It is $1,234.", 1234),
        ("-5", -5),
        ("first 3, then 4", 4),
        ("1/2", Fraction(1, 2)),
        ("1/0", None),
        ("none", None),
        ("", None),
        ("####", None),
        (".5", Fraction(1, 2)),
        ("9" * 5_000, int("9" * 1_000)),
    ],
)
def test_numbers(text: str, number: Fraction | int | None) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    ("answer", "right"), [("18", True), ("18.0", True), ("$18.", True), ("19", False), ("eighteen", False)]
)
def test_a_number_is_right_by_its_value(answer: str, right: bool) -> None:
    assert score_answer(question("18", measure="number"), answer).exact is right


@pytest.mark.parametrize(
    ("answer", "right"), [("REFUTES", True), (" refutes. ", True), ("SUPPORTS", False), ("REFUTED", False), ("", False)]
)
def test_labels(answer: str, right: bool) -> None:
    assert score_answer(question("REFUTES", measure="label"), answer).exact is right


def test_aliases_take_the_best() -> None:
    gold = question("Peking", "Beijing, China", measure="aliases")
    assert score_answer(gold, "beijing china") == AnswerScore(True, 1.0)
    assert score_answer(gold, "Beijing").f1 == pytest.approx(2 / 3)


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(["text", "aliases", "number", "label"]))
def test_scores_lie_between_0_and_1(gold: str, answer: str, measure: str) -> None:
    found = score_answer(question(gold, measure=measure), answer)
    assert 0 <= found.f1 <= 1 and (not found.exact or found.f1 == 1)
    if measure in ("text", "aliases"):
        assert score_answer(question(gold, measure=measure), gold).exact


def test_means() -> None:
    assert mean_score([AnswerScore(True, 1.0), AnswerScore(False, 0.5)]) == (50.0, 75.0)
    assert mean_score([]) == (0.0, 0.0)


def test_a_model_that_does_not_stop_is_not_read_to_the_end() -> None:
    assert not score_answer(question("a"), "b " * 5_000_000).exact


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


def llm_of(*answers: str) -> FunctionLLM:
    """Knows the answers by the number of the question."""
    return FunctionLLM(lambda asked: f" {answers['Which sea?' in asked.prompt]}", can=TEXTS, choose=lambda _: 1)


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
