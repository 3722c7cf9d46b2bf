"""A cache of values on disk.

One file for each value, in folders named for the first two letters of its key. A file is a line of JSON, which says
what it holds and what its bytes must hash to, and then the bytes: nothing in it is ever executed or unpickled. Files
are written under another name and moved into place, so any number of threads and processes may share a folder: whoever
reads sees a whole file or none. When the files outgrow the limit, those that were used longest ago are removed.
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
#: A file that nobody has finished writing for an hour was left by a process that was killed.
_STALE = 3600


class CachedValue(NamedTuple):
    """What the cache holds for a key.

    Attributes:
        kind: the name of the value's kind.
        content: the content key of the value.
        payload: the value as bytes.
    """

    kind: str
    content: str
    payload: bytes


class DiskCache:
    """A folder of values, each under a key.

    Args:
        folder: the folder; made if it is not there. Whoever can write there can change results, but not run code.
        max_bytes: how large all files together may become. It is kept to about a tenth.
        max_entry: a value of more bytes is not kept.
    """

    def __init__(
        self, folder: str | os.PathLike[str], max_bytes: int = 2_000_000_000, max_entry: int = 200_000_000
    ) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.max_bytes = max_bytes
        self.max_entry = min(max_entry, max_bytes)
        self._lock = threading.Lock()
        self._written = max_bytes  # since the folder was last measured; so it is measured at the first write

    def get(self, key: str) -> CachedValue | None:
        """What is there for a key; None for nothing, and for a damaged file, which is removed."""
        path = self._path_of(key)
        try:
            with open_file(path) as file:
                first = file.readline(4096)
                payload = file.read(self.max_entry + 1)
            os.utime(path)  # used now
        except OSError:  # there is nothing, or as good as nothing
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
        """Keep a value. A cache that cannot be written to keeps nothing, and harms nobody."""
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
        """Forget what is there for a key."""
        with contextlib.suppress(OSError):
            self._path_of(key).unlink()

    def trim(self) -> None:
        """Remove what was used longest ago until a tenth is free again, if the limit is passed."""
        found = sorted(self._list_files(), reverse=True)  # the newest first
        if not found:
            return
        newest = found[0][0]
        total = sum(size for _, size, _ in found)
        goal = total if total <= self.max_bytes - self.max_bytes // 10 else self.max_bytes - self.max_bytes // 5
        for when, size, path in reversed(found):
            abandoned = path.suffix == ".part" and when < newest - _STALE
            if total > goal or abandoned:
                with contextlib.suppress(OSError):  # another process may have removed it
                    path.unlink()
                total -= size

    def __len__(self) -> int:
        return sum(path.suffix != ".part" for _, _, path in self._list_files())

    @property
    def size(self) -> int:
        """How many bytes all files have together."""
        return sum(size for _, size, _ in self._list_files())

    def _path_of(self, key: str) -> Path:
        if not key.isalnum():  # keys are hashes; whatever else is no path into another folder
            key = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / key[:2] / f"{key}.value"

    def _list_files(self) -> Iterator[tuple[float, int, Path]]:
        """When each file was last used, its size, its path."""
        for folder in sorted(self.folder.iterdir()):
            if not folder.is_dir():
                continue
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith((".value", ".part")):
                        with contextlib.suppress(OSError):
                            status = entry.stat(follow_symlinks=False)
                            yield status.st_mtime, status.st_size, Path(entry.path)
