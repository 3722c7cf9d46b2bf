"""Confidence intervals of means over tasks: the percentile bootstrap (Efron 1979)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: The number of sets of tasks to draw, and the seed, which makes them always the same.
DRAWS, SEED = 10_000, 0


class Interval(NamedTuple):
    """An interval between two values."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f}"


def compute_interval(values: Sequence[float]) -> Interval | None:
    """Compute the middle 95 % of the means of sets of tasks drawn from these, each as large as this one.

    Args:
        values: one value for each task.

    Returns:
        None for less than two tasks, which allow no conclusion about others.
    """
    if len(values) < 2:
        return None
    drawn = np.random.default_rng(SEED).integers(len(values), size=(DRAWS, len(values)))
    low, high = np.quantile(np.asarray(values, dtype=float)[drawn].mean(axis=1), [0.025, 0.975])
    return Interval(float(low), float(high))
