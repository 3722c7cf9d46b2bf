"""Plans to learn from: generated, judged and weighted, task by task.

All plans of one task in one update are a *group*; its plans get their weights from an estimator
(:mod:`formal_llm.rltf.advantages`). What the next update needs to know is put into a :class:`TaskOutcome`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from formal_llm.errors import TooManyPlans
from formal_llm.rltf.advantages import Estimator, KnownPlans, TaskRewards, estimator
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.baselines import Baseline
from formal_llm.rltf.episode import Episode, PlanPath
from formal_llm.rltf.importance import factors
from formal_llm.rltf.objective import log_probabilities_of
from formal_llm.rltf.rewards import Judged
from formal_llm.rltf.rollout import Start, replay, rollout
from formal_llm.rltf.setup import TrainingSetup
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
    logs: list[float] = field(default_factory=list)  # log-probabilities of the samples under the policy
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
        served = self._setup.served is not None
        known = [episode for group in groups for episode, _ in group.known]
        drawn = [episode for group in groups for episode in group.samples]
        rest = iter(log_probabilities_of(self._setup.policy, [*known, *drawn] if served else known))
        chances = [[math.exp(next(rest)) for _ in group.known] for group in groups]
        for group in groups:
            group.logs = [next(rest) if served else episode.log_probability for episode in group.samples]
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
        episodes = rollout(setup.planner, setup.served or setup.policy, starts)
        for (group, greedy), episode, one in zip(owners, episodes, self._judge_episodes(episodes), strict=True):
            if greedy:
                group.greedy_reward = one.value
            else:
                group.samples.append(episode)
                group.judged.append(one)

    def _weigh_group(self, group: _Group, chances: list[float], memory: TaskMemory) -> WeightedPlans:
        """Compute the weights of a group."""
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
        ratios: tuple[float, ...] = ()
        ones = (1.0,) * len(group.samples)
        if self._setup.served is not None:
            pairs = zip(group.logs, group.samples, strict=True)
            ratios = tuple(log - episode.log_probability for log, episode in pairs)
            ones = factors(ratios, self._setup.settings.rollout_cap)
            weights = replace(weights, sampled=tuple(map(operator.mul, weights.sampled, ones)))
        if weighing.needs_all:
            value = math.fsum(chance * reward for chance, reward in zip(chances, known.rewards, strict=True))
            failed = self._failed.get(group.index, 0)
        else:
            value = math.fsum(rewards) / len(rewards) if rewards else 0.0
            failed = sum(bool(one.failed) for one in group.judged)
        outcome = TaskOutcome(group.index, rewards, value, failed, group.greedy_reward, log_ratios=ratios)
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
        for episode, log, one in zip(group.samples, group.logs, group.judged, strict=True):
            known.setdefault(episode.path, (math.exp(log), one.value))
            episodes.setdefault(episode.path, episode)
        best = sorted(known, key=lambda path: (-known[path][0], path))[: self._setup.settings.known_plans]
        for path in known.keys() - set(best):
            episodes.pop(path, None)
        return tuple((path, known[path][1]) for path in best)
