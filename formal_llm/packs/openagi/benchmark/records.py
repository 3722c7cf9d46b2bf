"""The records of a benchmark, so that it can be stopped at any time, resumed, and inspected afterwards.

The folder contains::

        setting.json    the setting that determines the figures; another setting is refused
        plans.jsonl     a line for each plan: word, steps, validity, reason, written text, usage
        scores.jsonl    a line for each distinct executed plan of a task: score, every step's value by its key
        values/         the values of the steps, each under its key
        answers/        the questions and answers, which can be replayed
        cache/          results of tools, so that none is called twice with the same inputs

Each line is written immediately and as a whole; an incomplete last line is removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar

from formal_llm.authored.files import parse_json, read_bytes
from formal_llm.errors import RecordError
from formal_llm.packs.openagi.benchmark.conditions import Method, PlanKey
from formal_llm.planning.drivers.json_lines import open_exclusively, write_atomically, write_line
from formal_llm.tools import Result

if TYPE_CHECKING:
    from formal_llm.packs.openagi.scores.judging import Judgement

_FORMAT = "formal_llm.bench/1"
_BUSY = "another benchmark is writing here; wait for it, or give another folder"
_PLANS, _SCORES, _SETTING = "plans.jsonl", "scores.jsonl", "setting.json"


class ScoreKey(NamedTuple):
    """The key of a score: the task and the word of the plan."""

    task: int
    word: tuple[str, ...]


class PlanRecord(TypedDict):
    """The line of a plan: its key, the group of its task, its content, its validity, its usage."""

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
    """A plan with its score: 0 for an invalid one, None for one that is not judged yet."""

    value: float | None
    score: str


class ScoreRecord(TypedDict):
    """The line of a score; for each sample its value, the error, and the steps with the keys of their values."""

    task: int
    word: list[str]
    value: float
    score: str
    reason: str
    samples: list[dict[str, object]]


Key = TypeVar("Key")
Record = TypeVar("Record")


class Records(AbstractContextManager["Records"]):
    """The records of a benchmark, which has exclusive write access to its folder.

    Args:
        folder: the folder, created if missing.
        setting: the setting that determines the figures, as JSON data.

    Attributes:
        plans: the plans by key: the lines of the file.
        scores: the plans that were judged, by key.

    Raises:
        RecordError: the folder belongs to another setting, is in use, or a line in it cannot be read.
    """

    def __init__(self, folder: str | Path, setting: Mapping[str, object]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_setting(json.loads(json.dumps({"format": _FORMAT, **setting}, default=str)))
        with ExitStack() as opened:
            self._plans = opened.enter_context(open_exclusively(self.folder / _PLANS, busy=_BUSY))
            self._scores = opened.enter_context(open_exclusively(self.folder / _SCORES, busy=_BUSY))
            self.plans: dict[PlanKey, PlanRecord] = _read_records(self._plans, self.folder / _PLANS, _plan_key)
            self.scores: dict[ScoreKey, ScoreRecord] = _read_records(self._scores, self.folder / _SCORES, _score_key)
            self._opened = opened.pop_all()

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and release the folder."""
        self._opened.close()

    def add_plan(self, plan: PlanRecord) -> None:
        """Write the line of a plan."""
        write_line(self._plans, self.folder / _PLANS, plan, "a line")
        self.plans[_plan_key(plan)] = plan

    def add_score(self, key: ScoreKey, judged: Judgement) -> None:
        """Write the line of a score, and the values of the plan's steps that are not stored yet."""
        samples: list[dict[str, object]] = [
            {"value": value, "error": error, "steps": self._record_steps(result)}
            for value, error, result in zip(judged.scores, judged.errors, judged.results, strict=False)
        ]
        self.record_score(key, judged.value, judged.score, judged.reason, samples)

    def record_score(
        self, key: ScoreKey, value: float, score: str, reason: str = "", samples: Sequence[dict[str, object]] = ()
    ) -> None:
        """Write the line of a score."""
        record: ScoreRecord = {
            "task": key.task, "word": list(key.word), "value": value, "score": score, "reason": reason,
            "samples": list(samples),
        }  # fmt: skip
        write_line(self._scores, self.folder / _SCORES, record, "a line")
        self.scores[key] = record

    def join_scores(self) -> list[ScoredPlan]:
        """Return the plans with their scores."""
        joined: list[ScoredPlan] = []
        for key, plan in self.plans.items():
            scored = self.scores.get(ScoreKey(key.task, tuple(plan["word"])))
            value = 0.0 if not plan["valid"] else None if scored is None else scored["value"]
            joined.append({**plan, "value": value, "score": scored["score"] if scored and plan["valid"] else ""})
        return joined

    def _record_steps(self, result: Result) -> list[dict[str, str]]:
        steps = []
        for step in result.steps:
            entry = {"name": step.name, "state": step.state}
            if step.value is not None:
                entry |= {"kind": step.value.kind.name, "key": step.value.key}
                file = self.folder / "values" / f"{step.value.key}{step.value.kind.ending}"
                if not file.exists():
                    file.parent.mkdir(exist_ok=True)
                    write_atomically(file, [step.value.dump()])
            steps.append(entry)
        return steps

    def _check_setting(self, setting: Mapping[str, object]) -> None:
        file = self.folder / _SETTING
        if not file.exists():
            write_atomically(file, [(json.dumps(setting, indent=1, ensure_ascii=False) + "\n").encode()])
            return
        try:
            stored = parse_json(read_bytes(file))
            if not isinstance(stored, dict):
                raise ValueError("no object")
        except (OSError, ValueError):
            raise RecordError("this is no JSON of a setting; give another folder", file=str(file)) from None
        if stored != setting:
            different = [key for key in {**setting, **stored} if setting.get(key) != stored.get(key)]
            raise RecordError(
                f"it holds a benchmark with another setting ({', '.join(different)}; see {file.name}); "
                "give another folder, or the setting of that one",
                file=str(self.folder),
            )


def _plan_key(plan: PlanRecord) -> PlanKey:
    return PlanKey(plan["llm"], plan["method"], plan["task"], plan["repeat"])


def _score_key(scored: ScoreRecord) -> ScoreKey:
    return ScoreKey(scored["task"], tuple(scored["word"]))


def _read_records(file: FileIO, path: Path, key: Callable[[Record], Key]) -> dict[Key, Record]:
    """Read the lines of a file by key; an incomplete last one is removed."""
    file.seek(0)
    whole, newline, rest = file.read().rpartition(b"\n")
    found: dict[Key, Record] = {}
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            read: Any = parse_json(line)
            found[key(read)] = read
        except (ValueError, KeyError, TypeError):
            raise RecordError(
                "this is no line of a benchmark; mend or remove it", file=str(path), line=number
            ) from None
    if rest:
        if not rest.startswith(b"{"):
            raise RecordError("this is no file of a benchmark; give another folder", file=str(path))
        file.truncate(len(whole + newline))
    return found
