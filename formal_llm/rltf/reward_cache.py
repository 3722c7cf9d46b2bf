"""A cache of rewards: a plan is judged once, whatever run, process or machine restart comes in between.

A judgement is kept under what it depends on: the task (description, goal, limits, names of its inputs, group, and a
fingerprint of its data where one is given), the word of the plan, and the identity of the reward. So a change of any of
them is judged anew, and nothing old gets in its way. Rewards that are not deterministic are not kept.
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

#: The row that tells a file of rewards from a file of answers. It is written before any other.
_MARK = "formal_llm.rewards/1"
#: While many plans are judged, what was found is written every so many seconds.
_EVERY = 0.5


@dataclass(frozen=True, slots=True)
class RewardStats:
    """What a cache did since it was opened here.

    Attributes:
        hits: plans whose reward was known.
        misses: plans that were judged.
    """

    hits: int = 0
    misses: int = 0


class CachedReward(Reward):
    """A reward whose judgements are kept.

    Threads and processes may share one file, and any of them may be killed at any time. Two that judge the same plan at
    the same moment may both judge it; within one call of :meth:`judge_many` each distinct pair is judged once. A
    damaged entry counts as none and is replaced. What failed for a reason that may pass (:attr:`Judged.passing`) is
    kept in memory and not written.

    Args:
        reward: the reward: see :func:`~formal_llm.rltf.rewards.reward_of`. One that is not deterministic is passed
            through: nothing is kept, and the file is not opened.
        path: the file; made if it is not there. None: the cache is in memory and ends with this object.
        name: tells this reward apart from others in the file, in the place of its own name; needed where it has none,
            such as a lambda. It should change whenever the rewards would.
        fingerprint: what else of a task the reward depends on, as text, such as a hash of the data on which its plans
            are executed. Called once for each task.

    Raises:
        ValueError: a file is given, the reward has no ``identity``, and there is no name.
        RewardError: the file cannot be used: damaged, of something else, not to be written to; also while judging.
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
        own = self.reward.identity
        if own is None and name is None and path is not None and self.deterministic:
            raise ValueError(
                f"the reward {self.reward.name} has no identity that tells its judgements apart from those of others; "
                "give the cache a name for it: CachedReward(reward, path, name=...)"
            )
        self._own = own if name is None else {"reward": name, **self.reward.settings}
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
        """What the reward behind is told apart from others by; under the name of the cache, where one was given."""
        return self._own

    @property
    def settings(self) -> dict[str, object]:
        """Those of the reward behind."""
        return self.reward.settings

    @property
    def stats(self) -> RewardStats:
        """What the cache did since it was opened here."""
        return self._stats

    def __len__(self) -> int:
        """How many judgements the file holds, of all rewards; without a file, how many are in memory."""
        if self._store is None:
            return len(self._known)
        with self._errors_told():
            return len(self._store) - 1  # less the mark

    def close(self) -> None:
        """Close the file, after which nothing can be judged. A cache in memory stays as it is."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- judging ------------------------------------------------------------------------------------------------

    def known(self, task: Task, plan: Plan) -> Judged | None:
        """What a plan is worth if that is known; None if it would have to be judged. Not counted in the statistics."""
        return self._find_judgement(self._key_of(task, plan)) if self.deterministic else None

    def judge(self, task: Task, plan: Plan) -> Judged:
        """As :meth:`Reward.judge`, where it is not known yet; RewardError also where the file is of no use any more."""
        return self.judge_many([(task, plan)])[0]

    def judge_many(self, pairs: Iterable[tuple[Task, Plan]], workers: int = 1) -> list[Judged]:
        """As :meth:`Reward.judge_many`; where a judgement raises, what was judged by then is kept."""
        rows = list(pairs)
        if not self.deterministic:
            self._count_lookups(0, len(rows))
            return self.reward.judge_many(rows, workers)
        if workers < 1:
            raise ValueError(f"workers counts from 1, not {workers}")
        keys = [self._key_of(task, plan) for task, plan in rows]
        todo: dict[str, tuple[Task, Plan]] = {}
        found: dict[str, Judged] = {}
        for key, row in zip(keys, rows, strict=True):
            if key not in found and key not in todo:
                judged = self._find_judgement(key)
                if judged is None:
                    todo[key] = row
                else:
                    found[key] = judged
        self._count_lookups(len(rows) - len(todo), len(todo))
        found |= self._judge_unknown(todo, workers)
        return [found[key] for key in keys]

    def _judge_unknown(self, todo: dict[str, tuple[Task, Plan]], workers: int) -> dict[str, Judged]:
        """Judge and keep, writing now and then."""
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

    # -- keeping ------------------------------------------------------------------------------------------------

    def _key_of(self, task: Task, plan: Plan) -> str:
        about = self._tasks.get(task)
        if about is None:
            data = [task.description, task.goal, task.limits.lines(), sorted(task.inputs), task.group]
            data += [task.original] if task.original else []
            more = "" if self._fingerprint is None else self._fingerprint(task)
            about = self._tasks[task] = _hash_text(f"{self._prefix}\n{json.dumps(data)}\n{more}")
        return _hash_text(json.dumps([about, plan.word, plan.complete]))

    def _find_judgement(self, key: str) -> Judged | None:
        judged = self._known.get(key)
        if judged is None and self._store is not None:
            with self._errors_told():
                text = self._store.get(key)
            judged = None if text is None else _parse_judgement(text)
            if judged is not None:
                self._known[key] = judged
        return judged

    def _keep_judgements(self, keys: list[str]) -> None:
        name = self.name.encode(errors="replace").decode()
        rows = [(key, name, _dump_judgement(self._known[key])) for key in keys if not self._known[key].passing]
        if rows and self._store is not None:
            with self._errors_told():
                self._store.put(rows)

    def _count_lookups(self, hits: int, misses: int) -> None:
        with self._counting:
            self._stats = RewardStats(self._stats.hits + hits, self._stats.misses + misses)

    def _open_store(self) -> AnswerStore:
        with self._errors_told():
            store = AnswerStore(self._file)
            # In this order: a file that has a row has had the mark before, whoever else is opening it.
            if not len(store):
                store.put([(_MARK, "", "")])
            elif store.get(_MARK) is None:
                store.close()
                raise RewardError("this file holds answers of LLMs; give the rewards another file", file=self._file)
        return store

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        """Errors of the store as errors of rewards."""
        try:
            yield
        except AnswerFileError as error:
            problem = error.problem.replace("the answers are asked for again", "the plans are judged again")
            raise RewardError(problem, file=self._file) from error


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _dump_judgement(judged: Judged) -> str:
    return json.dumps({"value": judged.value, **({"failed": judged.failed} if judged.failed else {})})


def _parse_judgement(text: bytes) -> Judged | None:
    """The judgement of a row; None for what another program wrote."""
    try:
        data = json.loads(text)
        value, failed = data["value"], data.get("failed", "")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    ok = type(value) is float and math.isfinite(value) and isinstance(failed, str)
    return Judged(value, failed) if ok else None
