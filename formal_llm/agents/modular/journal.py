"""The journal of a run: all that came from outside, in order, as JSON lines.

With it a run continues where it broke off.
What a run does between two answers depends on them alone. So a run that is begun again with its journal takes the
answers of models and tools from there, comes to the same place, and continues. A line is written when an answer is
there: what was under way when the program died is done again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from formal_llm.authored.tables import AlternativeShape, Keys, NamedEntries, problems
from formal_llm.errors import RecordError
from formal_llm.planning.drivers.json_lines import open_exclusively, write_line
from formal_llm.planning.json_data import JSON

_FORMAT = "formal-llm modular run 1"
_VAIN = "spent in vain"
_BUSY = "another run is writing to this journal; wait for it, or name another file"
_HEAD = Keys(
    {"format": AlternativeShape(texts=(_FORMAT,)), "run": str, "request": str}, needed=("format", "run", "request")
)
_ROW = Keys({"what": str, "asked": str, "gave": NamedEntries(object)}, needed=("what", "asked", "gave"))

#: JSON data as it was read or will be written.
Given = Mapping[str, Any]


class RunJournal:
    """The answers that a run was given.

    Args:
        path: the file; None for a run that is not written down.
        run: what the run is begun with, as JSON data: another run's file is refused.
        request: the request, for those who read the file.

    Raises:
        RecordError: the file is another run's, is damaged, cannot be written, or somebody is writing to it.
    """

    def __init__(self, path: str | os.PathLike[str] | None, run: JSON, request: str) -> None:
        self.path = None if path is None else Path(path)
        self._left: list[Given] = []
        #: What was spent in vain before: on requests that came to an error.
        self.vain: list[Given] = []
        self._next = 0
        self._file = None
        if self.path is None:
            return
        self._file = open_exclusively(self.path, what="journal", busy=_BUSY)
        try:
            key = _hash_data(run)
            rows = self._read_rows()
            if not rows:
                self._write_row({"format": _FORMAT, "run": key, "request": request})
            elif rows[0]["run"] != key:
                raise RecordError(
                    f"this is the journal of another run (of the request {rows[0]['request'][:200]!r}); "
                    "request, memory, tools, rules and the budget of steps must be the same, or name another file",
                    file=str(self.path),
                )
            self._left = [row for row in rows[1:] if row["what"] != _VAIN]
            self.vain = [row["gave"] for row in rows[1:] if row["what"] == _VAIN]
        except BaseException:
            self.close()
            raise

    def _read_rows(self) -> list[Given]:
        assert self._file is not None
        self._file.seek(0)
        text = self._file.readall() or b""
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):  # the line that was being written when the program died
            self._file.truncate(len(whole))
        rows: list[Given] = []
        for number, line in enumerate(whole.split(b"\n")[:-1], 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise RecordError(
                    f"this line of the journal is no JSON: {error}", file=str(self.path), line=number
                ) from None
            for found in problems(row, _ROW if rows else _HEAD):
                raise RecordError(f"this is no line of a journal: {found.problem}", file=str(self.path), line=number)
            rows.append(row)
        return rows

    def _write_row(self, row: Mapping[str, JSON]) -> None:
        if self._file is not None and self.path is not None:
            write_line(self._file, self.path, row, "the answer")

    @property
    def is_replaying(self) -> bool:
        """Whether the next answer is one that was written down."""
        return self._next < len(self._left)

    def replay_answer(self, what: str, asked: JSON) -> Given | None:
        """The next answer that is written down; None where all of them were taken.

        Args:
            what: who is asked.
            asked: what is asked, as JSON data: it must be the same as when it was written down.

        Raises:
            RecordError: something else was asked at this place.
        """
        if not self.is_replaying:
            return None
        row = self._left[self._next]
        self._next += 1
        if (row["what"], row["asked"]) != (what, _hash_data(asked)):
            raise RecordError(
                f"here {row['what']} was asked something else than {what} is now; "
                "the journal was changed, or the agent was: name another file",
                file=str(self.path),
                line=self._next + 1,
            )
        gave: Given = row["gave"]
        return gave

    def record_answer(self, what: str, asked: JSON, gave: Given) -> Given:
        """Write an answer down.

        Raises:
            RecordError: it cannot be written.
        """
        self._write_row({"what": what, "asked": _hash_data(asked), "gave": gave})
        return gave

    def record_waste(self, spent: Mapping[str, JSON]) -> None:
        """Write down what was spent on a request that came to an error, so that it counts when the run continues."""
        self._write_row({"what": _VAIN, "asked": "", "gave": spent})

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _hash_data(data: JSON) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
