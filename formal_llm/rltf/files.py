"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, parts: Iterable[bytes], *, durable: bool = False) -> None:
    """Put a file in the place of the one that is there; whatever happens in between, it is the old one or the new one.

    Args:
        path: the file. What is written meanwhile stands beside it, with ``.new`` after its name.
        parts: what is written, one after the other.
        durable: whether it is on the disk before it takes its place.
    """
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.writelines(parts)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    beside.replace(path)
