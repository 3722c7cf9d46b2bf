"""A cache of rewards: each plan is judged once, across runs, processes and machine restarts.

The key of a judgement consists of everything it depends on: the task (description, goal, limits, names of its inputs,
group and, if given, a fingerprint of its data), the word of the plan, and the identity of the reward. If any of them
changes, the plan is judged anew, unaffected by old entries. Rewards that are not deterministic are not cached.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from formal_llm.errors import AnswerFileError, RewardError
from formal_llm.llms.recorded.answer_store import AnswerStore
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.task import Task
from formal_llm.rltf.rewards import Judged, Reward, RewardFunction, reward_of

#: The row that distinguishes a file of rewards from a file of answers. It is written before any other.
_MARK = "formal_llm.rewards/1"
#: The interval in seconds at which new judgements are written while many plans are judged.
_EVERY = 0.5


@dataclass(frozen=True, slots=True)
class RewardStats:
    """Statistics of a cache since it was opened here.

    Attributes:
        hits: the number of plans whose reward was known.
        misses: the number of plans that were judged.
    """

    hits: int = 0
    misses: int = 0


class CachedReward(Reward):
    """A reward whose judgements are cached.

    Threads and processes may share one file, and any of them may be killed at any time. Two that encounter the same
    plan at the same time may both judge it; within one call of :meth:`judge_many` each distinct pair is judged once. A
    damaged entry is ignored and replaced. A failure for a temporary reason (:attr:`Judged.passing`) is kept in memory
    and not written.

    Args:
        reward: see :func:`~formal_llm.rltf.rewards.reward_of`. A reward that is not deterministic is passed
                through: nothing is cached, and the file is not opened.
        path: the file; created if it does not exist. None: the cache is in memory and ends with this object.
        name: distinguishes this reward from others in the file, instead of its own name; required if it has none, such
                as a lambda. It should change whenever the rewards would.
        fingerprint: what else of a task the reward depends on, as text, such as a hash of the data on which its plans
            are executed. Called once per task.

    Raises:
        ValueError: a file is given, but the reward has neither an ``identity`` nor a name.
        RewardError: the file is damaged, is a file of another kind, or is not writable; also raised while judging.
    """

    def __init__(
        self,
        reward: str | RewardFunction,
        path: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
        fingerprint: Callable[[Task], str] | None = None,
    ) -> None:
        self.reward = reward_of(reward)
        super().__init__(self.reward.judge, name=name or self.reward.name, invalid=self.reward.invalid)
        self.deterministic = self.reward.deterministic
        identity = self.reward.identity
        if identity is None and name is None and path is not None and self.deterministic:
            raise ValueError(
                f"the reward {self.reward.name} has no identity that distinguishes its judgements from others; "
                "give the cache a name for it: CachedReward(reward, path, name=...)"
            )
        self._own = identity if name is None else {"reward": name, **self.reward.settings}
        self._prefix = json.dumps(self._own, sort_keys=True)
        self._fingerprint = fingerprint
        self._file = "" if path is None else os.fspath(path)
        self._known: dict[str, Judged] = {}
        self._tasks: dict[Task, str] = {}
        self._counting = threading.Lock()
        self._stats = RewardStats()
        self._store = self._open_store() if path is not None and self.deterministic else None

    @property
    def identity(self) -> dict[str, object] | None:
        """What distinguishes the underlying reward from others; under the name of the cache, if one was given."""
        return self._own

    @property
    def settings(self) -> dict[str, object]:
        """The settings of the underlying reward."""
        return self.reward.settings

    @property
    def stats(self) -> RewardStats:
        """The statistics of the cache since it was opened here."""
        return self._stats

    def __len__(self) -> int:
        """Return the number of judgements in the file, of all rewards, or in memory if there is no file."""
        if self._store is None:
            return len(self._known)
        with self._convert_errors():
            return len(self._store) - 1  # without the mark

    def close(self) -> None:
        """Close the file, after which nothing can be judged. A cache in memory is unaffected."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def known(self, task: Task, plan: Plan) -> Judged | None:
        """Return what a plan is worth if that is known, else None. Not counted in the statistics."""
        return self._find_judgement(self._key_of(task, plan)) if self.deterministic else None

    def judge(self, task: Task, plan: Plan) -> Judged:
        """Like :meth:`Reward.judge`, unless the result is known; RewardError also if the file has become unusable."""
        return self.judge_many([(task, plan)])[0]

    def judge_many(self, pairs: Iterable[tuple[Task, Plan]], workers: int = 1) -> list[Judged]:
        """Like :meth:`Reward.judge_many`; if a judgement raises an error, the earlier ones are kept."""
        rows = list(pairs)
        if not self.deterministic:
            self._count_lookups(0, len(rows))
            return self.reward.judge_many(rows, workers)
        if workers < 1:
            raise ValueError(f"workers counts from 1, not {workers}")
        keys = [self._key_of(task, plan) for task, plan in rows]
        todo: dict[str, tuple[Task, Plan]] = {}
        results: dict[str, Judged] = {}
        for key, row in zip(keys, rows, strict=True):
            if key not in results and key not in todo:
                judged = self._find_judgement(key)
                if judged is None:
                    todo[key] = row
                else:
                    results[key] = judged
        self._count_lookups(len(rows) - len(todo), len(todo))
        results |= self._judge_unknown(todo, workers)
        return [results[key] for key in keys]

    def _judge_unknown(self, todo: dict[str, tuple[Task, Plan]], workers: int) -> dict[str, Judged]:
        """Judge and keep the results, writing them at intervals."""
        keys, fresh = list(todo), {}
        unwritten: list[str] = []
        written = time.monotonic()
        try:
            for number, judged in self.reward.judge_each(list(todo.values()), workers):
                key = keys[number]
                fresh[key] = self._known[key] = judged
                unwritten.append(key)
                if time.monotonic() - written > _EVERY:
                    self._keep_judgements(unwritten)
                    unwritten, written = [], time.monotonic()
        finally:
            self._keep_judgements(unwritten)
        return fresh

    def _key_of(self, task: Task, plan: Plan) -> str:
        about = self._tasks.get(task)
        if about is None:
            data = [task.description, task.goal, task.limits.lines(), sorted(task.inputs), task.group]
            data += [task.original] if task.original else []
            fingerprint = "" if self._fingerprint is None else self._fingerprint(task)
            about = self._tasks[task] = _hash_text(f"{self._prefix}\n{json.dumps(data)}\n{fingerprint}")
        return _hash_text(json.dumps([about, plan.word, plan.complete]))

    def _find_judgement(self, key: str) -> Judged | None:
        judged = self._known.get(key)
        if judged is None and self._store is not None:
            with self._convert_errors():
                text = self._store.get(key)
            judged = None if text is None else _parse_judgement(text)
            if judged is not None:
                self._known[key] = judged
        return judged

    def _keep_judgements(self, keys: list[str]) -> None:
        name = self.name.encode(errors="replace").decode()
        judged = ((key, self._known[key]) for key in keys if not self._known[key].passing)
        rows = [
            (key, name, json.dumps({"value": one.value, **({"failed": one.failed} if one.failed else {})}))
            for key, one in judged
        ]
        if rows and self._store is not None:
            with self._convert_errors():
                self._store.put(rows)

    def _count_lookups(self, hits: int, misses: int) -> None:
        with self._counting:
            self._stats = RewardStats(self._stats.hits + hits, self._stats.misses + misses)

    def _open_store(self) -> AnswerStore:
        with self._convert_errors():
            store = AnswerStore(self._file)
            # The mark comes first, so a file with any row has it, no matter which process is opening it.
            if not len(store):
                store.put([(_MARK, "", "")])
            elif store.get(_MARK) is None:
                store.close()
                raise RewardError("this file holds answers of LLMs; give the rewards another file", file=self._file)
        return store

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert errors of the store to errors of rewards."""
        try:
            yield
        except AnswerFileError as error:
            problem = error.problem.replace("the answers are asked for again", "the plans are judged again")
            raise RewardError(problem, file=self._file) from error


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _parse_judgement(text: bytes) -> Judged | None:
    """Return the judgement of a row; None if another program wrote it."""
    try:
        data = json.loads(text)
        value, failed = data["value"], data.get("failed", "")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    ok = type(value) is float and math.isfinite(value) and isinstance(failed, str)
    return Judged(value, failed) if ok else None
