"""Rewards: what a plan is worth for its task.

A reward is a function of a task and a plan that returns a number, or a :class:`Judged` if it has to report that the
plan failed. :func:`reward_of` turns it into a :class:`Reward`, which adds what a trainer needs to know: its name,
whether it is deterministic, and what distinguishes it from other rewards in a cache.

No failure passes silently: a plan that is incomplete or whose execution fails gets a fallback reward, and the reason
is recorded; a reward that is not a finite number is an error that names the task and the plan.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from formal_llm.errors import Cancelled, ExecutionError, FormalLLMError, ResourceNotFound, RewardError
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.vocabulary import write_word
from formal_llm.planning.task import Task


@dataclass(frozen=True, slots=True)
class Judged:
    """What a plan is worth.

    Attributes:
        value: the reward; a finite number.
        failed: why the plan got a fallback reward instead of its own; empty if it got its own.
    """

    value: float
    failed: str = ""


#: A function that can be used as a reward.
RewardFunction: TypeAlias = Callable[[Task, Plan], "float | Judged"]


class Reward:
    """A function of a task and a plan, with what a trainer needs to know about it.

    Args:
        function: returns the reward, or a :class:`Judged`. It receives complete plans only.
        name: distinguishes the reward from others and should change whenever the rewards would; derived from the
                function's module and name if omitted.
        deterministic: whether the same task and plan always have the same reward. Otherwise it is never cached.
        invalid: the reward of an incomplete plan, which is not a word of the language.

    Raises:
        ValueError: ``invalid`` is not a finite number.
    """

    def __init__(
        self, function: RewardFunction, *, name: str | None = None, deterministic: bool = True, invalid: float = 0.0
    ) -> None:
        self._function = function
        self._name = name if name is not None else name_of(function)
        self.deterministic = deterministic
        self.invalid = _check_finite("invalid", invalid)

    @property
    def name(self) -> str:
        """The name in logs."""
        return self._name or getattr(self._function, "__qualname__", "") or type(self._function).__name__

    @property
    def identity(self) -> dict[str, object] | None:
        """What distinguishes its rewards from those of others, as JSON data; None if nothing does (a lambda)."""
        return None if self._name is None else {"reward": self._name, **self.settings}

    @property
    def settings(self) -> dict[str, object]:
        """What its rewards depend on besides the named function, as JSON data."""
        return {"invalid": self.invalid}

    def judge(self, task: Task, plan: Plan) -> Judged:
        """Determine what a plan is worth.

        Raises:
            RewardError: the function returned no finite number, or raised an exception; names the task and the plan.

        A :class:`FormalLLMError` that it raises deliberately (such as a failed tool) is passed on with a note that
        names the task and the plan, and so is a lack of memory.
        """
        if not plan.complete:
            return Judged(self.invalid, "the plan is not finished")
        try:
            result = self._function(task, plan)
        except RewardError:
            raise
        except (FormalLLMError, MemoryError) as error:
            shown = write_word(plan.word, plan.order)
            error.add_note(f"in the reward {self.name} of the plan {shown} for {task.description!r}")
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise RewardError(f"the reward {self.name} raised {text}", task=task.description, word=plan.word) from error
        judged = result if isinstance(result, Judged) else Judged(_check_number(self.name, result, task, plan))
        value = _check_number(self.name, judged.value, task, plan)
        if not math.isfinite(value):
            raise RewardError(
                f"the reward {self.name} is {value}, not a finite number", task=task.description, word=plan.word
            )
        return judged if value is judged.value else replace(judged, value=value)

    def judge_many(self, pairs: Iterable[tuple[Task, Plan]], workers: int = 1) -> list[Judged]:
        """Determine what many plans are worth, in order.

        ``workers`` is the number of threads that judge; above 1 the function must be thread-safe.

        Raises:
            RewardError: see :meth:`judge`; of several errors, the first in the order of the pairs.
            ValueError: fewer than one worker.
        """
        results = dict(self.judge_each(list(pairs), workers))
        return [results[number] for number in sorted(results)]

    def judge_each(self, rows: Sequence[tuple[Task, Plan]], workers: int = 1) -> Iterator[tuple[int, Judged]]:
        """Like :meth:`judge_many`: yield the number of each row, from 0, with its judgement as soon as it is available.

        After an error nothing new is started; the error is raised when everything that was started has ended.
        """
        if workers < 1:
            raise ValueError(f"workers counts from 1, not {workers}")
        if workers == 1 or len(rows) < 2:
            for number, (task, plan) in enumerate(rows):
                yield number, self.judge(task, plan)
            return
        pool = ThreadPoolExecutor(min(workers, len(rows)))
        try:
            futures = {pool.submit(self.judge, *row): number for number, row in enumerate(rows)}
            for future in as_completed(futures):
                if future.cancelled():
                    continue
                if future.exception() is None:
                    yield futures[future], future.result()
                else:
                    for other in futures:
                        other.cancel()
            for future in futures:
                if not future.cancelled():
                    future.result()  # the first error in the order of the rows
        finally:
            pool.shutdown(cancel_futures=True)

    def __call__(self, task: Task, plan: Plan) -> float:
        """Return the reward as a number."""
        return self.judge(task, plan).value

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"


class ExecutedReward(Reward):
    """The value of executing a plan, determined by a judge; a plan that cannot be executed gets a fallback reward.

    Args:
        judge: executes the plan (with an :class:`~formal_llm.tools.Executor`) and returns the score of the result.
        failed: the reward if it raises an :class:`~formal_llm.errors.ExecutionError`: a tool failed, is missing, or
            does not accept its inputs. The reason is in :attr:`Judged.failed`. A cancelled execution is not a failure
            of the plan and is passed on, as is every other exception.
        name, deterministic, invalid: see :class:`Reward`.

    Raises:
        ValueError: ``failed`` or ``invalid`` is not a finite number.
    """

    def __init__(
        self,
        judge: RewardFunction,
        failed: float = 0.0,
        *,
        name: str | None = None,
        deterministic: bool = True,
        invalid: float = 0.0,
    ) -> None:
        self.failed = _check_finite("failed", failed)
        self._judge = judge
        name = name if name is not None else name_of(judge)
        super().__init__(self._judge_executed, name=name, deterministic=deterministic, invalid=invalid)

    @property
    def name(self) -> str:
        """The name in logs."""
        return self._name or "executed"

    @property
    def settings(self) -> dict[str, object]:
        """Like :attr:`Reward.settings`, with the reward of plans that fail."""
        return {**super().settings, "failed": self.failed}

    def _judge_executed(self, task: Task, plan: Plan) -> float | Judged:
        try:
            return self._judge(task, plan)
        except Cancelled:
            raise
        except ExecutionError as error:
            return Judged(self.failed, f"{type(error).__name__}: {error}")


# -- cached -----------------------------------------------------------------------------------------------------------


class CachedReward(Reward):
    """A reward whose judgements are kept in memory, so that each plan of a task is judged once.

    Plans are told apart by their derivations: in an ambiguous grammar one word has several plans, each with a reward of
    its own. Two threads that meet the same plan at the same time may both judge it; within one call of
    :meth:`judge_many` each distinct pair is judged once.

    Args:
        reward: see :func:`reward_of`. If it is not deterministic, it is passed through and nothing is kept.
    """

    def __init__(self, reward: str | RewardFunction) -> None:
        self.reward = reward_of(reward)
        super().__init__(
            self.reward.judge,
            name=self.reward.name,
            deterministic=self.reward.deterministic,
            invalid=self.reward.invalid,
        )
        self._known: dict[tuple[Task, str], Judged] = {}

    @property
    def identity(self) -> dict[str, object] | None:
        """The identity of the underlying reward."""
        return self.reward.identity

    @property
    def settings(self) -> dict[str, object]:
        """The settings of the underlying reward."""
        return self.reward.settings

    def __len__(self) -> int:
        """Return the number of judgements that are kept."""
        return len(self._known)

    def judge(self, task: Task, plan: Plan) -> Judged:
        """Like :meth:`Reward.judge`, unless the result is known."""
        return self.judge_many([(task, plan)])[0]

    def judge_many(self, pairs: Iterable[tuple[Task, Plan]], workers: int = 1) -> list[Judged]:
        """Like :meth:`Reward.judge_many`; if a judgement raises an error, the earlier ones are kept."""
        rows = list(pairs)
        if not self.deterministic:
            return self.reward.judge_many(rows, workers)
        keys = [_key_of(task, plan) for task, plan in rows]
        todo = {key: row for key, row in zip(keys, rows, strict=True) if key not in self._known}
        waiting = list(todo)
        for number, judged in self.reward.judge_each(list(todo.values()), workers):
            self._known[waiting[number]] = judged
        return [self._known[key] for key in keys]


def _key_of(task: Task, plan: Plan) -> tuple[Task, str]:
    """Return what distinguishes a plan for a task from all others, in 64 characters besides the task."""
    derivation = json.dumps([plan.task, plan.order, plan.complete, plan.tree.flat()])
    return task, hashlib.sha256(derivation.encode()).hexdigest()


# -- by name ----------------------------------------------------------------------------------------------------------


def reward_of(reward: str | RewardFunction) -> Reward:
    """Return a reward from a specification by a person or a recipe.

    Args:
        reward: a :class:`Reward`; a function of a task and a plan; or ``MODULE:NAME``, which is a :class:`Reward`, a
            class or function without arguments that creates one, or a function of a task and a plan in an importable
            module. Naming a module runs its code, so a recipe must be as trusted as a program.

    Raises:
        ResourceNotFound: there is no reward of that name.
        TypeError: the value is not callable.
    """
    found: object = reward
    if isinstance(reward, str):
        module, colon, attribute = reward.partition(":")
        if not colon:
            raise ResourceNotFound("reward", reward, ["MODULE:NAME"])
        found = _import_reward(reward, module, attribute)
    if isinstance(found, Reward):
        return found
    if not callable(found):
        raise TypeError(f"a reward is a function of a task and a plan, not {type(found).__name__}")
    return Reward(cast("RewardFunction", found))


def _import_reward(reward: str, module: str, attribute: str) -> object:
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module exists, but one of its own imports is missing
        raise ResourceNotFound("module of rewards", module) from None
    if not attribute or not hasattr(loaded, attribute):
        available = [name for name, value in vars(loaded).items() if callable(value) and not name.startswith("_")]
        raise ResourceNotFound("reward", reward, [f"{module}:{name}" for name in available])
    found = getattr(loaded, attribute)
    if isinstance(found, Reward) or not callable(found):
        return found
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):
        return found  # it takes a task and a plan
    return found()


def name_of(function: object) -> str | None:
    """Return the module and name under which a function can be imported; None for a lambda, a closure, an object."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name or getattr(function, "__self__", None):
        return None
    return f"{module}:{name}"


def _check_number(name: str, given: object, task: Task, plan: Plan) -> float:
    if type(given) is float:
        return given
    try:
        if given is None or isinstance(given, (str, bytes)):
            raise TypeError
        return float(given)  # type: ignore[arg-type]  # anything else that converts to a number
    except (TypeError, ValueError, OverflowError):
        raise RewardError(
            f"the reward {name} gave {given!r}, not a finite number", task=task.description, word=plan.word
        ) from None


def _check_finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"the reward of plans that are {name} is a finite number, not {value}")
    return float(value)
