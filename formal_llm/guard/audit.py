"""The audit log of a guard: JSON lines, each with the hash of the previous one, so that later changes are detected.

::

    {"format":"formal-llm guard log 1","rules":"9f2c...","before":"0000...","hash":"51ab..."}
    {"at":"2026-11-22T16:00:00+00:00","event":{"call":"pay"},"told":true,"before":"51ab...","hash":"c07e..."}

The hash of a line is the SHA-256 of everything before it in the line, including the hash of the previous line. A log
is extended under a lock of its file, and a line counts only once it is on the disk. A last line that was cut off,
because the machine or the process died while it was written, never counted: the next writer removes it.

Removing lines at the end of a log leaves no trace in it, and who may write the file can write all of it anew. To detect
that, keep the last hash elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from formal_llm.authored.files import check_plain, read_bytes
from formal_llm.errors import RecordError
from formal_llm.guard.events import Decision, GuardEvent, as_row, from_row
from formal_llm.planning.json_data import JSON

if TYPE_CHECKING:
    from formal_llm.guard.live import Audit, Noted

FORMAT = "formal-llm guard log 1"
#: The hash that precedes the first line.
NOTHING = "0" * 64
#: The most bytes of a line, and of a log that is read.
MOST_LINE, MOST_LOG = 64_000_000, 2_000_000_000
#: The length of the end of a line, which contains its hash.
_TAIL = len(',"hash":""}') + 64


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a log: its number from 1, its content, its hash."""

    line: int
    row: Mapping[str, JSON]
    hash: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A place where a log differs from what was written: the line, and the problem."""

    line: int
    problem: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.problem}"


@dataclass(frozen=True, slots=True)
class LogReading:
    """The content of a log, and whether it is what was written.

    Attributes:
        entries: its lines without the damaged ones.
        faults: the places where it was changed.
        torn: whether the last line was cut off. Such a line never counted.
    """

    entries: tuple[Entry, ...]
    faults: tuple[Fault, ...]
    torn: bool = False

    @property
    def rules(self) -> str:
        """The fingerprint of the rules it was written under; empty if it does not record one."""
        fingerprint = self.entries[0].row.get("rules") if self.entries else None
        return fingerprint if isinstance(fingerprint, str) else ""

    @property
    def head(self) -> str:
        """The hash of the last line; a copy of it reveals later whether lines are missing at the end."""
        return self.entries[-1].hash if self.entries else NOTHING


class AuditLog:
    """A log on disk that several processes may append to.

    Args:
        path: the file; it is created if it is missing.
        rules: the fingerprint of the rules, for the first line.
    """

    def __init__(self, path: str | os.PathLike[str], rules: str = "") -> None:
        self.path = Path(path)
        self.rules = rules

    def append(self, row: Mapping[str, JSON]) -> str:
        """Append a line, wait until it is on the disk, and return its hash.

        Raises:
            RecordError: it cannot be written, or the last line of the log was changed.
        """
        with self.held() as held:
            return held.append(row)

    def read_events(self) -> list[GuardEvent]:
        """Read the events that the state of a guard accepted, so that a run can go on after them.

        Raises:
            RecordError: the log cannot be read or was changed.
        """
        with self.held() as held:
            reading = held.read()
        if reading.faults:
            problem = f"the log {self.path} was changed ({reading.faults[0]})"
            raise RecordError(f"{problem}; keep the file as evidence, and begin another one")
        events = [read_event(entry) for entry in reading.entries if entry.row.get("told") is True]
        return [event for event in events if event is not None]

    @contextmanager
    def held(self) -> Iterator[HeldLog]:
        """Lock the log against all other writers for the duration of a ``with`` block.

        Raises:
            RecordError: the file cannot be opened.
        """
        try:
            check_plain(self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            number = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise RecordError(f"the log {self.path} cannot be opened: {error.strerror}") from error
        with _LockedDescriptor(number):
            yield HeldLog(number, self)


class HeldLog:
    """A log that is locked against other writers.

    Attributes:
        head: the hash of its last line; None before anything was read or appended.
    """

    def __init__(self, number: int, log: AuditLog) -> None:
        self._number = number
        self.path = log.path
        self._rules = log.rules
        self.head: str | None = None

    def read(self) -> LogReading:
        """Read the whole log."""
        size = os.fstat(self._number).st_size
        if size > MOST_LOG:
            raise RecordError(f"the log {self.path} has more than {MOST_LOG:,} bytes; begin another one")
        reading = read_lines(os.pread(self._number, size, 0))
        if not reading.faults:
            self.head = reading.head
        return reading

    def append(self, *rows: Mapping[str, JSON]) -> str:
        """Append lines as :meth:`AuditLog.append` does; without any, only the first line of a new log is written."""
        self._cut_torn_line()
        if self.head is None:
            self.head = self._read_last_hash()
        lines: list[Mapping[str, JSON]] = [{"at": datetime.now(UTC).isoformat(), **row} for row in rows]
        if os.fstat(self._number).st_size == 0:
            lines.insert(0, {"format": FORMAT, "rules": self._rules})
        written = b""
        head = self.head
        for line in lines:
            text, head = seal_line(line, head)
            written += text
        if len(written) > MOST_LINE:
            raise RecordError(f"a line of a log has at most {MOST_LINE:,} bytes")
        try:
            count = 0
            while count < len(written):
                count += os.write(self._number, written[count:])
            os.fsync(self._number)
        except OSError as error:
            raise RecordError(f"the log {self.path} cannot be written: {error.strerror}") from error
        self.head = head
        return head

    def _cut_torn_line(self) -> None:
        """Remove a last line that was cut off."""
        size = os.fstat(self._number).st_size
        if not size or os.pread(self._number, 1, size - 1) == b"\n":
            return
        os.ftruncate(self._number, self._find_line_start(size))
        self.head = None

    def _find_line_start(self, end: int) -> int:
        """Find the start of the line that ends at a position."""
        while end > 0:
            begin = max(0, end - 65_536)
            newline = os.pread(self._number, end - begin, begin).rfind(b"\n")
            if newline >= 0:
                return begin + newline + 1
            end = begin
        return 0

    def _read_last_hash(self) -> str:
        """Read the hash of the last line."""
        size = os.fstat(self._number).st_size
        if not size:
            return NOTHING
        start = self._find_line_start(size - 1)
        entry, problem = _read_line(os.pread(self._number, size - 1 - start, start), 0)
        if entry is None:
            raise RecordError(
                f"the last line of the log {self.path} was changed; keep the file as evidence, and begin another one "
                f"({problem})"
            )
        return entry.hash


class _LockedDescriptor:
    """A descriptor that is locked during a ``with`` block, and closed at its end."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows has no flock, but it can lock a byte
            import msvcrt

            os.lseek(self.number, 0, os.SEEK_SET)
            msvcrt.locking(self.number, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            fcntl.flock(self.number, fcntl.LOCK_EX)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.number)  # which releases the lock


