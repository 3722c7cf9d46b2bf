"""Files of articles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm.agents.tools.articles import Article, JsonArticles, TextArticles
from formal_llm.errors import NotationError


def test_our_text_form(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(
        "%% A remark\n# Danube = Donau = Duna\nA river.\nIt is long.\n%% Another\n\nA second paragraph.\n\n"
        "# A = B\nText.\n"
    )
    source = TextArticles(file)
    danube = Article("Danube", "A river. It is long.\nA second paragraph.", ("Donau", "Duna"))
    assert list(source.read()) == [danube, Article("A", "Text.", ("B",))]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("Text.\n# A\nText.", 1, "before the first title"),
        ("# A\nText.\n# B\n\n# C\nText.", 3, "B has no text"),
        ("# A\nText.\n#\nText.", 3, "a title is empty"),
        ("# A\nText.\n# B = \nText.", 3, "a title is empty"),
        ("# A\nText.\n# B", 3, "B has no text"),
    ],
)
def test_a_wrong_text_is_told_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = tmp_path / "a.txt"
    file.write_text(text)
    with pytest.raises(NotationError, match=said) as caught:
        TextArticles(file)
    assert caught.value.line == line


def test_lines_of_json(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        '{"title": "A", "text": "T."}\n\n{"title": "B", "extract": "U."}\n{"title": "C", "redirect": "A"}\n'
    )
    source = JsonArticles(file)
    assert list(source.read()) == [Article("A", "T."), Article("B", "U."), Article("C", target="A")]


@pytest.mark.parametrize("listed", [True, False])
def test_an_answer_of_mediawikis_api(tmp_path: Path, listed: bool) -> None:
    page = {"pageid": 1, "ns": 0, "title": "A", "extract": "T."}
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"query": {"pages": [page] if listed else {"1": page}}}))
    assert list(JsonArticles(file).read()) == [Article("A", "T.")]


@pytest.mark.parametrize(
    "line",
    ["{", '{"title": "A"}', "3", "[" * 10_000, '{"title": 3, "text": ""}', '{"query": {"pages": [3]}}', '{"query": 3}'],
)
def test_a_line_that_is_no_article_is_told_with_its_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"title": "A", "text": "T."}\n' + line + "\n")
    with pytest.raises(NotationError) as caught:
        list(JsonArticles(file).read())
    assert caught.value.line == 2
