"""Moving averages of the rewards of tasks: the baseline of the paper's REINFORCE (Li et al. 2024, arXiv 2402.00798)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

from formal_llm.errors import InputError, ResourceNotFound

#: The share of the old value that a moving-average baseline keeps with each group (as in the paper).
DECAY = 0.8


@dataclass(frozen=True, slots=True)
class Baseline:
    """The moving average of a task's rewards.

    Attributes:
        value: the average, in units of the rewards.
        groups: the number of groups of samples it includes.
    """

    value: float
    groups: int = 0

    @classmethod
    def start(cls, reward: float) -> Baseline:
        """Return the baseline before the first sample: the greedy plan's reward; ValueError if it is not finite."""
        return cls(finite(reward, "the reward of the greedy plan"))

    def updated(self, rewards: Sequence[float], decay: float = DECAY) -> Baseline:
        """Return the baseline after a group: decay * old + (1 - decay) * mean of the rewards.

        It must be used for the *next* group only: a baseline that includes the rewards it is subtracted from is not
        independent of them.

        The order of the rewards does not matter; without rewards, nothing changes.

        Raises:
            ValueError: a reward is not finite, or the decay is not between 0 and 1.
        """
        if not 0 <= decay <= 1:
            raise ValueError(f"the decay of a baseline is between 0 and 1, not {decay}")
        if not rewards:
            return self
        return Baseline(decay * self.value + (1 - decay) * mean_of(checked(rewards)), self.groups + 1)


class BaselinesData(TypedDict):
    """Baselines as JSON data: ``values`` has the average of each task and its number of groups."""

    decay: float
    values: dict[str, tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Baselines:
    """The baselines of many tasks; immutable, so updating returns a new object.

    Attributes:
        values: the baseline of each task, by its key.
    """

    values: Mapping[str, Baseline] = field(default_factory=dict)
    decay: float = DECAY

    def get(self, key: str) -> Baseline | None:
        """Return the baseline of a task; None before it was started."""
        return self.values.get(key)

    def started(self, key: str, reward: float) -> Baselines:
        """Return baselines in which a task starts at the reward of its greedy plan, unless it has one already."""
        return self if key in self.values else self._with_baseline(key, Baseline.start(reward))

    def updated(self, key: str, rewards: Sequence[float]) -> Baselines:
        """Return the baselines after a group of samples of a task (see :meth:`Baseline.updated`).

        Raises:
            ResourceNotFound: the task's baseline was not started.
            ValueError: a reward is not finite.
        """
        if key not in self.values:
            raise ResourceNotFound("started baseline of task", key, self.values)
        return self._with_baseline(key, self.values[key].updated(rewards, self.decay))

    def _with_baseline(self, key: str, baseline: Baseline) -> Baselines:
        return replace(self, values={**self.values, key: baseline})

    def to_data(self) -> BaselinesData:
        """Return the baselines as JSON data."""
        return {"decay": self.decay, "values": {key: (b.value, b.groups) for key, b in self.values.items()}}

    @classmethod
    def from_data(cls, data: BaselinesData) -> Baselines:
        """Restore baselines from the result of :meth:`to_data`, after JSON.

        Raises:
            InputError: the data is something else.
        """
        try:
            values = {
                str(key): Baseline(finite(float(value), f"the baseline of task {key!r}"), int(groups))
                for key, (value, groups) in data["values"].items()
            }
            return cls(values, float(data["decay"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"these are no baselines of tasks: {type(error).__name__}: {error}") from None


def mean_of(rewards: Sequence[float]) -> float:
    """Return the mean, summed exactly."""
    return math.fsum(rewards) / len(rewards)


def finite(value: float, what: str) -> float:
    """Return a finite number unchanged; ``what`` names it in the error."""
    if not math.isfinite(value):
        raise ValueError(f"{what} is {value}, not a finite number")
    return value


def checked(rewards: Sequence[float], of: str = "sample") -> tuple[float, ...]:
    """Return finite rewards unchanged."""
    return tuple(finite(r, f"the reward of {of} {n} of {len(rewards)}") for n, r in enumerate(rewards, 1))
