"""The checkpoint of a walk: its journal in a few numbers, as JSON data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from types import NoneType
from typing import Any

from formal_llm.authored.files import parse_json
from formal_llm.authored.tables import AlternativeShape, Items, Keys, Shape, problems
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.errors import NoValidPlan, RecordError
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage, Verdicts
from formal_llm.planning.plans.vocabulary import fingerprint_of
from formal_llm.planning.walks.budget import Budget
from formal_llm.planning.walks.journal import ChoiceKey, JournalEntry
from formal_llm.planning.walks.trail import Stage, Trail, WalkDraft

_FORMAT = "formal_llm.walk/1"


@dataclass(frozen=True, slots=True)
class JournalRow:
    """A choice of the journal.

    Attributes:
        chosen: what was chosen; None where it is asked now.
        excluded: what is ruled out.
        asked: whether it was asked.
        probability: of what was chosen, where the answer gave it; otherwise left out of the JSON data.
        at: how many moves had been made before; None where that is clear, and in snapshots of older versions.
        drafted: whether it was taken from a draft; left out of the JSON data where it was not.
        note: the note about a draft in the question; left out of the JSON data where it is empty.
        page: whether what was chosen is another page of the same choice; left out of the JSON data where it is not.
    """

    chosen: ChoiceKey | None
    excluded: tuple[ChoiceKey, ...]
    asked: bool
    probability: float | None = None
    at: int | None = None
    drafted: bool = False
    note: str = ""
    page: bool = False

    @classmethod
    def from_entry(cls, entry: JournalEntry, at: int | None = None) -> JournalRow:
        """Make the row of a journal's entry; ``at`` is the number of moves before it."""
        chosen = None if entry.chosen is None else entry.key
        page = entry.chosen is not None and entry.chosen.menu is not None
        return cls(chosen, tuple(entry.excluded), entry.asked, entry.probability, at, entry.drafted, entry.note, page)

    @classmethod
    def from_data(cls, row: Mapping[str, Any]) -> JournalRow:
        """The row in JSON data that has the shape of one."""
        chosen = None if row["chosen"] is None else _decode_key(row["chosen"])
        known = (row.get("probability"), row.get("at"), row.get("drafted", False), row.get("note", ""), "page" in row)
        return cls(chosen, tuple(map(_decode_key, row["excluded"])), row["asked"], *known)

    def to_data(self) -> dict[str, JSON]:
        """The row as JSON data."""
        excluded = sorted(map(_encode_key, self.excluded), key=repr)
        optional = {"probability": self.probability, "at": self.at}
        known: dict[str, JSON] = {name: value for name, value in optional.items() if value is not None}
        known |= {"drafted": True} if self.drafted else {}
        known |= {"note": self.note} if self.note else {}
        known |= {"page": True} if self.page else {}
        return {"chosen": _encode_key(self.chosen), "excluded": excluded, "asked": self.asked, **known}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a walk is restored from.

    Attributes:
        fingerprint: the automaton's, limits included.
        look: whether the walk looks ahead; without it other choices are asked.
        task: the description of the task.
        rows: the journal.
        dead: whether the walk is in a dead end that it has not left yet.
        usage: what the walk took.
        silent: choices that were taken since a search had ruled out the others (see :class:`Trail`). These, and the
            number of moves before each choice, are noted where a search decided anything: with less time, or more, it
            may decide otherwise.
        draft: the draft that the walk goes along, and how many of its steps are done with; None for none.
    """

    fingerprint: str
    look: bool
    task: str
    rows: tuple[JournalRow, ...]
    dead: bool
    usage: Usage
    silent: tuple[tuple[int, ChoiceKey], ...] = ()
    draft: WalkDraft | None = None

    @classmethod
    def from_trail(cls, trail: Trail, task: str, usage: Usage, draft: WalkDraft | None = None) -> Checkpoint:
        """The checkpoint of a walk, from its trail, the description of its task, what it took, and its draft."""
        table, asked = trail.table, [trail.state] if isinstance(trail.state, JournalEntry) else []
        entries = (*trail.journal, *asked)
        sure = not trail.silent and all(entry.fork.is_certain for entry in entries)
        rows = tuple(JournalRow.from_entry(entry, None if sure else entry.moves) for entry in entries)
        dead, silent = trail.state is Stage.DEAD, tuple(trail.silent)
        return cls(fingerprint_of(table.automaton), table.look, task, rows, dead, usage, silent, draft)

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
            **({"silent": [[moves, _encode_key(key)] for moves, key in self.silent]} if self.silent else {}),
            **({"draft": {"text": self.draft.text, "at": self.draft.at}} if self.draft is not None else {}),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, JSON] | str) -> Checkpoint:
        """The checkpoint in JSON data or JSON text; RecordError, with the place, where it is damaged."""
        try:
            read: Any = parse_json(data) if isinstance(data, str) else data
        except ValueError as error:
            raise RecordError(f"the snapshot is damaged: {error}") from error
        version = read.get("format", _FORMAT) if isinstance(read, Mapping) else _FORMAT
        if isinstance(version, str) and version != _FORMAT:
            raise RecordError(f"unknown format {version!r}; this version reads {_FORMAT}")
        for found in problems(read, _SHAPE):
            raise _make_damage_error(found.problem)
        _check_usage(read["usage"], sum(row["asked"] for row in read["journal"]))
        return cls(
            read["fingerprint"],
            read["lookahead"] == "on",
            read["task"],
            tuple(map(JournalRow.from_data, _check_rows(read["journal"]))),
            read["dead"],
            Usage(**read["usage"]),
            tuple((row[0], _decode_key(row[1])) for row in _check_pairs(read.get("silent", ()))),
            WalkDraft(read["draft"]["text"], max(0, read["draft"]["at"])) if "draft" in read else None,
        )

    def check_automaton(self, fingerprint: str, look: bool) -> None:
        """Raise unless the checkpoint belongs to the automaton of this fingerprint.

        Raises:
            RecordError: it belongs to another one, or to a walk with the other kind of lookahead.
        """
        if self.fingerprint != fingerprint:
            raise RecordError(
                f"the snapshot was taken on another automaton (fingerprint {self.fingerprint}, this one has "
                f"{fingerprint}): the rules, the limits or the goal are not the same"
            )
        if self.look != look:
            raise RecordError(f"the snapshot was taken with lookahead {'on' if self.look else 'off'}")

    def replay(self, trail: Trail, budget: Budget, partial: Callable[[], Plan]) -> None:
        """Make the choices of the journal again, on a trail at its beginning; they raise no events.

        Raises:
            RecordError: the journal has a choice that the automaton does not offer, or rules out so much
                of a question that one answer or none is left.
        """
        on_event, trail.on_event = trail.on_event, None
        trail.stops = frozenset(row.at for row in self.rows if row.at is not None)
        if trail.stops:
            trail.start_over()
            trail.advance_to_choice(budget, partial)
        probability: float | None = 1.0  # of pages that are no more, since more or less is offered there now
        for number, row in enumerate(self.rows, 1):
            self._take_silent_choices(trail, -1 if row.at is None else row.at, budget, partial)
            if row.page and not _is_offered(row.chosen, trail):
                probability = None if probability is None or row.probability is None else probability * row.probability
                continue
            if probability is None or row.probability is None:
                row, probability = replace(row, probability=None), 1.0
            else:
                row, probability = replace(row, probability=row.probability * probability), 1.0
            if not self._replay_row(number, row, trail, budget, partial):
                break
        else:
            self._take_silent_choices(trail, INFINITE, budget, partial)
        trail.stops = frozenset()
        if self.dead:
            trail.state = Stage.DEAD
        trail.meter.restore_usage(self.usage)
        trail.on_event = on_event

    def _take_silent_choices(self, trail: Trail, until: float, budget: Budget, partial: Callable[[], Plan]) -> None:
        """Where there is a choice now that was none then, since more had been decided: take what was taken then."""
        silent = dict(self.silent)
        while isinstance(entry := trail.state, JournalEntry) and entry.moves < until:
            key = silent.get(entry.moves)
            choice = None if key is None else entry.find_choice(key, trail.table, trail.count_moves_left(budget))
            if key is None or choice is None:
                return
            trail.take_silently(choice, key)
            trail.advance_to_choice(budget, partial)

    def _replay_row(
        self, number: int, row: JournalRow, trail: Trail, budget: Budget, partial: Callable[[], Plan]
    ) -> bool:
        """Make the choice of a row; return False if it has none, or one that is known by now to lead nowhere."""
        entry = trail.state
        if not isinstance(entry, JournalEntry) or (row.at is not None and row.at != entry.moves):
            raise _make_misfit_error(number, "it has a choice where the automaton has none")
        left = trail.count_moves_left(budget)
        entry.excluded, entry.note = frozenset(row.excluded), row.note
        strange = next((key for key in row.excluded if not _is_possible_key(key, entry)), None)
        if strange is not None:
            raise _make_misfit_error(number, f"it rules out {_encode_key(strange)}, which is no choice there")
        chosen = None if row.chosen is None else entry.find_choice(row.chosen, trail.table, left)
        gone = (
            row.chosen is not None
            and chosen is None
            and not entry.fork.is_certain
            and _is_possible_key(row.chosen, entry)
        )
        if row.chosen is None or gone:
            if row.chosen is not None:
                entry.excluded |= {row.chosen}
            dead, only = entry.is_dead(trail.table, left), entry.find_only_choice(trail.table, left)
            if (dead or only is not None) and entry.fork.is_certain:
                raise _make_misfit_error(number, "what it rules out leaves no two answers to the question there")
            trail.stops = frozenset()
            if only is not None:
                trail.take_choice(entry, only)
            elif dead:
                trail.state = Stage.DEAD
            trail.advance_to_choice(budget, partial)
            return False
        if chosen is None or row.chosen in entry.excluded:
            raise _make_misfit_error(number, "it takes a choice that is not offered")
        entry.asked, entry.probability, entry.drafted = row.asked, row.probability, row.drafted
        if trail.asker.wording.conversation:
            entry.question = trail.asker.build_question(entry, trail.moves, trail.journal, left)
        trail.take_choice(entry, chosen)
        trail.opening = False
        try:
            trail.advance_to_choice(budget, partial)
        except NoValidPlan:  # a walk that had come to this would not have kept the choice
            raise _make_misfit_error(number, "from there on every branch is ruled out") from None
        return True


_CHOICE = (int, Items(str))
_VERDICTS = Keys({field.name: int for field in fields(Verdicts)})
_AMOUNTS: dict[str, Shape] = {
    "int": int, "float": float, "float | None": AlternativeShape((float, NoneType)), "Verdicts": _VERDICTS,
}  # fmt: skip
_ROW: dict[str, Shape] = {
    "chosen": AlternativeShape((*_CHOICE, NoneType)),
    "excluded": Items(AlternativeShape(_CHOICE)),
    "asked": bool,
    "probability": AlternativeShape((float, NoneType)),
    "at": AlternativeShape((int, NoneType)),
    "drafted": bool,
    "note": str,
    "page": bool,
}
_KEYS: dict[str, Shape] = {
    "format": AlternativeShape(texts=(_FORMAT,)),
    "fingerprint": str,
    "lookahead": AlternativeShape(texts=("on", "off")),
    "task": str,
    "journal": Items(Keys(_ROW, needed=("chosen", "excluded", "asked"))),
    "dead": bool,
    "usage": Keys({field.name: _AMOUNTS[str(field.type)] for field in fields(Usage)}),
}
#: What a snapshot looks like.
_MORE: dict[str, Shape] = {
    "silent": Items(Items(AlternativeShape(_CHOICE))), "draft": Keys({"text": str, "at": int}, needed=("text", "at")),
}  # fmt: skip
_SHAPE = Keys({**_KEYS, **_MORE}, needed=tuple(_KEYS))
#: No walk uses more of anything; also what a clock can be set to.
_MOST = 2**53


def _check_usage(usage: Mapping[str, Any], answered: int) -> None:
    amounts = {name: amount for name, amount in usage.items() if name != "verdicts"} | usage.get("verdicts", {})
    for name, amount in amounts.items():
        if amount is not None and not 0 <= amount <= _MOST:  # also false for nan
            raise _make_damage_error(f"usage, {name} is no amount: {str(amount)[:60]}")
    if (usage.get("questions") or 0) < answered:
        raise _make_damage_error(f"usage, questions is less than the {answered} answers of the journal")


def _check_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Check the values of each row before it is yielded."""
    for number, row in enumerate(rows, 1):
        probability = row.get("probability")
        if probability is not None and not 0 <= probability <= 1:
            raise _make_damage_error(f"journal {number}, probability is from 0 to 1, not {str(probability)[:60]}")
        if row["chosen"] is None and (number < len(rows) or row["asked"]):
            raise _make_damage_error(f"journal {number}, chosen is null, but only the last question can be open")
        yield row


