"""Building a corpus: whole or not at all, and going on where it stopped."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from formal_llm.agents.tools.articles import Article
from formal_llm.agents.tools.corpus import Corpus
from formal_llm.agents.tools.corpus_file import build_corpus, normalise_title
from formal_llm.errors import InputError


class Numbered:
    """Articles with numbers, which may end with an exception."""

    def __init__(self, count: int, broken_at: int | None = None, fingerprint: str = "numbers") -> None:
        self.count, self.broken_at, self.fingerprint = count, broken_at, fingerprint
        self.given: list[int] = []

    def read(self, skip: int = 0) -> Iterator[Article]:
        for number in range(skip, self.count):
            if number == self.broken_at:
                raise KeyboardInterrupt
            self.given.append(number)
            yield Article(f"Article {number}", f"This is number {number}.", (f"N{number}",))

    def share(self) -> float:
        return 0.5


def test_what_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "c.sqlite"
    with pytest.raises(KeyboardInterrupt):
        build_corpus(Numbered(3500, broken_at=2500), out)
    assert not out.exists()
    seen: list[tuple[int, float]] = []
    again = Numbered(3500)
    assert build_corpus(again, out, on_progress=lambda *told: seen.append(told)) == 3500
    assert again.given[0] == 2000  # what was not on record is read anew
    assert seen == [(3000, 0.5), (3500, 1.0)]
    assert list(tmp_path.iterdir()) == [out]
    corpus = Corpus(out)
    assert len(corpus) == 3500 and [corpus.article(f"n{n}") for n in (0, 1999, 2000, 3499)] == [
        Article(f"Article {n}", f"This is number {n}.") for n in (0, 1999, 2000, 3499)
    ]


def test_another_source_begins_anew_and_an_old_file_is_replaced_in_the_end(tmp_path: Path) -> None:
    out = tmp_path / "c.sqlite"
    build_corpus(Numbered(3), out)
    with pytest.raises(KeyboardInterrupt):
        build_corpus(Numbered(2000, broken_at=1500, fingerprint="other"), out)
    assert len(Corpus(out)) == 3
    third = Numbered(5, fingerprint="third")
    assert build_corpus(third, out) == 5 and third.given[0] == 0


def test_damaged_parts_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "c.sqlite.part").write_bytes(b"no database" * 1000)
    assert build_corpus(Numbered(2), tmp_path / "c.sqlite") == 2


def test_two_at_once_are_told_apart(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "c.sqlite.part")
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(InputError, match="another process is building it"):
        build_corpus(Numbered(2), tmp_path / "c.sqlite")
    other.close()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be built"):
        build_corpus(Numbered(2), tmp_path / "file" / "c.sqlite")


def test_killed_and_gone_on_with(tmp_path: Path) -> None:
    """A process that is killed leaves no half corpus, and the next one goes on."""
    script = f"""
import os, signal
from tests.agents.tools.test_corpus_file import Numbered
from formal_llm.agents.tools.corpus_file import build_corpus
killed = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
build_corpus(Numbered(3000), {str(tmp_path / "c.sqlite")!r}, on_progress=killed)
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], env=os.environ, timeout=60)
    assert ended.returncode == -signal.SIGKILL and not (tmp_path / "c.sqlite").exists()
    again = Numbered(3000)
    assert build_corpus(again, tmp_path / "c.sqlite") == 3000 and again.given[0] == 1000


@pytest.mark.parametrize("other", ["danube", "DANUBE", " Danube ", '"Danube"', "Ｄａｎｕｂｅ"])
def test_titles_that_are_the_same(other: str) -> None:
    assert normalise_title(other) == normalise_title("Danube")
    assert normalise_title("New_York  City") == normalise_title("new york city") != normalise_title("New York")
