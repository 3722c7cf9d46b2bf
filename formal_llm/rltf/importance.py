"""Plans drawn from a policy other than the updated one: truncated importance sampling.

A server that generates the plans computes with other kernels and number formats than the trainer, or has older weights.
Its plans are drawn from ``mu``, and the gradient is that of ``pi``. For any function f of plans::

    E over pi of f(plan)  =  E over mu of  pi(plan) / mu(plan) * f(plan)

so the weight of a sample is multiplied by the ratio of its probabilities. This is exact whenever mu gives every plan a
chance that pi gives one, and preserves every estimator: unbiased with a baseline that does not depend on the sample. A
ratio is large if mu found a plan improbable, and that sample then outweighs all others. A cap on the ratio prevents
this; the part above it is missing from the gradient (a bias), which is reported.

Sources: Horvitz and Thompson 1952; Ionides 2008 (truncated importance sampling); Yao et al. 2025, "Your efficient RL
framework secretly brings you off-policy RL training" (rollouts by another engine). The probabilities are those of whole
plans: the products over their options.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: The distance in nats per plan from which on two policies are reported as different.
FAR = 0.1
#: The largest logarithm of a ratio to exponentiate: the square of a float overflows at 354.
_LARGEST = 300.0


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement between the policy that drew plans and the updated policy.

    Attributes:
        ratio: the mean of pi / mu over the samples, without the cap; 1 in expectation, however different they are.
        effective: the effective fraction of the weighted samples, (sum w)^2 / (n sum w^2), with capped ratios.
        drift: an estimate of KL(mu || pi) in nats per plan: the mean of ratio - 1 - log ratio, never below 0; 0 if they
            are equal. (Schulman 2020, "Approximating KL divergence".)
        cut: the fraction of the samples whose ratio was capped.
    """

    ratio: float
    effective: float
    drift: float
    cut: float

    @classmethod
    def of(cls, log_ratios: Sequence[float], cap: float = 0.0) -> Agreement:
        """Measure the agreement on some samples, at least one.

        Args:
            log_ratios: log pi(plan) - log mu(plan) of each sample.
            cap: the largest ratio; 0 for no cap.
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
    """Return the factors of the weights of samples: their ratios pi / mu, capped unless ``cap`` is 0."""
    largest = min(math.log(cap), _LARGEST) if cap else _LARGEST
    return tuple(math.exp(min(log, largest)) for log in log_ratios)
