"""The records of a benchmark of trips: one line per case, so that it can be interrupted and resumed at any time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict

from formal_llm.authored.files import parse_json
from formal_llm.errors import RecordError
from formal_llm.packs.travel.benchmark.cases import TravelCase
from formal_llm.planning.drivers.json_lines import open_exclusively, write_atomically, write_line

#: The information available to the planner.
Mode: TypeAlias = Literal["sole", "two-stage"]
_BUSY = "another benchmark is writing here; wait for it, or give another folder"


class TravelRecord(TypedDict):
    """The record of a case: its planner, the result and the resources used.

    ``case``: the fingerprint of the case; ``read``: whether a model read the query correctly, None if its meaning is
    unknown or it came by its fields; ``error``: why there is no plan.
    ``seconds``: the CPU time, without that of a remote model.
    """

    llm: str
    mode: Mode
    search: str
    index: int
    case: str
    read: bool | None
    plan: list[dict[str, object]]
    error: str
    questions: int
    requests: int
    characters: int
    steps: int
    seconds: float


class TravelRecords(AbstractContextManager["TravelRecords"]):
    """The records of a benchmark in a folder: ``setting.json`` and ``plans.jsonl``, locked for exclusive writing.

    Args:
        folder: an existing folder.
        setting: everything that the plans depend on, as JSON data.

    Attributes:
        lines: the records, by LLM, mode, search and index.

    Raises:
        RecordError: the folder belongs to another setting, is in use, or a line in it cannot be read.
    """

    def __init__(self, folder: Path, setting: Mapping[str, object]) -> None:
        self._path = folder / "plans.jsonl"
        self._check_setting(
            folder / "setting.json", json.loads(json.dumps({"format": "formal_llm.travel/2", **setting}))
        )
        self._file = open_exclusively(self._path, busy=_BUSY)
        try:
            self.lines = self._read_records()
        except BaseException:
            self._file.close()
            raise

    def add_record(self, record: TravelRecord) -> None:
        """Write the record of a case."""
        write_line(self._file, self._path, record, "a line")
        self.lines[_make_key(record)] = record

    def check_cases(self, cases: Iterable[TravelCase]) -> None:
        """Raise ``RecordError`` if a record is of another case with the same number, or of other tables."""
        recorded = {record["index"]: record["case"] for record in self.lines.values()}
        for case in cases:
            if recorded.get(case.index, case.fingerprint) != case.fingerprint:
                raise RecordError(
                    f"its plan of case {case.index} is for another query or other tables; "
                    "give another folder, or the data of that one",
                    file=str(self._path),
                )

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def _read_records(self) -> dict[tuple[object, ...], TravelRecord]:
        self._file.seek(0)
        whole, newline, rest = self._file.read().rpartition(b"\n")
        found: dict[tuple[object, ...], TravelRecord] = {}
        for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
            try:
                read: Any = parse_json(line)
                found[_make_key(read)] = read
            except (ValueError, KeyError, TypeError):
                raise RecordError(
                    "this is no line of a benchmark; mend or remove it", file=str(self._path), line=number
                ) from None
        if rest:  # an incomplete line of an interrupted run
            self._file.truncate(len(whole + newline))
        return found

    @staticmethod
    def _check_setting(file: Path, setting: object) -> None:
        if not file.exists():
            write_atomically(file, [(json.dumps(setting, indent=1) + "\n").encode()])
        elif parse_json(file.read_bytes()) != setting:
            raise RecordError("the folder holds a benchmark with another setting; give another folder", file=str(file))


def _make_key(record: Mapping[str, Any]) -> tuple[object, ...]:
    return record["llm"], record["mode"], record["search"], record["index"]
