"""Paragraphs of questions as a corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.agents.tools import Corpus, build_corpus
from formal_llm.packs.questions import ContextArticles, QuizQuestion


def question(number: int, *context: tuple[str, tuple[str, ...]]) -> QuizQuestion:
    return QuizQuestion(str(number), "Q?", ("a",), "text", context=context)


def test_each_title_once(tmp_path: Path) -> None:
    danube = ("Danube", ("The Danube is a river.", " It is long e.g. in Austria", " So it is."))
    source = ContextArticles([question(1, danube), question(2, ("Vienna", ("A city.",)), danube)])
    assert [article.title for article in source.read()] == ["Danube", "Vienna"]
    assert build_corpus(source, tmp_path / "c.sqlite") == 2
    session = Corpus(tmp_path / "c.sqlite").session()
    assert session.search("danube") == "The Danube is a river. It is long e.g. in Austria So it is."
    assert session.lookup("austria") == "(Result 1 / 1) It is long e.g. in Austria"  # sentences as they are given
    other = ContextArticles([question(1, danube)])
    assert other.fingerprint != source.fingerprint


def test_questions_without_paragraphs() -> None:
    with pytest.raises(ValueError, match="without paragraphs"):
        ContextArticles([question(1)])
