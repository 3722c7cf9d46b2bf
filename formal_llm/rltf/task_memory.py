"""What is known of the tasks between updates.

All of it is values: what an update did with a task goes to every process, and each takes it in in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypedDict

from formal_llm.rltf.baselines import Baselines, BaselinesData
from formal_llm.rltf.episode import PlanPath

#: Plans with their rewards.
RewardedPaths: TypeAlias = tuple[tuple[PlanPath, float], ...]


@dataclass(frozen=True)
class TaskOutcome:
    """What an update did with one task; goes to all processes.

    Attributes:
        index: the task.
        rewards: of its samples.
        value: the reward that is told of it: the mean of the samples, or the expected reward where it is known.
        failed: how many of its plans got a stated reward.
        greedy: the reward of its greedy plan, where that was asked for.
        known: the plans to be known from now on, with their rewards; None where nobody keeps any.
        log_ratios: where a server drew the samples, for each the logarithm of policy's over server's probability.
    """

    index: int
    rewards: tuple[float, ...]
    value: float
    failed: int = 0
    greedy: float | None = None
    known: RewardedPaths | None = None
    log_ratios: tuple[float, ...] = ()


class MemoryData(TypedDict):
    """A memory as JSON data: ``known`` has for each task its plans, each with its reward."""

    baselines: BaselinesData
    known: dict[str, list[tuple[list[int], float]]]


@dataclass(frozen=True)
class TaskMemory:
    """What is known of the tasks.

    Attributes:
        baselines: the moving averages of their rewards.
        known: for each task the plans whose rewards are known, with these.
    """

    baselines: Baselines = field(default_factory=Baselines)
    known: Mapping[int, RewardedPaths] = field(default_factory=dict)

    def with_outcomes(self, outcomes: Sequence[TaskOutcome]) -> TaskMemory:
        """The memory after an update."""
        baselines, known = self.baselines, dict(self.known)
        for one in outcomes:
            key = str(one.index)
            if one.greedy is not None:
                baselines = baselines.started(key, one.greedy)
            if baselines.get(key) is not None:
                baselines = baselines.updated(key, one.rewards)
            if one.known is not None:
                known[one.index] = one.known
        return TaskMemory(baselines, known)

    def to_data(self) -> MemoryData:
        """As JSON data."""
        known = {str(index): [(list(path), reward) for path, reward in plans] for index, plans in self.known.items()}
        return {"baselines": self.baselines.to_data(), "known": known}

    @classmethod
    def from_data(cls, data: MemoryData) -> TaskMemory:
        """What :meth:`to_data` made, after JSON."""
        known = {
            int(index): tuple((tuple(path), float(reward)) for path, reward in plans)
            for index, plans in data["known"].items()
        }
        return cls(Baselines.from_data(data["baselines"]), known)
