"""How far a mean over tasks would go with other tasks like these: the percentile bootstrap (Efron 1979)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: So many sets of tasks are drawn, always the same.
DRAWS, SEED = 10_000, 0


class Interval(NamedTuple):
    """From where to where."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f}"


def interval(values: Sequence[float]) -> Interval | None:
    """The middle 95 % of the means of sets of tasks drawn from these, each as large as this one.

    Args:
        values: one for each task.

    Returns:
        None for less than two tasks, which tell nothing about others.
    """
    if len(values) < 2:
        return None
    drawn = np.random.default_rng(SEED).integers(len(values), size=(DRAWS, len(values)))
    low, high = np.quantile(np.asarray(values, dtype=float)[drawn].mean(axis=1), [0.025, 0.975])
    return Interval(float(low), float(high))
