"""Truncated importance sampling, against the sums that it stands for."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.rltf.advantages import estimate
from formal_llm.rltf.baselines import Baseline
from formal_llm.rltf.importance import Agreement, factors

chances = st.lists(st.floats(0.05, 1), min_size=3, max_size=3).map(lambda raw: [one / sum(raw) for one in raw])
rewards = st.lists(st.floats(-2, 2), min_size=3, max_size=3)


def test_ratios_are_cut_at_the_cap() -> None:
    logs = [math.log(0.5), 0.0, math.log(3)]
    assert factors(logs) == pytest.approx([0.5, 1, 3])
    assert factors(logs, 2) == pytest.approx([0.5, 1, 2])
    assert factors([5_000.0], 2) == pytest.approx([2])
    assert math.isfinite(factors([5_000.0])[0])


@given(drawn=chances, wanted=chances, worth=rewards)
@pytest.mark.parametrize(("name", "samples"), [("plain", 1), ("reinforce", 1), ("rloo", 2)])
def test_corrected_weights_have_the_expected_gradient_of_the_policy(
    name: str, samples: int, drawn: list[float], wanted: list[float], worth: list[float]
) -> None:
    """Over all draws: the weights on the plans of a language of three, as far as gradients see them.

    The sum of pi grad log pi is 0, so weights count up to a multiple of pi.
    """
    logs = [math.log(p / m) for p, m in zip(wanted, drawn, strict=True)]
    expected = [0.0] * 3
    for plans in itertools.product(range(3), repeat=samples):
        chance = math.prod(drawn[plan] for plan in plans)
        weights = estimate(name, rewards=[worth[plan] for plan in plans], baseline=Baseline.start(0.3))
        for plan, weight, factor in zip(plans, weights.sampled, factors([logs[p] for p in plans]), strict=True):
            expected[plan] += chance * weight * factor
    mean = sum(p * r for p, r in zip(wanted, worth, strict=True))
    rest = [e - p * (r - mean) for e, p, r in zip(expected, wanted, worth, strict=True)]
    shift = sum(rest)
    assert rest == pytest.approx([shift * p for p in wanted], abs=1e-9)


def test_policies_that_agree() -> None:
    assert Agreement.of([0.0, 0.0, 0.0], 2) == Agreement(ratio=1.0, effective=1.0, drift=0.0, cut=0.0)


def test_policies_that_do_not() -> None:
    told = Agreement.of([math.log(4), math.log(0.5), math.log(0.5), math.log(0.5)], 2)
    assert told.ratio == pytest.approx(5.5 / 4)
    assert told.cut == 0.25
    assert told.effective == pytest.approx((2 + 1.5) ** 2 / (4 * (4 + 0.75)))
    assert told.drift == pytest.approx((4 - 1 - math.log(4) + 3 * (0.5 - 1 + math.log(2))) / 4)


@given(drawn=chances, wanted=chances)
def test_the_drift_is_the_divergence_in_the_mean(drawn: list[float], wanted: list[float]) -> None:
    logs = [math.log(p / m) for p, m in zip(wanted, drawn, strict=True)]
    found = math.fsum(m * Agreement.of([log]).drift for m, log in zip(drawn, logs, strict=True))
    assert found == pytest.approx(math.fsum(-m * log for m, log in zip(drawn, logs, strict=True)), abs=1e-9)


def test_ratios_beyond_all_numbers_are_told() -> None:
    told = Agreement.of([-math.inf, 9_000.0])
    assert math.isfinite(told.ratio)
    assert told.effective == pytest.approx(0.5)
