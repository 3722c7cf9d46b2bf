"""Plans drawn from another policy than the one that is updated: truncated importance sampling.

A server that makes the plans computes with other kernels and numbers than the trainer, or has older weights. Its plans
are drawn from ``mu``, and the gradient is that of ``pi``. For any f with a value for each plan::

    E over pi of f(plan)  =  E over mu of  pi(plan) / mu(plan) * f(plan)

so a sample's weight is multiplied with the ratio of its probabilities. That is exact wherever mu gives every plan a
chance that pi gives one, whatever mu is, and keeps every estimator what it was: unbiased with a baseline that does not
depend on the sample. A ratio may be large where mu found a plan improbable, and then one sample outweighs all others.
Cut at a cap, it cannot; what is cut is missing from the gradient (a bias), which is told.

Sources: Horvitz and Thompson 1952; Ionides 2008 (truncated importance sampling); Yao et al. 2025, "Your efficient RL
framework secretly brings you off-policy RL training" (rollouts by another engine). The probabilities are those of whole
plans: the products over their options.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: The distance in nats for a plan from which on two policies are told to disagree much.
FAR = 0.1
#: No logarithm of a ratio beyond this is taken to the power: the square of a float ends at 354.
_LARGEST = 300.0


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well the policy that drew plans agrees with the one that is updated.

    Attributes:
        ratio: the mean of pi / mu over the samples, not cut; 1 in expectation, however far apart they are.
        effective: the share of the samples that the weighted ones are worth, (sum w)^2 / (n sum w^2), of cut ratios.
        drift: an estimate of KL(mu || pi) in nats for a plan: the mean of ratio - 1 - log ratio, never below 0; 0 where
            they are the same. (Schulman 2020, "Approximating KL divergence".)
        cut: the share of the samples whose ratio was cut.
    """

    ratio: float
    effective: float
    drift: float
    cut: float

    @classmethod
    def of(cls, log_ratios: Sequence[float], cap: float = 0.0) -> Agreement:
        """What some samples say, at least one.

        Args:
            log_ratios: for each log pi(plan) - log mu(plan).
            cap: the largest ratio; 0: none.
        """
        count = len(log_ratios)
        ratios = [math.exp(min(log, _LARGEST)) for log in log_ratios]
        weights = factors(log_ratios, cap)
        squares = math.fsum(weight * weight for weight in weights)
        drift = math.fsum(ratio - 1 - max(log, -_LARGEST) for ratio, log in zip(ratios, log_ratios, strict=True))
        return cls(
            ratio=math.fsum(ratios) / count,
            effective=math.fsum(weights) ** 2 / (count * squares) if squares else 0.0,
            drift=max(drift / count, 0.0),
            cut=sum(weight < ratio for weight, ratio in zip(weights, ratios, strict=True)) / count,
        )


def factors(log_ratios: Sequence[float], cap: float = 0.0) -> tuple[float, ...]:
    """What the weights of samples are multiplied with: their ratios pi / mu, cut at the cap; 0: not cut."""
    largest = min(math.log(cap), _LARGEST) if cap else _LARGEST
    return tuple(math.exp(min(log, largest)) for log in log_ratios)
