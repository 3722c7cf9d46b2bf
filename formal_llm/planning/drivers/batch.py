"""Many walks at once.

An :class:`Episode` is one task on its way to a plan: it has a question, takes an answer (or what went wrong instead),
and ends with an :class:`Outcome`. It does no input or output. What drives many of them differs by how an LLM can be
asked: awaited, from threads, many questions together, or one after the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from formal_llm.errors import BudgetExceeded, InvalidAnswer, LLMError
from formal_llm.llms.llm import LLM, AsyncLLM, BatchLLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.drivers.search import Steps
from formal_llm.planning.plans.plan import Plan, Usage
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import Budget, Meter

if TYPE_CHECKING:
    from formal_llm.planning.drivers.planner import Planner
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
    """

    index: int
    task: Task
    plan: Plan | None
    error: Exception | None
    usage: Usage

    def unwrap(self) -> Plan:
        """The plan; raises the error if there is none."""
        if self.plan is None:
            assert self.error is not None
            raise self.error
        return self.plan


class Purse:
    """What many walks may use together, and have used.

    Args:
        budget: what they may use.
        meter: counts, with the prices.
    """

    def __init__(self, budget: Budget, meter: Meter) -> None:
        self._budget = budget
        self._meter = meter

    def take(self, walk: Walk) -> None:
        """Raise if nothing is left for another question of ``walk``; else count the question.

        Raises:
            BudgetExceeded: with the partial plan.
        """
        kind = self._budget.spent(self._meter.usage(0))
        if kind is not None:
            raise BudgetExceeded(kind, getattr(self._budget, kind), walk.partial, shared=True)
        self._meter.questions += 1

    def pay(self, tokens: TokenUsage) -> None:
        """Count what an answer took."""
        if tokens.requests:
            self._meter.tokens += tokens


class Episode:
    """One task on its way to a plan.

    Args:
        planner: whose rules and search.
        index: the place of the task among others; also the name of the walk.
        task: the task.
        purse: what all episodes together may use.

    Attributes:
        question: what is to be answered now; None at the end.
        outcome: what became of it; None before the end.
    """

    def __init__(self, planner: Planner, index: int, task: str | Task, purse: Purse | None = None) -> None:
        self.question: Question | None = None
        self.outcome: Outcome | None = None
        self._index = index
        self._task = Task.of(task)
        self._purse = purse
        self._walk: Walk | None = None
        self._steps: Steps | None = None
        try:
            self._walk = planner.start(self._task, name=str(index))
            self._steps = planner.steps(self._walk, random.Random(f"{planner.seed}:{index}"))
            self._advance(lambda steps: next(steps))
        except Exception as error:  # before the first question: there is no valid plan, for example
            self._end(error)

    def give(self, given: Answer | Exception) -> None:
        """Take an answer to the question; or what was raised instead of one, which ends it unless it is asked again."""
        if self._purse is not None:
            usage = given.usage if isinstance(given, (Answer, InvalidAnswer)) else None
            self._purse.pay(usage or TokenUsage())
        if isinstance(given, Exception):
            self._advance(lambda steps: steps.throw(given))
        else:
            self._advance(lambda steps: steps.send(given))

    def _advance(self, move: Callable[[Steps], Question]) -> None:
        assert self._steps is not None
        assert self._walk is not None
        try:
            self.question = move(self._steps)
            if self._purse is not None:
                try:
                    self._purse.take(self._walk)
                except BudgetExceeded as error:
                    self._steps.throw(error)  # so that what watches the walk hears of it
        except StopIteration:
            self._end(None)
        except Exception as error:
            self._end(error)

    def _end(self, error: Exception | None) -> None:
        walk = self._walk
        self.question = None
        plan = walk.plan if walk is not None and error is None else None
        usage = walk.usage if walk is not None else Usage()
        if plan is not None:
            usage = plan.usage
        elif isinstance(error, BudgetExceeded):
            usage = error.plan.usage  # a best-first search has used more than its walk knows of
        self.outcome = Outcome(self._index, self._task, plan, error, usage)


async def adrive(steps: Steps, llm: LLM) -> None:
    """Have the questions of ``steps`` answered by an LLM, letting others go on in the meantime."""
    try:
        question = next(steps)
        while True:
            try:
                answer = await _achoose(llm, question)
            except Exception as error:
                question = steps.throw(error)
            else:
                question = steps.send(answer)
    except StopIteration:
        return


async def _achoose(llm: LLM, question: Question) -> Answer:
    if isinstance(llm, AsyncLLM):
        return await llm.achoose(question)
    import asyncio  # here and below: half of what importing this library would take, and most never need it

    return await asyncio.to_thread(llm.choose, question)


