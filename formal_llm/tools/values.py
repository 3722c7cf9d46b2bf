"""A value on its way through a plan: its kind, its content key, and the value itself, decoded when it is looked at."""

from __future__ import annotations

import threading
from typing import Any

from formal_llm.tools.kinds import Kind


class Value:
    """A typed value. Treated as one that does not change: :meth:`copy` is for those who change it.

    Values are equal when their kinds and content keys are. Pickled, a value is the bytes of its kind.

    Args:
        kind: its kind.
        data: the value, in the normal form of its kind.
        key: its content key; made where left out.
        payload: the value as bytes, in place of ``data``: it is decoded when it is looked at.
    """

    __slots__ = ("_data", "_lock", "_payload", "key", "kind")

    def __init__(self, kind: Kind, data: object = None, key: str | None = None, payload: bytes | None = None) -> None:
        self.kind = kind
        self._data = data
        self._payload = payload
        self._lock = threading.Lock()
        self.key = key if key is not None else kind.key(self.get())

    def get(self) -> Any:
        """The value, whatever it is: its kind says."""
        with self._lock:
            if self._payload is not None:
                self._data = self.kind.read(self._payload)
                self._payload = None
            return self._data

    def copy(self) -> object:
        """The value, for one who may change it."""
        copied: object = self.kind.copy(self.get())
        return copied

    def dump(self) -> bytes:
        """The value as bytes."""
        with self._lock:
            return self._payload if self._payload is not None else self.kind.dump(self._data)

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        with self._lock:
            return len(self._payload) if self._payload is not None else self.kind.weigh(self._data)

    def __eq__(self, other: object) -> bool:
        return (self.kind, self.key) == (other.kind, other.key) if isinstance(other, Value) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[type[Value], tuple[Kind, None, str, bytes]]:
        return Value, (self.kind, None, self.key, self.dump())

    def __repr__(self) -> str:
        return f"<Value {self.kind} {self.key[:12]}>"
