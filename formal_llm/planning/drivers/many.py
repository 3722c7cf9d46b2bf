"""Many plans with one planner: all of them in a list, or each as it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Container, Generator, Iterable, Mapping

from formal_llm.planning.drivers.batch import Outcome, TaskRunBatch
from formal_llm.planning.drivers.driving import Snapshot, WalkDriver
from formal_llm.planning.drivers.streams import arun_batch, astream_outcomes, run_batch, stream_outcomes
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import Budget


class PlansMany:
    """The methods of a planner for many tasks; the planner is a :class:`WalkDriver`."""

    def plan_all(
        self: WalkDriver,
        tasks: Iterable[str | Task],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
        on_outcome: Callable[[Outcome], None] | None = None,
    ) -> list[Outcome]:
        """A plan for each task; many walks advance together, and one task's failure is its own.

        How they advance depends on the LLM: one that can be awaited has ``concurrency`` questions in flight; one that
        answers many questions together is asked ``concurrency`` at once; any other is asked one at a time, or from
        ``concurrency`` threads if that is given and above 1 (then it must allow being called from several threads).

        Args:
            tasks: the tasks; taken one by one as places become free, so a generator of many will do.
            concurrency: how many walks are under way at most.
            budget: what all plans together may use: questions, requests, tokens, cost (what each may use is the
                planner's own budget). It is looked at before each question, so at most the questions in flight go
                beyond it; what is not finished by then ends with ``BudgetExceeded``, its ``shared`` True.
            skip: places among the tasks, from 0, that are left out since they are done already.
            begun: for places among the tasks, from 0, the snapshot of a walk to go on from (:meth:`Walk.snapshot`).
            on_outcome: called with each outcome as it comes. What it raises ends the run.

        Returns:
            One outcome for each task, in their order: the plan, or what went wrong.

        Raises:
            ValueError: a concurrency below 1; a budget of steps or backtracks, which only single plans have.
            RuntimeError: called from a coroutine; there :meth:`aplan_all` is awaited.
        """
        return run_batch(TaskRunBatch(self, tasks, budget, skip, begun, on_outcome), concurrency)

    async def aplan_all(
        self: WalkDriver,
        tasks: Iterable[str | Task],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
        on_outcome: Callable[[Outcome], None] | None = None,
    ) -> list[Outcome]:
        """As :meth:`plan_all`, on the running event loop."""
        return await arun_batch(TaskRunBatch(self, tasks, budget, skip, begun, on_outcome), concurrency)

    def plan_each(
        self: WalkDriver,
        tasks: Iterable[str | Task],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
    ) -> Generator[Outcome]:
        """As :meth:`plan_all`, but each outcome is handed out as it comes and then let go.

        For any number of tasks: no more plans are held than are under way, and a task is taken from ``tasks`` when a
        place is free and the outcome before was taken. Whoever stops early, with ``break`` or ``close()``, stops the
        run.

        Returns:
            The outcomes in the order in which the plans are finished; :attr:`Outcome.index` is the place of the task.
        """
        return stream_outcomes(TaskRunBatch(self, tasks, budget, skip, begun), concurrency)

    def aplan_each(
        self: WalkDriver,
        tasks: Iterable[str | Task],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
    ) -> AsyncGenerator[Outcome]:
        """As :meth:`plan_each`, on the running event loop: ``async for outcome in planner.aplan_each(tasks)``."""
        return astream_outcomes(TaskRunBatch(self, tasks, budget, skip, begun), concurrency)