class Terms(NamedTuple):
    """The terms of a run; see :meth:`Planner.plan_all`."""

    budget: Budget | None = None
    skip: Container[int] = ()
    on_outcome: Callable[[Outcome], None] | None = None


class _Batch:
    """The episodes of a run, begun one by one, and their outcomes."""

    def __init__(self, planner: Planner, tasks: Iterable[str | Task], terms: Terms) -> None:
        self.outcomes: list[Outcome] = []
        self._on_outcome = terms.on_outcome
        budget, purse = terms.budget, None
        if budget is not None:
            if (budget.steps, budget.backtracks) != (Budget().steps, None):
                raise ValueError("steps and backtracks are bounded for each plan: Planner(budget=...)")
            budget.check(planner.prices)
            purse = Purse(budget, Meter(planner.prices))
        self._begun = (
            Episode(planner, index, task, purse) for index, task in enumerate(tasks) if index not in terms.skip
        )

    def __iter__(self) -> Iterator[Episode]:
        """The episodes that have a question; the outcomes of those that end before one are noted."""
        for episode in self._begun:
            if episode.outcome is None:
                yield episode
            else:
                self.note(episode)

    def note(self, episode: Episode) -> None:
        """Note the outcome of an episode that has ended."""
        assert episode.outcome is not None
        self.outcomes.append(episode.outcome)
        if self._on_outcome is not None:
            self._on_outcome(episode.outcome)

    def in_order(self) -> list[Outcome]:
        """All outcomes in the order of the tasks."""
        return sorted(self.outcomes, key=lambda outcome: outcome.index)


def run(
    planner: Planner,
    tasks: Iterable[str | Task],
    concurrency: int | None,
    terms: Terms,
) -> list[Outcome]:
    """See :meth:`Planner.plan_all`."""
    llm = planner.llm
    if isinstance(llm, AsyncLLM):
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(arun(planner, tasks, concurrency, terms))
        raise RuntimeError("plan_all was called from a coroutine; await planner.aplan_all(...) there")
    many = _concurrency(llm, concurrency)
    batch = _Batch(planner, tasks, terms)
    if isinstance(llm, BatchLLM):
        _together(batch, llm, many)
    elif many > 1:
        _threads(batch, llm, many)
    else:
        for episode in batch:
            _finish(episode, llm)
            batch.note(episode)
    return batch.in_order()


async def arun(
    planner: Planner,
    tasks: Iterable[str | Task],
    concurrency: int | None,
    terms: Terms,
) -> list[Outcome]:
    """See :meth:`Planner.aplan_all`."""
    import asyncio

    llm = planner.llm
    if not isinstance(llm, AsyncLLM):
        return await asyncio.to_thread(run, planner, tasks, concurrency, terms)
    batch = _Batch(planner, tasks, terms)
    episodes = iter(batch)

    async def worker() -> None:
        for episode in episodes:  # shared: each worker takes the next one
            while (question := episode.question) is not None:
                try:
                    given: Answer | Exception = await llm.achoose(question)
                except Exception as error:
                    given = error
                episode.give(given)
            batch.note(episode)
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


def _chosen(llm: LLM, question: Question) -> Answer | Exception:
    try:
        return llm.choose(question)
    except Exception as error:
        return error


def _finish(episode: Episode, llm: LLM) -> None:
    while episode.question is not None:
        episode.give(_chosen(llm, episode.question))


def _threads(batch: _Batch, llm: LLM, many: int) -> None:
    """Ask from ``many`` threads; the walks themselves advance in this one, since they share what they learn."""
    pool = ThreadPoolExecutor(many, thread_name_prefix="formal-llm")
    episodes = iter(batch)
    waiting: dict[Future[Answer | Exception], Episode] = {}

    def ask(episode: Episode) -> None:
        assert episode.question is not None
        waiting[pool.submit(_chosen, llm, episode.question)] = episode

    try:
        for episode in islice(episodes, many):
            ask(episode)
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                episode = waiting.pop(future)
                episode.give(future.result())
                if episode.question is not None:
                    ask(episode)
                    continue
                batch.note(episode)
                if (following := next(episodes, None)) is not None:
                    ask(following)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _together(batch: _Batch, llm: BatchLLM, many: int) -> None:
    """Ask the questions of up to ``many`` walks together, round after round."""
    episodes = iter(batch)
    under_way: list[Episode] = []
    while True:
        under_way += islice(episodes, many - len(under_way))
        if not under_way:
            return
        answers: list[Answer | LLMError] | list[Exception]
        try:
            answers = llm.choose_many([e.question for e in under_way if e.question is not None])
        except Exception as error:
            answers = [error] * len(under_way)
        for episode, answer in zip(under_way, answers, strict=True):
            episode.give(answer)
            if episode.outcome is not None:
                batch.note(episode)
        under_way = [episode for episode in under_way if episode.outcome is None]
