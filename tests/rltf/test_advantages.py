"""Estimators: their expectation, summed over all samples there can be, against the enumerated gradient."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Planner, Task
from formal_llm.errors import ResourceNotFound
from formal_llm.rltf.advantages import (
    ADVANTAGES,
    TOLERANCE,
    Estimator,
    KnownPlans,
    PlanWeights,
    estimate,
    estimator,
)
from formal_llm.rltf.baselines import Baseline
from formal_llm.rltf.tabular import TabularPolicy
from tests import strategies

rewards_of = st.floats(-2, 2)


# -- random small trees, with a policy and rewards ---------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """A tree of plans with a policy on it: the probabilities, the rewards, the gradient of each log-probability."""

    tree: TabularPolicy
    logits: Any
    rewards: tuple[float, ...]

    @property
    def probabilities(self) -> Any:
        return self.tree.compute_probabilities(self.logits)

    @property
    def scores(self) -> Any:
        """grad log pi(plan), a row for each plan."""
        return np.array([self.tree.compute_gradient(self.logits, row) for row in np.eye(len(self.rewards))])

    @property
    def gradient(self) -> Any:
        return self.tree.exact_gradient(self.logits, self.rewards)

    def known(self, plans: Sequence[int], drawn: Sequence[int] = ()) -> KnownPlans:
        """These plans as known ones, for these samples."""
        likely = self.probabilities
        return KnownPlans(
            tuple(float(likely[plan]) for plan in plans),
            tuple(self.rewards[plan] for plan in plans),
            tuple(plan in plans for plan in drawn),
        )

    def groups(self, count: int) -> Iterator[tuple[float, tuple[int, ...], tuple[float, ...]]]:
        """All groups of samples: their probability, the plans, the rewards."""
        likely = self.probabilities
        for drawn in itertools.product(range(len(self.rewards)), repeat=count):
            yield math.prod(float(likely[p]) for p in drawn), drawn, tuple(self.rewards[p] for p in drawn)

    def update(self, weights: PlanWeights, drawn: Sequence[int], known: Sequence[int] = ()) -> Any:
        """The gradient of the weighted sum of log-probabilities."""
        total = np.zeros(len(self.rewards))
        for plan, weight in (
            *zip(known, weights.known, strict=True),
            *zip(drawn, weights.sampled, strict=True),
        ):
            total[plan] += weight
        return self.tree.compute_gradient(self.logits, total)

    def expected(
        self, count: int, weigh: Callable[[tuple[int, ...], tuple[float, ...]], PlanWeights], known: Any = ()
    ) -> Any:
        """The expected gradient of an estimator: the sum over all groups of samples."""
        return sum(p * self.update(weigh(drawn, rewards), drawn, known) for p, drawn, rewards in self.groups(count))


def grammar_of(shape: Any) -> CFG:
    """A grammar whose tree of plans has this shape: a list is a question, what is in it its options."""
    lines: list[str] = []

    def write(node: list[Any], name: str) -> None:
        bodies = []
        for number, child in enumerate(node):
            below = f"{name}_{number}"
            bodies.append(f"x{below}" + (f" N{below}" if child else ""))
        lines.append(f"N{name} -> {' | '.join(bodies)}")
        for number, child in enumerate(node):
            if child:
                write(child, f"{name}_{number}")

    write(shape, "0")
    return CFG.from_string("\n".join(lines))


shapes = st.recursive(st.just([]), lambda inner: st.lists(inner, min_size=2, max_size=3), max_leaves=6).filter(
    lambda shape: len(shape) > 0 and leaves(shape) <= 6
)


def leaves(shape: Any) -> int:
    return sum(map(leaves, shape)) if shape else 1


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    tree = TabularPolicy.from_task(Planner(grammar_of(draw(shapes)), "test:first"), Task("t"), 6)
    logits = draw(st.lists(st.floats(-3, 3), min_size=tree.size, max_size=tree.size))
    count = len(tree.episodes)
    return Problem(tree, np.array(logits), tuple(draw(st.lists(rewards_of, min_size=count, max_size=count))))


def close(found: Any, right: Any) -> bool:
    return bool(np.allclose(found, right, rtol=0, atol=1e-9))


def three_plans(rewards: tuple[float, float, float] = (0.0, 0.1, 1.0)) -> Problem:
    tree = TabularPolicy.from_task(Planner(CFG.from_string("S -> a | b | c"), "test:first"), Task("t"), 3)
    return Problem(tree, np.zeros(3), rewards)


# -- unbiased ----------------------------------------------------------------------------------------------------------


@strategies.examples(60)
@given(problems(), st.integers(1, 3))
def test_plain_is_unbiased(problem: Problem, count: int) -> None:
    assert close(problem.expected(count, lambda _, r: estimate("plain", rewards=r)), problem.gradient)


@strategies.examples(60)
@given(problems(), st.integers(2, 3))
def test_rloo_is_unbiased(problem: Problem, count: int) -> None:
    assert close(problem.expected(count, lambda _, r: estimate("rloo", rewards=r)), problem.gradient)


@strategies.examples(60)
@given(problems(), st.integers(1, 3), rewards_of)
def test_reinforce_is_unbiased_for_any_earlier_baseline(problem: Problem, count: int, value: float) -> None:
    baseline = Baseline.start(value)
    found = problem.expected(count, lambda _, r: estimate("reinforce", rewards=r, baseline=baseline))
    assert close(found, problem.gradient)


@strategies.examples(30)
@given(problems(), rewards_of)
def test_reinforce_is_unbiased_when_its_baseline_saw_the_group_before(problem: Problem, value: float) -> None:
    def after(before: tuple[float, ...]) -> Any:
        baseline = Baseline.start(value).updated(before)
        return problem.expected(1, lambda _, r: estimate("reinforce", rewards=r, baseline=baseline))

    assert close(sum(p * after(before) for p, _, before in problem.groups(2)), problem.gradient)


def test_reinforce_would_be_biased_if_its_baseline_saw_the_group_itself() -> None:
    problem, begin = three_plans(), Baseline.start(0.0)
    found = problem.expected(1, lambda _, r: estimate("reinforce", rewards=r, baseline=begin.updated(r)))
    assert close(found, 0.8 * problem.gradient)
    assert not close(found, problem.gradient)


@strategies.examples(60)
@given(problems(), st.integers(1, 3), st.data())
def test_stratified_is_unbiased_for_any_known_plans(problem: Problem, count: int, data: st.DataObject) -> None:
    known = sorted(data.draw(st.sets(st.sampled_from(range(len(problem.rewards))))))
    baseline = data.draw(st.none() | st.builds(Baseline, rewards_of))

    def weigh(drawn: tuple[int, ...], rewards: tuple[float, ...]) -> PlanWeights:
        return estimate("stratified", rewards=rewards, baseline=baseline, known=problem.known(known, drawn))

    assert close(problem.expected(count, weigh, known), problem.gradient)


@strategies.examples(30)
@given(problems())
def test_stratified_is_unbiased_when_the_group_before_made_its_plans_known(problem: Problem) -> None:
    def after(before: tuple[int, ...]) -> Any:
        known = sorted(set(before))
        return problem.expected(2, lambda d, r: estimate("stratified", rewards=r, known=problem.known(known, d)), known)

    assert close(sum(p * after(before) for p, before, _ in problem.groups(1)), problem.gradient)


@strategies.examples(60)
@given(problems())
def test_exact_is_the_gradient(problem: Problem) -> None:
    plans = range(len(problem.rewards))
    weights = estimate("exact", known=problem.known(plans))
    assert weights.sampled == ()
    assert close(problem.update(weights, (), plans), problem.gradient)
    assert math.isclose(math.fsum(weights.known), 0, abs_tol=1e-12)


@strategies.examples(30)
@given(problems(), st.integers(1, 3))
def test_stratified_over_all_plans_is_exact_whatever_is_sampled(problem: Problem, count: int) -> None:
    plans = range(len(problem.rewards))
    for _, drawn, rewards in itertools.islice(problem.groups(count), 10):
        known = problem.known(plans, drawn)
        found = estimate("stratified", rewards=rewards, known=known)
        assert found.sampled == (0.0,) * count
        assert found == estimate("exact", rewards=rewards, known=known)


# -- biased, as documented ---------------------------------------------------------------------------------------------


@strategies.examples(60)
@given(problems(), st.integers(2, 3))
def test_grpo_unscaled_is_too_short_by_one_sample(problem: Problem, count: int) -> None:
    found = problem.expected(count, lambda _, r: estimate("grpo_unscaled", rewards=r))
    assert close(found, (count - 1) / count * problem.gradient)


def test_grpo_has_another_direction() -> None:
    problem = three_plans()
    found, right = problem.expected(2, lambda _, r: estimate("grpo", rewards=r)), problem.gradient
    cosine = float(found @ right / np.linalg.norm(found) / np.linalg.norm(right))
    # In groups of two only the order of rewards counts, by whatever they differ: the middle plan seems no worse than
    # the mean, which by its reward it is.
    assert right[1] < -0.05
    assert found[1] == pytest.approx(0, abs=1e-2)
    assert 0.5 < cosine < 0.95


def test_flags_say_which_are_unbiased() -> None:
    assert {name for name, e in ADVANTAGES.items() if not e.unbiased} == {"grpo", "grpo_unscaled"}
    assert {name for name, e in ADVANTAGES.items() if e.needs_known} == {"stratified", "exact"}
    assert {name for name, e in ADVANTAGES.items() if not e.needs_samples} == {"exact"}
    assert {name for name, e in ADVANTAGES.items() if e.needs_baseline} == {"reinforce"}
    assert {name for name, e in ADVANTAGES.items() if e.needs_all} == {"exact"}


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_weights_by_hand() -> None:
    rewards = (1.0, 0.0, 0.5, 0.5)
    assert estimate("plain", rewards=rewards) == PlanWeights((), (0.25, 0.0, 0.125, 0.125))
    assert estimate("reinforce", rewards=rewards, baseline=Baseline(0.5)) == PlanWeights((), (0.125, -0.125, 0.0, 0.0))
    assert estimate("grpo_unscaled", rewards=rewards) == PlanWeights((), (0.125, -0.125, 0.0, 0.0))
    assert estimate("rloo", rewards=rewards).sampled == pytest.approx((1 / 6, -1 / 6, 0, 0))
    deviation = math.sqrt(0.5 / 3)
    assert estimate("grpo", rewards=rewards).sampled[0] == pytest.approx(0.125 / (deviation + 1e-4))
    known = KnownPlans((0.5, 0.25), (1.0, 0.25), (True, False))  # mean reward 0.75, given that a plan is known
    assert estimate("stratified", rewards=(1.0, 0.0), known=known) == PlanWeights((0.125, -0.125), (0.0, -0.375))
    assert estimate("stratified", rewards=(1.0, 0.0), baseline=Baseline(0.5)) == PlanWeights((), (0.25, -0.25))


@given(st.floats(-10, 10), st.integers(2, 6), st.sampled_from(["rloo", "grpo", "grpo_unscaled"]))
def test_equal_rewards_teach_nothing(reward: float, count: int, name: str) -> None:
    assert estimate(name, rewards=[reward] * count).sampled == pytest.approx([0] * count, abs=1e-9)


@given(st.lists(rewards_of, min_size=2, max_size=6), st.sampled_from(sorted(ADVANTAGES)))
def test_all_are_called_alike(rewards: list[float], name: str) -> None:
    count = len(rewards)
    known = KnownPlans((1 / count,) * count, tuple(rewards), (True,) * count)
    needed = estimator(name)
    weights = estimate(name, rewards=rewards, baseline=Baseline(0.1), known=known)
    assert len(weights.sampled) == count
    assert len(weights.known) == (count if needed.needs_known else 0)


# -- errors ------------------------------------------------------------------------------------------------------------


def test_an_unknown_name() -> None:
    with pytest.raises(ResourceNotFound, match=r"no advantage 'rlo'\. Did you mean 'rloo'") as caught:
        estimate("rlo", rewards=[1.0])
    assert "exact" in caught.value.known


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", sorted(ADVANTAGES))
def test_a_reward_that_is_no_number(name: str, bad: float) -> None:
    known = KnownPlans((0.5, 0.5), (0.0, 1.0), (True, True))
    with pytest.raises(ValueError, match="the reward of sample 2 of 2 is"):
        estimate(name, rewards=(0.5, bad), baseline=Baseline(0.0), known=known)
    with pytest.raises(ValueError, match="the baseline is"):
        estimate(name, rewards=(0.5, 0.5), baseline=Baseline(bad), known=known)
    if estimator(name).needs_known:
        with pytest.raises(ValueError, match="the reward of known plan 1 of 2 is"):
            estimate(name, rewards=(0.5, 0.5), known=KnownPlans((0.5, 0.5), (bad, 0.0), (True, True)))


@pytest.mark.parametrize(
    ("name", "what", "problem"),
    [
        ("plain", {}, "at least 1 sample of a task, there are 0"),
        ("rloo", {"rewards": [1.0]}, "at least 2 samples of a task, there are 1"),
        ("grpo", {"rewards": [1.0]}, "at least 2 samples"),
        ("reinforce", {"rewards": [1.0]}, "needs the task's baseline"),
        ("stratified", {"known": KnownPlans((1.0,), (1.0,))}, "at least 1 sample"),
        ("stratified", {"rewards": [1.0], "known": KnownPlans((0.5,), (1.0,))}, "whether each is known, not for 0"),
        (
            "stratified",
            {"rewards": [1.0], "known": KnownPlans((0.5,), (1.0, 0.0), (True,))},
            "2 rewards for 1 known plans",
        ),
        ("stratified", {"rewards": [1.0], "known": KnownPlans((math.nan,), (1.0,), (True,))}, "known plan 1 is nan"),
        ("stratified", {"rewards": [1.0], "known": KnownPlans((0.7, 0.7), (1.0, 0.0), (True,))}, "is one there twice"),
        ("exact", {"known": KnownPlans((0.5,), (1.0,))}, "use 'stratified'"),
        ("exact", {}, "use 'stratified'"),
    ],
)
def test_what_is_missing_or_wrong(name: str, what: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        estimate(name, **what)


def test_probabilities_of_known_plans_are_taken_up_to_a_tolerance() -> None:
    for most in (0.0, 1.0, 1 + TOLERANCE):
        assert estimate("stratified", rewards=[1.0], known=KnownPlans((most,), (1.0,), (True,)))
    assert estimate("exact", known=KnownPlans((1 - TOLERANCE, 0.0), (1.0, 2.0)))
    for beyond in (-TOLERANCE, 1 + 2 * TOLERANCE, 1.5):
        with pytest.raises(ValueError, match=r"known plan 1 is .* not between 0 and 1"):
            estimate("stratified", rewards=[1.0], known=KnownPlans((beyond,), (1.0,), (True,)))


def test_what_an_estimator_needs_unless_it_declares_more() -> None:
    made = Estimator("own", ADVANTAGES["plain"].function, True)
    assert (made.least_samples, made.needs_samples) == (1, True)
    assert not (made.needs_baseline or made.needs_known or made.needs_all)
