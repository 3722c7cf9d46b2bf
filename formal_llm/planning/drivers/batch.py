"""Many walks at once.

A :class:`TaskRun` is one task on its way to a plan: it has a question, takes an answer (or what went wrong instead),
and ends with an :class:`Outcome`. It does no input or output. What drives many of them differs by how an LLM can be
asked: awaited, from threads, many questions together, or one after the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice

from formal_llm.errors import BudgetExceeded, InvalidAnswer, LLMError
from formal_llm.llms.llm import LLM, AsyncLLM, BatchLLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.drivers.driving import Snapshot, Steps, WalkDriver, achosen, chosen, give
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import Budget, Meter
from formal_llm.planning.walks.walk import Walk

#: How many walks are under way where nobody says: for an LLM that is awaited, and for one that is asked many together.
AWAITED, TOGETHER = 32, 64


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of a task among many.

    Attributes:
        index: its place among the tasks, from 0.
        task: the task.
        plan: the finished plan; None if there is none.
        error: why there is none: an exception of this library, or whatever the LLM raised.
        usage: what it took, also where it failed.
        walk: where there is no plan, the walk as far as it came: its snapshot is where to go on from. None where it did
            not even begin.
    """

    index: int
    task: Task
    plan: Plan | None
    error: Exception | None
    usage: Usage
    walk: Walk | None = None

    def unwrap(self) -> Plan:
        """The plan; raises the error if there is none."""
        if self.plan is None:
            assert self.error is not None
            raise self.error
        return self.plan


class SharedBudget:
    """What many walks may use together, and have used."""

    def __init__(self, budget: Budget, meter: Meter) -> None:
        self._budget = budget
        self._meter = meter

    def take(self, walk: Walk) -> None:
        """Raise if nothing is left for another question of ``walk``; else count the question.

        Raises:
            BudgetExceeded: with the partial plan.
        """
        spent = self._budget.spent(self._meter.usage(0))
        if spent is not None:
            raise BudgetExceeded(*spent, walk.partial, shared=True)
        self._meter.questions += 1

    def pay(self, tokens: TokenUsage) -> None:
        """Count what an answer took."""
        if tokens.requests:
            self._meter.tokens += tokens


