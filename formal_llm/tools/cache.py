"""A cache of values on disk.

Each value is one file, in folders named after the first two letters of its key. A file is a line of JSON, which
specifies its content and the hash of its bytes, followed by the bytes: nothing in it is ever executed or unpickled.
Files are written under another name and moved into place, so any number of threads and processes may share a folder:
a reader sees a complete file or none. When the files exceed the limit, the least recently used ones are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from formal_llm.authored.files import open_file, parse_json

_FORMAT = "formal_llm.value/1"
#: The age in seconds at which an unfinished file is considered left by a process that was killed.
_STALE = 3600


class CachedValue(NamedTuple):
    """An entry of the cache.

    Attributes:
        kind: the name of the value's kind.
        content: the content key of the value.
    """

    kind: str
    content: str
    payload: bytes


class DiskCache:
    """A folder of values, each under a key.

    Args:
        folder: the folder; created if it does not exist. Write access allows changing results, but not running code.
        max_bytes: the size limit for all files together, with a tolerance of about a tenth.
        max_entry: the size limit for a value; larger ones are not kept.
    """

    def __init__(
        self, folder: str | os.PathLike[str], max_bytes: int = 2_000_000_000, max_entry: int = 200_000_000
    ) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.max_bytes = max_bytes
        self.max_entry = min(max_entry, max_bytes)
        self._lock = threading.Lock()
        self._written = max_bytes  # bytes since the folder was last measured; so it is measured at the first write

    def get(self, key: str) -> CachedValue | None:
        """Return the entry for a key; None if there is none, or if it is damaged, in which case it is removed."""
        path = self._path_of(key)
        try:
            with open_file(path) as file:
                first = file.readline(4096)
                payload = file.read(self.max_entry + 1)
            os.utime(path)  # mark as used now
        except OSError:  # missing or unreadable
            return None
        try:
            header: Any = parse_json(first)
            whole = header["format"] == _FORMAT and header["payload"] == hashlib.sha256(payload).hexdigest()
            entry = CachedValue(str(header["kind"]), str(header["key"]), payload)
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            self.remove(key)
            return None
        return entry

    def put(self, key: str, entry: CachedValue) -> None:
        """Store a value. A cache that is not writable stores nothing and causes no error."""
        if len(entry.payload) > self.max_entry:
            return
        header = {
            "format": _FORMAT,
            "kind": entry.kind,
            "key": entry.content,
            "payload": hashlib.sha256(entry.payload).hexdigest(),
        }
        path = self._path_of(key)
        fresh = path.with_name(f"{uuid4().hex}.part")
        data = json.dumps(header).encode() + b"\n" + entry.payload
        try:
            path.parent.mkdir(exist_ok=True)
            fresh.write_bytes(data)
            fresh.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink()
            return
        with self._lock:
            self._written += len(data)
            full = self._written > self.max_bytes // 10
            if full:
                self._written = 0
        if full:
            self.trim()

    def remove(self, key: str) -> None:
        """Remove the entry for a key."""
        with contextlib.suppress(OSError):
            self._path_of(key).unlink()

    def trim(self) -> None:
        """If the limit is exceeded, remove the least recently used files until a tenth is free again."""
        files = sorted(self._list_files(), reverse=True)  # the newest first
        if not files:
            return
        newest = files[0][0]
        total = sum(size for _, size, _ in files)
        goal = total if total <= self.max_bytes - self.max_bytes // 10 else self.max_bytes - self.max_bytes // 5
        for when, size, path in reversed(files):
            abandoned = path.suffix == ".part" and when < newest - _STALE
            if total > goal or abandoned:
                with contextlib.suppress(OSError):  # another process may have removed it
                    path.unlink()
                total -= size

    def __len__(self) -> int:
        return sum(path.suffix != ".part" for _, _, path in self._list_files())

    @property
    def size(self) -> int:
        """The total number of bytes of all files."""
        return sum(size for _, size, _ in self._list_files())

    def _path_of(self, key: str) -> Path:
        if not key.isalnum():  # keys are hashes; reject anything else, which could be a path into another folder
            key = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / key[:2] / f"{key}.value"

    def _list_files(self) -> Iterator[tuple[float, int, Path]]:
        """Yield when each file was last used, its size, its path."""
        for folder in sorted(self.folder.iterdir()):
            if not folder.is_dir():
                continue
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith((".value", ".part")):
                        with contextlib.suppress(OSError):
                            status = entry.stat(follow_symlinks=False)
                            yield status.st_mtime, status.st_size, Path(entry.path)
