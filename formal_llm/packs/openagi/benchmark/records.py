"""What a benchmark writes down, so that it can be stopped at any time, goes on, and can be looked into afterwards.

In its folder::

    setting.json    what the figures depend on; another setting is refused
    plans.jsonl     a line for each plan that was made: word, steps, validity, reason, what was written, usage
    scores.jsonl    a line for each distinct plan of a task that was carried out: score, every step's value by its key
    values/         the values of the steps, each under its key
    answers/        what was asked and answered, as transcripts that can be replayed
    cache/          results of tools, so that none is called twice for the same

A line is written at once and whole; what is left of a half-written one is taken off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from formal_llm.errors import ResultsError
from formal_llm.packs.openagi.scores.judging import Judgement
from formal_llm.planning.drivers.json_lines import open_alone, write_line
from formal_llm.tools import Result

_FORMAT = "formal_llm.bench/1"
_BUSY = "another benchmark is writing here; wait for it, or give another folder"
_PLANS, _SCORES, _SETTING = "plans.jsonl", "scores.jsonl", "setting.json"


class PlanKey(NamedTuple):
    """Which plan a line is about."""

    llm: str
    method: str
    task: int
    repeat: int


class ScoreKey(NamedTuple):
    """Which plan of which task a score is about."""

    task: int
    word: tuple[str, ...]


class Records:
    """The records of a benchmark. Nobody else writes to its folder in the meantime.

    Args:
        folder: the folder; made if it is not there.
        setting: what the figures depend on, as JSON data.

    Attributes:
        plans: the plans that were made, by key: the lines of the file.
        scores: the plans that were judged, by key.

    Raises:
        ResultsError: the folder belongs to another setting, is in use, or a line in it cannot be read; says which.
    """

    def __init__(self, folder: str | Path, setting: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_setting(json.loads(json.dumps({"format": _FORMAT, **setting}, default=str)))
        self._plans = open_alone(self.folder / _PLANS, busy=_BUSY)
        try:
            self._scores = open_alone(self.folder / _SCORES, busy=_BUSY)
        except BaseException:
            self._plans.close()
            raise
        try:
            self.plans = {_plan_key(row): row for row in _rows(self._plans, self.folder / _PLANS, _plan_key)}
            self.scores = {_score_key(row): row for row in _rows(self._scores, self.folder / _SCORES, _score_key)}
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and let others have them."""
        self._plans.close()
        self._scores.close()

    def add_plan(self, key: PlanKey, **facts: Any) -> None:
        """Write the line of a plan."""
        row = {**key._asdict(), **facts}
        write_line(self._plans, self.folder / _PLANS, row, "a line")
        self.plans[key] = row

    def add_score(self, key: ScoreKey, judged: Judgement) -> None:
        """Write the line of a score, and the values of the plan's steps that are not there yet."""
        row = {
            "task": key.task,
            "word": list(key.word),
            "value": judged.value,
            "score": judged.score,
            "reason": judged.reason,
            "samples": [
                {"value": value, "error": error, "steps": self._steps(result)}
                for value, error, result in zip(judged.scores, judged.errors, judged.results, strict=False)
            ],
        }
        write_line(self._scores, self.folder / _SCORES, row, "a line")
        self.scores[key] = row

    def joined(self) -> list[dict[str, Any]]:
        """The plans with their scores: invalid ones have 0, and None stands where a plan is not judged yet."""
        rows = []
        for key, plan in self.plans.items():
            scored = self.scores.get(ScoreKey(key.task, tuple(plan["word"])))
            value = 0.0 if not plan["valid"] else None if scored is None else scored["value"]
            rows.append({**plan, "value": value, "score": scored["score"] if scored and plan["valid"] else ""})
        return rows

    def _steps(self, result: Result) -> list[dict[str, Any]]:
        steps = []
        for step in result.steps:
            told: dict[str, Any] = {"name": step.name, "state": step.state}
            if step.value is not None:
                told |= {"kind": step.value.kind.name, "key": step.value.key}
                file = self.folder / "values" / f"{step.value.key}{step.value.kind.ending}"
                if not file.exists():
                    file.parent.mkdir(exist_ok=True)
                    beside = file.with_suffix(".new")
                    beside.write_bytes(step.value.dump())
                    beside.replace(file)
            steps.append(told)
        return steps

    def _check_setting(self, setting: Mapping[str, Any]) -> None:
        file = self.folder / _SETTING
        if not file.exists():
            beside = file.with_suffix(".new")
            beside.write_text(json.dumps(setting, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            beside.replace(file)
            return
        try:
            there = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            raise ResultsError(f"{file}: this is no JSON; give another folder") from None
        if there == setting:
            return
        other = [key for key in {**setting, **there} if setting.get(key) != there.get(key)]
        raise ResultsError(
            f"{self.folder}: it holds a benchmark with another setting ({', '.join(other)}; see {file.name}); "
            "give another folder, or the setting of that one"
        )


def _plan_key(row: Mapping[str, Any]) -> PlanKey:
    return PlanKey(row["llm"], row["method"], row["task"], row["repeat"])


def _score_key(row: Mapping[str, Any]) -> ScoreKey:
    return ScoreKey(row["task"], tuple(row["word"]))


# -- files -------------------------------------------------------------------------------------------------------------


def _rows(file: FileIO, path: Path, key: Any) -> Iterable[dict[str, Any]]:
    """The lines of a file; a half-written last one is taken off."""
    file.seek(0)
    whole, newline, rest = file.read().rpartition(b"\n")
    rows = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            row = json.loads(line)
            key(row)
        except (ValueError, KeyError, TypeError):
            raise ResultsError(f"{path}:{number}: this is no line of a benchmark; mend or remove it") from None
        rows.append(row)
    if rest:
        if not rest.startswith(b"{"):
            raise ResultsError(f"{path}: this is no file of a benchmark; give another folder")
        file.truncate(len(whole + newline))
    return rows
