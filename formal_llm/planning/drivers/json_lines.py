"""Files that are there whole or not at all: JSON lines that one writer appends to, and files that are replaced."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path

from formal_llm.authored.files import check_plain
from formal_llm.errors import RecordError


def open_exclusively(path: Path, *, what: str = "file", busy: str) -> FileIO:
    """Open a file to append to and read, created if it is missing; no other process can do so in the meantime.

    Args:
        path: the file.
        what: what it is called in an error.
        busy: the message if another process has it, with the way out.

    Raises:
        RecordError: it cannot be written to, or another process has it.
    """
    while True:
        try:
            check_plain(path)
            # Unbuffered: what has been written is the system's, and survives the end of this process.
            file = path.open("ab+", buffering=0)
        except OSError as error:
            raise RecordError(f"the {what} cannot be written: {error.strerror}", file=str(path)) from None
        try:
            _lock_file(file)
        except OSError:
            file.close()
            raise RecordError(busy, file=str(path)) from None
        if _is_in_place(file, path):
            return file
        file.close()  # it was replaced between the two, by the one who had it: what is there now is another file


def replace_exclusively(file: FileIO, path: Path, parts: Iterable[bytes], *, busy: str) -> FileIO:
    """Replace the file that :func:`open_exclusively` returned, which is closed; gives the new one, opened as there.

    There is no moment at which another process could have the one or the other.

    Raises:
        RecordError: another file is there now; it is left as it is.
    """
    beside = path.with_name(path.name + ".new")
    new = open_exclusively(beside, busy=busy)
    try:
        new.truncate(0)
        for part in parts:
            new.write(part)
        os.fsync(new.fileno())
        check_in_place(file, path)
        beside.replace(path)
    except BaseException:
        new.close()
        raise
    file.close()
    return new


def check_in_place(file: FileIO, path: Path) -> None:
    """Raise ``RecordError`` if the open file is not at its path any more: what is written to it is lost."""
    if not _is_in_place(file, path):
        raise RecordError(
            "the file was replaced, moved or deleted while it was being written to; "
            "what stands there now is left as it is: run the command again",
            file=str(path),
        )


def _is_in_place(file: FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def encode_line(data: Mapping[str, object], *, allow_nan: bool = True) -> bytes:
    """The line of JSON data, as :func:`write_line` has it."""
    try:
        return json.dumps(data, ensure_ascii=False, default=str, allow_nan=allow_nan).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, as a cut-off answer or a path may have it
        return json.dumps(data, default=str, allow_nan=allow_nan).encode() + b"\n"


def write_line(file: FileIO, path: Path, data: Mapping[str, object], what: str, *, allow_nan: bool = True) -> None:
    """Append a line to what :func:`open_exclusively` returned; one that does not fit on the disk is taken back.

    What JSON does not know is written as text. Numbers may be infinite or no number where ``allow_nan`` allows it; JSON
    itself has no such numbers. An error names ``path`` and ``what``.

    Raises:
        ValueError: such a number that may not be.
        RecordError: the line could not be written whole; the file is as it was. Or it is no longer at ``path``.
    """
    check_in_place(file, path)
    line = encode_line(data, allow_nan=allow_nan)
    # One write for a line: whatever happens in between, a line is there or it is not.
    written = file.write(line) or 0
    if written != len(line):
        file.truncate(os.fstat(file.fileno()).st_size - written)
        raise RecordError(f"{what} could not be written whole: disk full?", file=str(path))


def write_atomically(path: Path, parts: Iterable[bytes], *, durable: bool = False) -> None:
    """Put a file in the place of the one that is there; whatever happens in between, it is the old one or the new one.

    The new file is written beside it, with ``.new`` after its name; ``durable``: it is on the disk before it takes the
    place of the old one.
    """
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.writelines(parts)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    beside.replace(path)


try:
    import fcntl

    def _lock_file(file: FileIO) -> None:
        """Lock the file for this process, or raise ``OSError``; the system frees it however the process ends."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

except ImportError:  # Windows
    import msvcrt

    def _lock_file(file: FileIO) -> None:
        """Lock the file for this process, or raise ``OSError``; the system frees it however the process ends."""
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
