"""One store of answers: a cache, a recording, and its replay.

Answers are rows of one table in an SQLite file. A row is found by all that the model reads: the chat and the options,
and the task and the outlook (with the descriptions of the steps) unless the model's ``reads`` leaves them out; for
texts the settings, the schema and the grammar; for turns with tools the tools. A cache also asks for the ``identity``
(name and settings) of the model. So after a change of the wording, of the rules or of a setting it is asked again.

A row that is stored survives the end of the process: SQLite's write-ahead log has whole transactions or nothing. After
a power failure the last few may be missing; nothing is damaged.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import weakref
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import astuple, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from formal_llm.authored.files import check_plain, parse_json
from formal_llm.errors import InvalidAnswer, NotRecorded, RecordError
from formal_llm.llms.llm import KINDS, LLM
from formal_llm.llms.providers import LLMLike
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import NO_TOKENS, TokenUsage
from formal_llm.llms.wrappers import Steps, Wrapper

if TYPE_CHECKING:
    import sqlite3

    from pydantic import TypeAdapter

#: The values in the file's header: its owner ("fLLM"), and the version of the table.
_APPLICATION, _VERSION = 0x664C4C4D, 2
_TABLE = (
    "CREATE TABLE answers (id INTEGER PRIMARY KEY, key TEXT, model TEXT, walk TEXT, outcome TEXT, reads TEXT, "
    "llm TEXT, request TEXT, stored TEXT DEFAULT CURRENT_TIMESTAMP)",
    "CREATE INDEX by_key ON answers (key, model)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)
#: The maximum number of seconds to wait for the lock of another process, and of bytes in a row.
_PATIENCE, _MOST_BYTES = 30.0, 1 << 26
#: The maximum sum of probabilities, which may exceed 1 slightly by rounding.
_ONE = 1.001
#: Explanations of SQLite's error codes for people.
_PROBLEMS = {
    "NOTADB": "this file is no SQLite database; give another one (--record FILE writes one)",
    "CORRUPT": "the database is damaged; delete it, and the answers are asked for again",
    "CANTOPEN": "the file cannot be opened; its folder must exist, and both must be writable",
    "READONLY": "the file cannot be written to; the file and its folder must be writable",
    "BUSY": f"another process kept the file locked for {_PATIENCE:.0f} seconds",
    "RUN": "another run is writing this file; wait for it, or give another file",
    "FULL": "the disk is full",
    "IOERR": "the file cannot be read or written: a full disk, or a limit on the size of files",
    "TOOBIG": f"a row has more than {_MOST_BYTES:,} bytes",
}

# -- answers as data -----------------------------------------------------------------------------------------------


@cache
def _adapter() -> TypeAdapter[Answer]:
    from pydantic import TypeAdapter

    return TypeAdapter(Answer)


def answer_to_data(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON data, with its usage; what is as by default is left out."""
    if answer.probabilities is not None:  # a model's own numbers may be of a type that JSON does not know
        likely = {int(number): float(p) for number, p in answer.probabilities.items()}
        answer = replace(answer, probabilities=likely)
    data: dict[str, Any] = _adapter().dump_python(answer, mode="json", exclude_defaults=True)
    return data


def answer_from_data(data: object) -> Answer:
    """Read an answer from the data that :func:`answer_to_data` returned.

    Raises:
        ValueError: the data is anything else; never another exception.
    """
    answer = _adapter().validate_python(data)
    if min(astuple(answer.usage)) < 0:
        raise ValueError("a count of the usage is negative")
    if json.dumps(answer_to_data(answer), sort_keys=True) != json.dumps(data, sort_keys=True):
        raise ValueError("the answer has fields or values of another form")
    return answer


def outcome_to_data(outcome: Answer | InvalidAnswer) -> dict[str, Any]:
    """Return an answer, legal or not, as JSON data."""
    if isinstance(outcome, Answer):
        return {"answer": answer_to_data(outcome)}
    paid = {} if outcome.usage is None else answer_to_data(Answer((), usage=outcome.usage))
    return {"problem": outcome.problem, "tries": [list(one) for one in outcome.transcript], "paid": paid}


