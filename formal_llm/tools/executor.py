"""The executor, which turns plans into results."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol, TypedDict

from formal_llm.automata import Limits, Source
from formal_llm.errors import ExecutionError
from formal_llm.llms.providers import LLMLike, resolve
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.cache import DiskCache
from formal_llm.tools.calling import Caller, CallLimits, run_blocking
from formal_llm.tools.carrying import PlansRun
from formal_llm.tools.kinds import Kind
from formal_llm.tools.order import Clock
from formal_llm.tools.result import OnProgress, Result
from formal_llm.tools.steps import Given, PlannedSteps, StepReader
from formal_llm.tools.store import Stats, Store
from formal_llm.tools.tool import Tool

#: The inputs of a plan, by terminal.
Inputs = Mapping[str, object]
#: A plan and its inputs, preceded by its position among the executed plans.
Row = tuple[int, Plan, Inputs]


class ToolSet(Protocol):
    """What an executor requires of its tools. A :class:`~formal_llm.tools.Toolkit` provides it."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""

    @property
    def inputs(self) -> Mapping[str, Kind]:
        """The known kinds of inputs, by terminal."""

    def __iter__(self) -> Iterator[Tool]: ...

    def __contains__(self, name: object) -> bool: ...

    def limits(self, source: Source, given: Collection[str] | None = None) -> Limits:
        """See :meth:`Toolkit.limits`."""


