"""What the trainer knows of its tasks between updates, and how a task's episodes get their weights.

All of it is values: what happened to a task in an update goes to every process, and each applies it in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from formal_llm.errors import TooManyPlans
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.rltf.advantages import Estimator, Group, Known, estimator
from formal_llm.rltf.baselines import Baseline, Baselines
from formal_llm.rltf.episode import Episode
from formal_llm.rltf.objective import log_probabilities_of
from formal_llm.rltf.plan_tree import enumerate_episodes, path
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rewards import Judged, Reward
from formal_llm.rltf.rollout import Start, replay, rollout
from formal_llm.rltf.settings import Settings

#: A plan as the numbers that were chosen.
Path = tuple[int, ...]


@dataclass(frozen=True)
class Happened:
    """What an update did with one task; goes to all processes.

    Attributes:
        index: the task.
        rewards: of its samples.
        value: the reward that is told of it: the mean of the samples, or the expected reward where it is known.
        failed: how many of its plans got a stated reward.
        greedy: the reward of its greedy plan, where that was asked for.
        known: the plans to be known from now on, with their rewards; None where nobody keeps any.
    """

    index: int
    rewards: tuple[float, ...]
    value: float
    failed: int = 0
    greedy: float | None = None
    known: tuple[tuple[Path, float], ...] | None = None


@dataclass(frozen=True)
class Memory:
    """What is known of the tasks.

    Attributes:
        baselines: the moving averages of their rewards.
        known: for each task the plans whose rewards are known, with these.
    """

    baselines: Baselines = field(default_factory=Baselines)
    known: Mapping[int, tuple[tuple[Path, float], ...]] = field(default_factory=dict)

    def after(self, happened: Sequence[Happened]) -> Memory:
        """The memory after an update."""
        baselines, known = self.baselines, dict(self.known)
        for one in happened:
            key = str(one.index)
            if one.greedy is not None:
                baselines = baselines.started(key, one.greedy)
            if baselines.get(key) is not None:
                baselines = baselines.updated(key, one.rewards)
            if one.known is not None:
                known[one.index] = one.known
        return Memory(baselines, known)

    def to_data(self) -> dict[str, Any]:
        """As JSON data."""
        known = {str(index): [[list(p), reward] for p, reward in plans] for index, plans in self.known.items()}
        return {"baselines": self.baselines.to_data(), "known": known}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Memory:
        """What :meth:`to_data` made, after JSON."""
        known = {
            int(index): tuple((tuple(p), float(reward)) for p, reward in plans)
            for index, plans in data["known"].items()
        }
        return cls(Baselines.from_data(data["baselines"]), known)


@dataclass(frozen=True)
class Weighed:
    """A task's part in an update.

    Attributes:
        episodes, weights: what goes into the objective.
        shares: how much each episode counts for the entropy and the distance to the base model: as the policy would
            meet it.
        happened: what becomes of the memory.
    """

    episodes: tuple[Episode, ...]
    weights: tuple[float, ...]
    shares: tuple[float, ...]
    happened: Happened


@dataclass
class _Part:
    """A task on its way through an update."""

    index: int
    place: int
    how: Estimator
    known: list[tuple[Episode, float]] = field(default_factory=list)
    samples: list[Episode] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    greedy: Episode | None = None
    greedy_reward: float | None = None


class Grouping:
    """Makes the groups of updates: rolls out, has the plans judged, weighs them.

    Args:
        planner: whose rules and wording.
        policy: the policy.
        reward: of plans.
        tasks: all tasks of the run.
        settings: of the run.
    """

    def __init__(
        self, planner: Planner, policy: Policy, reward: Reward, tasks: Sequence[Task], settings: Settings
    ) -> None:
        self._planner = planner
        self._policy = policy
        self._reward = reward
        self._tasks = tasks
        self._settings = settings
        self._estimator = estimator(settings.advantage)
        self._episodes: dict[int, dict[Path, Episode]] = {}  # of known plans, made again from their numbers
        self._failed: dict[int, int] = {}  # of all plans, how many have a stated reward
        self._all: dict[int, list[tuple[Episode, float]] | None] = {}  # all plans of a task; None: too many

    def groups(self, step: int, places: Sequence[tuple[int, int]], memory: Memory) -> list[Weighed]:
        """The groups of some tasks in an update.

        Args:
            step: the number of the update; with the place the seed of the draws.
            places: for each group its place in the update, and its task.
            memory: from before the update.
        """
        parts = [self._begin(place, index, memory) for place, index in places]
        self._roll_out(step, parts, memory)
        logs = log_probabilities_of(self._policy, [episode for part in parts for episode, _ in part.known])
        rest = iter(logs)
        return [self._weigh(part, [math.exp(next(rest)) for _ in part.known], memory) for part in parts]

    def _begin(self, place: int, index: int, memory: Memory) -> _Part:
        """What is known of a task, and by which estimator it goes: a language too large for all plans is stratified."""
        part = _Part(index, place, self._estimator)
        if self._estimator.needs_all:
            plans = self._all_plans(index)
            if plans is not None:
                part.known = plans
                return part
            part.how = estimator("stratified")
        if part.how.needs_known:
            known = memory.known.get(index, ())
            # What another process has put out of the memory since is not kept here for ever.
            for numbers in self._episodes.get(index, {}).keys() - {p for p, _ in known}:
                del self._episodes[index][numbers]
            part.known = [(self._episode(index, p), reward) for p, reward in known]
        return part

    def _all_plans(self, index: int) -> list[tuple[Episode, float]] | None:
        if index not in self._all:
            task = self._tasks[index]
            try:
                episodes = enumerate_episodes(self._planner, task, index, self._settings.exact_plans)
            except TooManyPlans:
                self._all[index] = None
            else:
                judged = self._reward.judge_many(
                    [(task, episode.plan) for episode in episodes], self._settings.reward_workers
                )
                self._failed[index] = sum(bool(one.failed) for one in judged)
                self._all[index] = [(episode, one.value) for episode, one in zip(episodes, judged, strict=True)]
        return self._all[index]

    def _episode(self, index: int, numbers: Path) -> Episode:
        own = self._episodes.setdefault(index, {})
        if numbers not in own:
            own[numbers] = replay(self._planner, Start(index, self._tasks[index]), numbers)
        return own[numbers]

    def _roll_out(self, step: int, parts: Sequence[_Part], memory: Memory) -> None:
        """Sample plans for all groups together, and have them judged together."""
        starts: list[Start] = []
        whose: list[tuple[_Part, bool]] = []
        for part in parts:
            task = self._tasks[part.index]
            if part.how.needs_baseline and memory.baselines.get(str(part.index)) is None:
                starts.append(Start(part.index, task))
                whose.append((part, True))
            if part.how.needs_samples:
                for number in range(max(self._settings.samples, part.how.least_samples)):
                    starts.append(Start(part.index, task, f"{self._settings.seed} {step} {part.place} {number}"))
                    whose.append((part, False))
        episodes = rollout(self._planner, self._policy, starts)
        pairs = [(episode.task, episode.plan) for episode in episodes]
        judged = self._reward.judge_many(pairs, self._settings.reward_workers)
        for (part, greedy), episode, one in zip(whose, episodes, judged, strict=True):
            if greedy:
                part.greedy, part.greedy_reward = episode, one.value
            else:
                part.samples.append(episode)
                part.judged.append(one)

    def _weigh(self, part: _Part, chances: list[float], memory: Memory) -> Weighed:
        """The weights of a group."""
        rewards = tuple(one.value for one in part.judged)
        baseline = memory.baselines.get(str(part.index))
        if baseline is None and part.greedy_reward is not None:
            baseline = Baseline.start(part.greedy_reward)
        known_paths = {path(episode) for episode, _ in part.known}
        known = Known(
            tuple(chances),
            tuple(reward for _, reward in part.known),
            tuple(path(episode) in known_paths for episode in part.samples),
        )
        weights = part.how(Group(rewards, baseline, known))
        value = math.fsum(rewards) / len(rewards) if rewards else 0.0
        if part.how.needs_all:
            value = math.fsum(chance * reward for chance, (_, reward) in zip(chances, part.known, strict=True))
        failed = sum(bool(one.failed) for one in part.judged)
        if part.how.needs_all:
            failed = self._failed.get(part.index, 0)
        happened = Happened(part.index, rewards, value, failed, part.greedy_reward)
        if part.how.needs_known and not part.how.needs_all:
            happened = replace(happened, known=self._to_know(part, chances))
        used = part.how.needs_known
        # Without samples the known plans are all there are; beside samples they are some that would be met in them.
        shares = tuple(chances) if part.how.needs_all else (0.0,) * len(part.known)
        return Weighed(
            (*((episode for episode, _ in part.known) if used else ()), *part.samples),
            (*(weights.known if used else ()), *weights.sampled),
            (*(shares if used else ()), *((1.0,) * len(part.samples))),
            happened,
        )

    def _to_know(self, part: _Part, chances: Sequence[float]) -> tuple[tuple[Path, float], ...]:
        """The plans to be known from now on: the most probable of those that are known and those that were sampled."""
        found: dict[Path, tuple[float, float]] = {}
        episodes = self._episodes.setdefault(part.index, {})
        for (episode, reward), chance in zip(part.known, chances, strict=True):
            found[path(episode)] = (chance, reward)
        for episode, one in zip(part.samples, part.judged, strict=True):
            numbers = path(episode)
            found.setdefault(numbers, (math.exp(episode.log_probability), one.value))
            episodes.setdefault(numbers, episode)
        best = sorted(found, key=lambda numbers: (-found[numbers][0], numbers))[: self._settings.known_plans]
        for numbers in found.keys() - set(best):
            episodes.pop(numbers, None)
        return tuple((numbers, found[numbers][1]) for numbers in best)
