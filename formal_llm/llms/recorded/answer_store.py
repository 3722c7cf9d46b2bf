"""A store of texts under keys in an SQLite file, for many threads and processes at once.

A stored text survives whatever happens to the process: the write-ahead log contains whole transactions or nothing.
(After a power failure the last few may be missing; nothing is damaged.)
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.authored.files import check_plain
from formal_llm.errors import AnswerFileError

if TYPE_CHECKING:
    import sqlite3

#: The values in the file's header: its owner ("fLLM"), and the version of the table below.
_APPLICATION = 0x664C4C4D
_VERSION = 1
_TABLE = """
    CREATE TABLE IF NOT EXISTS answers
    (key TEXT PRIMARY KEY, llm TEXT, answer TEXT, stored TEXT DEFAULT CURRENT_TIMESTAMP) WITHOUT ROWID
"""

#: The maximum number of seconds to wait for the lock of another process.
_PATIENCE = 30.0

#: Explanations of SQLite's error codes for people.
_PROBLEMS = {
    "NOTADB": "this file is no SQLite database; give the cache another file",
    "CORRUPT": "the database is damaged; delete it, and the answers are asked for again",
    "CANTOPEN": "the file cannot be opened; its folder must exist, and both must be writable",
    "READONLY": "the file cannot be written to; a cache needs a file and a folder that are writable",
    "BUSY": f"another process kept the file locked for {_PATIENCE:.0f} seconds",
    "FULL": "the disk is full",
}

#: Connections inherited by a fork. SQLite forbids using them here, and closing them might delete the parent's log.
_inherited: list[sqlite3.Connection] = []


class AnswerStore:
    """A store of texts under keys in an SQLite file, which is created if it does not exist.

    Raises:
        AnswerFileError: the file cannot be used: it is no database, or another program's, or it is not writable.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            check_plain(self.path)  # SQLite would wait for what comes out of a pipe
        except OSError as error:
            raise AnswerFileError(str(path), f"the file cannot be opened: {error.strerror}") from None
        self._open_connection()

    def get(self, key: str) -> bytes | None:
        """Return the text under ``key``, or None if there is none."""
        with self._lend_connection() as connection:
            row = connection.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        # Another program may have written anything: a number, a blob, nothing.
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def put(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Store rows of key, name of the LLM, and text, all of them or none; earlier texts are replaced."""
        with self._lend_connection() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO answers (key, llm, answer) VALUES (?, ?, ?)", rows)

    def __len__(self) -> int:
        with self._lend_connection() as connection:
            count: int = connection.execute("SELECT count(*) FROM answers").fetchone()[0]
        return count

    def close(self) -> None:
        """Close the file, which cannot be used afterwards."""
        if self._process == os.getpid():
            with self._lock:
                self._closing()
        else:
            self._leave_to_parent()

    @contextmanager
    def _lend_connection(self) -> Iterator[sqlite3.Connection]:
        if not self._closing.alive:
            raise AnswerFileError(str(self.path), "the cache is closed")
        if self._process != os.getpid():
            self._leave_to_parent()
            self._open_connection()
        with self._lock, self._convert_errors():
            yield self._connection

    def _open_connection(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        with self._convert_errors():
            self._connection = _connect_database(self.path)
        # Also closed when the store is garbage-collected, and at the end of the program.
        self._closing = weakref.finalize(self, _close_connection, self._connection, self._process)

    def _leave_to_parent(self) -> None:
        _inherited.append(self._connection)
        self._closing.detach()

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert errors of SQLite to errors that explain what to do."""
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorname", "").removeprefix("SQLITE_").partition("_")[0]
            raise AnswerFileError(str(self.path), _PROBLEMS.get(code, f"SQLite failed: {error}")) from error


def _connect_database(path: Path) -> sqlite3.Connection:
    import sqlite3

    # Without an isolation level no transaction is begun implicitly: a read is a transaction of its own.
    connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        connection.text_factory = bytes
        with connection:
            connection.execute("BEGIN")  # for a consistent read, since another process may be creating the table
            _check_owner(connection, path)  # before any change
        _use_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute("BEGIN IMMEDIATE")  # one process creates the table; fails for read-only files
            _check_owner(connection, path)
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_owner(connection: sqlite3.Connection, path: Path) -> None:
    """Check that a database does not belong to something else, or to a later version of this library."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != _APPLICATION and (owner or version or tables):
        raise AnswerFileError(str(path), "this database belongs to something else; give the cache another file")
    if owner == _APPLICATION and version != _VERSION:
        problem = f"this cache has version {version}, not {_VERSION}; give another file, or delete this one"
        raise AnswerFileError(str(path), problem)


def _use_log(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log, waiting while another process does the same, which SQLite does not."""
    import sqlite3

    end = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _close_connection(connection: sqlite3.Connection, process: int) -> None:
    if process == os.getpid():
        connection.close()
    else:
        _inherited.append(connection)