class PlanExecutor(ABC):
    """The common part of executors: executing one plan, many plans, or an iterable of them.

    Args:
        window: the number of plans that :meth:`run_many` processes at the same time.
    """

    def __init__(self, toolkit: ToolSet, window: int) -> None:
        self.toolkit = toolkit
        self.window = window

    def limits(self, source: Source, given: Collection[str] | None = None) -> Limits:
        """See :meth:`Toolkit.limits`."""
        return self.toolkit.limits(source, given)

    def run(
        self,
        plan: Plan,
        inputs: Inputs,
        *,
        after: Result | None = None,
        cancel: threading.Event | None = None,
        on_progress: OnProgress | None = None,
    ) -> Result:
        """Execute a plan.

        Args:
            plan: a complete plan. Nested calls say which result goes where. In any other plan a tool finds its
                arguments: for each parameter the input or the earlier result of its name (a result has the name of its
                tool, or what the tool ``returns``; of several the last one), else the only one of its kind.
            inputs: the inputs by terminal, in sequences also by the names of parameters. A tuple assigns several values
                to the occurrences of the terminal, from left to right in the word; the last one also to all later
                occurrences.
            after: the result of another plan with the same inputs, which ended with an error: as far as this plan
                begins with the steps that were carried out there, their results are taken, and no call is repeated.
            cancel: ends the execution when it is set.
            on_progress: called with each event, in this thread.

        Returns:
            The result, with every intermediate value.

        Raises:
            ToolkitError, InputError: a tool or an input is missing, or kinds do not match; raised before anything runs.
            ToolError: a tool failed; specifies which and where, and carries the results so far.
            Cancelled: ``cancel`` was set; carries the results so far.
        """
        (result,) = self.execute_rows([(0, plan, inputs)], True, cancel, on_progress, after)
        if result.error is not None:
            raise result.error
        return result

    def run_many(
        self,
        plans: Plan | Iterable[Plan],
        inputs: Inputs | Iterable[Inputs],
        *,
        keep: bool = False,
        cancel: threading.Event | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[Result]:
        """Execute many plans at once; equal sub-plans with equal inputs are executed once. See :meth:`iterate`."""
        return list(self.iterate(plans, inputs, keep=keep, cancel=cancel, on_progress=on_progress))

    def iterate(
        self,
        plans: Plan | Iterable[Plan],
        inputs: Inputs | Iterable[Inputs],
        *,
        keep: bool = False,
        cancel: threading.Event | None = None,
        on_progress: OnProgress | None = None,
    ) -> Iterator[Result]:
        """Like :meth:`run_many`, but yield one result after the other, so that not all have to be in memory.

        Args:
            plans: the plans, consumed as capacity becomes free; or one plan for all inputs.
            inputs: the inputs of each plan; or one mapping for all plans.
            keep: whether results keep the values of all steps, or only the value of the whole plan.
            cancel: when it is set, everything unfinished ends with ``Cancelled``.
            on_progress: called with each event, in this thread.

        Returns:
            A result for each plan, in order. A failed plan has its error in ``error`` and does not affect the others.

        Raises:
            ToolkitError, InputError: a plan cannot be executed at all; raised before the plans of its window start.
            ValueError: one plan and one mapping (use :meth:`run`), or different numbers of plans and inputs.
        """
        rows = rows_of(plans, inputs)
        while window := list(islice(rows, self.window)):
            yield from self.execute_rows(window, keep, cancel, on_progress)

    @abstractmethod
    def execute_rows(
        self,
        rows: Sequence[Row],
        keep: bool,
        cancel: threading.Event | None = None,
        on_progress: OnProgress | None = None,
        after: Result | None = None,
    ) -> list[Result]:
        """Return the results of some plans; a plan's error is in its result."""


class Executor(PlanExecutor):
    """Executes plans: the steps of a plan one after the other, in its order, and each as often as the plan says.

    Tools that are ``pure`` are the exception: equal calls are one call, whose result is kept in memory up to a limit
    and, with a cache, on disk, for all plans, runs and processes that use it; and their calls run side by side where
    every order of them keeps the rules of the plan. Several plans are executed side by side, each in its own order.
    An executor is thread-safe.

    Where the rules say when steps may be, an executor waits: until a gap is over, until a window opens. A step that
    comes too late fails (:class:`ToolError` with the reason ``late``).

    Args:
        workers: the number of concurrent calls.
        timeout: seconds allowed for one call, for tools that do not specify it; None for no limit.
        retries: how often a failed call of a tool that is pure or idempotent is retried, for those that do not specify
            it. Other tools are called once.
        retry_wait: seconds before the second try; doubled before each further one.
        cache: a :class:`DiskCache` or its folder; None for no cache.
        memory: the maximum number of bytes of results kept in memory.
        max_bytes: the size limit for a value that a tool returns.
        batch_size: the maximum number of calls passed at once to a tool that can process several together.
        window: the number of plans that :meth:`run_many` processes, and keeps in memory, at the same time.
        max_hung: the number of hanging calls to abandon before tools that hang are no longer called.
        arguments: the model that writes the arguments that a step of a sequence does not find, as a provider string or
            an :class:`~formal_llm.llms.LLM`; None for an error before the first call.
        clock: the time by which gaps and windows are kept; default: that of this machine.
        wait: whether to keep them at all. Without it nothing is waited for, and no step is late; the schedule that the
            rules give is :attr:`Plan.schedule`.

    Raises:
        ValueError: a setting is invalid.
    """

    def __init__(
        self,
        toolkit: ToolSet,
        *,
        workers: int = 4,
        timeout: float | None = None,
        retries: int = 0,
        retry_wait: float = 0.0,
        cache: DiskCache | str | os.PathLike[str] | None = None,
        memory: int = 256_000_000,
        max_bytes: int = 500_000_000,
        batch_size: int = 16,
        window: int = 256,
        max_hung: int = 32,
        arguments: LLMLike | None = None,
        clock: Clock | None = None,
        wait: bool = True,
    ) -> None:
        least = {"workers": 1, "batch_size": 1, "window": 1, "retries": 0, "memory": 0, "max_hung": 1}
        values = dict(zip(least, (workers, batch_size, window, retries, memory, max_hung), strict=True))
        for name, bound in least.items():
            if values[name] < bound:
                raise ValueError(f"{name} counts from {bound}, not {values[name]}")
        if timeout is not None and timeout <= 0:
            raise ValueError(f"timeout is a number of seconds above 0, not {timeout}")
        super().__init__(toolkit, window)
        self.workers = workers
        self.batch_size = batch_size
        self.clock, self.wait = clock, wait
        self.llm = None if arguments is None else resolve(arguments)
        self._caller = Caller(CallLimits(timeout, retries, retry_wait, max_bytes, max_hung))
        disk = cache if cache is None or isinstance(cache, DiskCache) else DiskCache(cache)
        self._store = Store(memory, disk)

    @property
    def stats(self) -> Stats:
        """The statistics of executed calls and of calls that were saved."""
        return self._store.stats

    def execute_rows(
        self,
        rows: Sequence[Row],
        keep: bool,
        cancel: threading.Event | None = None,
        on_progress: OnProgress | None = None,
        after: Result | None = None,
    ) -> list[Result]:
        """See :meth:`PlanExecutor.execute_rows`."""
        plans = read_rows(self.toolkit, rows, fills=self.llm is not None)

        async def run_plans() -> list[Result]:
            run = PlansRun(
                self._caller, self._store, self.llm, self.clock, wait=self.wait, workers=self.workers,
                batch_size=self.batch_size, keep=keep, cancel=cancel, on_progress=on_progress,
            )  # fmt: skip
            return await run.run_plans(plans, after)

        return run_blocking(run_plans())


class ExecutorSettings(TypedDict, total=False):
    """The settings of an :class:`Executor` that others pass on to it."""

    workers: int
    timeout: float | None
    retries: int
    retry_wait: float
    cache: str | os.PathLike[str] | None
    memory: int
    max_bytes: int
    batch_size: int
    window: int
    max_hung: int
    arguments: LLMLike | None
    clock: Clock | None
    wait: bool


def read_rows(toolkit: ToolSet, rows: Sequence[Row], *, fills: bool = False) -> list[tuple[int, PlannedSteps]]:
    """Return the steps of plans, checked.

    Raises:
        ToolkitError, InputError: a plan cannot be executed at all.
    """
    reader, plans = StepReader(toolkit.tools, fills=fills), []
    typed: dict[int, Given] = {}  # one mapping for many plans is checked once
    for index, plan, inputs in rows:
        if id(inputs) not in typed:
            typed[id(inputs)] = Given(inputs, toolkit.inputs)
        try:
            plans.append((index, reader.read_plan(plan, typed[id(inputs)])))
        except ExecutionError as error:
            if len(rows) > 1:
                error.add_note(f"in plan {index} (counted from 0)")
            raise
    return plans


def rows_of(plans: Plan | Iterable[Plan], inputs: Inputs | Iterable[Inputs]) -> Iterator[Row]:
    """Yield each plan with its inputs and its position."""
    if isinstance(plans, Plan):
        if isinstance(inputs, Mapping):
            raise ValueError("one plan and the inputs for one: that is run(plan, inputs)")
        return ((index, plans, row) for index, row in enumerate(inputs))
    if isinstance(inputs, Mapping):
        return ((index, plan, inputs) for index, plan in enumerate(plans))
    return ((index, plan, row) for index, (plan, row) in enumerate(zip(plans, inputs, strict=True)))
