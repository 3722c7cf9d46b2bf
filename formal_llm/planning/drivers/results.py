"""The results of many plans in a file: one line of JSON for each task, written when it is finished.

A run that was stopped, by whatever means, goes on with the tasks that are not in its file yet. Every task stands in it
once. What may succeed at another time (the provider could not be reached, the money was used up) is not written; what
will not (there is no valid plan, no legal answer came) is, as a failure.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from typing import Any, Self

from formal_llm.authored.files import parse_json
from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan, ResultsError
from formal_llm.planning.drivers.batch import Outcome
from formal_llm.planning.drivers.json_lines import open_alone, write_line, write_whole
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.plans.vocabulary import fingerprint_of

_FORMAT = "formal_llm.result/1"


def run_of(planner: Planner) -> dict[str, str]:
    """What the plans of a planner depend on besides the task: which LLM answers, and a hash of all of it."""
    llm = planner.llm
    identity = getattr(llm, "identity", None) or {"llm": getattr(llm, "name", "") or type(llm).__name__}
    wording = asdict(planner.wording)
    search = [planner.search, planner.seed, planner.length_penalty, planner.lookahead]
    rules = [fingerprint_of(planner.table().automaton), planner.limits.lines()]
    said = json.dumps([identity, wording, search, rules], sort_keys=True, default=str)
    return {"llm": identity["llm"], "run": hashlib.sha256(said.encode()).hexdigest()[:16]}


def record(outcome: Outcome) -> dict[str, JSON] | None:
    """The line of an outcome, as JSON data; None for a failure that may pass."""
    data: dict[str, JSON] = {"index": outcome.index, "task": outcome.task.description}
    if outcome.task.goal is not None:
        data["goal"] = outcome.task.goal
    if outcome.plan is not None:
        data |= {"status": "planned", **_told(outcome.plan)}
    elif isinstance(outcome.error, (NoValidPlan, InvalidAnswer, BudgetExceeded)):
        if isinstance(outcome.error, BudgetExceeded) and outcome.error.shared:
            return None
        data |= {"status": "failed", "error": type(outcome.error).__name__, "message": str(outcome.error)}
        if isinstance(outcome.error, InvalidAnswer):
            data["transcript"] = [list(pair) for pair in outcome.error.transcript]
        if isinstance(outcome.error, BudgetExceeded):
            data["partial"] = _told(outcome.error.plan)
    else:
        return None
    return {**data, "usage": asdict(outcome.usage)}


def _told(plan: Plan) -> dict[str, JSON]:
    told: dict[str, JSON] = {"word": list(plan.word), "steps": [str(step) for step in plan.steps]}
    if plan.call is not None:
        told["call"] = str(plan.call)
    if plan.probability is not None:
        told["probability"] = plan.probability
    return told


class Results:
    """A results file that is being written; nobody else can write it in the meantime.

    Args:
        path: the file; made if it is not there. A last line that was only half written is taken away, its task is
            planned again.
        run: what the plans depend on (:func:`run_of`).

    Attributes:
        done: the tasks that are in the file: for each index its line.

    Raises:
        ResultsError: another run is writing the file; it belongs to another run, or is no results file. The file is
            left as it is.
    """

    def __init__(self, path: str | Path, run: Mapping[str, str]) -> None:
        self.path = Path(path)
        self.done: dict[int, dict[str, Any]] = {}
        self._run = dict(run)
        self._file = self._open()
        try:
            self._load()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let others have it."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    @property
    def failed(self) -> list[int]:
        """The tasks in the file that have no plan."""
        return [index for index, line in self.done.items() if line["status"] == "failed"]

    @property
    def usage(self) -> Usage:
        """What all plans in the file took together."""
        return sum((Usage(**line["usage"]) for line in self.done.values()), Usage())

    def add(self, outcome: Outcome) -> bool:
        """Write the line of an outcome; False where it is a failure that may pass, which is not written."""
        data = record(outcome)
        if data is None:
            return False
        line = {"format": _FORMAT, **self._run, **data}
        write_line(self._file, self.path, line, f"the line of task {outcome.index}")
        self.done[outcome.index] = line
        return True

    def forget_failed(self) -> int:
        """Take the failures out of the file, so that they are planned again; how many there were."""
        failed = self.failed
        if failed:
            kept = [line for index, line in self.done.items() if index not in set(failed)]
            write_whole(self.path, (json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in kept))
            self._file.close()
            self._file = self._open()
            self.done = {line["index"]: line for line in kept}
        return len(failed)

    # -- opening ------------------------------------------------------------------------------------------------

    def _open(self) -> FileIO:
        return open_alone(self.path, busy="another run is writing this file; wait for it, or give another file")

    def _load(self) -> None:
        self._file.seek(0)
        text = self._file.read()
        whole, newline, rest = text.rpartition(b"\n")
        if rest and self._parsed(rest) is None:
            if not newline and not rest.startswith(b'{"format"'[: len(rest)]):
                raise ResultsError(f"{self.path}: this is no results file; give another name")
            text = whole + newline
        for number, line in enumerate(text.splitlines(), 1):
            self._take(number, line)
        if rest:
            # Only now that all lines are known to be a run's results is the file touched.
            self._file.truncate(len(text))
            if not text.endswith(b"\n") and text:
                self._file.write(b"\n")

    def _take(self, number: int, line: bytes) -> None:
        data = self._parsed(line)
        if data is None:
            raise ResultsError(f"{self.path}:{number}: this is not a line of a results file; mend or remove it")
        if data.get("run") != self._run["run"]:
            other = data.get("llm")
            same = other == self._run["llm"]
            why = "rules, search or wording are not the same" if same else f"there the llm is {other}"
            raise ResultsError(
                f"{self.path}:{number}: the file belongs to another run ({why}); give another file, "
                f"or the settings of that run"
            )
        if data["index"] in self.done:
            raise ResultsError(
                f"{self.path}:{number}: task {data['index']} stands there twice; remove one of the lines"
            )
        self.done[data["index"]] = data

    @staticmethod
    def _parsed(line: bytes) -> dict[str, Any] | None:
        try:
            data = parse_json(line)
        except ValueError:
            return None
        known = isinstance(data, dict) and data.get("format") == _FORMAT
        return data if known and isinstance(data.get("index"), int) and "usage" in data else None
