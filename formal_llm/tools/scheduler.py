"""The scheduler of a graph of calls: whatever is ready runs at once, on threads, until every job has its result.

One thread, that of the caller, does the bookkeeping: which calls are ready, which jobs have ended, which values are
still needed. The other threads only look results up and call tools (:mod:`formal_llm.tools.call_runner`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import KW_ONLY, dataclass
from heapq import heapify, heappop, heappush
from typing import Literal

from formal_llm.errors import Cancelled, ExecutionError, ToolError
from formal_llm.tools.call_runner import CallOutcome, CallRunner
from formal_llm.tools.calling import POLL, Caller
from formal_llm.tools.graph import CallNode, Graph, PlanJob
from formal_llm.tools.kinds import Value
from formal_llm.tools.result import Result, StepResult
from formal_llm.tools.store import Store


@dataclass(frozen=True, slots=True)
class Progress:
    """An event of a call.

    Attributes:
        event: ``"started"``, ``"executed"``, ``"cached"`` or ``"failed"``.
        tool: the tool.
        job: the position of the first plan that needs the call, among those executed together.
        position: the position of the call in the word of that plan.
        done: the number of calls that have ended.
        total: the known number of calls (of many plans, those in progress).
        seconds: the time that the tool took.
    """

    event: Literal["started", "executed", "cached", "failed"]
    tool: str
    job: int
    position: int
    done: int
    total: int
    seconds: float = 0.0


#: Called with each event.
OnProgress = Callable[[Progress], None]


@dataclass(eq=False)
class Scheduler:
    """Executes one graph.

    Args:
        graph: the calls.
        store: the known results; receives the new ones.
        caller: calls tools.
        workers: the number of threads.
        batch_size: the maximum number of calls passed at once to a tool that can process several together.
        keep: whether results keep all their values, or only the last one.
        cancel: when it is set, everything unfinished ends with ``Cancelled``.
        on_progress: called with each event, in the thread of the caller.
    """

    graph: Graph
    store: Store
    caller: Caller
    _: KW_ONLY
    workers: int
    batch_size: int
    keep: bool
    cancel: threading.Event | None = None
    on_progress: OnProgress | None = None

    def __post_init__(self) -> None:
        self._begin = time.perf_counter()
        #: Calls of earlier jobs come first, so that values are soon no longer needed.
        self._ready: list[tuple[int, CallNode]] = []
        self._results: dict[int, Result] = {}
        self._total = sum(node.tool is not None for node in self.graph.nodes)
        self._done = 0

    def run_jobs(self) -> list[Result]:
        """Return the results of the jobs, in order. An exception in ``on_progress`` ends the run."""
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="formal-llm-run")
        flying: set[Future[list[CallOutcome]]] = set()
        try:
            for node in self.graph.nodes:
                if node.tool is None:
                    assert node.value is not None
                    self._finish_call(CallOutcome(node, node.value, "given"))
                elif not node.arguments:
                    heappush(self._ready, (node.number, node))
            while len(self._results) < len(self.graph.jobs):
                if self.cancel is not None and self.cancel.is_set():
                    self._give_up()
                    break
                while len(flying) < self.workers and (nodes := self._next_calls()):
                    flying.add(pool.submit(CallRunner(self.store, self.caller, self.cancel).run_nodes, nodes))
                    for node in nodes:
                        self._notify_progress("started", node)
                ended, flying = wait(flying, None if self.cancel is None else POLL, FIRST_COMPLETED)
                for future in ended:
                    for outcome in future.result():
                        self._take_outcome(outcome)
        finally:
            # Calls that still run for a job that has failed are left to end by themselves.
            pool.shutdown(wait=False, cancel_futures=True)
        return [self._results[job.index] for job in self.graph.jobs]

    # -- bookkeeping ------------------------------------------------------------------------------------------------

    def _next_calls(self) -> list[CallNode]:
        """Return the next ready and needed call, with others of its tool if that can process several together."""
        while self._ready:
            _, node = heappop(self._ready)
            if not _is_needed(node):
                continue
            assert node.tool is not None
            nodes = [node]
            if node.tool.batch is not None and self.batch_size > 1:
                alike = sorted(item for item in self._ready if item[1].tool is node.tool and _is_needed(item[1]))
                taken = alike[: self.batch_size - 1]
                nodes += [other for _, other in taken]
                gone = {number for number, _ in taken}
                self._ready = [item for item in self._ready if item[0] not in gone]
                heapify(self._ready)
            return nodes
        return []

    def _take_outcome(self, outcome: CallOutcome) -> None:
        self._done += 1
        node, result = outcome.node, outcome.given
        node.seconds, node.tries = outcome.seconds, outcome.tries
        if isinstance(result, Value):
            self._notify_progress("cached" if outcome.state == "cached" else "executed", node)
            self._finish_call(outcome)
        elif isinstance(result, ToolError):
            self._notify_progress("failed", node)
            node.state = "failed"
            for job in node.jobs:
                if not job.ended:
                    position = job.nodes.index(node)
                    step = next((step for step in job.plan.steps if step.position == position), None)
                    self._end_job(job, result.at(position, step))
        else:
            self._give_up()

    def _finish_call(self, outcome: CallOutcome) -> None:
        """Record the result of a call."""
        node = outcome.node
        assert isinstance(outcome.given, Value)
        node.value, node.state = outcome.given, outcome.state
        for user in node.users:
            user.missing -= 1
            if not user.missing and _is_needed(user):
                heappush(self._ready, (user.number, user))
        for job in node.jobs:
            job.left -= 1
            if not job.left and not job.ended:
                self._end_job(job, None)
        for argument in node.arguments:
            _release_value(argument)
        if not node.uses:
            node.value = None

    def _end_job(self, job: PlanJob, error: ExecutionError | None) -> None:
        job.ended, job.error = True, error
        seconds = time.perf_counter() - self._begin
        distinct = dict.fromkeys(job.nodes)
        cost = sum(node.tool.cost for node in distinct if node.tool is not None and node.state == "executed")
        rows = enumerate(zip(job.nodes, job.labels, job.arguments, strict=True))
        steps = []
        for place, (node, label, under) in rows:
            value = node.value if self.keep or place == 0 else None
            steps.append(StepResult(place, node.name, label, node.state, value, under, node.seconds, node.tries))
        result = Result(job.plan, tuple(steps), error, seconds, cost)
        if isinstance(error, (ToolError, Cancelled)):
            error.result = result
        self._results[job.index] = result
        for node in distinct:
            if self.keep or node is job.nodes[0]:
                _release_value(node)

    def _give_up(self) -> None:
        for job in self.graph.jobs:
            if not job.ended:
                self._end_job(job, Cancelled())

    def _notify_progress(self, event: Literal["started", "executed", "cached", "failed"], node: CallNode) -> None:
        if self.on_progress is not None:
            job = next((job for job in node.jobs if not job.ended), node.jobs[0])
            place = job.nodes.index(node)
            self.on_progress(Progress(event, node.name, job.index, place, self._done, self._total, node.seconds))


def _is_needed(node: CallNode) -> bool:
    return any(not job.ended for job in node.jobs)


def _release_value(node: CallNode) -> None:
    """Count one user less; release a value that is no longer needed."""
    node.uses -= 1
    if not node.uses:
        node.value = None
