"""Graphs that are kept: their gradients against those of questions that are read again, in one graph."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.text_scorer import text_scorer
from formal_llm.llms.question import Question
from tests import tiny_models
from tests.llms.local import token_by_token

ALL = 1 << 40


def chain(length: int) -> list[Question]:
    """Questions that grow from one to the next, two at each length."""
    return [
        token_by_token.question(count, "restore " + "the image " * step)
        for step in range(5, 5 + length) for count in (3, 12)
    ]  # fmt: skip


def weights(asked: list[Question]) -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(len(question.options)) for question in asked]


def made(kind: str, spoken: Callable[..., Any], **settings: Any) -> CausalScorer:
    scorer = text_scorer(tiny_models.causal(kind), spoken(), packing="on", row_tokens=60, **settings)
    assert isinstance(scorer, CausalScorer)
    return scorer


def gradients(scorer: CausalScorer, asked: list[Question]) -> dict[str, Any]:
    """Of the weighted sum of the answers' log-probabilities."""
    table = scorer.log_probabilities(asked)
    sum((table[row, : len(own)] * own).sum() for row, own in enumerate(weights(asked))).backward()
    scorer.settle()
    found = {name: p.grad.clone() for name, p in scorer.model.named_parameters() if p.grad is not None}
    scorer.model.zero_grad()
    return found


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    scale = max(float(gradient.abs().max()) for gradient in other.values())
    assert one.keys() == other.keys()
    return all(float((one[name] - other[name]).abs().max()) <= 1e-4 * scale for name in one)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen3"])
@pytest.mark.parametrize("scoring", ["number", "calibrated"])
@pytest.mark.parametrize("most", [ALL, 2_000_000, 1])
def test_gradients_of_what_was_read_before(kind: str, scoring: str, most: int, spoken: Callable[..., Any]) -> None:
    asked = chain(5)
    scorer = made(kind, spoken, scoring=scoring, batch_tokens=150)
    wanted = gradients(scorer, asked)
    order = random.Random(3).sample(asked, len(asked))
    scorer.forget()
    with scorer.keeping_graphs(most):
        with torch.no_grad():
            tables = [scorer.log_probabilities(order[begin : begin + 3]) for begin in range(0, len(order), 3)]
        assert not any(table.requires_grad for table in tables)
        kept, read = len(scorer.leaves), scorer.tokens_read
        found = gradients(scorer, asked)
        again = scorer.tokens_read - read
    assert same(found, wanted)
    if most == ALL:
        assert kept >= len(asked) and again == 0
    else:
        assert 0 < kept < len(asked) and again > 0  # the first pass is kept in any case
    assert scorer.graphs is None and not scorer.leaves


def test_answers_are_the_same_whether_graphs_are_kept(spoken: Callable[..., Any]) -> None:
    asked = chain(4)
    scorer = made("llama", spoken)
    with torch.no_grad():
        wanted = scorer.log_probabilities(asked)
    scorer.forget()
    with scorer.keeping_graphs(ALL), torch.no_grad():
        found = torch.cat([scorer.log_probabilities(asked[:3]), scorer.log_probabilities(asked[3:])])
    legal = wanted > -torch.inf
    assert float((found - wanted)[legal].abs().max()) < 1e-5


def test_bytes_are_counted(spoken: Callable[..., Any]) -> None:
    scorer = made("llama", spoken)
    with scorer.keeping_graphs(ALL), torch.no_grad():
        scorer.log_probabilities(chain(1))
        assert scorer.graphs is not None
        first, tokens = scorer.graphs.graph_bytes, scorer.tokens_read
        scorer.log_probabilities(chain(4))
        width, layers = scorer.model.config.hidden_size, scorer.model.config.num_hidden_layers
        # At the least what the products of a layer begin with: its input, and that of its feed-forward part.
        assert first > tokens * layers * 2 * width * 4
        assert scorer.graphs.graph_bytes > 2 * first
        with torch.enable_grad():
            gradients(scorer, chain(4))


def test_under_other_weights_nothing_is_kept_and_nothing_used(spoken: Callable[..., Any]) -> None:
    asked = chain(3)
    scorer = made("llama", spoken)
    wanted = gradients(scorer, asked)
    with torch.no_grad():
        alone = scorer.log_probabilities(asked)
    scorer.forget()
    head = scorer.model.get_output_embeddings().weight
    with scorer.keeping_graphs(ALL):
        with torch.no_grad():
            scorer.log_probabilities(asked)
            kept = len(scorer.leaves)
            saved = head.clone()
            with scorer.aside():
                head.data *= 3
                other = scorer.log_probabilities(asked)
                assert not scorer.leaves
                head.data.copy_(saved)
        legal = alone > -torch.inf
        assert float((other - alone)[legal].abs().max()) > 0.01
        assert len(scorer.leaves) == kept
        assert same(gradients(scorer, asked), wanted)


def test_what_nobody_settles_is_gone_with_its_leaves(spoken: Callable[..., Any]) -> None:
    asked = chain(2)
    scorer = made("llama", spoken)
    wanted = gradients(scorer, asked)
    with scorer.keeping_graphs(ALL), torch.no_grad():
        scorer.log_probabilities(asked)
    assert scorer.graphs is None
    assert same(gradients(scorer, asked), wanted)  # read again
    with scorer.keeping_graphs(ALL):
        with torch.no_grad():
            scorer.log_probabilities(asked)
        assert "no graphs" in scorer.drop_graphs() and not scorer.drop_graphs()
        assert same(gradients(scorer, asked), wanted)
