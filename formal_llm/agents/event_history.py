"""The events of a run as monitors and guards keep them: a history whose beginning forks share, and its snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from formal_llm.authored.tables import AlternativeShape, Items, Keys, Shape, problems
from formal_llm.errors import SnapshotError
from formal_llm.planning.json_data import JSON

E = TypeVar("E")


class EventHistory(Generic[E]):
    """A linked list of at least one past event, the latest first; an empty history is None.

    Adding an event takes constant time and memory, since the new history shares everything before it. Two histories
    are equal if their events are; events must be hashable.
    """

    __slots__ = ("_hash", "before", "event", "length")

    def __init__(self, before: EventHistory[E] | None, event: E) -> None:
        self.before = before
        self.event = event
        self.length: int = 1 if before is None else before.length + 1
        self._hash: int | None = None

    @staticmethod
    def list_events(history: EventHistory[E] | None) -> list[E]:
        """Return the events of a history, the earliest first."""
        return [] if history is None else [entry.event for entry in history._iter_back()][::-1]

    def _iter_back(self) -> Iterator[EventHistory[E]]:
        entry: EventHistory[E] | None = self
        while entry is not None:
            yield entry
            entry = entry.before

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventHistory):
            return NotImplemented
        if self.length != other.length:
            return False
        for mine, its in zip(self._iter_back(), other._iter_back(), strict=True):
            if mine is its:
                return True
            if mine.event != its.event:
                return False
        return True

    def __hash__(self) -> int:
        if self._hash is None:  # kept for each entry, and computed without recursion: histories are thousands long
            unknown = []
            for entry in self._iter_back():
                if entry._hash is not None:
                    break
                unknown.append(entry)
            for entry in reversed(unknown):
                entry._hash = hash((None if entry.before is None else entry.before._hash, entry.event))
        assert self._hash is not None
        return self._hash


def write_snapshot(version: str, fingerprint: str, events: Sequence[Mapping[str, JSON]]) -> dict[str, JSON]:
    """Return a snapshot as plain data for JSON: the version of its format, the fingerprint of the rules, the events."""
    return {"format": version, "fingerprint": fingerprint, "events": events}


def read_snapshot(
    snapshot: Mapping[str, JSON] | str, version: str, fingerprint: str, event: Shape, fingerprinted: str = "rules"
) -> Sequence[Mapping[str, JSON]]:
    """Return the events of a snapshot that :func:`write_snapshot` made, as data or as JSON text.

    Args:
        snapshot: the snapshot.
        version: the version of its format.
        fingerprint: the fingerprint that it must have.
        event: the shape of an event.
        fingerprinted: what the fingerprint covers, for the message about another one.

    Raises:
        SnapshotError: the snapshot is damaged, or has another fingerprint.
    """
    try:
        data: Any = json.loads(snapshot) if isinstance(snapshot, str) else snapshot
    except ValueError as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from error
    known: dict[str, Shape] = {"format": AlternativeShape(texts=(version,)), "fingerprint": str, "events": Items(event)}
    for found in problems(data, Keys(known, needed=tuple(known))):
        raise SnapshotError(f"the snapshot is damaged: {found.problem}")
    if data["fingerprint"] != fingerprint:
        raise SnapshotError(f"the snapshot was taken under other {fingerprinted}")
    events: Sequence[Mapping[str, JSON]] = data["events"]
    return events
