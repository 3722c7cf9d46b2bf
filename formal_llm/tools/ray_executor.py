"""The executor on Ray, for plans on several machines (the optional extra ``ray``)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from formal_llm.automata import Source
from formal_llm.errors import Cancelled, ExecutionError, MissingDependency, ToolError
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.calling import error_line
from formal_llm.tools.executor import Executor, ExecutorSettings, PlanExecutor, Row, ToolSet, read_rows
from formal_llm.tools.result import OnProgress, Result

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RayExecutor(PlanExecutor):
    """Like :class:`Executor`, on the machines of a Ray cluster: each of its workers executes a share of the plans.

    Ray must have been started (``ray.init``), and must be able to serialize the toolkit. With a cache in a folder that
    all machines can access, results of pure tools are shared between workers. It tells no progress.

    A worker that dies, with or without its machine, is replaced. Its share of the plans is executed again if all their
    tools may be called again (pure or idempotent); otherwise, and after the third death, its plans end with an
    ``ExecutionError``.

    Args:
        actors: the number of workers.
        options: the resources that Ray reserves for each of them, such as ``{"num_gpus": 1}``.
        chunk: the number of plans sent to a worker at once.
        **settings: the settings of the workers' executors; a ``cache`` must be the path of a folder.

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
            from ray.util import ActorPool
        except ImportError as error:
            raise MissingDependency("several machines need Ray: pip install 'formal-llm[ray]'") from error
        if actors < 1 or chunk < 1:
            raise ValueError("actors and chunk count from 1")
        tried: ExecutorSettings = {**settings, "cache": None}
        Executor(toolkit, **tried)  # reports invalid settings
        super().__init__(toolkit, chunk * actors)
        self.chunk = chunk
        self._ray: Any = ray
        again = 2 if all(tool.may_repeat for tool in toolkit) else 0
        remote: Any = ray.remote
        made = remote(max_restarts=-1, max_task_retries=again, **(options or {}))(_RayWorker)
        self._actors = [made.remote(toolkit, settings) for _ in range(actors)]
        self._pool: Any = ActorPool(self._actors)

    def close(self) -> None:
        """End the workers."""
        for actor in self._actors:
            self._ray.kill(actor)

    def execute_rows(
        self,
        rows: Sequence[Row],
        keep: bool,
        cancel: threading.Event | None = None,
        on_progress: OnProgress | None = None,
        after: Result | None = None,
    ) -> list[Result]:
        """See :meth:`PlanExecutor.execute_rows`."""
        if on_progress is not None:
            raise ValueError("a RayExecutor reports no progress; take an Executor, or leave on_progress out")
        read_rows(self.toolkit, rows)  # plans that cannot be executed are reported here
        shares = [rows[start : start + self.chunk] for start in range(0, len(rows), self.chunk)]
        for share in shares:
            sent = [(plan, plan.rules if plan.is_timed else None, inputs) for _, plan, inputs in share]
            self._pool.submit(lambda actor, sent: actor.run.remote(sent, keep, after), sent)
        results: list[Result] = []
        for share in shares:
            error: ExecutionError = Cancelled()
            while cancel is None or not cancel.is_set():
                try:
                    results += self._pool.get_next(timeout=None if cancel is None else 0.2)
                except TimeoutError:
                    continue
                except self._ray.exceptions.RayError as died:
                    error = ExecutionError(f"the worker of this plan died: {error_line(died)}")
                else:
                    share = ()
                break
            results += [Result(plan, (), error) for _, plan, _ in share]
        return results


class _RayWorker:
    def __init__(self, toolkit: ToolSet, settings: ExecutorSettings) -> None:
        self._executor = Executor(toolkit, **settings)

    def run(
        self, sent: Sequence[tuple[Plan, Source | None, Mapping[str, object]]], keep: bool, after: Result | None
    ) -> list[Result]:
        """Return the results of a share of the plans."""
        rows = [
            (index, plan if rules is None else plan.with_rules(rules), inputs)
            for index, (plan, rules, inputs) in enumerate(sent)
        ]
        results = self._executor.execute_rows(rows, keep, after=after)
        for result in results:
            if isinstance(result.error, ToolError):
                result.error.cause = None  # its class may not be serializable; the error contains its text
        return results