def outcome_from_data(data: Any) -> Answer | InvalidAnswer:
    """Read what :func:`outcome_to_data` returned; raise ``ValueError`` for anything else."""
    match data:
        case {"answer": answer, **others} if not others:
            return answer_from_data(answer)
        case {"problem": str(problem), "tries": [*tries], "paid": paid, **others} if not others:
            if all(isinstance(one, list) and [*map(type, one)] == [str, str] for one in tries):
                usage = answer_from_data(paid).usage if paid else None
                return InvalidAnswer(problem, [(one[0], one[1]) for one in tries], usage)
    raise ValueError("it is neither an answer nor what was wrong with one")


# -- the file ------------------------------------------------------------------------------------------------------


#: The mark, beside what a model reads, of one that writes drafts: its replay has to be asked for them, too.
_DRAFTS = "drafts"


class Row(NamedTuple):
    """A row of the file; another program may have written anything into it."""

    id: int
    key: Any
    model: Any
    walk: Any
    outcome: Any


#: Connections inherited by a fork. SQLite forbids using them here, and closing them might delete the parent's log.
_inherited: list[sqlite3.Connection] = []


class AnswerTable:
    """The table of answers in an SQLite file, for many threads and processes at once.

    Args:
        path: the file; created if it does not exist.
        reading: whether it is only read, and has to exist.
        exclusive: whether no other process may open it meanwhile.

    Raises:
        RecordError: the file cannot be used: it is no database, or another program's, or it is not writable.
    """

    def __init__(self, path: str | os.PathLike[str], *, reading: bool = False, exclusive: bool = False) -> None:
        self.path, self._reading, self._exclusive = Path(path), reading, exclusive
        try:
            check_plain(self.path)  # SQLite would wait for what comes out of a pipe
            if reading:
                self.path.stat()
        except OSError as error:
            hint = "; --record FILE writes one" if reading else ""
            raise RecordError(f"the file cannot be opened: {error.strerror}{hint}", file=str(path)) from None
        self._connect()

    def execute(self, command: str, *values: object) -> list[tuple[Any, ...]]:
        """Carry out one command of SQL, all of it or nothing, and return its rows; texts are bytes."""
        if self.closed:
            raise RecordError("the file is closed", file=str(self.path))
        if self._process != os.getpid():
            self._connect()
        with self._lock, self._convert_errors():
            return self._connection.execute(command, values).fetchall()

    def find(self, keys: Sequence[str] | None = None, model: str | None = None) -> list[Row]:
        """Return the rows under some keys, or all, of one model or of all, in their order."""
        where = "TRUE" if keys is None else f"key IN ({', '.join('?' * len(keys))})"
        where, values = (where, ()) if model is None else (f"{where} AND model = ?", (model,))
        command = f"SELECT {', '.join(Row._fields)} FROM answers WHERE {where} ORDER BY id"  # noqa: S608
        return [*map(Row._make, self.execute(command, *(keys or ()), *values))]

    def add(self, *texts: str, known: int | None = None) -> None:
        """Store a row: key, model, walk, outcome, and perhaps what the LLM reads, its name, and the request.

        With ``known`` it is stored only if there are still so many of the same key and model.
        """
        columns = ("key", "model", "walk", "outcome", "reads", "llm", "request")[: len(texts)]
        command = f"INSERT INTO answers ({', '.join(columns)}) SELECT {', '.join('?' * len(texts))}"
        values: list[object] = [*map(_as_stored, texts)]
        if known is not None:
            command += " WHERE (SELECT count(*) FROM answers WHERE key = ? AND model = ?) = ?"
            values += [*values[:2], known]
        self.execute(command, *values)

    def __len__(self) -> int:
        count: int = self.execute("SELECT count(*) FROM answers")[0][0]
        return count

    @property
    def closed(self) -> bool:
        """Whether the file has been closed."""
        return not self._closing.alive

    def close(self) -> None:
        """Close the file, which cannot be used afterwards."""
        with self._lock if self._process == os.getpid() else nullcontext():
            self._closing()

    def _connect(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        with self._convert_errors():
            self._connection = self._open_database()
        # Also closed when the table is garbage-collected, and at the end of the program.
        self._closing = weakref.finalize(self, _close_connection, self._connection, self._process)

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert errors of SQLite to errors that explain what to do."""
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorname", "").removeprefix("SQLITE_").partition("_")[0]
            code = "RUN" if self._exclusive and code == "BUSY" else code
            raise RecordError(_PROBLEMS.get(code, f"SQLite failed: {error}"), file=str(self.path)) from error

    def _open_database(self) -> sqlite3.Connection:
        import sqlite3

        place = self.path.absolute()
        # Nobody else writes in a folder that cannot be written to.
        way = "rwc" if not self._reading else "ro" if os.access(place.parent, os.W_OK) else "ro&immutable=1"
        # Without an isolation level no transaction is begun implicitly: a command is a transaction of its own.
        connection = sqlite3.connect(
            f"{place.as_uri()}?mode={way}", 0 if self._exclusive else _PATIENCE, 0, None, False, uri=True
        )
        try:
            connection.text_factory = bytes
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
            if self._exclusive:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            with connection:  # one process creates the table; fails for files that cannot be written to
                connection.execute("BEGIN" if self._reading else "BEGIN IMMEDIATE")
                if self._is_new(connection):
                    for command in _TABLE:
                        connection.execute(command)
            if not self._reading:
                with suppress(sqlite3.OperationalError):  # another process does it
                    connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        """Return whether a database is empty; raise if it belongs to something else, or to another version of this."""
        owner, version, tables = (
            connection.execute(query).fetchone()[0]
            for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        )
        if (owner, version) == (_APPLICATION, _VERSION):
            return False
        if owner == _APPLICATION:
            problem = f"these answers have version {version}, not {_VERSION}; give another file, or delete this one"
        elif owner or version or tables or self._reading:
            problem = "this file belongs to something else and has no recorded answers; give another file"
        else:
            return True
        raise RecordError(problem, file=str(self.path))


def _close_connection(connection: sqlite3.Connection, process: int) -> None:
    if process == os.getpid():
        connection.close()
    else:
        _inherited.append(connection)


def _as_stored(text: str) -> str:
    """Return a text without halves of surrogate pairs, which SQLite does not store; of JSON the same JSON."""
    return text.encode("utf-8", "backslashreplace").decode()


def list_answers(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file as JSON data, in their order: when, by which LLM, what was asked and answered.

    Raises:
        RecordError: the file cannot be read, or a row of it is damaged.
    """
    with closing(AnswerTable(path, reading=True)) as table:
        rows = table.execute("SELECT id, stored, llm, walk, request, outcome FROM answers ORDER BY id")
    for number, *texts in rows:
        try:
            time, llm, walk = (text.decode() for text in texts[:3])
            request, outcome = (cast("dict[str, Any]", parse_json(text, once=True)) for text in texts[3:])
            outcome_from_data(outcome)
            yield {"time": time, "llm": llm, "walk": walk, **request, **outcome}
        except (ValueError, TypeError, AttributeError):
            raise RecordError(f"row {number} is damaged", file=str(path)) from None


# -- the LLM -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerStats:
    """What a :class:`RecordedLLM` did since it was opened.

    Attributes:
        hits: the number of questions answered without the LLM.
        misses: the number of questions that the LLM was asked.
        saved: what the answers of the hits cost when they were given.
    """

    hits: int = 0
    misses: int = 0
    saved: TokenUsage = field(default_factory=TokenUsage)


#: What came of a question that many wait for; None where the one who asked was cancelled, so that another one asks.
_Flight: TypeAlias = "Future[Answer | None]"


class RecordedLLM(Wrapper):
    """An LLM whose answers are kept in a file: a cache, a recording, or its replay.

    * ``RecordedLLM(llm, path)`` is a cache: a question whose answer is in the file is not asked again, and its answer
      costs nothing. Only legal answers are kept. A question that is on its way is not sent a second time.
    * ``RecordedLLM(llm, path, again=True)`` records: it always asks, and appends every answer, legal or not.
      Failures of a provider are no answers.
    * ``RecordedLLM(None, path)`` replays: it answers from the file alone, including bad answers and usage, so that
      every figure of a run is as it was. The file is not changed.

    The n-th time that a walk asks the same it is given the n-th row, of its own rows if it has any, else of all. A
    cache that has fewer gives the last one again. A damaged row counts as none for a cache, and is an error for a
    replay.

    Threads, event loops and processes may share a file, and threads and event loops an object.

    Args:
        llm: the wrapped LLM: a provider string, a function or an object; None answers from the file alone.
        path: the file, which is created if it does not exist.
        again: whether it is asked what is in the file, too.
        name: distinguishes this LLM from others in the file; a cache requires it if the LLM has no ``identity`` of its
            own, such as a function. It should change whenever the answers would.

    Raises:
        ValueError: the LLM has no ``identity`` and no name.
        RecordError: the file cannot be used; also while answering.
    """

    def __init__(
        self, llm: LLMLike | None, path: str | os.PathLike[str], *, again: bool = False, name: str | None = None
    ) -> None:
        if llm is None:  # whatever is wrapped is never asked, and can do everything
            unasked = LLM()
            unasked.name, unasked.can = f"replay:{os.fspath(path)}", KINDS
        super().__init__(unasked if llm is None else llm)
        self._replays, self._again = llm is None, again
        if name is not None:
            self.identity = {**(self.identity or {}), "name": name}
        if not self._replays and not again and self.identity is None:
            raise ValueError(
                f"{type(self.llm).__name__} has no identity that distinguishes its answers from those of other LLMs; "
                "give it a name in the file: RecordedLLM(llm, path, name=...)"
            )
        self.path = Path(path)
        self._table = AnswerTable(path, reading=self._replays)
        self._model = ""
        if llm is None:
            kinds = self._table.execute("SELECT DISTINCT reads FROM answers")
            self._kinds = [reads.decode("utf-8", "replace").split(",") for (reads,) in kinds if reads]
            self.drafts = any(_DRAFTS in kind for kind in self._kinds)
            self._kinds = [[one for one in kind if one != _DRAFTS] for kind in self._kinds]
            digest = hashlib.sha256()
            for row in self._table.find():
                digest.update(repr(row).encode())
            self.identity = {"llm": "replay", "sha256": digest.hexdigest()}
        else:
            self._model = digest_data(self.identity)
        self._used: set[int] = set()
        self._asked: Counter[tuple[str, str]] = Counter()
        self._stats, self._counting = AnswerStats(), threading.Lock()
        self._flights: dict[tuple[int, str], _Flight] = {}

    @property
    def stats(self) -> AnswerStats:
        """What happened since it was opened here."""
        return self._stats

    @property
    def left(self) -> int:
        """The number of answers in the file that a replay has not given yet."""
        return len(self) - len(self._used)

    def __len__(self) -> int:
        """Return the number of answers in the file, of all LLMs."""
        return len(self._table)

    def close(self) -> None:
        """Close the file; the wrapped LLM stays as it is."""
        self._table.close()

    # -- asking -------------------------------------------------------------------------------------------------

    def around(self, request: Question) -> Steps:
        """Return the answer in the file, or else that of the LLM, which is then stored.

        Raises:
            InvalidAnswer: the answer is not legal.
            NotRecorded: the file has no answer, or none left, and there is no LLM.
            RecordError: the file cannot be read or written any more.
        """
        question = request
        if self._replays:
            return self._replay(question)
        key = _make_key(question, self.reads)
        if self._again:
            try:
                answer = question.check((yield question))
            except InvalidAnswer as error:
                self._store(key, question, error)
                raise
            self._store(key, question, answer)
            return answer
        nth = self._count_ask(key, question)
        process = os.getpid()  # a child process does not wait for a question that its parent has sent
        while True:
            mine: _Flight = Future()
            mine.set_running_or_notify_cancel()  # so that a cancelled waiter does not cancel it for all
            flight = self._flights.setdefault((process, key), mine)
            if flight is mine:
                return (yield from self._find_or_ask(key, question, nth, flight))
            try:
                shared = yield flight
            except InvalidAnswer as error:
                raise InvalidAnswer(error.problem, error.transcript) from None  # paid for by the one who asked
            if shared is not None:
                return question.check(self._count_hit(shared))

    def _find_or_ask(self, key: str, question: Question, nth: int, flight: _Flight) -> Steps:
        """Find the answer, or else ask for it and store it; all that wait for the flight are given it too."""
        outcome: Answer | Exception | None = None
        try:
            rows = self._table.find([key], self._model)
            known = _find_legal(rows, question, nth)
            if known is not None:
                outcome = known
                return self._count_hit(known)
            self._count(misses=1)
            outcome = answer = question.check((yield question))
            self._store(key, question, answer, len(rows))
        except Exception as error:
            outcome = outcome or error  # an answer that cannot be stored is one
            raise
        finally:
            del self._flights[os.getpid(), key]  # first: who waits for it may ask again
            if isinstance(outcome, Exception):
                flight.set_exception(outcome)
            else:
                flight.set_result(outcome)
        return answer

    def _replay(self, question: Question) -> Answer:
        rows = self._table.find([_make_key(question, reads) for reads in self._kinds])
        own = _select_own(rows, question)
        nth = self._count_ask(own[0].key if own else "", question)
        if nth > len(own):
            self._asked[own[0].key if own else "", question.walk] -= 1
            raise NotRecorded(str(self.path), question, len(own))
        row = own[nth - 1]
        try:
            outcome = _read_outcome(row.outcome)
        except ValueError as error:
            raise RecordError(f"row {row.id} is damaged: {error}", file=str(self.path)) from None
        self._used.add(row.id)
        self._count(hits=1)
        if isinstance(outcome, InvalidAnswer):
            raise outcome
        return question.check(outcome)

    # -- rows ---------------------------------------------------------------------------------------------------

    def _store(self, key: str, question: Question, outcome: Answer | InvalidAnswer, known: int | None = None) -> None:
        request, data = (json.dumps(text, ensure_ascii=False) for text in (question.content, outcome_to_data(outcome)))
        reads = ",".join([*sorted(self.reads), *([_DRAFTS] if self.drafts else [])])
        self._table.add(key, self._model, question.walk, data, reads, self.name, request, known=known)

    def _count_ask(self, key: str, question: Question) -> int:
        """Count how often a walk asked the same, this time included."""
        with self._counting:
            self._asked[key, question.walk] += 1
            return self._asked[key, question.walk]

    def _count_hit(self, answer: Answer) -> Answer:
        """Count a hit and return the answer without its usage."""
        self._count(hits=1, saved=answer.usage)
        return replace(answer, usage=NO_TOKENS)

    def _count(self, hits: int = 0, misses: int = 0, saved: TokenUsage = NO_TOKENS) -> None:
        with self._counting:
            now = self._stats
            self._stats = AnswerStats(now.hits + hits, now.misses + misses, now.saved + saved)


def digest_data(data: object) -> str:
    """Return the SHA-256 of JSON data, in hexadecimal."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _make_key(question: Question, reads: Collection[str]) -> str:
    """Return the key of all that a model reads of a question."""
    data: list[object] = [question.content]
    data += [question.task] if "task" in reads else []
    data += [repr(question.outlook)] if "outlook" in reads else []  # of dataclasses: all that is in it
    return digest_data([sorted(reads), *data])


def _read_outcome(text: object) -> Answer | InvalidAnswer:
    if not isinstance(text, bytes):
        raise ValueError("the answer is no text")
    return outcome_from_data(parse_json(text, once=True))


def _select_own(rows: Sequence[Row], question: Question) -> Sequence[Row]:
    """Return the rows of a question's walk; all if it has none."""
    walk = _as_stored(question.walk).encode()
    return [row for row in rows if row.walk == walk] or rows


def _find_legal(rows: Sequence[Row], question: Question, nth: int) -> Answer | None:
    """Return the first legal answer from the n-th row on, or else the last one; with its usage."""
    own = _select_own(rows, question)
    for row in (*own[nth - 1 :], *reversed(own)):
        try:
            answer = _read_outcome(row.outcome)
            if isinstance(answer, Answer) and _are_probabilities(answer, question):
                return question.check(answer)
        except (ValueError, InvalidAnswer):
            continue
    return None


def _are_probabilities(answer: Answer, question: Question) -> bool:
    """Return whether the numbers in an answer can be probabilities of the question's options."""
    likely = answer.probabilities or {}
    if not all(1 <= number <= len(question.options) and 0 <= p <= _ONE for number, p in likely.items()):
        return False  # also for values that are not numbers, whose comparisons are false
    return question.several or sum(likely.values()) <= _ONE
