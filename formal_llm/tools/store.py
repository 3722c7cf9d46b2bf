"""Known results of pure tools: in memory up to a limit, and on disk if there is a cache."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from formal_llm.errors import InputError
from formal_llm.tools.cache import DiskCache
from formal_llm.tools.kinds import Kind, Value
from formal_llm.tools.tool import Tool


@dataclass(slots=True)
class Stats:
    """The statistics of calls.

    Attributes:
        executed: the number of calls for which the tool ran.
        from_memory, from_disk: the number of calls whose result was known.
        shared: the number of calls whose result another call was computing at that moment.
    """

    executed: int = 0
    from_memory: int = 0
    from_disk: int = 0
    shared: int = 0

    @property
    def calls(self) -> int:
        """The number of all calls."""
        return self.executed + self.from_memory + self.from_disk + self.shared


def step_key(tool: Tool, inputs: Sequence[Value], named: Mapping[str, Value]) -> str | None:
    """Return the key of a result: the tool, its version, and the content of its inputs; None if it is not shared.

    Only results of pure tools are shared, and only where each input is distinguished by its content.
    """
    if not tool.pure or not all(value.is_faithful for value in (*inputs, *named.values())):
        return None
    parts = [tool.name, tool.version, str(tool.output), [value.key for value in inputs]]
    if named:
        parts.append({name: value.key for name, value in sorted(named.items())})  # type: ignore[arg-type]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class Store:
    """Results by their keys. Thread-safe.

    Args:
        memory: the maximum number of bytes of values kept in memory; the least recently used are removed first.
        cache: the disk cache that also keeps them.
    """

    def __init__(self, memory: int, cache: DiskCache | None = None) -> None:
        self.memory = memory
        self.cache = cache
        self.stats = Stats()
        self._held: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find_result(self, key: str, kind: Kind) -> Value | None:
        """Return the result for a key, if it is known."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                self.stats.from_memory += 1
                return self._held[key][0]
        payload = None if self.cache is None else self.cache.get(key)
        if self.cache is None or payload is None:
            return None
        try:
            value = Value(kind, kind.read(payload))
        except InputError:  # the bytes are not such a value: written by another program or version
            self.cache.remove(key)
            return None
        except MemoryError:  # there is no memory for it now; the tool runs instead, and may fail for the same reason
            return None
        self._hold_value(key, value)
        self.count_calls(from_disk=1)
        return value

    def keep_result(self, key: str, value: Value) -> None:
        """Keep a result, if it can be read back as it is."""
        if not value.is_faithful:
            return
        self._hold_value(key, value)
        if self.cache is not None:
            self.cache.put(key, value.dump())

    def _hold_value(self, key: str, value: Value) -> None:
        size = value.size
        with self._lock:
            if size > self.memory or key in self._held:
                return
            self._held[key] = value, size
            self._bytes += size
            while self._bytes > self.memory:
                _, (_, freed) = self._held.popitem(last=False)
                self._bytes -= freed

    def count_calls(self, *, executed: int = 0, shared: int = 0, from_disk: int = 0) -> None:
        """Count calls."""
        with self._lock:
            self.stats.executed += executed
            self.stats.shared += shared
            self.stats.from_disk += from_disk