class TaskRun:
    """One task on its way to a plan; its index, the place among others, is also the name of its walk.

    Attributes:
        question: what is to be answered now; None at the end.
        outcome: what became of it; None before the end.
        walk: its walk; None where it did not even begin.
    """

    def __init__(
        self,
        driver: WalkDriver,
        index: int,
        task: str | Task,
        shared: SharedBudget | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        self.question: Question | None = None
        self.outcome: Outcome | None = None
        self._index = index
        self._task = Task.of(task)
        self._shared = shared
        self.walk: Walk | None = None
        self._steps: Steps | None = None
        try:
            if snapshot is None:
                self.walk, drawn = driver.start(self._task, name=str(index)), ""
            else:
                self.walk = driver.resume(snapshot, self._task, name=str(index))
                drawn = f":{self.walk.usage.questions}"  # draws that are not those which led here
            self._steps = driver.steps(self.walk, random.Random(f"{driver.seed}:{index}{drawn}"))
            self._advance(next)
        except Exception as error:  # before the first question: there is no valid plan, for example
            self._end(error)

    def give(self, given: Answer | Exception) -> None:
        """Take an answer to the question; or what was raised instead of one, which ends it unless it is asked again."""
        if self._shared is not None:
            usage = given.usage if isinstance(given, (Answer, InvalidAnswer)) else None
            self._shared.pay(usage or TokenUsage())
        self._advance(lambda steps: give(steps, given))

    def _advance(self, move: Callable[[Steps], Question]) -> None:
        assert self._steps is not None
        assert self.walk is not None
        try:
            self.question = move(self._steps)
            if self._shared is not None:
                try:
                    self._shared.take(self.walk)
                except BudgetExceeded as error:
                    self._steps.throw(error)  # so that what watches the walk hears of it
        except StopIteration:
            self._end(None)
        except Exception as error:
            self._end(error)

    def _end(self, error: Exception | None) -> None:
        walk = self.walk
        self.question = None
        plan = walk.plan if walk is not None and error is None else None
        usage = walk.usage if walk is not None else Usage()
        if plan is not None:
            usage = plan.usage
        elif isinstance(error, BudgetExceeded):
            usage = error.plan.usage  # a best-first search has used more than its walk knows of
        self.outcome = Outcome(self._index, self._task, plan, error, usage, walk if plan is None else None)


class BatchRun:
    """The runs of many tasks, begun one by one as places become free, and their outcomes; see :meth:`Planner.plan_all`.

    Raises:
        ValueError: a budget of steps or backtracks, which only single plans have.
    """

    def __init__(
        self,
        driver: WalkDriver,
        tasks: Iterable[str | Task],
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
        on_outcome: Callable[[Outcome], None] | None = None,
    ) -> None:
        self.llm = driver.llm
        self._outcomes: list[Outcome] = []
        self._on_outcome = on_outcome
        shared = None
        if budget is not None:
            if (budget.steps, budget.backtracks) != (Budget().steps, None):
                raise ValueError("steps and backtracks are bounded for each plan: Planner(budget=...)")
            budget.check(driver.prices)
            shared = SharedBudget(budget, Meter(driver.prices))
        old = begun or {}
        self._begun = (
            TaskRun(driver, index, task, shared, old.get(index))
            for index, task in enumerate(tasks)
            if index not in skip
        )

    def __iter__(self) -> Iterator[TaskRun]:
        """The runs that have a question; the outcomes of those that end before one are noted."""
        for begun in self._begun:
            if begun.outcome is None:
                yield begun
            else:
                self.note(begun)

    def note(self, ended: TaskRun) -> None:
        """Note the outcome of a run that has ended."""
        assert ended.outcome is not None
        self._outcomes.append(ended.outcome)
        if self._on_outcome is not None:
            self._on_outcome(ended.outcome)

    def in_order(self) -> list[Outcome]:
        """All outcomes in the order of the tasks."""
        return sorted(self._outcomes, key=lambda outcome: outcome.index)


def run(batch: BatchRun, concurrency: int | None = None) -> list[Outcome]:
    """Take all tasks of a batch to their end; see :meth:`Planner.plan_all`."""
    llm = batch.llm
    if isinstance(llm, AsyncLLM):
        import asyncio  # here and below: half of what importing this library would take, and most never need it

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(arun(batch, concurrency))
        raise RuntimeError("plan_all was called from a coroutine; await planner.aplan_all(...) there")
    many = _concurrency(llm, concurrency)
    if isinstance(llm, BatchLLM):
        _together(batch, llm, many)
    elif many > 1:
        _threads(batch, llm, many)
    else:
        for begun in batch:
            while begun.question is not None:
                begun.give(chosen(llm.choose, begun.question))
            batch.note(begun)
    return batch.in_order()


async def arun(batch: BatchRun, concurrency: int | None = None) -> list[Outcome]:
    """As :func:`run`, on the running event loop; see :meth:`Planner.aplan_all`."""
    import asyncio

    llm = batch.llm
    if not isinstance(llm, AsyncLLM):
        return await asyncio.to_thread(run, batch, concurrency)
    runs = iter(batch)

    async def worker() -> None:
        for begun in runs:  # shared: each worker takes the next one
            while (question := begun.question) is not None:
                begun.give(await achosen(llm, question, begun.walk))
            batch.note(begun)
            await asyncio.sleep(0)  # so that a run whose answers are all at hand can be stopped

    workers = [asyncio.create_task(worker()) for _ in range(_concurrency(llm, concurrency))]
    try:
        await asyncio.gather(*workers)
    finally:
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await llm.aclose()
    return batch.in_order()


def _concurrency(llm: LLM, given: int | None) -> int:
    if given is None:
        return AWAITED if isinstance(llm, AsyncLLM) else TOGETHER if isinstance(llm, BatchLLM) else 1
    if given < 1:
        raise ValueError(f"concurrency counts from 1, not {given}")
    return given


def _threads(batch: BatchRun, llm: LLM, many: int) -> None:
    """Ask from ``many`` threads; the walks themselves advance in this one, since they share what they learn."""
    pool = ThreadPoolExecutor(many, thread_name_prefix="formal-llm")
    runs = iter(batch)
    waiting: dict[Future[Answer | Exception], TaskRun] = {}

    def ask(begun: TaskRun) -> None:
        assert begun.question is not None
        waiting[pool.submit(chosen, llm.choose, begun.question)] = begun

    try:
        for begun in islice(runs, many):
            ask(begun)
        while waiting:
            walks = [begun.walk for begun in waiting.values() if begun.walk is not None and begun.walk.undecided]
            while not any(future.done() for future in waiting) and any(walk.ponder() for walk in walks):
                pass
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                begun = waiting.pop(future)
                begun.give(future.result())
                if begun.question is not None:
                    ask(begun)
                    continue
                batch.note(begun)
                if (following := next(runs, None)) is not None:
                    ask(following)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _together(batch: BatchRun, llm: BatchLLM, many: int) -> None:
    """Ask the questions of up to ``many`` walks together, round after round."""
    runs = iter(batch)
    under_way: list[TaskRun] = []
    while True:
        under_way += islice(runs, many - len(under_way))
        if not under_way:
            return
        answers: list[Answer | LLMError] | list[Exception]
        try:
            answers = llm.choose_many([e.question for e in under_way if e.question is not None])
        except Exception as error:
            answers = [error] * len(under_way)
        for begun, answer in zip(under_way, answers, strict=True):
            begun.give(answer)
            if begun.outcome is not None:
                batch.note(begun)
        under_way = [begun for begun in under_way if begun.outcome is None]
