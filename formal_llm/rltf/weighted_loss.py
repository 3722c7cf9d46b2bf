"""Weighted rules for PyTorch: the logarithm of the sum of all plans' weights, with its gradient.

The sum is computed by :class:`~formal_llm.WeightedRules`, in double precision. Its gradient by the scores are the
marginals, and the gradient of a combination of marginals is a covariance, so it can be differentiated twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from formal_llm.automata import WeightedRules


def log_partitions(rules: Sequence[WeightedRules], names: Sequence[str], scores: torch.Tensor) -> torch.Tensor:
    """Return for each row of scores the logarithm of the sum of the weights of all plans.

    With it the log-likelihood of a plan is the sum of its scores minus this, and the mean reward of a policy over plans
    is a derivative of it.

    Args:
        rules: the rules of each row.
        names: the terminal of each column; those that the rules of a row do not have do not matter there.
        scores: ``[rows, names]``.

    Returns:
        A tensor ``[rows]``; differentiable twice.
    """
    found: torch.Tensor = _LogPartitions.apply(scores, tuple(rules), tuple(names))
    return found


def weigh_row(rules: WeightedRules, names: Sequence[str], row: Sequence[float]) -> WeightedRules:
    """Return rules with the scores of a row; names that they do not have are left out."""
    known = rules.scores
    return rules.with_scores({name: score for name, score in zip(names, row, strict=True) if name in known})


class _LogPartitions(torch.autograd.Function):  # type: ignore[misc]  # torch is typed in part
    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, rules: Sequence[WeightedRules], names: Sequence[str]) -> torch.Tensor:
        ctx.rules, ctx.names = rules, names
        ctx.save_for_backward(scores)
        rows = scores.detach().double().tolist()
        values = [weigh_row(one, names, row).log_partition() for one, row in zip(rules, rows, strict=True)]
        return torch.tensor(values, dtype=scores.dtype, device=scores.device)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (scores,) = ctx.saved_tensors
        marginals: torch.Tensor = _Marginals.apply(scores, ctx.rules, ctx.names)
        return gradients[0][:, None] * marginals, None, None


class _Marginals(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, rules: Sequence[WeightedRules], names: Sequence[str]) -> torch.Tensor:
        ctx.weighted = [
            weigh_row(one, names, row) for one, row in zip(rules, scores.detach().double().tolist(), strict=True)
        ]
        ctx.names = names
        found = [one.marginals() for one in ctx.weighted]
        table = [[marginals.get(name, 0.0) for name in names] for marginals in found]
        return torch.tensor(table, dtype=scores.dtype, device=scores.device)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (gradient,) = gradients
        rows = []
        for one, row in zip(ctx.weighted, gradient.double().tolist(), strict=True):
            known = one.scores
            values = {name: value for name, value in zip(ctx.names, row, strict=True) if name in known}
            slopes = one.expectation(values).gradient
            rows.append([slopes.get(name, 0.0) for name in ctx.names])
        return torch.tensor(rows, dtype=gradient.dtype, device=gradient.device), None, None
