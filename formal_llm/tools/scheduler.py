"""Carries out a graph of calls: whatever is ready runs at once, on threads, until every job has its result.

One thread, that of the caller, keeps the books: which calls are ready, which jobs have ended, which values are still
needed. The other threads only look results up and call tools.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Literal

from formal_llm.errors import Cancelled, ExecutionError, ToolError
from formal_llm.tools.calling import POLL, Caller, said
from formal_llm.tools.graph import Graph, Job, Node
from formal_llm.tools.result import Result, State, StepResult
from formal_llm.tools.store import Store, step_key
from formal_llm.tools.values import Value


@dataclass(frozen=True, slots=True)
class Progress:
    """Something happened to a call.

    Attributes:
        event: ``"started"``, ``"executed"``, ``"cached"`` or ``"failed"``.
        tool: the tool.
        job: the place of the first plan that needs the call, among those that are executed together.
        position: the place of the call in the word of that plan.
        done: how many calls have ended.
        total: how many calls there are, as far as is known (of many plans, those that are under way).
        seconds: how long the tool took.
    """

    event: Literal["started", "executed", "cached", "failed"]
    tool: str
    job: int
    position: int
    done: int
    total: int
    seconds: float = 0.0


@dataclass(slots=True)
class Outcome:
    """What became of a call."""

    node: Node
    given: Value | ExecutionError
    state: State
    seconds: float = 0.0
    tries: int = 0


class Scheduler:
    """Carries out one graph.

    Args:
        graph: the calls.
        store: what is known, and where results are kept.
        caller: calls tools.
        workers: how many threads.
        batch_size: how many calls of a tool that can do many together are given to it at once.
        keep: whether results keep all their values, or the last one only.
        cancel: when set, everything that has not ended ends with ``Cancelled``.
        on_progress: called with what happens, in the thread of the caller.
    """

    def __init__(
        self,
        graph: Graph,
        store: Store,
        caller: Caller,
        *,
        workers: int,
        batch_size: int,
        keep: bool,
        cancel: threading.Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._graph = graph
        self._store = store
        self._caller = caller
        self._workers = workers
        self._batch_size = batch_size
        self._keep = keep
        self._cancel = cancel
        self._on_progress = on_progress
        self._begin = time.perf_counter()
        self._ready: list[tuple[int, Node]] = []  # those of earlier jobs first, so that values are soon needed no more
        self._results: dict[int, Result] = {}
        self._total = sum(node.tool is not None for node in graph.nodes)
        self._done = 0

    def run(self) -> list[Result]:
        """The results of the jobs, in their order. What ``on_progress`` raises ends the run."""
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="formal-llm-run")
        flying: set[Future[list[Outcome]]] = set()
        try:
            for node in self._graph.nodes:
                if node.tool is None:
                    assert node.value is not None
                    self._finish(Outcome(node, node.value, "given"))
                elif not node.arguments:
                    heappush(self._ready, (node.number, node))
            while len(self._results) < len(self._graph.jobs):
                if self._cancel is not None and self._cancel.is_set():
                    self._give_up()
                    break
                while len(flying) < self._workers and (nodes := self._next()):
                    flying.add(pool.submit(self._work, nodes))
                    for node in nodes:
                        self._tell("started", node)
                ended, flying = wait(flying, None if self._cancel is None else POLL, FIRST_COMPLETED)
                for future in ended:
                    for outcome in future.result():
                        self._take(outcome)
        finally:
            # What is still running, for a job that failed meanwhile, is left to end by itself.
            pool.shutdown(wait=False, cancel_futures=True)
        return [self._results[job.index] for job in self._graph.jobs]

    # -- the books ----------------------------------------------------------------------------------------------

    def _next(self) -> list[Node]:
        """The next call that is ready and needed; with it others of its tool, if that can do many together."""
        while self._ready:
            _, node = heappop(self._ready)
            if not _needed(node):
                continue
            assert node.tool is not None
            nodes = [node]
            if node.tool.batch is not None and self._batch_size > 1:
                alike = sorted(item for item in self._ready if item[1].tool is node.tool and _needed(item[1]))
                taken = alike[: self._batch_size - 1]
                nodes += [other for _, other in taken]
                gone = {number for number, _ in taken}
                self._ready = [item for item in self._ready if item[0] not in gone]
                heapify(self._ready)
            return nodes
        return []

    def _take(self, outcome: Outcome) -> None:
        self._done += 1
        node, given = outcome.node, outcome.given
        node.seconds, node.tries = outcome.seconds, outcome.tries
        if isinstance(given, Value):
            self._tell("cached" if outcome.state == "cached" else "executed", node)
            self._finish(outcome)
        elif isinstance(given, ToolError):
            self._tell("failed", node)
            node.state = "failed"
            for job in node.jobs:
                if not job.ended:
                    position = job.nodes.index(node)
                    step = next((step for step in job.plan.steps if step.position == position), None)
                    self._end(job, given.at(position, step))
        else:
            self._give_up()

    def _finish(self, outcome: Outcome) -> None:
        """A call has its result."""
        node = outcome.node
        assert isinstance(outcome.given, Value)
        node.value, node.state = outcome.given, outcome.state
        for user in node.users:
            user.missing -= 1
            if not user.missing and _needed(user):
                heappush(self._ready, (user.number, user))
        for job in node.jobs:
            job.left -= 1
            if not job.left and not job.ended:
                self._end(job, None)
        for argument in node.arguments:
            _release(argument)
        if not node.uses:
            node.value = None

    def _end(self, job: Job, error: ExecutionError | None) -> None:
        job.ended, job.error = True, error
        seconds = time.perf_counter() - self._begin
        distinct = dict.fromkeys(job.nodes)
        cost = sum(node.tool.cost for node in distinct if node.tool is not None and node.state == "executed")
        steps = tuple(
            StepResult(
                position,
                node.name,
                job.labels[position],
                node.state,
                node.value if self._keep or position == 0 else None,
                job.arguments[position],
                node.seconds,
                node.tries,
            )
            for position, node in enumerate(job.nodes)
        )
        result = Result(job.plan, steps, error, seconds, cost)
        if isinstance(error, (ToolError, Cancelled)):
            error.result = result
        self._results[job.index] = result
        for node in distinct:
            if self._keep or node is job.nodes[0]:
                _release(node)

    def _give_up(self) -> None:
        for job in self._graph.jobs:
            if not job.ended:
                self._end(job, Cancelled())

    def _tell(self, event: Literal["started", "executed", "cached", "failed"], node: Node) -> None:
        if self._on_progress is not None:
            job = next((job for job in node.jobs if not job.ended), node.jobs[0])
            place = job.nodes.index(node)
            self._on_progress(Progress(event, node.name, job.index, place, self._done, self._total, node.seconds))

    # -- on the other threads -----------------------------------------------------------------------------------

    def _work(self, nodes: Sequence[Node]) -> list[Outcome]:
        """Look results up, compute those that are not there, wait for those that another thread is computing."""
        outcomes: list[Outcome] = []
        mine: list[tuple[Node, list[Value], str | None]] = []
        waiting: list[tuple[Node, list[Value], str, Future[Value]]] = []
        for node in nodes:
            tool, inputs = node.tool, _inputs(node)
            assert tool is not None
            if not tool.deterministic:
                mine.append((node, inputs, None))
                continue
            key = step_key(tool, inputs)
            flight = self._store.claim(key)
            if flight is not None:
                waiting.append((node, inputs, key, flight))
            elif (known := self._look(node, key)) is not None:
                outcomes.append(known)
            else:
                mine.append((node, inputs, key))
        outcomes += self._compute(mine)
        outcomes += [self._wait(*one) for one in waiting]
        return outcomes

    def _look(self, node: Node, key: str) -> Outcome | None:
        """The result of a call that this thread has claimed, if it is known; then the claim is settled."""
        assert node.tool is not None
        try:
            found = self._store.find(key, node.tool.output)
        except Exception:  # what cannot be read is not known; the claim must not be left behind
            found = None
        if found is None:
            return None
        self._store.settle(key, found)
        return Outcome(node, found, "cached")

    def _compute(self, calls: Sequence[tuple[Node, list[Value], str | None]]) -> list[Outcome]:
        """Call the tool; together first where there are several, one by one if that does not work."""
        if len(calls) > 1:
            tool = calls[0][0].tool
            assert tool is not None
            begin = time.perf_counter()
            try:
                values = self._caller.call_many(tool, [inputs for _, inputs, _ in calls], self._cancel)
            except (ToolError, Cancelled):
                pass  # one of them is to blame; by themselves each fails or succeeds on its own
            except BaseException as error:
                self._settle_all(calls, error)
                raise
            else:
                share = (time.perf_counter() - begin) / len(calls)
                return [
                    self._keep_value(Outcome(node, value, "executed", share, 1), key)
                    for (node, _, key), value in zip(calls, values, strict=True)
                ]
        outcomes: list[Outcome] = []
        for number, (node, inputs, key) in enumerate(calls):
            assert node.tool is not None
            begin = time.perf_counter()
            try:
                value, tries = self._caller.call(node.tool, inputs, self._cancel)
            except (ToolError, Cancelled) as error:
                if key is not None:
                    self._store.settle(key, error)
                outcomes.append(Outcome(node, error, "failed", time.perf_counter() - begin))
            except BaseException as error:
                self._settle_all(calls[number:], error)
                raise
            else:
                done = Outcome(node, value, "executed", time.perf_counter() - begin, tries)
                outcomes.append(self._keep_value(done, key))
        return outcomes

    def _keep_value(self, outcome: Outcome, key: str | None) -> Outcome:
        value = outcome.given
        assert isinstance(value, Value)
        self._store.count(executed=1)
        if key is None:
            return outcome
        try:
            self._store.keep(key, value)
        except Exception as error:  # a kind of somebody's own that cannot write its values
            problem = f"returned a value that cannot be kept: {said(error)}"
            failure = ToolError(outcome.node.name, problem, reason="kind", cause=error)
            self._store.settle(key, failure)
            return Outcome(outcome.node, failure, "failed", outcome.seconds, outcome.tries)
        self._store.settle(key, value)
        return outcome

    def _settle_all(self, calls: Sequence[tuple[Node, list[Value], str | None]], error: BaseException) -> None:
        for _, _, key in calls:
            if key is not None:
                self._store.settle(key, error)

    def _wait(self, node: Node, inputs: list[Value], key: str, flight: Future[Value]) -> Outcome:
        """The result that another thread is computing."""
        while True:
            try:
                value = flight.result(None if self._cancel is None else POLL)
            except TimeoutError:
                if self._cancel is not None and self._cancel.is_set() and not flight.done():
                    return Outcome(node, Cancelled(), "failed")
                continue
            except Cancelled:  # not ours: it is for us to compute now, unless a third has begun
                again = self._store.claim(key)
                if again is None:
                    return self._look(node, key) or self._compute([(node, inputs, key)])[0]
                flight = again
            except ToolError as error:
                return Outcome(node, error, "failed")
            else:
                self._store.count(shared=1)
                return Outcome(node, value, "cached")


def _inputs(node: Node) -> list[Value]:
    values = [argument.value for argument in node.arguments]
    return [value for value in values if value is not None]


def _needed(node: Node) -> bool:
    return any(not job.ended for job in node.jobs)


def _release(node: Node) -> None:
    """One user less; a value that nobody needs is let go."""
    node.uses -= 1
    if not node.uses:
        node.value = None
