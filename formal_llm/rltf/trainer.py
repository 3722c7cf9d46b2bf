"""The trainer: REINFORCE on the rewards of valid plans (RLTF), update by update.

An update takes some tasks; for each of them plans are sampled from the policy, executed or judged, and weighed by an
estimator (:mod:`formal_llm.rltf.advantages`); one step of the optimizer makes the better ones more probable. Every plan
is valid, so every reward tells something (Li et al. 2024, arXiv 2402.00798, section 4).
"""

from __future__ import annotations

import hashlib
import math
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from formal_llm.errors import FormalLLMError, TrainingError
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.rltf.baselines import Baselines
from formal_llm.rltf.checkpoint import BEST, FINAL, Checkpoints, State
from formal_llm.rltf.distributed import World
from formal_llm.rltf.episode import Episode
from formal_llm.rltf.groups import Grouping, Happened, Memory, Weighed
from formal_llm.rltf.metrics_log import LOG, RunLog, View
from formal_llm.rltf.objective import Measured, Objective, Terms
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.report import write_report
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.rollout import Start, rollout
from formal_llm.rltf.schedule import count_updates, learning_rate, tasks_of
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.warm_start import References, reference_plans

#: Settings that may change when a run goes on: they do not change what it computes.
_MAY_CHANGE = frozenset({
    "model", "updates", "epochs", "evaluate_every", "checkpoint_every", "keep_checkpoints", "processes", "tensorboard",
    "device", "reward_workers", "data", "questions_per_pass", "batch_tokens", "cache_bytes",
})  # fmt: skip


@dataclass(frozen=True)
class Trained:
    """What became of a run.

    Attributes:
        folder: of the run: ``final`` and ``best`` hold adapters, ``report.md`` tells the story.
        step: how many updates were made.
        reason: why it ended: "done" or "interrupted".
        before, after: the held-out figures before the first and after the last update; empty without held-out tasks.
    """

    folder: Path
    step: int
    reason: str
    before: Mapping[str, float]
    after: Mapping[str, float]


