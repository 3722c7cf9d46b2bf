"""The scheduler of a graph of calls: whatever is ready runs at once, on threads, until every job has its result.

One thread, that of the caller, does the bookkeeping: which calls are ready, which jobs have ended, which values are
still needed. The other threads only look results up and call tools (:mod:`formal_llm.tools.scheduler`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import KW_ONLY, dataclass
from heapq import heapify, heappop, heappush
from typing import Literal

from formal_llm.errors import Cancelled, ExecutionError, ToolError
from formal_llm.tools.calling import POLL, Caller, error_line
from formal_llm.tools.graph import CallNode, Graph, PlanJob
from formal_llm.tools.kinds import Value
from formal_llm.tools.result import Result, StepResult, StepState
from formal_llm.tools.store import Store, step_key
from formal_llm.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of a call.

    Attributes:
        given: its result, or the error.
        state, seconds, tries: see :class:`~formal_llm.tools.result.StepResult`.
    """

    node: CallNode
    given: Value | ExecutionError
    state: StepState
    seconds: float = 0.0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with its requirements; the key of its result is None if it is not shared."""

    node: CallNode
    tool: Tool
    inputs: tuple[Value, ...]
    key: str | None


class CallRunner:
    """Obtains the results of calls of one tool. For one thread.

    Args:
        store: the known results; receives the new ones.
        caller: calls tools.
        cancel: ends all waiting when it is set.
    """

    def __init__(self, store: Store, caller: Caller, cancel: threading.Event | None = None) -> None:
        self._store = store
        self._caller = caller
        self._cancel = cancel
        self._claimed: set[str] = set()  # results that other threads wait for this one to compute

    def run_nodes(self, nodes: Sequence[CallNode]) -> list[CallOutcome]:
        """Return the outcomes of the calls, in any order."""
        try:
            return self._run_calls([_call_of(node) for node in nodes])
        except BaseException as error:  # no thread may wait forever for what this one will not compute
            for key in self._claimed:
                self._store.settle_result(key, error)
            raise

    def _run_calls(self, calls: Sequence[_Call]) -> list[CallOutcome]:
        outcomes: list[CallOutcome] = []
        claimed: list[_Call] = []
        waiting: list[tuple[_Call, str, Future[Value]]] = []
        for call in calls:
            if call.key is None:
                claimed.append(call)
            elif (flight := self._claim_call(call.key)) is not None:
                waiting.append((call, call.key, flight))
            elif (outcome := self._look_up(call, call.key)) is not None:
                outcomes.append(outcome)
            else:
                claimed.append(call)
        outcomes += self._call_together(claimed) if len(claimed) > 1 else map(self._call_alone, claimed)
        outcomes += [self._await_result(*one) for one in waiting]
        return outcomes

    def _claim_call(self, key: str) -> Future[Value] | None:
        flight = self._store.claim_result(key)
        if flight is None:
            self._claimed.add(key)
        return flight

    def _look_up(self, call: _Call, key: str) -> CallOutcome | None:
        """Return the result of a call that this thread has claimed, if it is known."""
        value = self._store.find_result(key, call.tool.output)
        return None if value is None else self._settle_call(call, CallOutcome(call.node, value, "cached"))

    def _call_together(self, calls: Sequence[_Call]) -> list[CallOutcome]:
        """Call a tool that can process several calls together; one by one if that fails."""
        begin = time.perf_counter()
        try:
            values = self._caller.call_many(calls[0].tool, [call.inputs for call in calls], self._cancel)
        except (ToolError, Cancelled):  # one of them is the cause; separately each fails or succeeds on its own
            return [self._call_alone(call) for call in calls]
        share = (time.perf_counter() - begin) / len(calls)
        return [self._keep_result(call, value, share, 1) for call, value in zip(calls, values, strict=True)]

    def _call_alone(self, call: _Call) -> CallOutcome:
        begin = time.perf_counter()
        try:
            value, tries = self._caller.call(call.tool, call.inputs, self._cancel)
        except (ToolError, Cancelled) as error:
            return self._settle_call(call, CallOutcome(call.node, error, "failed", time.perf_counter() - begin))
        return self._keep_result(call, value, time.perf_counter() - begin, tries)

    def _keep_result(self, call: _Call, value: Value, seconds: float, tries: int) -> CallOutcome:
        self._store.count_calls(executed=1)
        outcome = CallOutcome(call.node, value, "executed", seconds, tries)
        if call.key is None:
            return outcome
        try:
            self._store.keep_result(call.key, value)
        except Exception as error:  # whatever the kind's own functions raise that measure and write its values
            problem = f"returned a value that cannot be kept: {error_line(error)}"
            failure = ToolError(call.tool.name, problem, reason="kind", cause=error)
            outcome = CallOutcome(call.node, failure, "failed", seconds, tries)
        return self._settle_call(call, outcome)

    def _settle_call(self, call: _Call, outcome: CallOutcome) -> CallOutcome:
        if call.key is not None:
            self._claimed.discard(call.key)
            self._store.settle_result(call.key, outcome.given)
        return outcome

    def _await_result(self, call: _Call, key: str, flight: Future[Value]) -> CallOutcome:
        """Return the result that another thread is computing."""
        while True:
            try:
                value = flight.result(None if self._cancel is None else POLL)
            except TimeoutError:
                if self._cancel is not None and self._cancel.is_set() and not flight.done():
                    return CallOutcome(call.node, Cancelled(), "failed")
            except Cancelled:  # cancelled elsewhere: this thread computes the result now, unless a third has started
                again = self._claim_call(key)
                if again is None:
                    return self._look_up(call, key) or self._call_alone(call)
                flight = again
            except ToolError as error:
                return CallOutcome(call.node, error, "failed")
            else:
                self._store.count_calls(shared=1)
                return CallOutcome(call.node, value, "cached")


def _call_of(node: CallNode) -> _Call:
    assert node.tool is not None
    inputs = tuple(argument.value for argument in node.arguments if argument.value is not None)
    return _Call(node, node.tool, inputs, step_key(node.tool, inputs) if node.tool.deterministic else None)


@dataclass(frozen=True, slots=True)
class Progress:
    """An event of a call.

    Attributes:
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
