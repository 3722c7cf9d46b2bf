"""Advantages: from the rewards of plans to the weights of a policy-gradient update. Pure functions, no tensors.

Every update of a policy pi increases this sum over the given episodes::

    sum of weight_i * log pi(plan_i)

The weights are constants; no gradient passes through them. Estimators differ in how they turn rewards into weights.
An estimator is *unbiased* if the expected gradient of that sum is the gradient of the expected reward J.

==================  ========================================================  =======================================
name                weight of sample i of n                                   expected gradient
==================  ========================================================  =======================================
``plain``           r_i / n                                                   grad J
``reinforce``       (r_i - b) / n, b a moving average of earlier groups       grad J
``rloo``            (r_i - mean of the other rewards) / n                     grad J
``grpo_unscaled``   (r_i - mean) / n                                          (n - 1) / n * grad J
``grpo``            (r_i - mean) / (std + eps) / n                            biased: in general no multiple of grad J
``stratified``      known plans: pi_k (r_k - b); samples outside of them:     grad J
                                        (r_i - b) / n; samples among them: 0
``exact``           all plans: pi_k (r_k - J); no samples                     grad J, with no variance
==================  ========================================================  =======================================

All this follows from one identity: the probabilities of all plans sum to 1, so sum_k pi_k grad log pi_k = 0 over the
whole language, and any term that does not depend on the sample can be subtracted from its reward. A baseline may hence
depend on anything known before the sample was drawn (``reinforce``, ``stratified``) or on the other samples (``rloo``).
The mean over a group, however, includes the sample itself with weight 1/n (``grpo_unscaled``), and the standard
deviation of the group depends on the sample in a way that does not cancel (``grpo``).

Sources: Williams 1992 (REINFORCE); Li et al. 2024, arXiv 2402.00798 (moving average per task); Kool et al. 2019 and
Ahmadian et al. 2024, arXiv 2402.14740 (leave one out); Shao et al. 2024, arXiv 2402.03300 (GRPO); Liu et al. 2025,
arXiv 2503.20783 (its bias, and "Dr. GRPO"); Norouzi et al. 2018, arXiv 1807.02322 (exact inside a memory of plans,
sampled outside).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from formal_llm.errors import ResourceNotFound
from formal_llm.rltf.baselines import Baseline, checked, finite, mean_of

#: What ``grpo`` adds to the standard deviation, in units of the rewards, as TRL does.
EPSILON = 1e-4
#: The tolerance for the probabilities of plans, which should sum to 1; models that compute in bf16 are not exact.
TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class KnownPlans:
    """Plans of a task that were known before its samples were drawn, with rewards that need no more samples.

    A plan is identified by its answers, not by its word: if the automaton is ambiguous, a word has several plans (see
    :attr:`formal_llm.rltf.episode.Episode.path`).

    Attributes:
        probabilities: the probabilities of the plans under the policy that is updated.
        rewards: the rewards of the plans, in the same order.
        repeats: for each fresh sample, whether its plan is one of the known ones. May be omitted without known plans or
                without samples.
    """

    probabilities: tuple[float, ...] = ()
    rewards: tuple[float, ...] = ()
    repeats: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskRewards:
    """All inputs of an estimator: one task, before one update.

    Attributes:
        rewards: the rewards of the fresh samples.
        baseline: the task's moving average from before these samples; None if there is none.
        known: the plans known before these samples were drawn.
    """

    rewards: tuple[float, ...] = ()
    baseline: Baseline | None = None
    known: KnownPlans = KnownPlans()


@dataclass(frozen=True, slots=True)
class PlanWeights:
    """The factors of the log-probabilities of plans.

    Attributes:
        known: one weight for each known plan; empty for estimators that ignore them.
        sampled: one weight for each fresh sample, already divided by their number.
    """

    known: tuple[float, ...] = ()
    sampled: tuple[float, ...] = ()


#: A function that turns rewards into weights.
Weighing: TypeAlias = Callable[[TaskRewards], PlanWeights]


@dataclass(frozen=True, slots=True)
class Estimator:
    """An estimator: its function and its requirements.

    Attributes:
        function: computes the weights of a checked group.
        unbiased: whether the expected gradient is that of the expected reward.
        least_samples: the minimum number of fresh samples; 0 if it uses none.
        needs_baseline: whether it needs the task's moving average.
        needs_known: whether it needs the known plans.
        needs_all: whether the known plans must be all plans of the task.
    """

    name: str
    function: Weighing
    unbiased: bool
    least_samples: int = 1
    needs_baseline: bool = False
    needs_known: bool = False
    needs_all: bool = False

    @property
    def needs_samples(self) -> bool:
        """Whether it needs fresh samples."""
        return self.least_samples > 0

    def __call__(self, group: TaskRewards) -> PlanWeights:
        """Return the weights of a group.

        Raises:
            ValueError: a reward or probability is invalid (the error specifies which), or a required input is missing.
        """
        _check_needs(self, group)
        return self.function(group)


def estimator(name: str) -> Estimator:
    """Return the estimator of a name.

    Raises:
        ResourceNotFound: there is none; the error suggests the nearest name.
    """
    if name not in ADVANTAGES:
        raise ResourceNotFound("advantage", name, ADVANTAGES)
    return ADVANTAGES[name]


def estimate(
    name: str, *, rewards: Sequence[float] = (), baseline: Baseline | None = None, known: KnownPlans | None = None
) -> PlanWeights:
    """Return the weights of one task's episodes by the named estimator, which uses the inputs that it needs.

    The other arguments are the attributes of :class:`TaskRewards`.

    Raises:
        ResourceNotFound: there is no such estimator.
        ValueError: see :class:`Estimator`.
    """
    return estimator(name)(TaskRewards(tuple(rewards), baseline, known or KnownPlans()))


# -- the estimators ----------------------------------------------------------------------------------------------------


def plain(group: TaskRewards) -> PlanWeights:
    """Use no baseline (Williams 1992): unbiased, with the highest variance; for comparison."""
    return _weights_of(group.rewards)


def reinforce(group: TaskRewards) -> PlanWeights:
    """Subtract the moving average of the task's earlier rewards, as in the paper.

    This is unbiased, since the average was computed before these samples were drawn.
    """
    assert group.baseline is not None
    return _weights_of([reward - group.baseline.value for reward in group.rewards])


def rloo(group: TaskRewards) -> PlanWeights:
    """Subtract the mean of the other samples' rewards: unbiased, since they are independent of the sample."""
    count, mean = len(group.rewards), mean_of(group.rewards)
    return _weights_of([(reward - mean) * count / (count - 1) for reward in group.rewards])


