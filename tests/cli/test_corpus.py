"""``formal-llm corpus``."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.agents.tools import corpus_file
from tests.agents.tools.test_wikipedia import PAGES
from tests.cli.inside import runner

corpus = runner("corpus")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_shipped_corpus_is_searched() -> None:
    code, printed, _ = corpus("search", "Danube", "--lookup", "BLACK")
    assert code == 0
    first, *found = printed.splitlines()
    assert first.startswith("The Danube is a river")
    assert [line[:14] for line in found] == ["(Result 1 / 2)", "(Result 2 / 2)", "No more result"]
    assert corpus("search", "Danbue")[1].startswith("Could not find Danbue. Similar: [")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "# A\nText of A.\n\n# B\nText.\n"),
        ("a.jsonl", '{"title": "A", "text": "Text of A."}\n{"title": "B", "text": "T."}\n'),
        ("a.json", '{"query": {"pages": [{"title": "A", "extract": "Text of A."}, {"title": "B", "extract": "T."}]}}'),
    ],
)
def test_articles_become_a_corpus(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    out = tmp_path / "c.sqlite"
    assert corpus("build", str(tmp_path / name), "--out", str(out)) == (0, f"{out}: 2 articles\n", "")
    assert corpus("search", "a", "--corpus", str(out)) == (0, "Text of A.\n", "")


def test_a_dump_becomes_a_corpus(tmp_path: Path) -> None:
    pytest.importorskip("mwparserfromhell", reason="the extra 'wikipedia' is not installed")
    (tmp_path / "a.xml").write_bytes(PAGES)
    assert corpus("build", str(tmp_path / "a.xml"), "--out", str(tmp_path / "c"))[0] == 0


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.txt", None, "there is no such file"),
        ("none.xml", None, "No such file"),
        ("a.csv", "", "articles are read from"),
        ("a.txt", "Text.", "a.txt:1"),
        ("a.jsonl", "{", "a.jsonl:1"),
        ("a.xml", "{", "a.xml:1"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, name: str, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    code, printed, told = corpus("build", str(tmp_path / name), "--out", str(tmp_path / "c"))
    assert (code, printed) == (2, "") and said in told


def test_stopped_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(corpus_file, "build_corpus", stopped)
    (tmp_path / "a.txt").write_text("# A\nText.\n")
    code, _, told = corpus("build", str(tmp_path / "a.txt"), "--out", str(tmp_path / "c"))
    assert code == 130 and "the same command goes on from there" in told
