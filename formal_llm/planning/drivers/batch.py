"""Many walks at once.

A :class:`TaskRun` is one task on its way to a plan: it has a question, takes an answer (or what went wrong instead),
and ends with an :class:`Outcome`. It does no input or output; what drives many of them is in
:mod:`formal_llm.planning.drivers.streams`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from threading import Event
from typing import Protocol, TypeVar

from formal_llm.errors import BudgetExceeded, InvalidAnswer, RunStopped
from formal_llm.llms.driven import resumed
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.drivers.driving import Snapshot, Steps, WalkDriver
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import Budget, Meter
from formal_llm.planning.walks.walk import Walk


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of a task among many.

    Attributes:
        index: its place among the tasks, from 0.
        plan: the finished plan; None if there is none.
        error: why there is none: an exception of this library, or whatever the LLM raised.
        usage: what it took, also where it failed.
        walk: where there is no plan, the walk as far as it came: its snapshot is where to continue. None where it did
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


O_co = TypeVar("O_co", covariant=True)


class ConcurrentRun(Protocol):
    """One of many runs under way, as those who drive them see it: a question comes out, an answer goes in."""

    @property
    def question(self) -> Question | None:
        """What is to be answered now; None at the end."""

    def take_answer(self, given: Answer | Exception) -> None:
        """Take an answer to the question; or what was raised instead of one."""


R = TypeVar("R", bound=ConcurrentRun)


class RunBatch(Protocol[R, O_co]):
    """Many runs, begun one by one as places become free, and their outcomes."""

    @property
    def llm(self) -> LLM:
        """Who answers."""

    def __iter__(self) -> Iterator[R]:
        """The runs, those too that end before the first question."""
        ...

    def record_outcome(self, ended: R, /) -> O_co:
        """The outcome of a run that has ended."""
        ...


class SharedBudget:
    """What many walks may use together, and have used."""

    def __init__(self, budget: Budget, meter: Meter) -> None:
        self._budget = budget
        self._meter = meter

    def count_question(self, walk: Walk, question: Question) -> None:
        """Raise if nothing is left for this question of ``walk``; else count it. A draft is a request and no question.

        Raises:
            BudgetExceeded: with the partial plan.
        """
        writes = isinstance(question, TextRequest)
        budget = replace(self._budget, questions=None) if writes else self._budget
        spent = budget.spent(self._meter.count_usage(0))
        if spent is not None:
            raise BudgetExceeded(*spent, walk.partial, shared=True)
        self._meter.questions += not writes

    def count_tokens(self, tokens: TokenUsage) -> None:
        """Count what an answer took."""
        if tokens.requests:
            self._meter.tokens += tokens


class Journal(Protocol):
    """Where the answers of a run are kept: an :class:`~formal_llm.planning.drivers.answer_journal.AnswerJournal`."""

    def record(self, index: int, question: Question, given: Answer | Exception) -> None:
        """Keep what a question of a task was answered."""

    def take(self, index: int, question: Question, *, legal: bool = False) -> Answer | InvalidAnswer | None:
        """Return what a question of a task was answered in an earlier run, once."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How the answers of a run survive its end.

    Attributes:
        journal: where each answer is written before the next question of its plan; None writes none.
        stop: once it is set, no question is asked any more; the answers to those in flight are awaited, and the plans
            that are not finished end with :class:`~formal_llm.errors.RunStopped`.
    """

    journal: Journal | None = None
    stop: Event = field(default_factory=Event)


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
        keeping: Keeping | None = None,
    ) -> None:
        self.question: Question | None = None
        self.outcome: Outcome | None = None
        self._index = index
        self._task = Task.of(task)
        self._shared = shared
        self._keeping = keeping or Keeping()
        self._resumed = snapshot is not None
        self.walk: Walk | None = None
        self._steps: Steps | None = None
        try:
            if snapshot is None:
                self.walk, drawn = driver.start(self._task, name=str(index)), ""
            else:
                self.walk = driver.resume(snapshot, self._task, name=str(index))
                drawn = f":{self.walk.answered}"  # draws that are not those which led here
            self._steps = driver.steps(self.walk, random.Random(f"{driver.seed}:{index}{drawn}"))
            self._advance_walk(None)
        except Exception as error:  # before the first question: there is no valid plan, for example
            self._finish_run(error)

    def take_answer(self, given: Answer | Exception) -> None:
        """Take an answer to the question; or what was raised instead of one, which ends it unless it is asked again.

        Raises:
            RecordError: the answer could not be journalled.
        """
        if self._keeping.journal is not None and self.question is not None:
            self._keeping.journal.record(self._index, self.question, given)
        if self._shared is not None:
            usage = given.usage if isinstance(given, (Answer, InvalidAnswer)) else None
            self._shared.count_tokens(usage or TokenUsage())
        self._advance_walk(given)

    def _advance_walk(self, given: Answer | Exception | None) -> None:
        assert self._steps is not None
        assert self.walk is not None
        try:
            self.question = resumed(self._steps, given)
            while (known := self._find_answer(self.question)) is not None:
                self.question = resumed(self._steps, known)
            try:
                if self._keeping.stop.is_set():
                    raise RunStopped
                if self._shared is not None:
                    self._shared.count_question(self.walk, self.question)
            except (BudgetExceeded, RunStopped) as error:
                self._steps.throw(error)  # so that what watches the walk hears of it
        except StopIteration:
            self._finish_run(None)
        except Exception as error:
            self._finish_run(error)

    def _find_answer(self, question: Question) -> Answer | InvalidAnswer | None:
        """The answer that an earlier run was given and had not used for a plan."""
        journal = self._keeping.journal
        return None if journal is None else journal.take(self._index, question, legal=self._resumed)

    def _finish_run(self, error: Exception | None) -> None:
        walk = self.walk
        self.question = None
        plan = walk.plan if walk is not None and error is None else None
        usage = walk.usage if walk is not None else Usage()
        if plan is not None:
            usage = plan.usage
        elif isinstance(error, BudgetExceeded):
            usage = error.plan.usage  # a best-first search has used more than its walk knows of
        self.outcome = Outcome(self._index, self._task, plan, error, usage, walk if plan is None else None)


class TaskRunBatch:
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
        keeping: Keeping | None = None,
    ) -> None:
        self.llm = driver.llm
        self._on_outcome = on_outcome
        shared = None
        if budget is not None:
            if (budget.steps, budget.backtracks) != (Budget().steps, None):
                raise ValueError("steps and backtracks are bounded for each plan: Planner(budget=...)")
            budget.check(driver.prices)
            shared = SharedBudget(budget, Meter(driver.prices))
        old, keeping = begun or {}, keeping or Keeping()
        self._begun = (
            TaskRun(driver, index, task, shared, old.get(index), keeping)
            for index, task in takewhile(lambda _: not keeping.stop.is_set(), enumerate(tasks))
            if index not in skip
        )

    def __iter__(self) -> Iterator[TaskRun]:
        """The runs, those too that end before the first question."""
        return self._begun

    def record_outcome(self, ended: TaskRun) -> Outcome:
        """The outcome of a run that has ended, noted."""
        assert ended.outcome is not None
        if self._on_outcome is not None:
            self._on_outcome(ended.outcome)
        return ended.outcome
