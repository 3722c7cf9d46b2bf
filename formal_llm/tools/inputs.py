"""Inputs from files: within a folder, within limits."""

from __future__ import annotations

import os
from pathlib import Path

from formal_llm.authored.files import open_file
from formal_llm.errors import InputError
from formal_llm.tools import images
from formal_llm.tools.kinds import IMAGE, TEXT, Kind


def resolve_inside(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """The real path of a file that is inside a folder, links followed.

    Args:
        path: the file; a relative path is taken from ``folder``.
        folder: where it has to be.

    Raises:
        InputError: it is outside, or is no file.
    """
    root = Path(folder).resolve()
    shown = os.fspath(path)[:200]
    try:
        real = (root / path).resolve()
        within = real.is_relative_to(root)
        there, regular = within and real.exists(), within and real.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name that is too long, a zero in it
        raise InputError(f"{shown!r} cannot be found") from error
    if not within:
        raise InputError(f"{shown!r} is not inside the folder {folder}")
    if not there:
        raise InputError(f"{shown!r}: there is no such file in {folder}")
    if not regular:  # a folder, a device that never ends, a pipe that nobody may ever write to
        raise InputError(f"{shown!r} in {folder} is no regular file but a folder, a device or a pipe")
    return real


def read_input(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    kind: Kind | None = None,
    *,
    max_bytes: int = images.MAX_BYTES,
) -> object:
    """The value in a file.

    Args:
        path: the file; a relative path is taken from ``folder``.
        folder: what the path cannot leave, by ``..``, an absolute path or a link.
        kind: what it holds; told from its ending where left out: ``.txt`` and ``.md`` are texts, all else are images.
        max_bytes: the most bytes that are read.

    Raises:
        InputError: outside the folder, not there, too large, damaged, or not of that kind.
    """
    real = resolve_inside(path, folder)
    if kind is None:
        kind = TEXT if real.suffix.lower() in (".txt", ".md") else IMAGE
    try:
        with open_file(real) as file:
            data = file.read(max_bytes + 1)  # not stat and then read: it may grow in between
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > max_bytes:
        raise InputError(f"{path} has more than {max_bytes:,} bytes")
    if kind == IMAGE:
        return IMAGE.accept(images.read_image(data, max_bytes=max_bytes, what=os.fspath(path)))
    try:
        value = kind.load(data)
    except Exception as error:  # whatever the kind's own function raises for bytes that are none
        raise InputError(f"{path} cannot be read as {kind}: {error}") from error
    return kind.accept(value)
