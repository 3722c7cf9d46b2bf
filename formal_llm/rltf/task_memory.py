"""What is known about the tasks between updates.

Everything is a value: the outcome of a task in an update is sent to every process, and all process it identically.
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
    """The outcome of one task in an update; sent to all processes.

    Attributes:
        index: the number of the task.
        value: the reward to report: the mean of the samples, or the expected reward if it is known.
        failed: the number of its plans that got a fallback reward.
        greedy: the reward of its greedy plan, if it was computed.
        known: the plans to remember, with their rewards; None if none are kept.
    """

    index: int
    rewards: tuple[float, ...]
    value: float
    failed: int = 0
    greedy: float | None = None
    known: RewardedPaths | None = None


class MemoryData(TypedDict):
    """A memory as JSON data: ``known`` has the plans of each task with their rewards."""

    baselines: BaselinesData
    known: dict[str, list[tuple[list[int], float]]]


@dataclass(frozen=True)
class TaskMemory:
    """What is known about the tasks.

    Attributes:
        baselines: the moving averages of their rewards.
        known: for each task, the plans with known rewards, and these.
    """

    baselines: Baselines = field(default_factory=Baselines)
    known: Mapping[int, RewardedPaths] = field(default_factory=dict)

    def with_outcomes(self, outcomes: Sequence[TaskOutcome]) -> TaskMemory:
        """Return the memory after an update."""
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
        """Return the memory as JSON data."""
        known = {str(index): [(list(path), reward) for path, reward in plans] for index, plans in self.known.items()}
        return {"baselines": self.baselines.to_data(), "known": known}

    @classmethod
    def from_data(cls, data: MemoryData) -> TaskMemory:
        """Restore a memory from the result of :meth:`to_data`, after JSON."""
        known = {
            int(index): tuple((tuple(path), float(reward)) for path, reward in plans)
            for index, plans in data["known"].items()
        }
        return cls(Baselines.from_data(data["baselines"]), known)