def grpo_unscaled(group: TaskRewards) -> PlanWeights:
    """Subtract the group's mean ("Dr. GRPO"): the right direction, too short by the factor (n - 1) / n."""
    mean = mean_of(group.rewards)
    return _weights_of([reward - mean for reward in group.rewards])


def grpo(group: TaskRewards) -> PlanWeights:
    """Subtract the group's mean and divide by its standard deviation (of a sample, n - 1): biased.

    Groups with nearly equal rewards count as much as others, so the expected direction is not that of the gradient.
    """
    mean = mean_of(group.rewards)
    centred = [reward - mean for reward in group.rewards]
    deviation = math.sqrt(math.fsum(c * c for c in centred) / (len(centred) - 1))
    return _weights_of([c / (deviation + EPSILON) for c in centred])


def stratified(group: TaskRewards) -> PlanWeights:
    """Compute the known plans exactly and sample the others.

    The gradient is a sum over all plans of pi (r - b) grad log pi, for any b that does not depend on the samples. Its
    part over the known plans is computed exactly. Its part over the others is an expectation, so each sample outside
    represents 1/n of it, and a sample inside counts nothing. This is unbiased because the known plans were fixed before
    the samples were drawn, and b depends on them alone: it is their mean reward, given that a plan is known. Before the
    first plan is known, b is the moving average, or 0 if there is none.
    """
    known = group.known
    mass = math.fsum(known.probabilities)
    if mass > 0:
        baseline = math.fsum(p * r for p, r in zip(known.probabilities, known.rewards, strict=True)) / mass
    else:
        baseline = 0.0 if group.baseline is None else group.baseline.value
    inside = tuple(p * (r - baseline) for p, r in zip(known.probabilities, known.rewards, strict=True))
    repeats = known.repeats or (False,) * len(group.rewards)
    outside = [0.0 if repeated else r - baseline for r, repeated in zip(group.rewards, repeats, strict=True)]
    return PlanWeights(inside, _weights_of(outside).sampled)