def seal_line(row: Mapping[str, JSON], before: str) -> tuple[bytes, str]:
    """Write a line of a log, and return it with its hash."""
    text = json.dumps({**row, "before": before}, ensure_ascii=False, separators=(",", ":"))
    body = text.encode("utf-8", "backslashreplace")[:-1]  # a lone surrogate is not valid UTF-8
    digest = hashlib.sha256(body).hexdigest()
    return body + f',"hash":"{digest}"}}\n'.encode(), digest


def read_log(path: str | os.PathLike[str]) -> LogReading:
    """Read a log on disk, and check that it is what was written.

    Raises:
        RecordError: the file cannot be read.
    """
    try:
        return read_lines(read_bytes(path, MOST_LOG))
    except OSError as error:
        raise RecordError(f"the log {path} cannot be read: {error.strerror}") from error


def is_log(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins like a log."""
    try:
        check_plain(path)
        with Path(path).open("rb") as file:
            return FORMAT.encode() in file.read(200)
    except OSError:
        return False


def read_lines(data: bytes) -> LogReading:
    """Read the lines of a log, and check that they are what was written."""
    *lines, last = data.split(b"\n")
    entries: list[Entry] = []
    faults: list[Fault] = []
    before = NOTHING
    for number, line in enumerate(lines, 1):
        entry, problem = _read_line(line, number)
        if entry is None:
            faults.append(Fault(number, problem))
            before = ""
            continue
        if before and entry.row.get("before") != before:
            faults.append(Fault(number, "it does not follow the line before: lines were taken out, put in or moved"))
        if number == 1 and entry.row.get("format") != FORMAT:
            faults.append(Fault(1, f"it is not the first line of a log ({FORMAT})"))
        entries.append(entry)
        before = entry.hash
    return LogReading(tuple(entries), tuple(faults), bool(last))


def _read_line(line: bytes, number: int) -> tuple[Entry | None, str]:
    if len(line) < _TAIL or line[-_TAIL:-66] != b',"hash":"':
        return None, "it is no line of a log: it does not end with its hash"
    digest = hashlib.sha256(line[:-_TAIL]).hexdigest()
    if line[-66:] != f'{digest}"}}'.encode():
        return None, "it was changed: its hash does not fit what it says"
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None, "it is no JSON"
    return Entry(number, row, digest), ""


def build_row(
    event: GuardEvent | None, decision: Decision | None = None, *, told: bool = True, approved: bool | None = None
) -> dict[str, JSON]:
    """Build a line of a log.

    Args:
        event: what happened or was requested; None if the agent wanted to stop.
        decision: the decision about it.
        told: whether the state accepted it.
        approved: the answer of a person about it.
    """
    row: dict[str, JSON] = {"event": None if event is None else as_row(event)}
    if decision is not None:
        why: dict[str, JSON] = {"rule": decision.rule, "reason": decision.reason} if decision.rule else {}
        row["decision"] = {"action": decision.action, **why, "certain": decision.certain}
    row["told"] = told
    if approved is not None:
        row["approved"] = approved
    return row


def make_audit(log: AuditLog) -> Audit:
    """Make a function that writes the record of a run to a log."""

    def append_line(noted: Noted) -> None:
        log.append(build_row(noted.event, noted.decision, told=noted.told, approved=noted.approved))

    return append_line


def read_event(entry: Entry) -> GuardEvent | None:
    """Read the event of a line; return None if it has none.

    Raises:
        RecordError: the event cannot be read.
    """
    row = entry.row.get("event")
    if not isinstance(row, Mapping):
        return None
    try:
        return from_row(row)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"the event of line {entry.line} cannot be read: {error!r}") from error