class Trainer:
    """Trains a policy on tasks.

    Args:
        planner: whose rules and wording; its LLM is not asked.
        policy: what is trained.
        reward: of plans.
        tasks: what it is trained on.
        folder: of the run: log, checkpoints, adapters, report.
        held_out: the tasks by which it is judged.
        settings: of the run.
        metrics: more functions of plans that are told of the held-out tasks, by name.
        references: which plans a warm start imitates (see :func:`reference_plans`).
        world: the processes of the run.
        views: who watches.

    Raises:
        TrainingError: there is no task, or tasks are in both lists.
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
        settings: Settings | None = None,
        metrics: Mapping[str, Reward] | None = None,
        references: References | None = None,
        world: World | None = None,
        views: tuple[View, ...] = (),
    ) -> None:
        import torch

        if not tasks:
            raise TrainingError("there is no task to train on")
        if both := {task.description for task in tasks} & {task.description for task in held_out}:
            raise TrainingError(f"a task is held out and trained on: {min(both)!r}")
        self.planner = planner
        self.policy = policy
        self.reward = reward
        self.tasks = tuple(tasks)
        self.held_out = tuple(held_out)
        self.settings = settings or Settings()
        self.folder = Path(folder)
        self.metrics = dict(metrics or {})
        self.references = references
        self.world = world or World()
        self._views = views if self.world.first else ()
        self.optimizer = torch.optim.AdamW(
            policy.parameters, lr=self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )
        told = {name: value for name, value in self.settings.model_dump().items() if name not in _MAY_CHANGE}
        self._checkpoints = Checkpoints(
            self.folder,
            keep=self.settings.keep_checkpoints,
            fingerprint={
                **told, "tasks": _digest([task.description for task in self.tasks]), "weights": policy.trainable,
            },
        )  # fmt: skip
        self._grouping = Grouping(planner, policy, reward, self.tasks, self.settings)
        self._imitated: list[list[Episode]] | None = None
        self.memory = Memory(Baselines(decay=self.settings.decay))
        self.step = 0
        self._saved = -1
        self._best: float | None = None
        self._before: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._stopping = threading.Event()
        self._whole = True  # not while an update has changed the weights and not yet the memory
        self._all_failed = False  # every process knows of the error that ends the run

    @property
    def updates(self) -> int:
        """How many updates the run has, those of the warm start included."""
        return count_updates(self.settings, len(self.tasks))

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
        state = self._checkpoints.load(self.policy, self.optimizer) if resume else None
        if state is not None:
            self._restore(state)
        elif resume and self.world.first:
            (self.folder / LOG).unlink(missing_ok=True)  # a run that ended before its first checkpoint
        if not self.world.first:
            with self._interruptible():
                try:
                    return self._trained(self._train(None))
                except Exception:
                    if self._all_failed:
                        self.world.wait()  # the first one saves; torchrun ends all when one is gone
                    raise
        with RunLog(
            self.folder,
            settings=self.settings.model_dump(),
            resume=None if state is None else state.step,
            views=self._views,
            tensorboard=self.settings.tensorboard,
        ) as log:
            with self._interruptible():
                try:
                    reason = self._train(log)
                except (KeyboardInterrupt, Exception) as error:
                    # Weights change in one place only, the optimizer's step, and the count goes up with it: what is
                    # there is the state after the last whole update.
                    try:
                        if self._whole and self.step > self._saved >= 0 and not isinstance(error, KeyboardInterrupt):
                            self._write(log)
                        log.end(self.step, str(error) or type(error).__name__)
                    finally:
                        if self._all_failed:
                            self.world.wait()
                    raise
            log.end(self.step, reason)
        write_report(self.folder)
        return self._trained(reason)

    def _trained(self, reason: str) -> Trained:
        return Trained(self.folder, self.step, reason, dict(self._before), dict(self._last))

    def _train(self, log: RunLog | None) -> str:
        settings = self.settings
        if self._saved < 0:
            self._before = self._evaluate(log)
            self._save(log)
        while self.step < self.updates and not self._told_to_stop():
            begin = time.monotonic()
            figures = self._update(self.step + 1)
            figures["seconds"] = time.monotonic() - begin
            if log is not None:
                log.update(self.step, figures)
            last = self.step == self.updates
            done = self.step - settings.warm_start
            if last or done == 0 or (settings.evaluate_every and done > 0 and done % settings.evaluate_every == 0):
                self._evaluate(log)
            if last or (settings.checkpoint_every and self.step % settings.checkpoint_every == 0):
                self._save(log)
        finished = self.step == self.updates
        if self._saved < self.step:
            self._save(log)
        if finished and self.world.first:
            self._checkpoints.mark(self.policy, FINAL)
        return "done" if finished else "interrupted"

    def _told_to_stop(self) -> bool:
        """Whether any process was told to stop."""
        return any(self.world.gather({self.world.rank: self._stopping.is_set()}).values())

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C asks for an end after the update; a second one ends at once. Only the main thread hears of it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def heard(*_: object) -> None:
            if self._stopping.is_set():
                raise KeyboardInterrupt
            self._stopping.set()

        before = signal.signal(signal.SIGINT, heard)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    # -- an update ----------------------------------------------------------------------------------------------

    def _update(self, step: int) -> dict[str, float]:
        """One update; what was measured."""
        import torch

        warm = step <= self.settings.warm_start
        if step == self.settings.warm_start + 1:
            self.optimizer.state.clear()  # its averages were of another objective
        self.policy.changed()  # what an evaluation left behind would show in the last bits, and a resumed run has none
        # Dropout draws from torch's own random numbers; all other draws have seeds of their own.
        torch.manual_seed(int(_digest([self.settings.seed, step, self.world.rank]), 16) % 2**63)
        many = len(self.tasks)
        chosen = range(many) if warm else tasks_of(self.settings, many, step - self.settings.warm_start)
        places = list(enumerate(chosen))
        self.optimizer.zero_grad(set_to_none=True)
        mine: list[Weighed] = []
        measured = Measured()
        problem: Exception | None = None
        try:
            own = self.world.own(places)
            mine = self._imitation(own) if warm else self._grouping.groups(step, own, self.memory)
            objective = Objective(self.policy, 1 / len(places))
            for group in mine:
                objective.add(group.episodes, group.weights, group.shares)
            with self.policy.training():
                measured = objective.backward(self._terms(warm))
        except (FormalLLMError, RuntimeError, MemoryError, ValueError) as error:
            problem = self._explained(error, step)
        self._same_everywhere(problem)
        self.world.sum_gradients(self.policy.parameters)
        norm = self._clipped(step, mine)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.settings, step, self.updates)
        self._whole = False
        self.optimizer.step()
        self.step = step
        self.policy.changed()
        figures = self._after(places, mine, measured, norm, warm)
        self._whole = True
        return figures

    def _terms(self, warm: bool) -> Terms:
        settings = self.settings
        if warm:
            return Terms(questions_per_pass=settings.questions_per_pass)
        return Terms(settings.entropy, settings.kl, settings.questions_per_pass)

    def _imitation(self, places: Sequence[tuple[int, int]]) -> list[Weighed]:
        """Reference plans, all with the same weight."""
        if self._imitated is None:
            self._imitated = reference_plans(
                self.planner, self.tasks, self.settings.warm_plans, references=self.references, seed=self.settings.seed
            )
        found = []
        for _, index in places:
            episodes = tuple(self._imitated[index])
            share = (1 / len(episodes),) * len(episodes)
            found.append(Weighed(episodes, share, share, Happened(index, (), 0.0)))
        return found

    def _clipped(self, step: int, mine: Sequence[Weighed]) -> float:
        """The norm of the gradient, cut to the bound."""
        import torch

        bound = self.settings.clip or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.parameters, bound))
        if not math.isfinite(norm):
            self._all_failed = True  # the norm is that of the sum, the same in all
            tasks = ", ".join(repr(group.episodes[0].task.description) for group in mine[:3] if group.episodes)
            raise TrainingError(
                f"the gradient in step {step} is {norm}, not finite (tasks: {tasks}); nothing was changed. Lower the "
                "learning_rate, or use float32"
            )
        return norm

    def _explained(self, error: Exception, step: int) -> Exception:
        """An error of an update; that memory is out, with what helps."""
        import torch

        on_cpu = "DefaultCPUAllocator" in str(error)  # a plain RuntimeError, other than on a GPU
        if on_cpu or isinstance(error, (MemoryError, torch.OutOfMemoryError)):
            told = TrainingError(
                f"memory ran out in step {step}: a lower questions_per_pass (now {self.settings.questions_per_pass}) "
                "and gradient_checkpointing take less in gradients, a lower batch_tokens and cache_bytes in rollouts. "
                "The last checkpoint is whole"
            )
            told.__cause__ = error
            return told
        return error

    def _same_everywhere(self, problem: Exception | None) -> None:
        """Raise in all processes what went wrong in one of them."""
        name = "" if problem is None else str(problem) or type(problem).__name__
        told = self.world.gather({self.world.rank: name})
        self._all_failed = any(told.values())
        if problem is not None:
            raise problem
        for rank, text in told.items():
            if text:
                raise TrainingError(f"process {rank} failed: {text}")

    def _after(
        self, places: Sequence[tuple[int, int]], mine: Sequence[Weighed], measured: Measured, norm: float, warm: bool
    ) -> dict[str, float]:
        """Take what happened into the memory, and tell the figures."""
        own = self.world.own(places)
        happened = self.world.gather({place: group.happened for (place, _), group in zip(own, mine, strict=True)})
        sums = self.world.gather({self.world.rank: measured})
        in_order = [happened[place] for place in sorted(happened)]
        figures = {
            "loss": math.fsum(one.loss for one in sums.values()),
            "entropy": math.fsum(one.entropy for one in sums.values()),
            "gradient_norm": norm,
            "learning_rate": learning_rate(self.settings, self.step, self.updates),
            "questions": float(sum(one.questions for one in sums.values())),
            "gradients": float(sum(one.gradients for one in sums.values())),
        }
        if self.settings.kl:
            figures["kl"] = math.fsum(one.kl for one in sums.values())
        if warm:
            return {**figures, "warm": 1.0}
        self.memory = self.memory.after(in_order)
        values = [one.value for one in in_order]
        mean = math.fsum(values) / len(values)
        rewards = [reward for one in in_order for reward in one.rewards] or values
        centre = math.fsum(rewards) / len(rewards)
        spread = math.sqrt(math.fsum((reward - centre) ** 2 for reward in rewards) / len(rewards))
        failed = float(sum(one.failed for one in in_order))
        samples = float(sum(len(one.rewards) for one in in_order))
        return {"reward": mean, "reward_spread": spread, "failed": failed, "samples": samples, **figures}

    # -- judging and saving -------------------------------------------------------------------------------------

    def evaluate(self, tasks: Sequence[Task]) -> dict[str, float]:
        """The figures of greedy plans for some tasks: the mean reward, the metrics, the mean reward of each group."""
        episodes = rollout(self.planner, self.policy, [Start(index, task) for index, task in enumerate(tasks)])
        pairs = [(episode.task, episode.plan) for episode in episodes]
        rewards = [one.value for one in self.reward.judge_many(pairs, self.settings.reward_workers)]
        figures = {"reward": math.fsum(rewards) / len(rewards)}
        for name, metric in self.metrics.items():
            values = [one.value for one in metric.judge_many(pairs)]
            figures[name] = math.fsum(values) / len(values)
        groups: dict[str, list[float]] = {}
        for task, reward in zip(tasks, rewards, strict=True):
            if task.group:
                groups.setdefault(task.group, []).append(reward)
        if len(groups) > 1:
            figures |= {f"reward {name}": math.fsum(v) / len(v) for name, v in sorted(groups.items())}
        return figures

    def _evaluate(self, log: RunLog | None) -> dict[str, float]:
        """Judge by the held-out tasks; the best adapters so far are kept. One process does, the others wait."""
        if not self.held_out or log is None:
            self.world.wait()
            return {}
        begin = time.monotonic()
        try:
            figures = self.evaluate(self.held_out)
        except (RuntimeError, MemoryError) as error:
            told = self._explained(error, self.step)
            raise told from told.__cause__
        log.evaluation(self.step, {**figures, "seconds": time.monotonic() - begin})
        self._last = figures
        if self._best is None or figures["reward"] > self._best:
            self._best = figures["reward"]
            self._checkpoints.mark(self.policy, BEST)
            log.checkpoint(self.step, BEST, best=True)
        self.world.wait()
        return figures

    def _save(self, log: RunLog | None) -> None:
        """Save a checkpoint. One process does, the others wait."""
        if log is not None:
            self._write(log)
        self._saved = self.step
        self.world.wait()

    def _write(self, log: RunLog) -> None:
        data = {"memory": self.memory.to_data(), "best": self._best, "before": self._before, "last": self._last}
        place = self._checkpoints.save(self.policy, self.optimizer, State(self.step, data))
        log.checkpoint(self.step, f"{place.parent.name}/{place.name}")

    def _restore(self, state: State) -> None:
        try:
            self.memory = Memory.from_data(state.data["memory"])
            self._best, self._before = state.data["best"], dict(state.data["before"])
            self._last = dict(state.data["last"])
        except (KeyError, TypeError, ValueError, FormalLLMError) as error:
            raise TrainingError(f"the checkpoint of step {state.step} cannot be read: {error}") from error
        self.step = self._saved = state.step


def _digest(values: Sequence[object]) -> str:
    return hashlib.sha256("\n".join(map(str, values)).encode()).hexdigest()[:16]
