"""The checkpoint of a walk: its journal in a few numbers, as JSON data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from formal_llm.errors import SnapshotError
from formal_llm.planning.plans.plan import Usage
from formal_llm.planning.walks.journal import Entry

_FORMAT = "formal_llm.walk/1"


@dataclass(frozen=True, slots=True)
class Row:
    """A choice of the journal.

    Attributes:
        chosen: what was chosen; None where it is asked now.
        excluded: what is ruled out.
        asked: whether it was asked.
        probability: of what was chosen, where the answer told; left out of the JSON data where it did not.
    """

    chosen: Any
    excluded: tuple[Any, ...]
    asked: bool
    probability: float | None = None

    @classmethod
    def of(cls, entry: Entry) -> Row:
        """The row of a journal's entry."""
        chosen = None if entry.chosen is None else entry.key
        return cls(chosen, tuple(entry.excluded), entry.asked, entry.probability)

    def to_data(self) -> dict[str, Any]:
        """The row as JSON data."""
        excluded = sorted(map(_plain, self.excluded), key=repr)
        told = {} if self.probability is None else {"probability": self.probability}
        return {"chosen": _plain(self.chosen), "excluded": excluded, "asked": self.asked, **told}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a walk is restored from.

    Attributes:
        fingerprint: the automaton's, limits included.
        look: whether the walk looks ahead; without it other choices are asked.
        task: the description of the task.
        rows: the journal.
        dead: whether the walk stands in a dead end that it has not left yet.
        usage: what the walk took.
    """

    fingerprint: str
    look: bool
    task: str
    rows: tuple[Row, ...]
    dead: bool
    usage: Usage

    def to_data(self) -> dict[str, Any]:
        """The checkpoint as JSON data."""
        return {
            "format": _FORMAT,
            "fingerprint": self.fingerprint,
            "lookahead": "on" if self.look else "off",
            "task": self.task,
            "journal": [row.to_data() for row in self.rows],
            "dead": self.dead,
            "usage": asdict(self.usage),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any] | str) -> Checkpoint:
        """The checkpoint in JSON data, or in JSON text.

        Raises:
            SnapshotError: it is damaged.
        """
        try:
            read: Mapping[str, Any] = json.loads(data) if isinstance(data, str) else data
            if read["format"] != _FORMAT:
                raise SnapshotError(f"unknown format {read['format']!r}; this version reads {_FORMAT}")
            return cls(
                str(read["fingerprint"]),
                {"on": True, "off": False}[read["lookahead"]],
                str(read["task"]),
                tuple(_rows(read["journal"])),
                bool(read["dead"]),
                Usage(**read["usage"]),
            )
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise SnapshotError(f"the snapshot is damaged: {error!r}") from error

    def check(self, fingerprint: str, look: bool) -> None:
        """Raise unless the checkpoint belongs to the automaton of this fingerprint.

        Raises:
            SnapshotError: it belongs to another one, or to a walk with the other kind of lookahead.
        """
        if self.fingerprint != fingerprint:
            raise SnapshotError(
                f"the snapshot was taken on another automaton (fingerprint {self.fingerprint}, this one has "
                f"{fingerprint}): the rules, the limits or the goal are not the same"
            )
        if self.look != look:
            raise SnapshotError(f"the snapshot was taken with lookahead {'on' if self.look else 'off'}")


def _rows(rows: Iterable[Mapping[str, Any]]) -> Iterable[Row]:
    for row in rows:
        probability = row.get("probability")
        if probability is not None and not 0 <= probability <= 1:
            raise SnapshotError(f"the snapshot is damaged: a probability of {probability}")
        yield Row(_key(row["chosen"]), tuple(map(_key, row["excluded"])), bool(row["asked"]), probability)


def _plain(key: Any) -> Any:
    return sorted(key) if isinstance(key, frozenset) else key


def _key(plain: Any) -> Any:
    return frozenset(plain) if isinstance(plain, list) else plain
