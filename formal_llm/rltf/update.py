"""One update: from plans to a step of the optimizer.

An update takes some tasks; for each of them, plans are sampled from the policy, executed or judged, and weighted by an
estimator (:mod:`formal_llm.rltf.update`); one step of the optimizer makes the better ones more probable. The first
updates of a run may imitate reference plans instead (a warm start).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from formal_llm.errors import FormalLLMError, TooManyPlans, TrainingError
from formal_llm.llms.local.memory import out_of_memory
from formal_llm.rltf.advantages import Estimator, KnownPlans, TaskRewards, estimator
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.baselines import Baseline, Baselines
from formal_llm.rltf.episode import Episode, PlanPath
from formal_llm.rltf.objective import Objective, ObjectiveFigures, log_probabilities_of
from formal_llm.rltf.rewards import Judged
from formal_llm.rltf.rollout import Start, replay, rollout
from formal_llm.rltf.settings import learning_rate, tasks_of
from formal_llm.rltf.setup import TrainingSetup, hash_values
from formal_llm.rltf.task_memory import RewardedPaths, TaskMemory, TaskOutcome
from formal_llm.rltf.warm_start import reference_plans


@dataclass(frozen=True)
class WeightedPlans:
    """The contribution of a task to an update: to the objective and to the memory.

    The shares specify how much each episode counts for entropy and distance to the base model: its chance of occurring.
    """

    episodes: tuple[Episode, ...]
    weights: tuple[float, ...]
    shares: tuple[float, ...]
    outcome: TaskOutcome


@dataclass
class _Group:
    """A task during an update."""

    index: int
    place: int
    how: Estimator
    known: list[tuple[Episode, float]] = field(default_factory=list)
    samples: list[Episode] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    greedy_reward: float | None = None


class PlanCollector:
    """Collects the groups of updates: generates the plans, has them judged, weights them.

    A group is identified by its position in the update and its task.
    """

    def __init__(self, setup: TrainingSetup) -> None:
        self._setup = setup
        self._estimator = estimator(setup.settings.advantage)
        self._episodes: dict[int, dict[PlanPath, Episode]] = {}  # of known plans, rebuilt from their numbers
        self._failed: dict[int, int] = {}  # by task, the number of plans with a fallback reward
        self._all: dict[int, list[tuple[Episode, float]] | None] = {}  # all plans of a task; None: too many
        self._references: list[list[Episode]] | None = None

    def collect_references(self, places: Sequence[tuple[int, int]]) -> list[WeightedPlans]:
        """Return the reference plans of some tasks, all with the same weight."""
        if self._references is None:
            setup, settings = self._setup, self._setup.settings
            self._references = reference_plans(
                setup.planner, setup.tasks, settings.warm_plans, references=setup.references, seed=settings.seed
            )
        groups = []
        for _, index in places:
            episodes = tuple(self._references[index])
            share = (1 / len(episodes),) * len(episodes)
            groups.append(WeightedPlans(episodes, share, share, TaskOutcome(index, (), 0.0)))
        return groups

    def collect_groups(self, step: int, places: Sequence[tuple[int, int]], memory: TaskMemory) -> list[WeightedPlans]:
        """Return the groups of the update ``step``; draws are seeded by it and the place; ``memory`` precedes it."""
        groups = [self._begin_group(place, index, memory) for place, index in places]
        self._roll_out(step, groups, memory)
        known = [episode for group in groups for episode, _ in group.known]
        logs = iter(log_probabilities_of(self._setup.policy, known))
        chances = [[math.exp(next(logs)) for _ in group.known] for group in groups]
        return [
            self._weigh_group(group, group_chances, memory)
            for group, group_chances in zip(groups, chances, strict=True)
        ]

    def _begin_group(self, place: int, index: int, memory: TaskMemory) -> _Group:
        """Start the group of a task and choose its estimator: a language too large to enumerate is stratified."""
        group = _Group(index, place, self._estimator)
        if self._estimator.needs_all:
            plans = self._all_plans(index)
            if plans is not None:
                group.known = plans
                return group
            group.how = estimator("stratified")
        if group.how.needs_known:
            known = memory.known.get(index, ())
            # Discard what another process has removed from the memory since.
            for path in self._episodes.get(index, {}).keys() - {path for path, _ in known}:
                del self._episodes[index][path]
            group.known = [(self._episode_of(index, path), reward) for path, reward in known]
        return group

    def _all_plans(self, index: int) -> list[tuple[Episode, float]] | None:
        if index not in self._all:
            setup, settings = self._setup, self._setup.settings
            try:
                episodes = enumerate_episodes(setup.planner, setup.tasks[index], index, settings.exact_plans)
            except TooManyPlans:
                self._all[index] = None
            else:
                judged = self._judge_episodes(episodes)
                self._failed[index] = sum(bool(one.failed) for one in judged)
                self._all[index] = [(episode, one.value) for episode, one in zip(episodes, judged, strict=True)]
        return self._all[index]

    def _judge_episodes(self, episodes: Sequence[Episode]) -> list[Judged]:
        pairs = [(episode.task, episode.plan) for episode in episodes]
        return self._setup.reward.judge_many(pairs, self._setup.settings.reward_workers)

    def _episode_of(self, index: int, path: PlanPath) -> Episode:
        episodes = self._episodes.setdefault(index, {})
        if path not in episodes:
            episodes[path] = replay(self._setup.planner, Start(index, self._setup.tasks[index]), path)
        return episodes[path]

    def _roll_out(self, step: int, groups: Sequence[_Group], memory: TaskMemory) -> None:
        """Sample plans for all groups together, and judge them together."""
        setup, settings = self._setup, self._setup.settings
        starts: list[Start] = []
        owners: list[tuple[_Group, bool]] = []
        for group in groups:
            task = setup.tasks[group.index]
            if group.how.needs_baseline and memory.baselines.get(str(group.index)) is None:
                starts.append(Start(group.index, task))
                owners.append((group, True))
            if group.how.needs_samples:
                for number in range(max(settings.samples, group.how.least_samples)):
                    starts.append(Start(group.index, task, f"{settings.seed} {step} {group.place} {number}"))
                    owners.append((group, False))
        episodes = rollout(setup.planner, setup.policy, starts)
        for (group, greedy), episode, one in zip(owners, episodes, self._judge_episodes(episodes), strict=True):
            if greedy:
                group.greedy_reward = one.value
            else:
                group.samples.append(episode)
                group.judged.append(one)

    def _weigh_group(self, group: _Group, chances: list[float], memory: TaskMemory) -> WeightedPlans:
        weighing, rewards = group.how, tuple(one.value for one in group.judged)
        baseline = memory.baselines.get(str(group.index))
        if baseline is None and group.greedy_reward is not None:
            baseline = Baseline.start(group.greedy_reward)
        known_paths = {episode.path for episode, _ in group.known}
        known = KnownPlans(
            tuple(chances),
            tuple(reward for _, reward in group.known),
            tuple(episode.path in known_paths for episode in group.samples),
        )
        weights = weighing(TaskRewards(rewards, baseline, known))
        ones = (1.0,) * len(group.samples)
        if weighing.needs_all:
            value = math.fsum(chance * reward for chance, reward in zip(chances, known.rewards, strict=True))
            failed = self._failed.get(group.index, 0)
        else:
            value = math.fsum(rewards) / len(rewards) if rewards else 0.0
            failed = sum(bool(one.failed) for one in group.judged)
        outcome = TaskOutcome(group.index, rewards, value, failed, group.greedy_reward)
        if not weighing.needs_known:
            return WeightedPlans(tuple(group.samples), weights.sampled, ones, outcome)
        if not weighing.needs_all:
            outcome = replace(outcome, known=self._to_know(group, chances))
        # Without samples the known plans are all there are; with samples they are some of those that may be drawn.
        shares = tuple(chances) if weighing.needs_all else (0.0,) * len(group.known)
        return WeightedPlans(
            (*(episode for episode, _ in group.known), *group.samples),
            (*weights.known, *weights.sampled),
            (*shares, *ones),
            outcome,
        )

    def _to_know(self, group: _Group, chances: Sequence[float]) -> RewardedPaths:
        """Return the plans to remember: the most probable ones among the known and the sampled plans."""
        known: dict[PlanPath, tuple[float, float]] = {}
        episodes = self._episodes.setdefault(group.index, {})
        for (episode, reward), chance in zip(group.known, chances, strict=True):
            known[episode.path] = (chance, reward)
        for episode, one in zip(group.samples, group.judged, strict=True):
            known.setdefault(episode.path, (math.exp(episode.log_probability), one.value))
            episodes.setdefault(episode.path, episode)
        best = sorted(known, key=lambda path: (-known[path][0], path))[: self._setup.settings.known_plans]
        for path in known.keys() - set(best):
            episodes.pop(path, None)
        return tuple((path, known[path][1]) for path in best)


class Learner:
    """Performs the updates of a run, one after the other.

    Attributes:
        optimizer: the optimizer of the policy's adapters.
        memory: what is known about the tasks.
        step: the number of updates performed.
        whole: whether ``step``, ``memory`` and the weights are consistent; false while an update changes them.
        error_is_shared: whether every process knows of the error that an update raised.
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
        self.error_is_shared = False
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
        settings, count = self.setup.settings, len(self.setup.tasks)
        places = list(enumerate(range(count) if warm else tasks_of(settings, count, step - settings.warm_start)))
        own_places = world.own(places)
        groups: list[WeightedPlans] = []
        figures = ObjectiveFigures()
        problem: Exception | None = None
        try:
            collector = self._collector
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
            measured = {**_reward_figures(outcomes), **measured}
        self.whole = True
        return measured

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
        world = self.setup.world
        name = "" if problem is None else str(problem) or type(problem).__name__
        errors = world.gather({world.rank: name})
        self.error_is_shared = any(errors.values())
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
            self.error_is_shared = True  # the norm is that of the sum, the same in all processes
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
        "takes less in gradients, dtype bfloat16 everywhere, and device_map spreads the model over several devices. "
        "The last checkpoint is whole"
    )
    advised.__cause__ = error
    return advised