def _check_pairs(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    for number, row in enumerate(rows, 1):
        if len(row) != 2 or not isinstance(row[0], int):
            raise _make_damage_error(f"silent {number} is a number of moves and a choice")
        yield row


def _make_damage_error(problem: str) -> RecordError:
    return RecordError(f"the snapshot is damaged: {problem}")


def _make_misfit_error(number: int, problem: str) -> RecordError:
    return RecordError(f"the snapshot does not fit: journal {number}: {problem}")


def _is_possible_key(key: ChoiceKey, entry: JournalEntry) -> bool:
    """Whether a key is one of the fork of an entry."""
    fork = entry.fork
    if isinstance(key, int) or not fork.several:
        return isinstance(key, int) and not fork.several and 0 <= key < fork.total
    return bool(key) and key <= fork.scope.all_members | ({fork.scope.marker} - {""})


def _is_offered(key: ChoiceKey | None, trail: Trail) -> bool:
    entry = trail.state
    if not isinstance(entry, JournalEntry):
        return False
    if isinstance(key, frozenset):
        return entry.fork.several and entry.fork.scope.marker in key
    return any(choice.index == key for choice in entry.fork.choices)


def _encode_key(branch: ChoiceKey | None) -> int | list[str] | None:
    return sorted(branch) if isinstance(branch, frozenset) else branch


def _decode_key(plain: int | Sequence[str]) -> ChoiceKey:
    return plain if isinstance(plain, int) else frozenset(plain)
