"""The executor on Ray, for plans on several machines (the optional extra ``ray``).

Each of Ray's workers runs an :class:`Executor` of its own on a share of the plans. Values travel as the bytes of their
kinds. With a cache in a folder that all machines see, equal sub-plans are shared between them as well.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from formal_llm.errors import Cancelled, MissingDependency, ToolError
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.calling import POLL
from formal_llm.tools.executor import Executor, ExecutorSettings, PlanExecutor, Row, ToolSet, graph_of
from formal_llm.tools.graph import PlanJob
from formal_llm.tools.kinds import Value
from formal_llm.tools.result import Result
from formal_llm.tools.scheduler import OnProgress, Progress

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RayExecutor(PlanExecutor):
    """As :class:`Executor`, on the machines of a Ray cluster.

    Ray must have been started (``ray.init``); the toolkit is sent to its workers, so its functions must be such that
    Ray can send them.

    Args:
        toolkit: the tools.
        actors: how many executors work at the same time.
        options: what Ray shall set aside for each of them, such as ``{"num_gpus": 1}``.
        chunk: how many plans go to a worker at once.
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
        **settings: Unpack[ExecutorSettings],
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingDependency("several machines need Ray: pip install 'formal-llm[ray]'") from error
        if actors < 1 or chunk < 1:
            raise ValueError("actors and chunk count from 1")
        tried: ExecutorSettings = {**settings, "cache": None}
        Executor(toolkit, **tried)  # settings that are none are told here
        super().__init__(toolkit, chunk * actors)
        self.chunk = chunk
        self._ray = ray
        remote: Any = ray.remote(**options)(_Worker) if options else ray.remote(_Worker)
        self._actors: list[Any] = [remote.remote(toolkit, settings) for _ in range(actors)]

    def close(self) -> None:
        """End the workers."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []

    def _execute(
        self, rows: Sequence[Row], keep: bool, cancel: threading.Event | None, on_progress: OnProgress | None
    ) -> list[Result]:
        jobs = graph_of(self.toolkit, rows, keep).jobs  # what cannot be executed is told here, before anything runs
        chunks = [jobs[start : start + self.chunk] for start in range(0, len(jobs), self.chunk)]
        streams = [
            actor.run.remote([(job.plan, job.given.values) for job in chunk], keep, on_progress is not None)
            for chunk, actor in zip(chunks, self._actors, strict=False)
        ]
        numbers = {id(stream): number for number, stream in enumerate(streams)}
        results: dict[int, list[Result]] = {}
        progress = _Together(chunks)
        left = list(streams)
        while left and (cancel is None or not cancel.is_set()):
            ready, left = self._ray.wait(left, num_returns=1, timeout=None if cancel is None else POLL)
            for stream in ready:
                number = numbers[id(stream)]
                told = self._ray.get(next(stream))
                if isinstance(told, Progress):
                    left.append(stream)
                    if on_progress is not None:
                        on_progress(progress.after(number, told))
                else:
                    results[number] = told
        for stream in left:
            self._ray.cancel(stream)
        none = {number: [Result(job.plan, (), Cancelled()) for job in chunk] for number, chunk in enumerate(chunks)}
        return [result for number in range(len(chunks)) for result in results.get(number, none[number])]


class _Together:
    """The progress of several executors as that of one.

    Args:
        chunks: the jobs of each executor.
    """

    def __init__(self, chunks: Sequence[Sequence[PlanJob]]) -> None:
        self._chunks = chunks
        self._last: dict[int, Progress] = {}

    def after(self, number: int, told: Progress) -> Progress:
        """What one of the executors tells, as it is to all of them."""
        self._last[number] = told
        done, total = (sum(getattr(last, name) for last in self._last.values()) for name in ("done", "total"))
        return replace(told, job=self._chunks[number][told.job].index, done=done, total=total)


class _Worker:
    """An executor on one of Ray's workers."""

    def __init__(self, toolkit: ToolSet, settings: ExecutorSettings) -> None:
        self._executor = Executor(toolkit, **settings)

    def run(
        self, rows: Sequence[tuple[Plan, Mapping[str, list[Value]]]], keep: bool, tell: bool
    ) -> Iterator[Progress | list[Result]]:
        """What happens, as it happens, where that is wanted; in the end the results."""
        plans = [plan for plan, _ in rows]
        inputs = [{name: tuple(values) for name, values in given.items()} for _, given in rows]
        events: SimpleQueue[Progress | None] = SimpleQueue()
        with ThreadPoolExecutor(1, thread_name_prefix="formal-llm-ray") as pool:
            running = pool.submit(
                self._executor.run_many, plans, inputs, keep=keep, on_progress=events.put if tell else None
            )
            running.add_done_callback(lambda _: events.put(None))
            while (event := events.get()) is not None:
                yield event
        results = running.result()
        for result in results:
            if isinstance(result.error, ToolError):
                result.error.cause = None  # which may be of a class that cannot be sent; the error tells what it said
        yield results
