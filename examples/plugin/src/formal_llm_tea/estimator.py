"""The estimator ``median``: each reward less the median of the others.

It is unbiased, as ``rloo`` is: what is subtracted from a reward does not depend on it. One odd reward among the others
moves their median less than their mean.
"""

from __future__ import annotations

from statistics import median as middle

from formal_llm.rltf.advantages import Estimator, PlanWeights, TaskRewards


def weights(group: TaskRewards) -> PlanWeights:
    """The weights of a task's samples; the division by their number is done here."""
    rewards = group.rewards
    others = [rewards[:place] + rewards[place + 1 :] for place in range(len(rewards))]
    return PlanWeights(
        sampled=tuple((r - middle(rest)) / len(rewards) for r, rest in zip(rewards, others, strict=True))
    )


def median() -> Estimator:
    """The estimator, with what a trainer has to bring for it: two samples of a task."""
    return Estimator("median", weights, unbiased=True, least_samples=2)
