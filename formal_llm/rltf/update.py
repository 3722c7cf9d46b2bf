"""One update: from plans to a step of the optimizer.

An update takes some tasks; for each of them, plans are sampled from the policy, executed or judged, and weighted by an
estimator (:mod:`formal_llm.rltf.collector`); one step of the optimizer makes the better ones more probable. The first
updates of a run may imitate reference plans instead (a warm start).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from formal_llm.errors import FormalLLMError, TrainingError
from formal_llm.llms.local.memory import out_of_memory
from formal_llm.rltf.baselines import Baselines
from formal_llm.rltf.collector import PlanCollector, WeightedPlans
from formal_llm.rltf.importance import FAR, Agreement
from formal_llm.rltf.objective import Objective, ObjectiveFigures
from formal_llm.rltf.settings import learning_rate, tasks_of
from formal_llm.rltf.setup import TrainingSetup, hash_values
from formal_llm.rltf.task_memory import TaskMemory, TaskOutcome


class Learner:
    """Performs the updates of a run, one after the other.

    Attributes:
        setup: the setup of the run.
        optimizer: the optimizer of the policy's adapters.
        memory: what is known about the tasks.
        step: the number of updates performed.
        whole: whether ``step``, ``memory`` and the weights are consistent; false while an update changes them.
        told_all: whether every process knows of the error that an update raised.
    """

    def __init__(self, setup: TrainingSetup) -> None:
        import torch

        settings = setup.settings
        self.setup = setup
        self.optimizer = torch.optim.AdamW(
            setup.policy.parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.memory = TaskMemory(Baselines(decay=settings.decay))
        self.step = 0
        self.whole = True
        self.told_all = False
        self._warned = False
        self._collector = PlanCollector(setup)

    def update(self) -> dict[str, float]:
        """Perform the next update.

        Returns:
            The measurements.

        Raises:
            TrainingError: a loss or gradient is not finite; memory is insufficient; another process failed. The weights
                are unchanged.
            RewardError: a reward is not finite; names the task and the plan.
        """
        step, policy, world = self.step + 1, self.setup.policy, self.setup.world
        warm = step <= self.setup.settings.warm_start
        self._prepare_step(step)
        self.renew_adapters()
        settings, count = self.setup.settings, len(self.setup.tasks)
        places = list(enumerate(range(count) if warm else tasks_of(settings, count, step - settings.warm_start)))
        own_places = world.own(places)
        groups: list[WeightedPlans] = []
        figures = ObjectiveFigures()
        problem: Exception | None = None
        try:
            collector = self._collector
            with policy.keeping_graphs(self.setup.settings.graph_bytes):
                groups = (
                    collector.collect_references(own_places)
                    if warm
                    else collector.collect_groups(step, own_places, self.memory)
                )
                figures = self._backpropagate_groups(groups, 1 / len(places), warm)
        except (FormalLLMError, RuntimeError, MemoryError, ValueError) as error:
            problem = explain_error(error, step)
        self._share_error(problem)
        world.sum_gradients(policy.parameters)
        norm = self._clip_gradient(step, groups)
        rate = learning_rate(self.setup.settings, step, self.setup.updates)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        self.whole = False
        self.optimizer.step()
        self.step = step
        policy.changed()
        by_place = world.gather({place: group.outcome for (place, _), group in zip(own_places, groups, strict=True)})
        outcomes = [by_place[place] for place in sorted(by_place)]
        measured = self._measure_step(figures, norm, rate)
        if warm:
            measured["warm"] = 1.0
        else:
            self.memory = self.memory.with_outcomes(outcomes)
            measured = {**_reward_figures(outcomes), **self._measure_agreement(outcomes), **measured}
        self.whole = True
        return measured

    def renew_adapters(self) -> None:
        """Load the current adapters into the server that generates the plans, if there is one and it needs them.

        Raises:
            TrainingError: the server does not accept them.
        """
        served = self.setup.served
        if served is None or not self.setup.settings.warm_start <= self.step < self.setup.updates:
            return
        try:
            served.renew(self.step)
        except TrainingError:
            self.told_all = True
            raise

    def _measure_agreement(self, outcomes: Sequence[TaskOutcome]) -> dict[str, float]:
        """Measure how well a server that generated the plans agrees with the policy; warn if it does not."""
        ratios = [ratio for one in outcomes for ratio in one.log_ratios]
        if not ratios:
            return {}
        stats = Agreement.of(ratios, self.setup.settings.rollout_cap)
        if stats.drift > FAR and not self._warned:
            self._warned = True
            warnings.warn(
                f"the server that makes the plans and the trainer disagree in update {self.step}: their plans "
                f"are {stats.drift:.2g} nats apart, and {len(ratios)} samples are worth "
                f"{stats.effective * len(ratios):.1f}. "
                "Does the server have the same model, in numbers as exact (--dtype), and no quantization?",
                stacklevel=2,
            )
        return {
            "ratio": stats.ratio, "effective_samples": stats.effective, "drift": stats.drift, "ratios_cut": stats.cut,
        }  # fmt: skip

    def _prepare_step(self, step: int) -> None:
        """Ensure that an update depends only on weights, optimizer and memory: a resumed run has nothing else."""
        import torch

        settings = self.setup.settings
        if step == settings.warm_start + 1:
            self.optimizer.state.clear()  # its averages belong to another objective
        self.setup.policy.changed()  # the remains of an evaluation would affect the last bits
        # Dropout uses torch's global random numbers; all other draws have their own seeds.
        torch.manual_seed(int(hash_values([settings.seed, step, self.setup.world.rank]), 16) % 2**63)
        self.optimizer.zero_grad(set_to_none=True)

    def _backpropagate_groups(self, groups: Sequence[WeightedPlans], scale: float, warm: bool) -> ObjectiveFigures:
        """Compute the gradients of some groups."""
        settings, policy = self.setup.settings, self.setup.policy
        objective = Objective(policy, scale)
        for group in groups:
            objective.add_episodes(group.episodes, group.weights, group.shares)
        with policy.training():
            return objective.backpropagate_loss(
                entropy=0.0 if warm else settings.entropy,
                kl=0.0 if warm else settings.kl,
                questions_per_pass=settings.questions_per_pass,
            )

    def _share_error(self, problem: Exception | None) -> None:
        """Raise an error of one process in all processes."""
        world = self.setup.world
        name = "" if problem is None else str(problem) or type(problem).__name__
        errors = world.gather({world.rank: name})
        self.told_all = any(errors.values())
        if problem is not None:
            raise problem
        for rank, text in errors.items():
            if text:
                raise TrainingError(f"process {rank} failed: {text}")

    def _clip_gradient(self, step: int, groups: Sequence[WeightedPlans]) -> float:
        """Clip the gradient to the bound and return its norm."""
        import torch

        bound = self.setup.settings.clip or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(self.setup.policy.parameters, bound))
        if not math.isfinite(norm):
            self.told_all = True  # the norm is that of the sum, the same in all processes
            tasks = ", ".join(repr(group.episodes[0].task.description) for group in groups[:3] if group.episodes)
            raise TrainingError(
                f"the gradient in step {step} is {norm}, not finite (tasks: {tasks}); nothing was changed. Lower the "
                "learning_rate, or use float32"
            )
        return norm

    def _measure_step(self, figures: ObjectiveFigures, norm: float, rate: float) -> dict[str, float]:
        """Return the figures of the step, over all processes."""
        world = self.setup.world
        parts = world.gather({world.rank: figures}).values()
        measurements = {
            "loss": math.fsum(one.loss for one in parts),
            "entropy": math.fsum(one.entropy for one in parts),
            "gradient_norm": norm,
            "learning_rate": rate,
            "questions": float(sum(one.questions for one in parts)),
            "gradients": float(sum(one.gradients for one in parts)),
        }
        if self.setup.settings.kl:
            measurements["kl"] = math.fsum(one.kl for one in parts)
        return measurements


def _reward_figures(outcomes: Sequence[TaskOutcome]) -> dict[str, float]:
    """Return the reward figures of an update."""
    values = [one.value for one in outcomes]
    rewards = [reward for one in outcomes for reward in one.rewards] or values
    centre = math.fsum(rewards) / len(rewards)
    return {
        "reward": math.fsum(values) / len(values),
        "reward_spread": math.sqrt(math.fsum((reward - centre) ** 2 for reward in rewards) / len(rewards)),
        "failed": float(sum(one.failed for one in outcomes)),
        "samples": float(sum(len(one.rewards) for one in outcomes)),
    }


def explain_error(error: Exception, step: int) -> Exception:
    """Return an error of a step unchanged, or with advice if memory ran out."""
    if not out_of_memory(error):
        return error
    advised = TrainingError(
        f"memory ran out in step {step}, though as little as can be was computed together: gradient_checkpointing "
        "takes less in gradients, a lower cache_bytes in rollouts, dtype bfloat16 everywhere, and device_map spreads "
        "the model over several devices. The last checkpoint is whole"
    )
    advised.__cause__ = error
    return advised
