"""The file of a corpus: SQLite with two full-text indexes, one of words and one of the shapes of titles (trigrams).

It is built beside its place and moved there when it is whole, so no reader ever sees half of one.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import unicodedata
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from formal_llm.agents.tools.articles import Article, ArticleSource
from formal_llm.errors import InputError

FORMAT = "formal_llm.corpus/2"
#: The most characters of a title; what is longer is none.
MOST_TITLE = 300
_BATCH = 1_000
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE article (id INTEGER PRIMARY KEY, title TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL);
CREATE INDEX article_key ON article (key);
CREATE TABLE redirect (key TEXT PRIMARY KEY, target TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (title, text, content='article', content_rowid='id',
    tokenize="porter unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE shapes USING fts5 (title, content='article', content_rowid='id', tokenize='trigram');
"""


def normalise_title(title: str) -> str:
    """What titles that are the same have in common: neither letter case, nor blanks, nor underscores count."""
    plain = unicodedata.normalize("NFKC", title[:MOST_TITLE].encode(errors="replace").decode())
    return re.sub(r"[\s_]+", " ", plain.casefold()).strip(" \"'“”‘’")


def build_corpus(source: ArticleSource, out: str | Path, *, on_progress: Callable[[int], None] | None = None) -> int:
    """Write the articles of a source to a corpus file; whatever is there is replaced when all are written.

    Args:
        source: the articles.
        out: the file.
        on_progress: called now and then with the number of articles that were read.

    Returns:
        How many articles the corpus has.

    Raises:
        InputError: it cannot be written.
        NotationError: the source cannot be read; with the place.
    """
    out = Path(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # Of each its own, so that two that build the same corpus do not meet.
        growing = out.with_name(f"{out.name}.{uuid4().hex}.part")
        try:
            with closing(sqlite3.connect(growing)) as connection:
                count = _fill_corpus(connection, source, on_progress)
            growing.replace(out)
        finally:
            growing.unlink(missing_ok=True)
    except sqlite3.OperationalError as error:
        raise InputError(f"{out} cannot be built: {error}") from error
    except OSError as error:
        raise InputError(f"{out} cannot be built: {error.strerror}") from error
    return count


def _fill_corpus(
    connection: sqlite3.Connection, source: ArticleSource, on_progress: Callable[[int], None] | None
) -> int:
    connection.executescript(_TABLES)
    connection.execute("INSERT INTO meta VALUES ('format', ?)", (FORMAT,))
    read, batch, digest = 0, list[Article](), hashlib.sha256()
    for article in source.read():
        digest.update(repr(article).encode())
        batch.append(article)
        if len(batch) >= _BATCH:
            read += _write_batch(connection, batch)
            batch.clear()
            if on_progress is not None:
                on_progress(read)
    _write_batch(connection, batch)
    count = int(connection.execute("SELECT count(*) FROM article").fetchone()[0])
    with connection:
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [("articles", count), ("content", digest.hexdigest())])
    return count


def _write_batch(connection: sqlite3.Connection, batch: list[Article]) -> int:
    """Write some articles; returns how many."""
    with connection:
        for article in batch:
            title = article.title[:MOST_TITLE]
            if article.target is not None:
                _add_redirect(connection, title, article.target)
                continue
            if not article.text.strip():
                continue  # a page of pictures or tables alone
            found = connection.execute(
                "INSERT INTO article (title, key, text) VALUES (?, ?, ?)", (title, normalise_title(title), article.text)
            )
            connection.execute(
                "INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", (found.lastrowid, title, article.text)
            )
            connection.execute("INSERT INTO shapes (rowid, title) VALUES (?, ?)", (found.lastrowid, title))
            for other in article.also:
                _add_redirect(connection, other, title)
    return len(batch)


def _add_redirect(connection: sqlite3.Connection, title: str, target: str) -> None:
    connection.execute("INSERT OR IGNORE INTO redirect VALUES (?, ?)", (normalise_title(title), target[:MOST_TITLE]))
