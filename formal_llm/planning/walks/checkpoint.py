"""The checkpoint of a walk: its journal in a few numbers, as JSON data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from formal_llm.authored.files import parse_json
from formal_llm.errors import SnapshotError
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.plans.vocabulary import fingerprint_of
from formal_llm.planning.walks.budget import Budget
from formal_llm.planning.walks.journal import ChoiceKey, JournalEntry
from formal_llm.planning.walks.trail import Stage, Trail

_FORMAT = "formal_llm.walk/1"


@dataclass(frozen=True, slots=True)
class JournalRow:
    """A choice of the journal.

    Attributes:
        chosen: what was chosen; None where it is asked now.
        excluded: what is ruled out.
        asked: whether it was asked.
        probability: of what was chosen, where the answer told; left out of the JSON data where it did not.
    """

    chosen: ChoiceKey | None
    excluded: tuple[ChoiceKey, ...]
    asked: bool
    probability: float | None = None

    @classmethod
    def of(cls, entry: JournalEntry) -> JournalRow:
        """The row of a journal's entry."""
        chosen = None if entry.chosen is None else entry.key
        return cls(chosen, tuple(entry.excluded), entry.asked, entry.probability)

    def to_data(self) -> dict[str, JSON]:
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
    rows: tuple[JournalRow, ...]
    dead: bool
    usage: Usage

    @classmethod
    def of(cls, trail: Trail, task: str, usage: Usage) -> Checkpoint:
        """The checkpoint of a walk, from its trail, the description of its task and what it took."""
        table, asked = trail.table, [trail.state] if isinstance(trail.state, JournalEntry) else []
        rows = tuple(JournalRow.of(entry) for entry in (*trail.journal, *asked))
        return cls(fingerprint_of(table.automaton), table.look, task, rows, trail.state is Stage.DEAD, usage)

    def to_data(self) -> dict[str, JSON]:
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
    def from_data(cls, data: Mapping[str, JSON] | str) -> Checkpoint:
        """The checkpoint in JSON data or JSON text; SnapshotError where it is damaged."""
        try:
            read: Any = parse_json(data) if isinstance(data, str) else data
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
        except (KeyError, TypeError, AttributeError, ValueError) as error:
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

    def replay(self, trail: Trail, budget: Budget, partial: Callable[[], Plan]) -> None:
        """Make the choices of the journal again, on a trail that stands at its beginning; nobody is told of them.

        Raises:
            SnapshotError: the journal has a choice that the automaton does not offer.
        """
        on_event, trail.on_event = trail.on_event, None
        for row in self.rows:
            entry = trail.state
            if not isinstance(entry, JournalEntry):
                raise SnapshotError("the snapshot does not fit: it has a choice where the automaton has none")
            entry.excluded = frozenset(row.excluded)
            if row.chosen is None:
                continue
            left = trail.left(budget)
            chosen = entry.find(row.chosen, trail.table, left)
            if chosen is None:
                raise SnapshotError("the snapshot does not fit: it takes a choice that is not offered")
            entry.asked, entry.probability = row.asked, row.probability
            if trail.asker.wording.conversation:
                entry.question = trail.asker.ask(entry, trail.moves, trail.journal, left)
            trail.take(entry, chosen)
            trail.settle(budget, partial)
        if self.dead:
            trail.state = Stage.DEAD
        trail.meter.set(self.usage)
        trail.on_event = on_event


def _rows(rows: Iterable[dict[str, Any]]) -> Iterable[JournalRow]:
    for row in rows:
        probability = row.get("probability")
        if probability is not None and not 0 <= probability <= 1:
            raise SnapshotError(f"the snapshot is damaged: a probability of {probability}")
        chosen = None if row["chosen"] is None else _branch(row["chosen"])
        yield JournalRow(chosen, tuple(map(_branch, row["excluded"])), bool(row["asked"]), probability)


def _plain(branch: ChoiceKey | None) -> int | list[str] | None:
    return sorted(branch) if isinstance(branch, frozenset) else branch


def _branch(plain: int | list[str]) -> ChoiceKey:
    return frozenset(plain) if isinstance(plain, list) else plain
