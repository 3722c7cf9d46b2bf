"""The executor on Ray, for plans on several machines (the optional extra ``ray``).

Each of Ray's workers runs an :class:`Executor` of its own on a share of the plans. Values travel as the bytes of their
kinds. With a cache in a folder that all machines see, equal sub-plans are shared between them as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from formal_llm.automata import Limits
from formal_llm.errors import Cancelled, MissingDependency
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.calling import POLL
from formal_llm.tools.executor import Executor, Inputs, rows_of
from formal_llm.tools.graph import Given, Graph
from formal_llm.tools.kinds import Kind
from formal_llm.tools.result import Result, value_from_data, value_to_data
from formal_llm.tools.scheduler import Progress
from formal_llm.tools.toolkit import Toolkit


class RayExecutor:
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
        toolkit: Toolkit,
        *,
        actors: int = 2,
        options: Mapping[str, Any] | None = None,
        chunk: int = 32,
        **settings: Any,
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingDependency("several machines need Ray: pip install 'formal-llm[ray]'") from error
        if actors < 1 or chunk < 1:
            raise ValueError("actors and chunk count from 1")
        Executor(toolkit, **{**settings, "cache": None})  # settings that are none are told here
        self.toolkit = toolkit
        self.chunk = chunk
        self._ray = ray
        self._kinds = {kind.name: kind for tool in toolkit for kind in (*tool.inputs, tool.output)}
        self._kinds.update((kind.name, kind) for kind in toolkit.inputs.values())
        remote: Any = ray.remote(**options)(_Worker) if options else ray.remote(_Worker)
        self._actors: list[Any] = [remote.remote(toolkit, settings) for _ in range(actors)]

    def limits(self, source: Any, given: Collection[str] | None = None) -> Limits:
        """As :meth:`Toolkit.limits`."""
        return self.toolkit.limits(source, given)

    def run(
        self,
        plan: Plan,
        inputs: Inputs,
        *,
        cancel: threading.Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Result:
        """As :meth:`Executor.run`; progress is told when the plan has ended."""
        (result,) = self._send([(0, plan, inputs)], True, cancel, on_progress)
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
        on_progress: Callable[[Progress], None] | None = None,
    ) -> list[Result]:
        """As :meth:`Executor.run_many`; progress is told in the end of each chunk."""
        return list(self.iterate(plans, inputs, keep=keep, cancel=cancel, on_progress=on_progress))

    def iterate(
        self,
        plans: Plan | Iterable[Plan],
        inputs: Inputs | Iterable[Inputs],
        *,
        keep: bool = False,
        cancel: threading.Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Iterator[Result]:
        """As :meth:`Executor.iterate`."""
        rows = rows_of(plans, inputs)
        while window := list(islice(rows, self.chunk * len(self._actors))):
            yield from self._send(window, keep, cancel, on_progress)

    def close(self) -> None:
        """End the workers."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []

    def _send(
        self,
        rows: list[tuple[int, Plan, Inputs]],
        keep: bool,
        cancel: threading.Event | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> list[Result]:
        graph = Graph(self.toolkit, keep=keep)  # what cannot be executed is told here, before anything runs
        typed: dict[int, Given] = {}
        data = []
        for index, plan, inputs in rows:
            if id(inputs) not in typed:
                typed[id(inputs)] = Given(inputs, self.toolkit.inputs)
            given = typed[id(inputs)]
            graph.add(plan, given, index)
            self._kinds.update((value.kind.name, value.kind) for values in given.values.values() for value in values)
            sent = {name: [value_to_data(value) for value in values] for name, values in given.values.items()}
            data.append((plan.to_json(), sent))
        chunks = [data[start : start + self.chunk] for start in range(0, len(data), self.chunk)]
        waiting = [
            actor.run.remote(chunk, keep, dict(self._kinds)) for chunk, actor in zip(chunks, self._actors, strict=False)
        ]
        answers: dict[Any, Any] = {}
        left = list(waiting)
        while left:
            ended, left = self._ray.wait(left, num_returns=1, timeout=None if cancel is None else POLL)
            answers.update((one, self._ray.get(one)) for one in ended)
            if cancel is not None and cancel.is_set():
                for one in left:
                    self._ray.cancel(one)
                break
        results = []
        done = 0
        for chunk, one in zip(chunks, waiting, strict=True):
            if one not in answers:
                results += [Result(Plan.from_json(plan), (), Cancelled()) for plan, _ in chunk]
                continue
            results += [Result.from_data(row, self._kinds.__getitem__) for row in answers[one]]
        if on_progress is not None:
            for place, result in enumerate(results):
                for step in result.steps:
                    if step.state in ("executed", "cached", "failed"):
                        done += 1
                        told = Progress(step.state, step.name, rows[place][0], step.position, done, done, step.seconds)
                        on_progress(told)
        return results


class _Worker:
    """An executor on one of Ray's workers."""

    def __init__(self, toolkit: Toolkit, settings: Mapping[str, Any]) -> None:
        self._executor = Executor(toolkit, **settings)

    def run(self, rows: list[tuple[str, Any]], keep: bool, kinds: Mapping[str, Kind]) -> list[dict[str, Any]]:
        """The results of plans, as data."""
        plans = [Plan.from_json(plan) for plan, _ in rows]
        inputs = [
            {
                name: tuple(value_from_data(value, kinds.__getitem__) for value in values)
                for name, values in sent.items()
            }
            for _, sent in rows
        ]
        return [result.to_data() for result in self._executor.iterate(plans, inputs, keep=keep)]
