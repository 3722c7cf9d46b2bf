"""Building a corpus: whole or not at all, and going on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from formal_llm.agents.tools.articles import Article
from formal_llm.agents.tools.corpus import Corpus
from formal_llm.agents.tools.corpus_file import build_corpus, normalise_title
from formal_llm.errors import InputError


class Numbered:
    """Articles with numbers, which may end with an exception."""

    def __init__(self, count: int, broken_at: int | None = None) -> None:
        self.count, self.broken_at = count, broken_at

    def read(self) -> Iterator[Article]:
        for number in range(self.count):
            if number == self.broken_at:
                raise KeyboardInterrupt
            yield Article(f"Article {number}", f"This is number {number}.", (f"N{number}",))


def test_a_corpus_appears_when_it_is_whole(tmp_path: Path) -> None:
    out, seen = tmp_path / "c.sqlite", list[int]()
    with pytest.raises(KeyboardInterrupt):
        build_corpus(Numbered(2500, broken_at=1500), out)
    assert list(tmp_path.iterdir()) == []
    assert build_corpus(Numbered(2500), out, on_progress=seen.append) == 2500
    assert seen == [1000, 2000]
    corpus = Corpus(out)
    assert [corpus.article(f"n{n}") for n in (0, 1999, 2499)] == [
        Article(f"Article {n}", f"This is number {n}.") for n in (0, 1999, 2499)
    ]
    with pytest.raises(KeyboardInterrupt):
        build_corpus(Numbered(2, broken_at=1), out)
    assert len(Corpus(out)) == 2500
    assert build_corpus(Numbered(3), out) == 3
    assert list(tmp_path.iterdir()) == [out]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be built"):
        build_corpus(Numbered(2), tmp_path / "file" / "c.sqlite")


@pytest.mark.parametrize("other", ["danube", "DANUBE", " Danube ", '"Danube"', "Ｄａｎｕｂｅ"])
def test_titles_that_are_the_same(other: str) -> None:
    assert normalise_title(other) == normalise_title("Danube")
    assert normalise_title("New_York  City") == normalise_title("new york city") != normalise_title("New York")
