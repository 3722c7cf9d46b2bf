"""The executor: plans in, results out."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol, TypedDict

from formal_llm.automata import Limits, Source
from formal_llm.errors import ExecutionError
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.cache import DiskCache
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.graph import Given, Graph
from formal_llm.tools.kinds import Kind
from formal_llm.tools.result import Result
from formal_llm.tools.scheduler import OnProgress, Scheduler
from formal_llm.tools.store import Stats, Store
from formal_llm.tools.tool import Tool

#: The inputs of a plan, by terminal.
Inputs = Mapping[str, object]
#: A plan and its inputs, after its place among those that are executed.
Row = tuple[int, Plan, Inputs]


class ToolSet(Protocol):
    """What an executor asks of its tools. A :class:`~formal_llm.tools.Toolkit` has it."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""

    @property
    def inputs(self) -> Mapping[str, Kind]:
        """The kinds of inputs that are known, by terminal."""

    def __iter__(self) -> Iterator[Tool]: ...

    def __contains__(self, name: object) -> bool: ...

    def limits(self, source: Source, given: Collection[str] | None = None) -> Limits:
        """See :meth:`Toolkit.limits`."""


class PlanExecutor(ABC):
    """What executors have in common: one plan, many plans, one result after the other.

    Args:
        toolkit: the tools.
        window: how many plans of :meth:`run_many` are under way.
    """

    def __init__(self, toolkit: ToolSet, window: int) -> None:
        self.toolkit = toolkit
        self.window = window

    def limits(self, source: Source, given: Collection[str] | None = None) -> Limits:
        """As :meth:`Toolkit.limits`."""
        return self.toolkit.limits(source, given)

    def run(
        self,
        plan: Plan,
        inputs: Inputs,
        *,
        cancel: threading.Event | None = None,
        on_progress: OnProgress | None = None,
    ) -> Result:
        """Execute a plan.

        Args:
            plan: a finished plan of a grammar in which each production is a tool and its arguments.
            inputs: the inputs by terminal. A tuple gives several values to the places of the terminal, from left to
                right in the word; the last one also to all places after it.
            cancel: when it is set, the execution ends.
            on_progress: called with what happens, in this thread.

        Returns:
            The result, with every intermediate value.

        Raises:
            ToolkitError, InputError: a tool or an input is missing, or their kinds do not fit; before anything runs.
            ToolError: a tool failed; says which and where, and carries what was computed.
            Cancelled: ``cancel`` was set; carries what was computed.
        """
        (result,) = self._execute_rows([(0, plan, inputs)], True, cancel, on_progress)
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
        """Execute many plans at once; equal sub-plans on equal inputs are executed once. See :meth:`iterate`."""
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
        """As :meth:`run_many`, one result after the other, so that not all have to be in memory.

        Args:
            plans: the plans; or one plan for all inputs. They are taken as places become free.
            inputs: the inputs of each plan; or one mapping for all plans.
            keep: whether results keep the values of all steps; else they keep the value of the whole plan.
            cancel: when it is set, what has not ended ends with ``Cancelled``.
            on_progress: called with what happens, in this thread.

        Returns:
            A result for each plan, in their order. One that failed has its error in ``error`` and touches no other.

        Raises:
            ToolkitError, InputError: a plan cannot be executed at all; before those with it in a window are begun.
            ValueError: one plan and one mapping (then it is :meth:`run`), or not as many plans as inputs.
        """
        rows = rows_of(plans, inputs)
        while window := list(islice(rows, self.window)):
            yield from self._execute_rows(window, keep, cancel, on_progress)

    @abstractmethod
    def _execute_rows(
        self, rows: Sequence[Row], keep: bool, cancel: threading.Event | None, on_progress: OnProgress | None
    ) -> list[Result]:
        """The results of some plans; an error of one of them is in its result."""


class Executor(PlanExecutor):
    """Executes plans: the nested calls from the inside out, independent branches at the same time.

    A tool is called once for equal inputs: what it gave is kept in memory within a bound, and on disk where a cache is
    given, for all plans, runs and processes that use it. Threads may share an executor.

    Args:
        toolkit: the tools.
        workers: how many calls are made at the same time.
        timeout: seconds that one call may take, for tools that do not say; None for no bound.
        retries: how often a call that failed is tried again, for tools that do not say.
        retry_wait: seconds before the second try; twice as long before each next one.
        cache: a :class:`DiskCache`, or the folder of one; None for none.
        memory: how many bytes of results are kept in memory.
        max_bytes: the largest value that a tool may return.
        batch_size: how many calls of a tool that can do many together are given to it at once.
        window: how many plans of :meth:`run_many` are under way; their values are in memory at the same time.
        max_hung: how many calls that hang may be left behind before tools that hang are not called any more.

    Raises:
        ValueError: a setting that is none.
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
    ) -> None:
        least = {"workers": 1, "batch_size": 1, "window": 1, "retries": 0, "memory": 0, "max_hung": 1}
        given = dict(zip(least, (workers, batch_size, window, retries, memory, max_hung), strict=True))
        for name, bound in least.items():
            if given[name] < bound:
                raise ValueError(f"{name} counts from {bound}, not {given[name]}")
        if timeout is not None and timeout <= 0:
            raise ValueError(f"timeout is a number of seconds above 0, not {timeout}")
        super().__init__(toolkit, window)
        self.workers = workers
        self.batch_size = batch_size
        self._caller = Caller(CallLimits(timeout, retries, retry_wait, max_bytes, max_hung))
        disk = cache if cache is None or isinstance(cache, DiskCache) else DiskCache(cache)
        self._store = Store(memory, disk)

    @property
    def stats(self) -> Stats:
        """What was done so far, and what did not have to be done."""
        return self._store.stats

    def _execute_rows(
        self, rows: Sequence[Row], keep: bool, cancel: threading.Event | None, on_progress: OnProgress | None
    ) -> list[Result]:
        return Scheduler(
            graph_of(self.toolkit, rows, keep),
            self._store,
            self._caller,
            workers=self.workers,
            batch_size=self.batch_size,
            keep=keep,
            cancel=cancel,
            on_progress=on_progress,
        ).run_jobs()


class ExecutorSettings(TypedDict, total=False):
    """The settings of an :class:`Executor` that others hand on to it."""

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


def graph_of(toolkit: ToolSet, rows: Iterable[Row], keep: bool) -> Graph:
    """The calls of plans, checked.

    Raises:
        ToolkitError, InputError: a plan cannot be executed at all.
    """
    graph = Graph(toolkit.tools, keep=keep)
    typed: dict[int, Given] = {}  # one mapping for many plans is looked at once
    rows = list(rows)
    for index, plan, inputs in rows:
        if id(inputs) not in typed:
            typed[id(inputs)] = Given(inputs, toolkit.inputs)
        try:
            graph.add_plan(plan, typed[id(inputs)], index)
        except ExecutionError as error:
            if len(rows) > 1:
                error.add_note(f"in plan {index} (counted from 0)")
            raise
    return graph


def rows_of(plans: Plan | Iterable[Plan], inputs: Inputs | Iterable[Inputs]) -> Iterator[Row]:
    """Each plan with its inputs, and their place."""
    if isinstance(plans, Plan):
        if isinstance(inputs, Mapping):
            raise ValueError("one plan and the inputs for one: that is run(plan, inputs)")
        return ((index, plans, row) for index, row in enumerate(inputs))
    if isinstance(inputs, Mapping):
        return ((index, plan, inputs) for index, plan in enumerate(plans))
    return ((index, plan, row) for index, (plan, row) in enumerate(zip(plans, inputs, strict=True)))
