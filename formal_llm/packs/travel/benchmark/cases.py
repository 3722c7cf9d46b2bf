"""The cases of TravelPlanner: queries with their meanings, their worlds, and annotated plans.

A folder of data::

    train.jsonl        one case per line: query, reference_information; annotated_plan and the fields if known
    database/          the published CSV files; missing flights are replaced by those of the references

Other files of cases (``validation.jsonl``, a CSV file of the data set) are passed by name. The meanings of the
training queries ship with the library (``tasks/travel/training_fields.jsonl``), by hashes of their sentences, which are
all that their file has.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from io import StringIO
from pathlib import Path

from formal_llm import authored
from formal_llm.authored.files import lines_of, parse_json, read_bytes
from formal_llm.errors import FormalLLMError, InputError
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.folder import Folder, read_folder
from formal_llm.packs.travel.plan_days import Day, read_number, read_plan
from formal_llm.packs.travel.query import TravelQuery, query_of
from formal_llm.packs.travel.reference import read_reference

#: Files of cases in a folder of data, in the order of the lookup.
FILES = ("train.jsonl", "validation.jsonl", "test.jsonl", "train.csv", "validation.csv", "test.csv")
#: The maximum size of a file of cases in bytes: 1,000 queries with their references have about 50 million.
MOST_BYTES = 400_000_000


@dataclass(frozen=True)
class TravelCase:
    """A query of the data set.

    Attributes:
        index: its number in its file, from 0.
        text: the sentence.
        query: its meaning; None if unknown.
        annotated: a plan by a human annotator; empty if there is none.
        reference: the JSON value of its reference information; None if there is none.
        shared: the tables that all cases share; None if there is no folder with them.
    """

    index: int
    text: str
    query: TravelQuery | None = None
    annotated: tuple[Day, ...] = ()
    reference: object = None
    shared: Folder | None = field(default=None, repr=False, compare=False)

    @cached_property
    def world(self) -> World:
        """The database, with the flights of the reference if it has none of its own.

        Raises:
            NotationError: the reference cannot be read.
        """
        if self.shared is None:
            return self.collected
        tables = self.shared
        flights = tables.flights if len(tables.flights) else read_reference(self.reference or {}).flights
        return World(
            flights, tables.roads, tables.accommodations, tables.restaurants, tables.attractions, tables.cities
        )

    @cached_property
    def collected(self) -> World:
        """The world of the reference alone, which the planner has in sole-planning mode.

        Raises:
            NotationError: the reference cannot be read.
        """
        return World.from_reference(self.reference or {}, self.shared.cities if self.shared is not None else None)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that a plan depends on: the sentence, the meaning, the reference and the tables."""
        meaning = None if self.query is None else self.query.to_json()
        parts = self.text, meaning, self.reference, self.shared and self.shared.fingerprint
        return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def read_cases(data: str | Path, file: str | Path | None = None) -> list[TravelCase]:
    """Read the cases in a folder of data.

    Args:
        data: the folder.
        file: the file of cases; by default the first of :data:`FILES` that exists.

    Raises:
        InputError: the folder or the file is missing, or a line is not a case; the error names the line.
        NotationError: a table of the database cannot be read; with file, line and column.
    """
    root = Path(data)
    if not root.is_dir():
        raise InputError(f"{root}: there is no such folder; give the one with train.jsonl and database")
    path = Path(file) if file is not None else next((root / name for name in FILES if (root / name).exists()), None)
    if path is None:
        raise InputError(f"{root}: it has no {', '.join(FILES[:-1])} or {FILES[-1]}; name the file of cases")
    shared = read_folder(root / "database") if (root / "database").is_dir() else None
    return [
        _read_case(number, fields, f"{path}, line {line}", shared)
        for number, (line, fields) in enumerate(_read_rows(path))
    ]  # fmt: skip


def _read_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    try:
        text = read_bytes(path, MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the file of cases cannot be read: {getattr(error, 'strerror', error)}") from None
    if path.suffix == ".csv":
        csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        yield from enumerate(csv.DictReader(StringIO(text)), 2)
        return
    for line, content in enumerate(lines_of(text), 1):
        if content.strip():
            try:
                value = parse_json(content)
            except ValueError as error:
                raise InputError(f"{path}, line {line}: this is no JSON: {error}") from None
            if not isinstance(value, dict):
                raise InputError(f"{path}, line {line}: a case is an object with 'query'")
            yield line, value


def _read_case(number: int, fields: Mapping[str, object], where: str, shared: Folder | None) -> TravelCase:
    text = fields.get("query")
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{where}: the case has no 'query'; it has {', '.join(map(str, fields))}")
    own = read_number(fields)
    index = number if own is None else own
    known = fields if fields.get("org") else _written_down().get(hash_sentence(text), {})
    try:
        query = query_of({**known, "query": text}) if known else None
        annotated = read_plan(_read_value(fields.get("annotated_plan")), f"{where}, annotated_plan")
    except FormalLLMError as error:
        raise InputError(f"{where}: {error}") from None
    return TravelCase(index, text, query, annotated, _read_value(fields.get("reference_information")), shared)


def _read_value(value: object) -> object:
    """Return a value, parsed if it is a JSON text. In CSV files an annotated plan follows its query."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value


def hash_sentence(text: str) -> str:
    """Return the hash by which the meaning of a training query is found; blanks do not count."""
    return sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def _written_down() -> Mapping[str, Mapping[str, object]]:
    """Return the fields of the training queries, by the hashes of their sentences."""
    if not _WRITTEN:
        path = authored.find("tasks", "travel") / "training_fields.jsonl"
        _WRITTEN.update((str(fields["sentence"]), fields) for _, fields in _read_rows(path))
    return _WRITTEN


_WRITTEN: dict[str, Mapping[str, object]] = {}
