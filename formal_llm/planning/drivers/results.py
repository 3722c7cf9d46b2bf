"""The results of many plans in a file: one line of JSON for each task, written when it is finished.

A run that was stopped, by whatever means, goes on with the tasks that are not done in its file yet. A line says
``planned``, ``failed`` or ``stopped``. What may succeed at another time (the provider could not be reached, the money
was used up) is ``stopped``: the next run goes on with it. What will not (there is no valid plan, no legal answer came)
is ``failed``, and left as it is until it is planned again on purpose. Both hold the answers so far, so that the next
run begins with the question at which this one broke. Every task stands in the file once, but while it is written, and
where the writer was killed, a line that says ``stopped`` may be followed by another one, which counts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from formal_llm.authored.files import parse_json
from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan, ResultsError
from formal_llm.planning.drivers.batch import Outcome
from formal_llm.planning.drivers.driving import Snapshot
from formal_llm.planning.drivers.json_lines import line_of, open_alone, replace_alone, write_line
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.plans.vocabulary import fingerprint_of
from formal_llm.planning.task import Task
from formal_llm.planning.walks.choices import ChoiceTable

_FORMAT = "formal_llm.result/1"
_BUSY = "another run is writing this file; wait for it, or give another file"


def run_of(planner: Planner) -> dict[str, str]:
    """What the plans of a planner depend on besides the task: which LLM answers, and a hash of all of it.

    Labels and texts are part of it: they stand in the questions.
    """
    llm = planner.llm
    identity = getattr(llm, "identity", None) or {"llm": getattr(llm, "name", "") or type(llm).__name__}
    wording = asdict(planner.wording)
    search = [planner.search, planner.seed, planner.length_penalty, planner.lookahead]
    table = planner.table()
    rules = [fingerprint_of(table.automaton), planner.limits.lines(), _texts(table)]
    said = json.dumps([identity, wording, search, rules], sort_keys=True, default=str)
    return {"llm": identity["llm"], "run": hashlib.sha256(said.encode()).hexdigest()[:16]}


def _texts(table: ChoiceTable) -> list[object]:
    """All texts of the rules that a question may hold."""
    words, pda = table.vocabulary, table.lookahead.pda
    names = [*words.terminals, *(words.grammar.nonterminals if words.grammar is not None else ())]
    moves = pda.transitions if pda is not None else ()
    told = [(move.text, move.question, move.decision) for move in moves if move.text or move.question]
    return [[(name, words.label(name), words.description(name)) for name in names], told]


def _asked(task: Task) -> dict[str, JSON]:
    """What a task asks for, as JSON data."""
    asked: dict[str, JSON] = {"task": task.description}
    if task.goal is not None:
        asked["goal"] = task.goal
    if task.limits:
        limits = task.limits
        sums: list[JSON] = [line for bound in limits.sums for line in bound.lines()]
        times: dict[str, JSON] = {"times": limits.times.lines()} if limits.times else {}
        asked["limits"] = {
            "at_most": {**limits.at_most}, "at_least": {**limits.at_least}, "default": limits.default, "sums": sums,
            **times,
        }  # fmt: skip
    return asked


def record(outcome: Outcome) -> dict[str, JSON] | None:
    """The line of an outcome, as JSON data; None for a failure that may pass before anything was asked."""
    data: dict[str, JSON] = {"index": outcome.index, **_asked(outcome.task)}
    if outcome.plan is not None:
        data |= {"status": "planned", **_told(outcome.plan)}
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
            data["partial"] = _told(error.plan)
        if outcome.walk is not None and not isinstance(error, NoValidPlan):
            data["walk"] = {**outcome.walk.snapshot(), "usage": asdict(outcome.usage)}
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
        done: the tasks in the file that have a plan or have failed: for each index its line.
        stopped: those that were begun and are not done, likewise.

    Raises:
        ResultsError: another run is writing the file; it belongs to another run, or is no results file. The file is
            left as it is.
    """

    def __init__(self, path: str | Path, run: Mapping[str, str]) -> None:
        self.path = Path(path)
        self.done: dict[int, dict[str, Any]] = {}
        self.stopped: dict[int, dict[str, Any]] = {}
        self._run = dict(run)
        self._outdated = False
        self._file = open_alone(self.path, busy=_BUSY)
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
        """Close the file and let others have it; now every task stands in it once."""
        if not self._file.closed:
            if self._outdated:
                self._write_anew()
            os.fsync(self._file.fileno())
            self._file.close()

    @property
    def failed(self) -> list[int]:
        """The tasks in the file that have no plan."""
        return [index for index, line in self.done.items() if line["status"] == "failed"]

    @property
    def usage(self) -> Usage:
        """What all plans in the file took together, finished or not."""
        return sum((Usage(**line["usage"]) for line in (*self.done.values(), *self.stopped.values())), Usage())

    @property
    def begun(self) -> dict[int, Snapshot]:
        """The snapshots of the walks to go on from, for :meth:`Planner.plan_all`."""
        return {index: line["walk"] for index, line in self.stopped.items() if "walk" in line}

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise unless the tasks are those of the file, or begin with them.

        Raises:
            ResultsError: a task in the file is another one now, or has another goal or other limits.
        """
        for index, line in (*self.done.items(), *self.stopped.items()):
            now = _asked(tasks[index]) if index < len(tasks) else {}
            changed = next((key for key in ("task", "goal", "limits") if now.get(key) != line.get(key)), None)
            if changed is not None:
                of = {"task": "", "goal": " with another goal", "limits": " with other limits"}[changed]
                raise ResultsError(
                    f"{self.path} has another task {index}{of} than the tasks have now ({line['task']!r}); "
                    "tasks may be added at the end; for others give another file"
                )

    def add(self, outcome: Outcome) -> bool:
        """Write the line of an outcome; False where the task is not done, as another time may bring a plan."""
        data = record(outcome)
        if data is None:
            return False
        line: dict[str, Any] = {"format": _FORMAT, **self._run, **data}
        index, done = outcome.index, data["status"] != "stopped"
        before = self.stopped.get(index)
        if done or before is None or any(before["usage"][of] != line["usage"][of] for of in ("questions", "requests")):
            write_line(self._file, self.path, line, f"the line of task {index}")
            self._outdated = self._outdated or before is not None
            self.stopped.pop(index, None)
            (self.done if done else self.stopped)[index] = line
        return done

    def forget_failed(self) -> int:
        """Turn the failures in the file into tasks that are stopped, to be gone on with; how many there were.

        Those without an answer, which were not begun, are taken out.

        Raises:
            ResultsError: the file was replaced, moved or deleted meanwhile; what stands there now is left as it is.
        """
        failed = self.failed
        if failed:
            lines = {index: self.done.pop(index) for index in failed}
            self.stopped |= {index: {**line, "status": "stopped"} for index, line in lines.items() if "walk" in line}
            self._write_anew()
        return len(failed)

    def _write_anew(self) -> None:
        """Put a file in the place of this one that has one line for each task."""
        lines = (*self.done.values(), *self.stopped.values())
        self._file = replace_alone(self._file, self.path, map(line_of, lines), busy=_BUSY)
        self._outdated = False

    # -- opening ------------------------------------------------------------------------------------------------

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
            why = "rules, their texts, search or wording are not the same" if same else f"there the llm is {other}"
            raise ResultsError(
                f"{self.path}:{number}: the file belongs to another run ({why}); give another file, "
                f"or the settings of that run"
            )
        if data["index"] in self.done:
            raise ResultsError(
                f"{self.path}:{number}: task {data['index']} stands there twice; remove one of the lines"
            )
        stopped = data["status"] == "stopped"
        self._outdated = self.stopped.pop(data["index"], None) is not None or self._outdated
        (self.stopped if stopped else self.done)[data["index"]] = data

    @staticmethod
    def _parsed(line: bytes) -> dict[str, Any] | None:
        try:
            data: Any = parse_json(line)
        except ValueError:
            return None
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            return None
        return data if isinstance(data.get("index"), int) and {"status", "usage"} <= data.keys() else None
