"""The questions of ``benchmarks/structure.py``: their answers stand in the corpus, and the seed determines them."""

from __future__ import annotations

import pytest

from benchmarks.structure import COUNT, all_questions, find_facts, make_questions, write_questions
from formal_llm import authored
from formal_llm.agents.tools.articles import Article, TextArticles
from formal_llm.packs.questions import read_questions, score_answer, shipped_questions


def test_two_hundred_questions_with_answers_in_the_corpus(tmp_path) -> None:  # type: ignore[no-untyped-def]
    questions = all_questions()
    articles = {one.title: one.text for one in TextArticles(authored.find("tasks", "questions") / "corpus.txt").read()}
    assert len({one.text for one in questions}) == len(questions) == COUNT
    assert questions[: len(shipped_questions())] == shipped_questions()
    for one in questions[len(shipped_questions()) :]:
        (answer,) = one.answers
        last = articles[one.titles[-1]].replace("\n", " ")
        assert answer in last or answer in one.titles, one
        assert score_answer(one, answer).exact
        assert answer not in one.text or "compared" in one.kind, one
    write_questions(questions, tmp_path / "q.jsonl")
    assert read_questions(tmp_path / "q.jsonl", "own") == questions


def test_the_seed_determines_the_questions() -> None:
    assert make_questions(100) == make_questions(100) != make_questions(100, seed=1)
    assert {one.kind for one in make_questions(160)} == {one.kind for one in make_questions(160, seed=1)}
    assert all_questions(5) == all_questions()[::40]
    with pytest.raises(ValueError, match="the corpus gives"):
        make_questions(1000)


def test_facts_are_read_from_whole_sentences() -> None:
    found = find_facts([
        Article("Rhone", "The Rhone is a river about 813 kilometres long. It flows into the Baltic Sea, it says."),
        Article("Emma", "Emma is a novel by J. R. R. Austen. Some say that it appeared in 1815."),
    ])  # fmt: skip
    assert found == {
        "length": {"Rhone": "813"}, "mouth": {"Rhone": "Baltic Sea"}, "author": {"Emma": "J. R. R. Austen"},
    }  # fmt: skip
