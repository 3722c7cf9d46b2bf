"""The executor on Ray, for plans on several machines (the optional extra ``ray``).

Each Ray worker runs its own :class:`Executor` on a share of the plans. Values are sent as the bytes of their kinds.
With a cache in a folder that all machines can access, equal sub-plans are also shared between workers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from formal_llm.errors import Cancelled, ExecutionError, MissingDependency, ToolError
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.vocabulary import write_word
from formal_llm.tools.calling import POLL, error_line
from formal_llm.tools.executor import Executor, ExecutorSettings, PlanExecutor, Row, ToolSet, graph_of
from formal_llm.tools.graph import PlanJob
from formal_llm.tools.kinds import Value
from formal_llm.tools.result import Result
from formal_llm.tools.scheduler import OnProgress, Progress

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RayExecutor(PlanExecutor):
    """Like :class:`Executor`, on the machines of a Ray cluster.

    Ray must have been started (``ray.init``). The toolkit is sent to its workers, so Ray must be able to serialize its
    functions.

    A worker that dies, with or without its machine, is replaced, and its plans are assigned again: what it had not
    reported is executed once more (unless a ``cache`` has it). Plans whose workers die repeatedly are split up until a
    single plan is identified as the cause; its error is then an ``ExecutionError``.

    Args:
        actors: the number of concurrent executors.
        options: the resources that Ray reserves for each of them, such as ``{"num_gpus": 1}``.
        chunk: the number of plans sent to a worker at once.
        deaths: the number of workers that may die over the same plans before these are split up, or have failed.
        **settings: the settings of the executors; a ``cache`` must be the path of a folder.

    Raises:
        MissingDependency: Ray is not installed.
    """

    def __init__(
        self,
        toolkit: ToolSet,
        *,
        actors: int = 2,
        options: Mapping[str, object] | None = None,
        chunk: int = 32,
        deaths: int = 2,
        **settings: Unpack[ExecutorSettings],
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingDependency("several machines need Ray: pip install 'formal-llm[ray]'") from error
        if actors < 1 or chunk < 1 or deaths < 1:
            raise ValueError("actors, chunk and deaths count from 1")
        tried: ExecutorSettings = {**settings, "cache": None}
        Executor(toolkit, **tried)  # reports invalid settings
        super().__init__(toolkit, chunk * actors)
        self.chunk = chunk
        self.deaths = deaths
        self._ray: Any = ray
        gone = ("RayActorError", "NodeDiedError", "WorkerCrashedError", "ObjectLostError", "OutOfMemoryError")
        self._deadly: tuple[type[Exception], ...] = tuple(getattr(ray.exceptions, name) for name in gone)
        remote: Any = self._ray.remote(**options)(_RayWorker) if options else self._ray.remote(_RayWorker)
        self._make: Callable[[], Any] = lambda: remote.remote(toolkit, settings)
        self._actors: list[Any] = [self._make() for _ in range(actors)]
        #: Replacement workers by their ready signals, until these arrive. A cluster that has lost a machine may have no
        #: room for them; the remaining workers then do their work.
        self._coming: dict[Any, int] = {}

    def close(self) -> None:
        """End the workers."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors, self._coming = [], {}

    def _execute_rows(
        self, rows: Sequence[Row], keep: bool, cancel: threading.Event | None, on_progress: OnProgress | None
    ) -> list[Result]:
        jobs = graph_of(self.toolkit, rows, keep).jobs  # plans that cannot be executed are reported here
        waiting = deque(_Share(jobs[start : start + self.chunk]) for start in range(0, len(jobs), self.chunk))
        idle = deque(place for place in range(len(self._actors)) if place not in self._coming.values())
        running: dict[Any, tuple[int, _Share]] = {}  # by stream: the worker's place and its share
        results: dict[int, Result] = {}
        progress = _Together(waiting)
        while (waiting or running) and (cancel is None or not cancel.is_set()):
            while waiting and idle:
                place, share = idle.popleft(), waiting.popleft()
                plans = [(job.plan, job.given.values) for job in share.jobs]
                running[self._actors[place].run.remote(plans, keep, on_progress is not None)] = place, share
            timeout = None if cancel is None else POLL
            ready, _ = self._ray.wait([*running, *self._coming], num_returns=1, timeout=timeout)
            for stream in ready:
                if stream in self._coming:
                    self._on_ready(stream, idle)
                    continue
                place, share = running.pop(stream)
                try:
                    message: Progress | list[Result] = self._ray.get(next(stream))
                except self._deadly as error:
                    self._replace_worker(place)
                    waiting.extend(self._after_death(share, error, results))
                    progress.requeue_share(share, waiting)
                    continue
                if isinstance(message, Progress):
                    running[stream] = place, share  # at the end, so that each stream has its turn
                    if on_progress is not None:
                        on_progress(progress.merge_progress(share, message))
                else:
                    results.update(zip((job.index for job in share.jobs), message, strict=True))
                    idle.append(place)
        for stream in running:
            self._ray.cancel(stream)
        cancelled = {job.index: Result(job.plan, (), Cancelled()) for job in jobs if job.index not in results}
        results |= cancelled
        return [results[job.index] for job in jobs]

    def _replace_worker(self, place: int) -> None:
        self._ray.kill(self._actors[place])  # in case only its machine or a result was lost
        self._actors[place] = self._make()
        self._coming[self._actors[place].ready.remote()] = place

    def _on_ready(self, ready: Any, idle: deque[int]) -> None:
        """Handle a replacement worker that has become ready, or is gone as well."""
        place = self._coming.pop(ready)
        try:
            self._ray.get(ready)
        except self._deadly as error:
            if getattr(error, "actor_init_failed", False):
                raise ExecutionError(f"no worker can be started: {error_line(error)}") from error
            self._replace_worker(place)
        else:
            idle.append(place)

    def _after_death(self, share: _Share, error: Exception, results: dict[int, Result]) -> list[_Share]:
        """Return the shares to redo after a worker's death; record the result of a plan identified as the cause."""
        if share.deaths + 1 < self.deaths:
            return [_Share(share.jobs, share.deaths + 1)]
        if len(share.jobs) > 1:
            half = len(share.jobs) // 2
            return [_Share(share.jobs[:half]), _Share(share.jobs[half:])]
        (job,) = share.jobs
        shown = write_word(job.plan.word, job.plan.order)
        problem = f"{self.deaths} workers died over the plan {shown}: {error_line(error)}"
        results[job.index] = Result(job.plan, (), ExecutionError(problem))
        return []


