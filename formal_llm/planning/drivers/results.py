"""The results of many plans in a file: one line of JSON for each task, written when it is finished.

A run that was stopped, by whatever means, continues with the tasks that are not done in its file yet. A line records
``planned``, ``failed`` or ``stopped``. What may succeed at another time (the provider could not be reached, the money
was used up) is ``stopped``: the next run continues it. What will not (there is no valid plan, no legal answer came)
is ``failed``, and left as it is until it is planned again on purpose. Both hold the answers so far, so that the next
run begins with the question at which this one broke. Every task is in the file once, but while it is written, and
where the writer was killed, a line with ``stopped`` may be followed by another one, which counts.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from io import BufferedReader
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

from formal_llm.authored.files import parse_json
from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan, RecordError
from formal_llm.planning.drivers.batch import Outcome
from formal_llm.planning.drivers.driving import Snapshot
from formal_llm.planning.drivers.json_lines import encode_line, open_exclusively, replace_exclusively, write_line
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.plans.vocabulary import fingerprint_of
from formal_llm.planning.task import Task
from formal_llm.planning.walks.choices import ChoiceTable

#: The outcome of a task, as its line records it; 0 is a task without a line.
PLANNED, FAILED, STOPPED = 1, 2, 3
STATUS = {"planned": PLANNED, "failed": FAILED, "stopped": STOPPED}
#: More tasks than anybody has in one file.
MOST = 1 << 30


class LinePlaces:
    """The places of lines in a file, by the index of their task.

    Attributes:
        counts: how many tasks there are of each status.
        status: what became of each task, by index.
    """

    def __init__(self) -> None:
        self.status = bytearray()
        self.counts = [0] * 4
        self._places = array("q")

    def record_line(self, index: int, status: int, place: int) -> int:
        """Keep in mind where the line of a task begins, and what became of it; what had become of it before."""
        if index >= len(self._places):
            more = index + 1 - len(self._places)
            self._places.extend([-1] * more)
            self.status.extend(bytes(more))
        before = self.status[index]
        self.counts[before] -= bool(before)
        self.counts[status] += 1
        self._places[index], self.status[index] = place, status
        return before

    def __getitem__(self, index: int) -> int:
        """Where the line of a task begins."""
        return self._places[index]

    def has_status(self, index: object, status: tuple[int, ...]) -> bool:
        """Whether a task has one of these."""
        return isinstance(index, int) and 0 <= index < len(self._places) and self.status[index] in status

    def list_tasks(self, *status: int) -> Iterator[int]:
        """The tasks that have one of these, in their order."""
        return (index for index, one in enumerate(self.status) if one in status)


_FORMAT = "formal_llm.result/1"
_BUSY = "another run is writing this file; wait for it, or give another file"


def run_of(planner: Planner) -> dict[str, str]:
    """What the plans of a planner depend on besides the task: which LLM answers, and a hash of all of it.

    Labels and texts are part of it, since the questions contain them.
    """
    llm = planner.llm
    identity = llm.identity or {"llm": llm.name or type(llm).__name__}
    pages = planner.pages and planner.pages.cache_key
    search = [planner.search, planner.seed, planner.length_penalty, planner.lookahead, pages]
    rules = [fingerprint_of((table := planner.table()).automaton), planner.limits.lines(), _list_rule_texts(table)]
    rules.append(table.vocabulary.order)
    identity_text = json.dumps([identity, asdict(planner.wording), search, rules], sort_keys=True, default=str)
    return {"llm": str(identity["llm"]), "run": hashlib.sha256(identity_text.encode()).hexdigest()[:16]}


def _list_rule_texts(table: ChoiceTable) -> list[object]:
    """All texts of the rules that a question may hold."""
    words, pda = table.vocabulary, table.lookahead.pda
    names = [*words.terminals, *(words.grammar.nonterminals if words.grammar is not None else ())]
    moves = pda.transitions if pda is not None else ()
    texts = [(move.text, move.question, move.decision) for move in moves if move.text or move.question]
    return [[(name, words.label(name), words.describe_terminal(name)) for name in names], texts]


def _describe_task(task: Task) -> dict[str, JSON]:
    """What a task asks for, as JSON data."""
    asked: dict[str, JSON] = {"task": task.description}
    if task.goal is not None:
        asked["goal"] = task.goal
    if task.limits:
        limits = task.limits
        sums: list[JSON] = [line for bound in limits.sums for line in bound.lines()]
        times: dict[str, JSON] = {"times": limits.times.lines()} if limits.times else {}
        rules: dict[str, JSON] = {"rules": [str(rule) for rule in limits.rules]} if limits.rules else {}
        asked["limits"] = {
            "at_most": {**limits.at_most}, "at_least": {**limits.at_least}, "default": limits.default, "sums": sums,
            **times, **rules,
        }  # fmt: skip
    return asked


def record(outcome: Outcome) -> dict[str, JSON] | None:
    """The line of an outcome, as JSON data; None for a failure that may pass before anything was asked."""
    data: dict[str, JSON] = {"index": outcome.index, **_describe_task(outcome.task)}
    if outcome.plan is not None:
        data |= {"status": "planned", **_describe_plan(outcome.plan)}
    else:
        error = outcome.error
        lasting = isinstance(error, (NoValidPlan, InvalidAnswer, BudgetExceeded)) and not getattr(
            error, "shared", False
        )
        if not lasting and not (outcome.usage.questions or outcome.usage.requests):
            return None
        data |= {"status": "failed" if lasting else "stopped", "error": type(error).__name__, "message": str(error)}
        if isinstance(error, InvalidAnswer):
            data["transcript"] = [list(pair) for pair in error.transcript]
        if isinstance(error, BudgetExceeded):
            data["partial"] = _describe_plan(error.plan)
        if outcome.walk is not None and not isinstance(error, NoValidPlan):
            data["walk"] = {**outcome.walk.snapshot(), "usage": asdict(outcome.usage)}
    return {**data, "usage": asdict(outcome.usage)}


def _describe_plan(plan: Plan) -> dict[str, JSON]:
    row: dict[str, JSON] = {"word": list(plan.word), "steps": [str(step) for step in plan.steps]}
    if plan.call is not None:
        row["call"] = str(plan.call)
    if plan.probability is not None:
        row["probability"] = plan.probability
    return row


#: What makes the line of an outcome.
Record = Callable[[Any], Mapping[str, JSON] | None]
#: What is read of a file at once to find the end of a line.
_PART = 4_096


class _LinesByTask(Mapping[int, dict[str, Any]]):
    """The lines of some tasks in a results file, by index; read from the file when they are looked at."""

    def __init__(self, results: Results, *status: int) -> None:
        self._results = results
        self._status = status

    def __getitem__(self, index: int) -> dict[str, Any]:
        if index not in self:
            raise KeyError(index)
        return self._results.line(index)

    def __contains__(self, index: object) -> bool:
        return self._results.places.has_status(index, self._status)

    def __iter__(self) -> Iterator[int]:
        return self._results.places.list_tasks(*self._status)

    def __len__(self) -> int:
        return sum(self._results.places.counts[status] for status in self._status)

    def __repr__(self) -> str:
        return repr(dict(self))


class Results:
    """A results file that is being written; no other process can write it in the meantime.

    Of each task a few bytes are held: where its line begins, and what became of it.

    Args:
        path: the file; made if it is not there. A last line that was only half written is taken away, its task is
            planned again.
        run: what the plans depend on (:func:`run_of`).
        record: what makes the line of an outcome, where these are not plans.

    Attributes:
        done: the tasks in the file that have a plan or have failed: for each index its line.
        stopped: those that were begun and are not done, likewise.
        usage_of_done: what the tasks that are done took together.
        places: where the lines of tasks begin.

    Raises:
        RecordError: another run is writing the file; it belongs to another run, or is no results file. The file is
            left as it is.
    """

    def __init__(self, path: str | Path, run: Mapping[str, str], record: Record = record) -> None:
        self._record = record
        self.path = Path(path)
        self.done: Mapping[int, dict[str, Any]] = _LinesByTask(self, PLANNED, FAILED)
        self.stopped: Mapping[int, dict[str, Any]] = _LinesByTask(self, STOPPED)
        self._run, self._outdated = dict(run), False
        self._file = open_exclusively(self.path, busy=_BUSY)
        try:
            self._load_file()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let others have it; now every task is in it once."""
        if not self._file.closed:
            if self._outdated:
                self._rewrite_file()
            os.fsync(self._file.fileno())
            self._file.close()

    @property
    def failed(self) -> list[int]:
        """The tasks in the file that have no plan."""
        return list(self.places.list_tasks(FAILED))

    @property
    def usage(self) -> Usage:
        """What all plans in the file took together, finished or not."""
        return sum((Usage(**line["usage"]) for line in self.stopped.values()), self.usage_of_done)

    @property
    def begun(self) -> dict[int, Snapshot]:
        """The snapshots of the walks to continue, for :meth:`Planner.plan_all`."""
        return {index: line["walk"] for index, line in self.stopped.items() if "walk" in line}

    def check_tasks(self, tasks: Iterable[Task]) -> None:
        """Raise unless the tasks are those of the file, or begin with them.

        Raises:
            RecordError: a task in the file is another one now, or has another goal or other limits.
        """
        known = zip_longest(map(_describe_task, tasks), self.places.status, fillvalue=None)
        for index, (now, status) in enumerate(known):
            if not status:
                continue
            line = self.line(index)
            changed = next((key for key in ("task", "goal", "limits") if (now or {}).get(key) != line.get(key)), None)
            if changed is not None:
                of = {"task": "", "goal": " with another goal", "limits": " with other limits"}[changed]
                raise RecordError(
                    f"{self.path} has another task {index}{of} than the tasks have now ({line['task']!r}); "
                    "tasks may be added at the end; for others give another file"
                )

    def add(self, outcome: Any) -> bool:
        """Write the line of an outcome; False where the task is not done, as another time may bring a plan."""
        data = self._record(outcome)
        if data is None:
            return False
        line: dict[str, Any] = {"format": _FORMAT, **self._run, **data}
        index, done = outcome.index, data["status"] != "stopped"
        before = self.stopped.get(index)
        if done or before is None or any(before["usage"][of] != line["usage"][of] for of in ("questions", "requests")):
            place = self._file.seek(0, os.SEEK_END)
            write_line(self._file, self.path, line, f"the line of task {index}")
            self._record_line(line, place)
        return done

    def forget_failed(self) -> int:
        """Turn the failures in the file into tasks that are stopped, to be gone on with; how many there were.

        Those without an answer, which were not begun, are taken out.

        Raises:
            RecordError: the file was replaced, moved or deleted meanwhile; a file that is there now is kept.
        """
        failed = self.places.counts[FAILED]
        if failed:
            self._rewrite_file(forget=True)
        return failed

    def _rewrite_file(self, *, forget: bool = False) -> None:
        """Put a file in the place of this one that has one line for each task; what failed is stopped, or left out."""

        def select_lines() -> Iterator[bytes]:
            for place, line in self._read_lines():
                data = self._parse_line(line)
                assert data is not None
                index = data["index"]
                if self.places[index] != place:
                    continue
                if not forget or self.places.status[index] != FAILED:
                    yield line
                elif "walk" in data:
                    yield encode_line({**data, "status": "stopped"})

        self._file = replace_exclusively(self._file, self.path, select_lines(), busy=_BUSY)
        self._load_file()

    # -- opening ------------------------------------------------------------------------------------------------

    def line(self, index: int) -> dict[str, Any]:
        """The line of a task, as JSON data."""
        self._file.seek(self.places[index])
        parts = [self._file.read(_PART)]
        while parts[-1] and b"\n" not in parts[-1]:
            parts.append(self._file.read(16 * _PART))
        data = self._parse_line(b"".join(parts).partition(b"\n")[0])
        assert data is not None
        return data

    def _read_lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines of the file, each with the place where it begins."""
        place = self._file.seek(0)
        reader = BufferedReader(self._file)
        try:
            for line in reader:
                yield place, line
                place += len(line)
        finally:
            reader.detach()

    def _load_file(self) -> None:
        self.places = LinePlaces()
        self.usage_of_done, self._outdated = Usage(), False
        for number, (place, line) in enumerate(self._read_lines(), 1):
            data = self._parse_line(line)
            if data is None and not line.endswith(b"\n"):
                if number == 1 and not line.startswith(b'{"format"'[: len(line)]):
                    raise RecordError("this is no results file; give another name", file=str(self.path))
                break
            self._load_line(number, data, place)
        else:
            place = self._file.seek(0, os.SEEK_END)
            self._file.seek(max(0, place - 1))
            line = self._file.read(1)
        # Only now that all lines are known to be a run's results is the file touched.
        if line and not line.endswith(b"\n"):
            self._mend_last_line(place)

    def _mend_last_line(self, place: int) -> None:
        """End the last line, or take away what was only half written from a place on."""
        if place < self._file.seek(0, os.SEEK_END):
            self._file.truncate(place)
        else:
            self._file.write(b"\n")

    def _load_line(self, number: int, data: dict[str, Any] | None, place: int) -> None:
        if data is None:
            raise RecordError(
                "this is not a line of a results file; mend or remove it", file=str(self.path), line=number
            )
        if data.get("run") != self._run["run"]:
            other = data.get("llm")
            same = other == self._run["llm"]
            why = "rules, their texts, search or wording are not the same" if same else f"there the llm is {other}"
            raise RecordError(
                f"the file belongs to another run ({why}); give another file, or the settings of that run",
                file=str(self.path),
                line=number,
            )
        if data["index"] in self.done:
            raise RecordError(
                f"task {data['index']} stands there twice; remove one line", file=str(self.path), line=number
            )
        self._record_line(data, place)

    def _record_line(self, line: Mapping[str, Any], place: int) -> None:
        """Keep in mind where the line of a task begins, and what became of it."""
        before = self.places.record_line(line["index"], STATUS[line["status"]], place)
        self._outdated = self._outdated or before == STOPPED
        if line["status"] != "stopped":
            self.usage_of_done += Usage(**line["usage"])

    @staticmethod
    def _parse_line(line: bytes) -> dict[str, Any] | None:
        try:
            data: Any = parse_json(line)
        except ValueError:
            return None
        if not isinstance(data, dict) or data.get("format") != _FORMAT or "usage" not in data:
            return None
        index = data.get("index")
        known = isinstance(index, int) and 0 <= index < MOST and data.get("status") in STATUS
        return data if known else None