def exact(group: TaskRewards) -> PlanWeights:
    """Compute the gradient itself: :func:`stratified` with all plans known. A sample, if there is one, is ignored."""
    return stratified(replace(group, known=replace(group.known, repeats=(True,) * len(group.rewards))))


#: The estimators, by name.
ADVANTAGES = {
    one.name: one
    for one in (
        Estimator("plain", plain, unbiased=True),
        Estimator("reinforce", reinforce, unbiased=True, needs_baseline=True),
        Estimator("rloo", rloo, unbiased=True, least_samples=2),
        Estimator("grpo_unscaled", grpo_unscaled, unbiased=False, least_samples=2),
        Estimator("grpo", grpo, unbiased=False, least_samples=2),
        Estimator("stratified", stratified, unbiased=True, needs_known=True),
        Estimator("exact", exact, unbiased=True, least_samples=0, needs_known=True, needs_all=True),
    )
}


def _weights_of(advantages: Sequence[float]) -> PlanWeights:
    """Return weights without known plans: each advantage divided by the number of samples."""
    return PlanWeights(sampled=tuple(value / len(advantages) for value in advantages))


def _check_needs(needs: Estimator, group: TaskRewards) -> None:
    """Raise an error for invalid inputs, before any weight is computed from them."""
    known, count = group.known, len(group.rewards)
    checked(group.rewards)
    if count < needs.least_samples:
        least = f"{needs.least_samples} sample{'s' * (needs.least_samples > 1)}"
        raise ValueError(f"the advantage {needs.name!r} needs at least {least} of a task, there are {count}")
    if needs.needs_baseline and group.baseline is None:
        raise ValueError(
            f"the advantage {needs.name!r} needs the task's baseline; begin with Baseline.start(greedy reward)"
        )
    if group.baseline is not None:
        finite(group.baseline.value, "the baseline")
    if not needs.needs_known:
        return
    checked(known.rewards, "known plan")
    if len(known.probabilities) != len(known.rewards):
        raise ValueError(f"{len(known.rewards)} rewards for {len(known.probabilities)} known plans")
    for number, probability in enumerate(known.probabilities, 1):
        if not 0 <= probability <= 1 + TOLERANCE:  # also rejects nan
            raise ValueError(f"the probability of known plan {number} is {probability}, not between 0 and 1")
    mass = math.fsum(known.probabilities)
    if mass > 1 + TOLERANCE:
        raise ValueError(f"the probabilities of the known plans sum to {mass:.4f}: is one there twice?")
    if needs.needs_all:
        if mass < 1 - TOLERANCE:
            raise ValueError(
                f"the advantage {needs.name!r} needs all plans of the task, but the probabilities of the "
                f"{len(known.probabilities)} known ones sum to {mass:.4f}; use 'stratified' where some are not known"
            )
    elif len(known.repeats) != count and (known.repeats or known.probabilities):
        raise ValueError(f"for {count} samples it must be given whether each is known, not for {len(known.repeats)}")