@dataclass(frozen=True, eq=False)
class _Share:
    """Plans that are sent to a worker together, and the number of workers that have died over them."""

    jobs: Sequence[PlanJob]
    deaths: int = 0


class _Together:
    """The combined progress of several executors."""

    def __init__(self, shares: Iterable[_Share]) -> None:
        self._last: dict[_Share, tuple[int, int]] = dict.fromkeys(shares, (0, 0))

    def merge_progress(self, share: _Share, progress: Progress) -> Progress:
        """Convert the progress of a share to that of all of them."""
        self._last[share] = progress.done, progress.total
        done, total = map(sum, zip(*self._last.values(), strict=True))
        return replace(progress, job=share.jobs[progress.job].index, done=done, total=total)

    def requeue_share(self, share: _Share, waiting: Iterable[_Share]) -> None:
        """Account for the death of a worker: its work is redone by the workers that have its share now."""
        del self._last[share]
        self._last |= {other: self._last.get(other, (0, 0)) for other in waiting}


class _RayWorker:
    def __init__(self, toolkit: ToolSet, settings: ExecutorSettings) -> None:
        self._executor = Executor(toolkit, **settings)

    def ready(self) -> None:
        """Do nothing, which shows that the worker is ready."""

    def run(
        self, rows: Sequence[tuple[Plan, Mapping[str, list[Value]]]], keep: bool, report: bool
    ) -> Iterator[Progress | list[Result]]:
        """Yield each progress event if requested, and finally the results."""
        plans = [plan for plan, _ in rows]
        inputs = [{name: tuple(values) for name, values in by_name.items()} for _, by_name in rows]
        events: SimpleQueue[Progress | None] = SimpleQueue()
        with ThreadPoolExecutor(1, thread_name_prefix="formal-llm-ray") as pool:
            running = pool.submit(
                self._executor.run_many, plans, inputs, keep=keep, on_progress=events.put if report else None
            )
            running.add_done_callback(lambda _: events.put(None))
            while (event := events.get()) is not None:
                yield event
        results = running.result()
        for result in results:
            if isinstance(result.error, ToolError):
                result.error.cause = None  # its class may not be serializable; the error contains its text
        yield results
