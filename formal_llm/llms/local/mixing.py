"""The weights of a mixture of scoring modes, fitted on questions whose right options are known.

A mixture adds log-probabilities with weights, so it is a log-linear model with a few parameters. They are fitted by the
likelihood of a right option. If each question has one right option, this is a convex problem (a conditional logit
model, McFadden 1974); if some have several, it nearly is. The sum of the weights also acts as a temperature.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from formal_llm.llms.local.scorer import PromptScorer
from formal_llm.llms.question import Question

#: The minimum weight of a mode, as a share of the largest one; modes below it are left out.
_SMALL = 0.02
#: The factor of the squared weights, which ensures an optimum even if all questions are answered rightly.
_RIDGE = 1e-3


def fit_weights(
    scorer: PromptScorer, questions: Sequence[Question], right: Sequence[Collection[int]], modes: Sequence[str]
) -> dict[str, float]:
    """Return the weights of scoring modes that predict the right options best, rounded to three digits.

    Args:
        scorer: the model.
        questions: questions of exactly one option each.
        right: for each question the numbers of its right options, at least one.
        modes: the modes, see :mod:`~formal_llm.llms.scoring`.

    Returns:
        The weights of the modes that help; at least one.

    Raises:
        ValueError: there are no questions, or no modes.
        LLMError: a question is too long for the model.
    """
    import torch

    if not questions or not modes:
        raise ValueError("weights are fitted for at least one way of scoring, on at least one question")
    tables, before = [], scorer.scoring
    with torch.no_grad():
        try:
            for mode in modes:
                scorer.scoring = {mode: 1.0}
                tables.append(scorer.log_probabilities(questions).double())
        finally:
            scorer.scoring = before
    scores = torch.stack(tables, dim=-1)  # [questions, most options, ways]
    there = torch.isfinite(scores[..., 0])
    scores = scores.masked_fill(~there[..., None], 0.0)
    hits = torch.zeros_like(there)
    for line, numbers in enumerate(right):
        hits[line, [number - 1 for number in numbers]] = True
    raw = torch.full((len(modes),), 0.0, dtype=torch.double, requires_grad=True)
    search = torch.optim.LBFGS([raw], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        search.zero_grad()
        weights = torch.nn.functional.softplus(raw)  # above 0
        logs = torch.log_softmax((scores @ weights).masked_fill(~there, -torch.inf), dim=-1)
        value = _RIDGE * weights.square().sum() - torch.logsumexp(logs.masked_fill(~hits, -torch.inf), dim=-1).mean()
        value.backward()
        return value

    search.step(loss)
    found = torch.nn.functional.softplus(raw).tolist()
    return {
        mode: float(f"{weight:.3g}") for mode, weight in zip(modes, found, strict=True) if weight >= _SMALL * max(found)
    }
