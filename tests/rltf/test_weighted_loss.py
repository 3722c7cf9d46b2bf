"""The sum over all plans in PyTorch, against its finite differences and against lists of all plans."""

from __future__ import annotations

import importlib.util

import pytest

if not importlib.util.find_spec("torch"):
    pytest.skip("torch is not installed", allow_module_level=True)

import torch

from formal_llm import CFG, WeightedRules
from formal_llm.rltf.weighted_loss import log_partitions

RULES = [
    WeightedRules(CFG.from_string("%limit 1\nS -> a S | b S | c")),
    WeightedRules(CFG.from_string("S -> a b | b c | c")),
]
NAMES = ("a", "b", "c", "d")
SCORES = torch.tensor([[0.3, -1.0, 0.5, 7.0], [1.2, 0.4, -0.7, 0.0]], dtype=torch.float64)


def test_the_sum_is_that_of_all_plans() -> None:
    a, b, c = SCORES[0, :3].exp().tolist()
    first = c * (1 + a + b + 2 * a * b)
    a, b, c = SCORES[1, :3].exp().tolist()
    expected = torch.tensor([first, a * b + b * c + c], dtype=torch.float64).log()
    torch.testing.assert_close(log_partitions(RULES, NAMES, SCORES), expected)


def test_it_can_be_differentiated_twice() -> None:
    scores = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda given: log_partitions(RULES, NAMES, given), (scores,))
    assert torch.autograd.gradgradcheck(lambda given: log_partitions(RULES, NAMES, given), (scores,))


def test_the_kind_of_number_is_kept_and_what_rules_do_not_have_gets_no_gradient() -> None:
    scores = SCORES.float().requires_grad_()
    sums = log_partitions(RULES, NAMES, scores)
    assert sums.dtype == torch.float32
    sums.sum().backward()
    assert scores.grad is not None
    assert scores.grad[:, 3].tolist() == [0, 0]
    assert scores.grad[0, 2] == pytest.approx(1)  # each plan of the first rules has c once


def test_the_mean_reward_of_a_policy_rises_along_its_gradient() -> None:
    """The mean of an additive reward is a derivative of the sum, so no plan has to be drawn."""
    values = torch.tensor([[1.0, -1.0, 0.0, 0.0]], dtype=torch.float64)
    scores = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    means = []
    for _ in range(30):
        (counts,) = torch.autograd.grad(log_partitions(RULES[:1], NAMES, scores).sum(), scores, create_graph=True)
        mean = (counts * values).sum()
        means.append(mean.item())
        (step,) = torch.autograd.grad(mean, scores)
        scores = (scores + 5 * step).detach().requires_grad_()
    assert means[0] == pytest.approx(0, abs=1e-9)
    assert means[-1] > 0.9
    assert means == sorted(means)
