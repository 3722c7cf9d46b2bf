"""Scores of answers, as published."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.questions import QuizQuestion, mean_score, score_answer
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
