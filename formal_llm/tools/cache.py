"""A cache of values on disk: a file each, named by its key.

A file is the hash of its content and the content: nothing in it is ever executed or unpickled. Files are written under
another name and moved into place, so any number of threads and processes may share a folder: a reader sees a complete
file or none. Files that are no longer wanted may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from uuid import uuid4

from formal_llm.authored.files import open_file


class DiskCache:
    """A folder of values, each under a key.

    Args:
        folder: the folder; created if it does not exist. Write access allows changing results, but not running code.
        max_bytes: the size limit for a value; larger ones are not kept.
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int = 200_000_000) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.max_bytes = max_bytes

    def get(self, key: str) -> bytes | None:
        """Return the value for a key; None if there is none, or if it is damaged, in which case it is removed."""
        try:
            with open_file(self._path_of(key)) as file:
                digest, payload = file.read(32), file.read(self.max_bytes + 1)
        except OSError:  # missing or unreadable
            return None
        if digest == hashlib.sha256(payload).digest():
            return payload
        self.remove(key)
        return None

    def put(self, key: str, payload: bytes) -> None:
        """Store a value. A cache that is not writable stores nothing and causes no error."""
        if len(payload) > self.max_bytes:
            return
        path = self._path_of(key)
        fresh = path.with_name(f"{uuid4().hex}.part")
        try:
            path.parent.mkdir(exist_ok=True)
            fresh.write_bytes(hashlib.sha256(payload).digest() + payload)
            fresh.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink()

    def remove(self, key: str) -> None:
        """Remove the value for a key."""
        with contextlib.suppress(OSError):
            self._path_of(key).unlink()

    def _path_of(self, key: str) -> Path:
        if not key.isalnum():  # keys are hashes; reject anything else, which could be a path into another folder
            key = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / key[:2] / f"{key}.value"
