"""Reading a file that a user named: it can neither hang nor fill the memory, and errors name what is wrong with it.

What is no plain file (a pipe, a device, a folder) is an ``OSError``, as a file is that is missing: a pipe is never
waited for. What is larger than anybody writes is one, too. Only line ends part lines: a text may hold other signs that
:meth:`str.splitlines` takes for one, such as U+2028 and the form feed.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from formal_llm.errors import NotationError, did_you_mean

#: A larger file is refused by default.
MOST_BYTES = 100_000_000
_LINE_END = re.compile(r"\r\n|\n|\r")
_KINDS = (
    (stat.S_ISDIR, "this is a folder, not a file"),
    (stat.S_ISFIFO, "this is a pipe, not a file; write what comes out of it to a file first"),
    (stat.S_ISSOCK, "this is a socket, not a file"),
    (lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode), "this is a device, not a file"),
)


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """A plain file, opened to be read.

    Raises:
        OSError: it is missing, may not be read, or is no plain file; ``strerror`` names which.
    """
    file = open(path, "rb", opener=_open)  # noqa: SIM115  # the caller closes it
    try:
        _check(os.fstat(file.fileno()).st_mode, path)
    except BaseException:
        file.close()
        raise
    return file


def check_plain(path: str | os.PathLike[str]) -> None:
    """Raise for what is there and is no plain file; for files that something else opens, or that may be missing.

    Raises:
        OSError: as :func:`open_file`.
    """
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return
    _check(mode, path)


def read_bytes(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """What a plain file holds.

    Raises:
        OSError: as :func:`open_file`, and where it has more than ``most`` bytes.
    """
    with open_file(path) as file:
        data = file.read(most + 1)  # not stat and then read: it may grow in between
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", os.fspath(path))
    return data


def read_text(path: str | Path, error: type[NotationError] = NotationError, most: int = MOST_BYTES) -> str:
    """The text of an authored file (UTF-8, with or without a byte order mark).

    Raises:
        NotationError: the file is missing, no plain file, too large, or not UTF-8 text; the message names which.
    """
    name = str(path)
    try:
        data = read_bytes(path, most)
    except FileNotFoundError:
        folder = Path(path).parent
        beside = islice(folder.iterdir(), 1000) if folder.is_dir() else ()
        near = did_you_mean(Path(path).name, (one.name for one in beside))
        hint = f"did you mean {folder / near}?" if near else "check the name and the folder"
        raise error("there is no such file", file=name, suggestion=hint) from None
    except OSError as trouble:
        raise error(
            f"the file cannot be read: {trouble.strerror}", file=name, suggestion="name a file that you may read"
        ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as trouble:
        raise error(
            f"this is not a text file in UTF-8 (byte {trouble.start} cannot be read)",
            file=name,
            suggestion="save it as UTF-8 text",
        ) from None
    if "\0" in text:
        raise error(
            f"this is not a text file (zero byte at {text.index(chr(0))})",
            file=name,
            suggestion="save it as UTF-8 text",
        )
    return text


def read_lines(path: str | Path, error: type[NotationError] = NotationError) -> Iterator[str]:
    """The lines of an authored file, one at a time, however many there are; otherwise as :func:`read_text`."""
    try:
        file = open_file(path)
    except OSError:
        read_text(path, error)  # its error names what is wrong
        raise
    with file, TextIOWrapper(file, "utf-8-sig", newline="") as lines:
        try:
            for line in lines:
                if "\0" in line:
                    raise error("this is not a text file: there is a zero byte", file=str(path))
                yield line.rstrip("\r\n")
        except UnicodeDecodeError:
            read_text(path, error)
            raise


def lines_of(text: str) -> list[str]:
    """The lines of a text, without their ends; an end of a line at the end of the text begins no other."""
    lines = _LINE_END.split(text)
    return lines[:-1] if not lines[-1] else lines


def parse_json(text: str | bytes, *, once: bool = False) -> object:
    """The value of a JSON text.

    With ``once`` a key that an object has twice is refused; else the last one counts.

    Raises:
        ValueError: it is no JSON, is nested too deeply, or has a key twice.
    """
    try:
        return cast("object", json.loads(text, object_pairs_hook=_once if once else None))
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None


def _once(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is there twice")
        found[key] = value
    return found


def _open(path: str, flags: int) -> int:
    # Without O_NONBLOCK the opening of a pipe waits for somebody who writes to it; plain files do not know it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def _check(mode: int, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(mode):
        problem = next((reason for is_kind, reason in _KINDS if is_kind(mode)), "this is no plain file")
        raise OSError(errno.EINVAL, problem, os.fspath(path))
