"""The trainer: a whole run of REINFORCE on the rewards of valid plans (RLTF).

A run performs updates (:mod:`formal_llm.rltf.update`), evaluates the policy on held-out tasks, saves checkpoints and
writes a log. It can be stopped and resumed. Since every plan is valid, every reward carries information (Li et al.
2024, arXiv 2402.00798, section 4).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from formal_llm.errors import FormalLLMError, TrainingError
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.rltf.baselines import mean_of
from formal_llm.rltf.checkpoint import BEST, FINAL, Checkpoints, RunState
from formal_llm.rltf.distributed import Processes
from formal_llm.rltf.metrics_log import HELD_OUT, LOG, VALIDATION, RunLog, View
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.report import write_report
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.rollout import Start, rollout
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.setup import TrainingSetup
from formal_llm.rltf.task_memory import MemoryData, TaskMemory
from formal_llm.rltf.update import Learner, explain_error
from formal_llm.rltf.warm_start import ReferenceLimits


@dataclass(frozen=True)
class Trained:
    """The result of a run.

    Attributes:
        folder: the folder of the run: ``final`` and ``best`` contain adapters, ``report.md`` is the report.
        step: the number of updates performed.
        reason: why the run ended: "done"; "stopped early", because the validation tasks stopped improving; or
            "interrupted".
        before: the held-out figures before the first update; empty without held-out tasks.
        after: the held-out figures of the last evaluation; if the run was interrupted, they predate its last update.
        judged: the number of updates performed when ``after`` was measured.
    """

    folder: Path
    step: int
    reason: str
    before: Mapping[str, float]
    after: Mapping[str, float]
    judged: int = 0


class _Saved(TypedDict):
    """The data of a trainer that a checkpoint contains."""

    memory: MemoryData
    best: float | None
    before: dict[str, float]
    last: dict[str, float]
    judged: int
    waited: int


class Trainer:
    """A trainer of a policy on tasks.

    Args:
        planner, policy, reward, tasks, settings, references, world: see :class:`~formal_llm.rltf.setup.TrainingSetup`.
        folder: the folder of the run, which receives the log, checkpoints, adapters and report.
        held_out: the tasks on which the policy is evaluated.
        validation: the tasks that determine the best adapters and early stopping (``patience``); default: ``held_out``.
        metrics: additional functions of plans, by name, that are reported for the held-out tasks.
        views: the observers of the run.

    Attributes:
        setup: planner, policy, reward, tasks, settings, references and world.
        learner: performs the updates.
        held_out: the tasks on which the policy is evaluated.
        validation: the tasks that determine the best adapters; empty if the held-out tasks do.

    Raises:
        TrainingError: there is no task; a task is in two lists; or early stopping lacks tasks to evaluate.
    """

    def __init__(
        self,
        planner: Planner,
        policy: Policy,
        reward: Reward,
        tasks: Sequence[Task],
        folder: str | Path,
        *,
        held_out: Sequence[Task] = (),
        validation: Sequence[Task] = (),
        settings: Settings | None = None,
        metrics: Mapping[str, Reward] | None = None,
        references: ReferenceLimits | None = None,
        world: Processes | None = None,
        views: tuple[View, ...] = (),
    ) -> None:
        if not tasks:
            raise TrainingError("there is no task to train on")
        trained = {task.description for task in tasks}
        for purpose, judging in (("is held out", held_out), ("is for validation", validation)):
            if both := trained & {task.description for task in judging}:
                raise TrainingError(f"a task {purpose} and trained on: {min(both)!r}")
        self.setup = TrainingSetup(
            planner, policy, reward, tuple(tasks), settings or Settings(), references, world or Processes()
        )
        self.learner = Learner(self.setup)
        self.held_out, self.validation = tuple(held_out), tuple(validation)
        if self.setup.settings.patience and not (self.setup.settings.evaluate_every and (held_out or validation)):
            raise TrainingError(
                "patience counts evaluations: say how often there is one (evaluate_every), and by which tasks "
                "(validation, or held_out)"
            )
        self._folder = Path(folder)
        self._metrics = dict(metrics or {})
        self._views = views if self.setup.world.first else ()
        self._checkpoints = Checkpoints(
            self._folder, keep=self.setup.settings.keep_checkpoints, fingerprint=self.setup.fingerprint
        )
        self._saved_step = -1
        self._best: float | None = None
        self._before: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._judged = 0
        self._waited = 0
        self._stopping = threading.Event()

    @property
    def updates(self) -> int:
        """The number of updates of the run, including those of the warm start."""
        return self.setup.updates

    @property
    def step(self) -> int:
        """The number of updates performed."""
        return self.learner.step

    def stop(self) -> None:
        """End the run after the current update, with a checkpoint; it can be resumed later."""
        self._stopping.set()

    # -- the run ------------------------------------------------------------------------------------------------

    def run(self, *, resume: bool = False) -> Trained:
        """Train to the end.

        Ctrl-C ends the run after the current update, with a checkpoint; a second Ctrl-C ends it immediately.

        Args:
            resume: whether to resume from the last checkpoint in the folder, if there is one.

        Raises:
            TrainingError: the folder already contains a run and ``resume`` is false; a loss is not finite; memory is
                insufficient. The last checkpoint contains what was trained until then.
            RewardError: a reward is not finite; the error names the task and the plan.
        """
        world = self.setup.world
        state = self._checkpoints.load(self.setup.policy, self.learner.optimizer) if resume else None
        if state is not None:
            self._restore_run(state)
        elif resume and world.first:
            (self._folder / LOG).unlink(missing_ok=True)  # a run that ended before its first checkpoint
        with self._open_log(state) as log:
            with self._handle_interrupts():
                try:
                    reason = self._train_updates(log)
                except (KeyboardInterrupt, Exception) as error:
                    try:
                        if log is not None:
                            self._end_failed(log, error)
                    finally:
                        if self.learner.error_is_shared:
                            world.wait()  # the first process saves; torchrun ends all processes when one is gone
                    raise
            if log is not None:
                log.end(self.step, reason)
        if world.first:
            write_report(self._folder)
        return Trained(self._folder, self.step, reason, dict(self._before), dict(self._last), self._judged)

    def _open_log(self, state: RunState | None) -> AbstractContextManager[RunLog | None]:
        """Open the log of the run in the process that writes it; return None for the others."""
        if not self.setup.world.first:
            return nullcontext()
        settings = self.setup.settings
        return RunLog(
            self._folder,
            settings=settings.model_dump(),
            resume=None if state is None else state.step,
            views=self._views, tensorboard=settings.tensorboard, wandb=settings.wandb,
        )  # fmt: skip

    def _end_failed(self, log: RunLog, error: BaseException) -> None:
        """End a failed run; save what was trained."""
        # Only the optimizer's step changes weights, and it is counted at once: the present state is the state after the
        # last complete update.
        unsaved = self.learner.whole and self.step > self._saved_step >= 0
        if unsaved and not isinstance(error, KeyboardInterrupt):
            self._write_checkpoint(log)
        log.end(self.step, str(error) or type(error).__name__)

    def _train_updates(self, log: RunLog | None) -> str:
        settings, updates = self.setup.settings, self.updates
        if self._saved_step < 0:
            self._before = self._evaluate_splits(log)
            self._save_checkpoint(log)
        while self.step < updates and not self._is_satisfied() and not self._is_stop_requested():
            begin = time.monotonic()
            figures = self.learner.update()
            figures["seconds"] = time.monotonic() - begin
            if log is not None:
                log.update(self.step, figures)
            last = self.step == updates
            count = self.step - settings.warm_start
            if last or count == 0 or (settings.evaluate_every and count > 0 and count % settings.evaluate_every == 0):
                self._evaluate_splits(log)
            if last or (settings.checkpoint_every and self.step % settings.checkpoint_every == 0):
                self._save_checkpoint(log)
        early = self.step < updates and self._is_satisfied()
        finished = early or self.step == updates
        if self._saved_step < self.step:
            self._save_checkpoint(log)
        if finished and self.setup.world.first:
            self._checkpoints.mark(self.setup.policy, FINAL)
        return "stopped early" if early else "done" if finished else "interrupted"

    def _is_satisfied(self) -> bool:
        """Return whether no evaluation improved during the patience; all processes get the answer of the first."""
        patience, world = self.setup.settings.patience, self.setup.world
        return bool(patience) and world.gather({world.rank: self._waited})[0] >= patience

    def _is_stop_requested(self) -> bool:
        """Return whether any process was asked to stop."""
        world = self.setup.world
        return any(world.gather({world.rank: self._stopping.is_set()}).values())

    @contextmanager
    def _handle_interrupts(self) -> Iterator[None]:
        """Let Ctrl-C end the run after the update, a second one immediately. Only the main thread receives it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_interrupt(*_: object) -> None:
            if self._stopping.is_set():
                raise KeyboardInterrupt
            self._stopping.set()

        previous = signal.signal(signal.SIGINT, on_interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    # -- judging and saving -------------------------------------------------------------------------------------

    def evaluate(self, tasks: Sequence[Task]) -> dict[str, float]:
        """Return the figures of the most probable plans for some tasks, at least one.

        Returns:
            ``reward``, the mean reward; the mean of each metric; and ``reward GROUP`` for each group if the tasks are
            in several.
        """
        setup = self.setup
        episodes = rollout(setup.planner, setup.policy, [Start(index, task) for index, task in enumerate(tasks)])
        pairs = [(episode.task, episode.plan) for episode in episodes]
        rewards = [one.value for one in setup.reward.judge_many(pairs, setup.settings.reward_workers)]
        figures = {"reward": mean_of(rewards)}
        for name, metric in self._metrics.items():
            figures[name] = mean_of([one.value for one in metric.judge_many(pairs)])
        groups: dict[str, list[float]] = {}
        for task, reward in zip(tasks, rewards, strict=True):
            if task.group:
                groups.setdefault(task.group, []).append(reward)
        if len(groups) > 1:
            figures |= {f"reward {name}": mean_of(values) for name, values in sorted(groups.items())}
        return figures

    def _evaluate_splits(self, log: RunLog | None) -> dict[str, float]:
        """Evaluate on the held-out and the validation tasks; keep the best adapters so far.

        One process evaluates, the others wait. Returns the figures of the held-out tasks, or those of validation.
        """
        results: dict[str, dict[str, float]] = {}
        for split, tasks in ((VALIDATION, self.validation), (HELD_OUT, self.held_out)):
            if tasks and log is not None:
                begin = time.monotonic()
                try:
                    results[split] = self.evaluate(tasks)
                except (RuntimeError, MemoryError) as error:
                    explanation = explain_error(error, self.step)
                    raise explanation from explanation.__cause__
                log.evaluation(self.step, {**results[split], "seconds": time.monotonic() - begin}, split)
        if results and log is not None:
            self._last, self._judged = results.get(HELD_OUT, results.get(VALIDATION, {})), self.step
            self._keep_best(results.get(VALIDATION, self._last)["reward"], log)
        self.setup.world.wait()
        return self._last if results else {}

    def _keep_best(self, reward: float, log: RunLog) -> None:
        self._waited += 1
        if self._best is None or reward > self._best:
            self._best, self._waited = reward, 0
            self._checkpoints.mark(self.setup.policy, BEST)
            log.checkpoint(self.step, BEST, best=True)

    def _save_checkpoint(self, log: RunLog | None) -> None:
        """Save a checkpoint. One process saves, the others wait."""
        if log is not None:
            self._write_checkpoint(log)
        self._saved_step = self.step
        self.setup.world.wait()

    def _write_checkpoint(self, log: RunLog) -> None:
        data: _Saved = {
            "memory": self.learner.memory.to_data(), "best": self._best, "before": self._before, "last": self._last,
            "judged": self._judged, "waited": self._waited,
        }  # fmt: skip
        place = self._checkpoints.save(self.setup.policy, self.learner.optimizer, RunState(self.step, data))
        log.checkpoint(self.step, f"{place.parent.name}/{place.name}")

    def _restore_run(self, state: RunState) -> None:
        data = cast("_Saved", state.data)  # as it was written; damage is detected below
        try:
            memory = TaskMemory.from_data(data["memory"])
            self._best, self._before, self._last = data["best"], dict(data["before"]), dict(data["last"])
            self._judged, self._waited = data["judged"], data["waited"]
        except (KeyError, TypeError, ValueError, FormalLLMError) as error:
            raise TrainingError(f"the checkpoint of step {state.step} cannot be read: {error}") from error
        self.learner.memory = memory
        self.learner.step = self._saved_step = state.step
