"""The trainer: a whole run of REINFORCE on the rewards of valid plans (RLTF).

A run makes updates (:mod:`formal_llm.rltf.update`), judges the policy by held-out tasks, saves checkpoints, writes a
log, and can be stopped and resumed. Every plan is valid, so every reward tells something (Li et al. 2024, arXiv
2402.00798, section 4).
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
from formal_llm.rltf.served import ServedPolicy
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.setup import TrainingSetup
from formal_llm.rltf.task_memory import MemoryData, TaskMemory
from formal_llm.rltf.update import Learner, explain_error
from formal_llm.rltf.warm_start import ReferenceLimits


@dataclass(frozen=True)
class Trained:
    """What became of a run.

    Attributes:
        folder: of the run: ``final`` and ``best`` hold adapters, ``report.md`` tells the story.
        step: how many updates were made.
        reason: why it ended: "done"; "stopped early", since the tasks of validation came out no better for a while; or
            "interrupted".
        before: the held-out figures before the first update; empty without held-out tasks.
        after: those of the last evaluation; of a run that was interrupted they are older than its last update.
        judged: how many updates were made when ``after`` was measured.
    """

    folder: Path
    step: int
    reason: str
    before: Mapping[str, float]
    after: Mapping[str, float]
    judged: int = 0


class _Saved(TypedDict):
    """What a checkpoint has of a trainer."""

    memory: MemoryData
    best: float | None
    before: dict[str, float]
    last: dict[str, float]
    judged: int
    waited: int
    served: dict[str, object] | None


class Trainer:
    """Trains a policy on tasks.

    Args:
        planner, policy, reward, tasks, settings, references, world: see :class:`~formal_llm.rltf.setup.TrainingSetup`.
        folder: of the run: log, checkpoints, adapters, report.
        held_out: the tasks by which it is judged.
        validation: the tasks that tell which adapters are best, and when to stop (``patience``); else those held out.
        metrics: more functions of plans that are told of the held-out tasks, by name.
        views: who watches.
        served: the policy on the server that makes the plans, where one does.

    Attributes:
        setup: planner, policy, reward, tasks, settings, references and world.
        learner: makes the updates.
        held_out: the tasks by which it is judged.
        validation: the tasks that tell which adapters are best; empty where those held out do.

    Raises:
        TrainingError: there is no task, or one is in two lists; the run is to stop early and nothing would tell when.
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
        served: ServedPolicy | None = None,
    ) -> None:
        if not tasks:
            raise TrainingError("there is no task to train on")
        trained = {task.description for task in tasks}
        for said, judging in (("is held out", held_out), ("is for validation", validation)):
            if both := trained & {task.description for task in judging}:
                raise TrainingError(f"a task {said} and trained on: {min(both)!r}")
        self.setup = TrainingSetup(
            planner, policy, reward, tuple(tasks), settings or Settings(), references, world or Processes(), served
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
        """How many updates the run has, those of the warm start included."""
        return self.setup.updates

    @property
    def step(self) -> int:
        """How many updates were made."""
        return self.learner.step

    def stop(self) -> None:
        """End the run after the update that is under way, with a checkpoint; it can go on later."""
        self._stopping.set()

    # -- the run ------------------------------------------------------------------------------------------------

    def run(self, *, resume: bool = False) -> Trained:
        """Train to the end.

        Ctrl-C ends the run after the update that is under way, with a checkpoint; a second one at once.

        Args:
            resume: whether to go on from the last checkpoint in the folder, where there is one.

        Raises:
            TrainingError: the folder has a run already and it shall not go on; a loss that is not finite; too little
                memory. What was trained by then is in the last checkpoint.
            RewardError: a reward is not finite; names task and plan.
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
                        if self.learner.told_all:
                            world.wait()  # the first one saves; torchrun ends all when one is gone
                    raise
            if log is not None:
                log.end(self.step, reason)
        if world.first:
            write_report(self._folder)
        return Trained(self._folder, self.step, reason, dict(self._before), dict(self._last), self._judged)

    def _open_log(self, state: RunState | None) -> AbstractContextManager[RunLog | None]:
        """The log of the run, in the process that writes it."""
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
        """End a run that failed; what was trained is saved."""
        # Weights change in one place only, the optimizer's step, and the count goes up with it: what is there is the
        # state after the last whole update.
        unsaved = self.learner.whole and self.step > self._saved_step >= 0
        if unsaved and not isinstance(error, KeyboardInterrupt):
            self._write_checkpoint(log)
        log.end(self.step, str(error) or type(error).__name__)

    def _train_updates(self, log: RunLog | None) -> str:
        settings, updates = self.setup.settings, self.updates
        self.learner.renew_adapters()  # a server that takes no adapters is told of now
        if self._saved_step < 0:
            self._before = self._evaluate_splits(log)
            self._save_checkpoint(log)
        while self.step < updates and not self._is_satisfied() and not self._told_to_stop():
            begin = time.monotonic()
            figures = self.learner.update()
            figures["seconds"] = time.monotonic() - begin
            if log is not None:
                log.update(self.step, figures)
            last = self.step == updates
            done = self.step - settings.warm_start
            if last or done == 0 or (settings.evaluate_every and done > 0 and done % settings.evaluate_every == 0):
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
        """Whether evaluations came out no better for as long as the run has patience; all processes hear the first."""
        patience, world = self.setup.settings.patience, self.setup.world
        return bool(patience) and world.gather({world.rank: self._waited})[0] >= patience

    def _told_to_stop(self) -> bool:
        """Whether any process was told to stop."""
        world = self.setup.world
        return any(world.gather({world.rank: self._stopping.is_set()}).values())

    @contextmanager
    def _handle_interrupts(self) -> Iterator[None]:
        """Ctrl-C asks for an end after the update; a second one ends at once. Only the main thread hears of it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_interrupt(*_: object) -> None:
            if self._stopping.is_set():
                raise KeyboardInterrupt
            self._stopping.set()

        before = signal.signal(signal.SIGINT, on_interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    # -- judging and saving -------------------------------------------------------------------------------------

    def evaluate(self, tasks: Sequence[Task]) -> dict[str, float]:
        """The figures of the most probable plans for some tasks, at least one.

        Returns:
            ``reward``, the mean reward; the mean of each metric; and ``reward GROUP`` for each group of tasks, where
            they are in several.
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
        """Judge by the held-out tasks and those of validation; the best adapters so far are kept.

        One process does, the others wait. Returns the figures of the held-out tasks; without any, those of validation.
        """
        found: dict[str, dict[str, float]] = {}
        for split, tasks in ((VALIDATION, self.validation), (HELD_OUT, self.held_out)):
            if tasks and log is not None:
                begin = time.monotonic()
                try:
                    found[split] = self.evaluate(tasks)
                except (RuntimeError, MemoryError) as error:
                    told = explain_error(error, self.step)
                    raise told from told.__cause__
                log.evaluation(self.step, {**found[split], "seconds": time.monotonic() - begin}, split)
        if found and log is not None:
            self._last, self._judged = found.get(HELD_OUT, found.get(VALIDATION, {})), self.step
            self._keep_best(found.get(VALIDATION, self._last)["reward"], log)
        self.setup.world.wait()
        return self._last if found else {}

    def _keep_best(self, reward: float, log: RunLog) -> None:
        self._waited += 1
        if self._best is None or reward > self._best:
            self._best, self._waited = reward, 0
            self._checkpoints.mark(self.setup.policy, BEST)
            log.checkpoint(self.step, BEST, best=True)

    def _save_checkpoint(self, log: RunLog | None) -> None:
        """Save a checkpoint. One process does, the others wait."""
        if log is not None:
            self._write_checkpoint(log)
        self._saved_step = self.step
        self.setup.world.wait()

    def _write_checkpoint(self, log: RunLog) -> None:
        data: _Saved = {
            "memory": self.learner.memory.to_data(), "best": self._best, "before": self._before, "last": self._last,
            "judged": self._judged, "waited": self._waited,
            "served": None if self.setup.served is None else self.setup.served.to_data(),
        }  # fmt: skip
        place = self._checkpoints.save(self.setup.policy, self.learner.optimizer, RunState(self.step, data))
        log.checkpoint(self.step, f"{place.parent.name}/{place.name}")

    def _restore_run(self, state: RunState) -> None:
        data = cast("_Saved", state.data)  # as it was written; what is damaged shows below
        try:
            memory = TaskMemory.from_data(data["memory"])
            self._best, self._before, self._last = data["best"], dict(data["before"]), dict(data["last"])
            self._judged = data.get("judged", state.step)  # which earlier versions did not write
            self._waited = data.get("waited", 0)  # nor this
        except (KeyError, TypeError, ValueError, FormalLLMError) as error:
            raise TrainingError(f"the checkpoint of step {state.step} cannot be read: {error}") from error
        self.learner.memory = memory
        if self.setup.served is not None:
            self.setup.served.resume(data.get("served") or {})
        self.learner.step = self._saved_step = state.step
