"""Inputs from files, within a folder and within size limits."""

from __future__ import annotations

import os
from pathlib import Path

from formal_llm.authored.files import open_file
from formal_llm.errors import InputError
from formal_llm.tools import images
from formal_llm.tools.kinds import IMAGE, TEXT, Kind


def resolve_inside(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """Return the real path of a file that is inside a folder, following links.

    Args:
        path: the file; a relative path is resolved against ``folder``.
        folder: the folder that must contain it.

    Raises:
        InputError: the path is outside, or is not a regular file.
    """
    root = Path(folder).resolve()
    excerpt = os.fspath(path)[:200]
    try:
        real = (root / path).resolve()
        within = real.is_relative_to(root)
        exists, regular = within and real.exists(), within and real.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name that is too long, a null byte
        raise InputError(f"{excerpt!r} cannot be found") from error
    if not within:
        raise InputError(f"{excerpt!r} is not inside the folder {folder}")
    if not exists:
        raise InputError(f"{excerpt!r}: there is no such file in {folder}")
    if not regular:  # a folder, an endless device, a pipe without a writer
        raise InputError(f"{excerpt!r} in {folder} is no regular file but a folder, a device or a pipe")
    return real


def read_input(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    kind: Kind | None = None,
    *,
    max_bytes: int = images.MAX_BYTES,
) -> object:
    """Return the value in a file.

    Args:
        path: the file; a relative path is resolved against ``folder``.
        folder: the folder that the path must not leave by ``..``, an absolute path or a link.
        kind: the kind; default: derived from the extension: ``.txt`` and ``.md`` are texts, all others are images.
        max_bytes: the maximum number of bytes to read.

    Raises:
        InputError: the file is outside the folder, missing, too large, damaged, or not of that kind.
    """
    real = resolve_inside(path, folder)
    if kind is None:
        kind = TEXT if real.suffix.lower() in (".txt", ".md") else IMAGE
    try:
        with open_file(real) as file:
            data = file.read(max_bytes + 1)  # not stat and then read: the file may grow in between
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > max_bytes:
        raise InputError(f"{path} has more than {max_bytes:,} bytes")
    if kind == IMAGE:
        return IMAGE.accept(images.read_image(data, max_bytes=max_bytes, what=os.fspath(path)))
    try:
        value = kind.load(data)
    except Exception as error:  # whatever the kind's own function raises for invalid bytes
        raise InputError(f"{path} cannot be read as {kind}: {error}") from error
    return kind.accept(value)
