"""The file of a corpus: SQLite with two full-text indexes, one of words and one of the shapes of titles (trigrams).

It is built beside its place and moved there when it is whole, so no reader ever sees half of one. Building writes on
record how far it came: stopped by Ctrl-C or by a power cut, the same call continues there.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from formal_llm.agents.tools.articles import Article, ArticleSource
from formal_llm.errors import InputError

FORMAT = "formal_llm.corpus/1"
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


def build_corpus(
    source: ArticleSource,
    out: str | Path,
    *,
    part: Path | None = None,
    on_progress: Callable[[int, float], None] | None = None,
) -> int:
    """Write the articles of a source to a corpus file; whatever is there is replaced when all are written.

    Args:
        source: the articles.
        out: the file.
        part: the file while it grows; ``out`` with ``.part`` behind it where left out. One of the same source that is
            there is gone on with.
        on_progress: called now and then with the number of pages and the share of the source that was read.

    Returns:
        How many articles the corpus has.

    Raises:
        InputError: another process is building the same file, or it cannot be written.
        NotationError: the source cannot be read; with the place.
    """
    out = Path(out)
    growing = part if part is not None else out.with_name(out.name + ".part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with closing(_open_corpus(growing, source.fingerprint)) as connection:
            read = int(connection.execute("SELECT value FROM meta WHERE name = 'read'").fetchone()[0])
            batch: list[Article] = []
            for article in source.read(read):
                batch.append(article)
                if len(batch) >= _BATCH:
                    read += _write_batch(connection, batch, read)
                    batch.clear()
                    if on_progress is not None:
                        on_progress(read, source.share())
            read += _write_batch(connection, batch, read)
            count = int(connection.execute("SELECT count(*) FROM article").fetchone()[0])
            with connection:
                connection.execute("REPLACE INTO meta VALUES ('articles', ?)", (count,))
            if on_progress is not None:
                on_progress(read, 1.0)
        growing.replace(out)
    except sqlite3.OperationalError as error:
        reason = "another process is building it" if "locked" in str(error) else str(error)
        raise InputError(f"{out} cannot be built: {reason}") from error
    except OSError as error:
        raise InputError(f"{out} cannot be built: {error.strerror}") from error
    return count


def _open_corpus(path: Path, fingerprint: str) -> sqlite3.Connection:
    """A file to write to, ours alone as long as it is open: the one that was begun, or a fresh one."""
    connection = sqlite3.connect(path, timeout=0.2)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        known = connection.execute("SELECT value FROM meta WHERE name = 'source'").fetchone()
        connection.commit()
        if known is not None and known[0] == f"{FORMAT} {fingerprint}":
            return connection
    except sqlite3.OperationalError as error:  # it has no tables yet, or somebody else has it
        if "locked" in str(error):
            connection.close()
            raise
    except sqlite3.DatabaseError:  # it is something else
        pass
    connection.close()
    path.unlink()
    connection = sqlite3.connect(path, timeout=0.2)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    with connection:
        connection.executescript(_TABLES)
        connection.executemany(
            "INSERT INTO meta VALUES (?, ?)", [("format", FORMAT), ("source", f"{FORMAT} {fingerprint}"), ("read", 0)]
        )
    return connection


def _write_batch(connection: sqlite3.Connection, batch: list[Article], before: int) -> int:
    """Write some articles, and on record that they are; returns how many."""
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
        connection.execute("REPLACE INTO meta VALUES ('read', ?)", (before + len(batch),))
    return len(batch)


def _add_redirect(connection: sqlite3.Connection, title: str, target: str) -> None:
    connection.execute("INSERT OR IGNORE INTO redirect VALUES (?, ?)", (normalise_title(title), target[:MOST_TITLE]))
