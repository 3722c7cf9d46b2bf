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
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar

from formal_llm.authored.files import parse_json, read_bytes
from formal_llm.errors import ResultsError
from formal_llm.packs.openagi.benchmark.conditions import Method, PlanKey
from formal_llm.packs.openagi.scores.judging import Judgement
from formal_llm.planning.drivers.json_lines import open_exclusively, write_atomically, write_line
from formal_llm.tools import Result

_FORMAT = "formal_llm.bench/1"
_BUSY = "another benchmark is writing here; wait for it, or give another folder"
_PLANS, _SCORES, _SETTING = "plans.jsonl", "scores.jsonl", "setting.json"


class ScoreKey(NamedTuple):
    """Which plan of which task a score is about."""

    task: int
    word: tuple[str, ...]


class PlanRecord(TypedDict):
    """The line of a plan: its key, the group of its task, what was made, whether it is valid, what it cost."""

    llm: str
    method: Method
    task: int
    repeat: int
    group: str
    word: list[str]
    steps: list[str]
    valid: bool
    reason: str
    text: str
    questions: int
    usage: dict[str, int]


class ScoredPlan(PlanRecord):
    """A plan with its score: 0 for an invalid one, None where a plan is not judged yet."""

    value: float | None
    score: str


class ScoreRecord(TypedDict):
    """The line of a score; for each sample its value, what went wrong, and the steps with the keys of their values."""

    task: int
    word: list[str]
    value: float
    score: str
    reason: str
    samples: list[dict[str, object]]


Key = TypeVar("Key")
Record = TypeVar("Record")


class Records(AbstractContextManager["Records"]):
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

    def __init__(self, folder: str | Path, setting: Mapping[str, object]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_setting(json.loads(json.dumps({"format": _FORMAT, **setting}, default=str)))
        with ExitStack() as opened:
            self._plans = opened.enter_context(open_exclusively(self.folder / _PLANS, busy=_BUSY))
            self._scores = opened.enter_context(open_exclusively(self.folder / _SCORES, busy=_BUSY))
            self.plans: dict[PlanKey, PlanRecord] = _read(self._plans, self.folder / _PLANS, _plan_key)
            self.scores: dict[ScoreKey, ScoreRecord] = _read(self._scores, self.folder / _SCORES, _score_key)
            self._opened = opened.pop_all()

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and let others have them."""
        self._opened.close()

    def add_plan(self, plan: PlanRecord) -> None:
        """Write the line of a plan."""
        write_line(self._plans, self.folder / _PLANS, plan, "a line")
        self.plans[_plan_key(plan)] = plan

    def add_score(self, key: ScoreKey, judged: Judgement) -> None:
        """Write the line of a score, and the values of the plan's steps that are not there yet."""
        samples: list[dict[str, object]] = [
            {"value": value, "error": error, "steps": self._steps(result)}
            for value, error, result in zip(judged.scores, judged.errors, judged.results, strict=False)
        ]
        made: ScoreRecord = {
            "task": key.task, "word": list(key.word), "value": judged.value, "score": judged.score,
            "reason": judged.reason, "samples": samples,
        }  # fmt: skip
        write_line(self._scores, self.folder / _SCORES, made, "a line")
        self.scores[key] = made

    def joined(self) -> list[ScoredPlan]:
        """The plans with their scores."""
        joined: list[ScoredPlan] = []
        for key, plan in self.plans.items():
            scored = self.scores.get(ScoreKey(key.task, tuple(plan["word"])))
            value = 0.0 if not plan["valid"] else None if scored is None else scored["value"]
            joined.append({**plan, "value": value, "score": scored["score"] if scored and plan["valid"] else ""})
        return joined

    def _steps(self, result: Result) -> list[dict[str, str]]:
        steps = []
        for step in result.steps:
            told = {"name": step.name, "state": step.state}
            if step.value is not None:
                told |= {"kind": step.value.kind.name, "key": step.value.key}
                file = self.folder / "values" / f"{step.value.key}{step.value.kind.ending}"
                if not file.exists():
                    file.parent.mkdir(exist_ok=True)
                    write_atomically(file, [step.value.dump()])
            steps.append(told)
        return steps

    def _check_setting(self, setting: Mapping[str, object]) -> None:
        file = self.folder / _SETTING
        if not file.exists():
            write_atomically(file, [(json.dumps(setting, indent=1, ensure_ascii=False) + "\n").encode()])
            return
        try:
            there = parse_json(read_bytes(file))
            if not isinstance(there, dict):
                raise ValueError("no object")
        except (OSError, ValueError):
            raise ResultsError(f"{file}: this is no JSON of a setting; give another folder") from None
        if there != setting:
            other = [key for key in {**setting, **there} if setting.get(key) != there.get(key)]
            raise ResultsError(
                f"{self.folder}: it holds a benchmark with another setting ({', '.join(other)}; see {file.name}); "
                "give another folder, or the setting of that one"
            )


def _plan_key(plan: PlanRecord) -> PlanKey:
    return PlanKey(plan["llm"], plan["method"], plan["task"], plan["repeat"])


def _score_key(scored: ScoreRecord) -> ScoreKey:
    return ScoreKey(scored["task"], tuple(scored["word"]))


# -- files -------------------------------------------------------------------------------------------------------------


def _read(file: FileIO, path: Path, key: Callable[[Record], Key]) -> dict[Key, Record]:
    """The lines of a file by key; a half-written last one is taken off."""
    file.seek(0)
    whole, newline, rest = file.read().rpartition(b"\n")
    found: dict[Key, Record] = {}
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            read: Any = parse_json(line)
            found[key(read)] = read
        except (ValueError, KeyError, TypeError):
            raise ResultsError(f"{path}:{number}: this is no line of a benchmark; mend or remove it") from None
    if rest:
        if not rest.startswith(b"{"):
            raise ResultsError(f"{path}: this is no file of a benchmark; give another folder")
        file.truncate(len(whole + newline))
    return found
