"""What prompts share is read once, and the gradient is what it is without that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.model import text_scorer
from formal_llm.llms.local.trunk import Trunk, shared_beginnings
from tests import tiny_models
from tests.llms.local import token_by_token

TEXTS = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=7).map(tuple), min_size=1, max_size=12, unique=True
)  # fmt: skip


def alike(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                min(len(one), len(other)))  # fmt: skip


@given(TEXTS)
def test_each_prompt_shares_its_longest_beginning(texts: list[tuple[int, ...]]) -> None:
    shared = shared_beginnings([np.array(text, dtype=np.int64) for text in texts])
    for number, text in enumerate(texts):
        longest = max((alike(text, other) for place, other in enumerate(texts) if place != number), default=0)
        assert shared.known[number] == min(longest, len(text) - 1)
        if shared.known[number]:
            assert tuple(shared.paths[shared.of[number]][: shared.known[number]]) == text[: shared.known[number]]
    paths = [tuple(path) for path in shared.paths]
    assert paths == sorted(paths) and all(paths)
    assert not any(one == other[: len(one)] for one in paths for other in paths if one is not other)


def test_keys_and_values_come_back_by_their_slots() -> None:
    trunk = Trunk()
    first, second = (
        [(torch.randn(rows, 2, tokens, 4), torch.randn(rows, 2, tokens, 3)) for _ in range(2)]
        for rows, tokens in ((1, 5), (3, 2))
    )
    assert (trunk.add(first), trunk.add(second), trunk.layers) == (0, 5, 2)
    keys, values = trunk.gather(1, torch.tensor([[4, 5], [10, 0]]))
    assert keys.shape == (2, 2, 2, 4) and values.shape == (2, 2, 2, 3)
    assert torch.equal(keys[0, :, 0], first[1][0][0, :, 4]) and torch.equal(keys[0, :, 1], second[1][0][0, :, 0])
    assert torch.equal(values[1, :, 0], second[1][1][2, :, 1]) and torch.equal(values[1, :, 1], first[1][1][0, :, 0])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """For each pass the tokens that it reads, and whether it has a past."""
    found = []
    read = CausalScorer._read

    def noted(self: CausalScorer, rows: Any, past: Any, *, keep: bool) -> Any:
        found.append((sum(len(row.ids) for row in rows), past is not None))
        return read(self, rows, past, keep=keep)

    monkeypatch.setattr(CausalScorer, "_read", noted)
    return found


def chain(length: int) -> list[Any]:
    """Questions that grow from one to the next, some at each length."""
    return [
        token_by_token.question(count, "restore " + "the image " * step)
        for step in range(5, 5 + length) for count in (3, 5, 9, 12)
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen3"])
@pytest.mark.parametrize("batch_tokens", [150, 100_000])
def test_gradients_with_a_trunk(
    kind: str, batch_tokens: int, spoken: Callable[..., Any], reads: list[tuple[int, bool]]
) -> None:
    model = tiny_models.causal(kind)
    asked = chain(4)
    torch.manual_seed(0)
    weights = [torch.randn(len(question.options)) for question in asked]

    def gradients(**settings: Any) -> tuple[Any, dict[str, Any]]:
        model.zero_grad()
        scorer = text_scorer(model, spoken(), packing="on", **settings)
        reads.clear()
        table = scorer.log_probabilities(asked)
        sum((table[row, : len(own)] * own).sum() for row, own in enumerate(weights)).backward()
        return table.detach(), {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}

    # One row for everything has every token once, so there is nothing to save.
    plain_table, plain = gradients(row_tokens=100_000, batch_tokens=100_000)
    assert [past for _, past in reads] == [False]
    table, found = gradients(row_tokens=60, batch_tokens=batch_tokens)
    assert not reads[0][1] and reads[-1][1]
    tokens = sum(count for count, _ in reads)
    with torch.no_grad():
        alone = sum(len(text_scorer(model, spoken()).renderer.prompt(question).tokens) for question in asked)
    assert tokens < 0.7 * alone
    legal = plain_table > -torch.inf
    assert (table - plain_table)[legal].abs().max() < 1e-5
    scale = max(float(gradient.abs().max()) for gradient in plain.values())
    assert plain.keys() == found.keys()
    for name, gradient in plain.items():
        assert float((found[name] - gradient).abs().max()) <= 1e-4 * scale, name


def test_no_trunk_where_activations_are_computed_twice(
    spoken: Callable[..., Any], reads: list[tuple[int, bool]]
) -> None:
    model = tiny_models.causal()
    model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    scorer = text_scorer(model, spoken(), packing="on", row_tokens=60)
    scorer.log_probabilities(chain(3))
    assert not any(past for _, past in reads)


def test_without_a_gradient_there_is_the_cache_alone(spoken: Callable[..., Any], reads: list[tuple[int, bool]]) -> None:
    scorer = text_scorer(tiny_models.causal(), spoken(), packing="on", row_tokens=60, cache_bytes=0)
    with torch.no_grad():
        scorer.log_probabilities(chain(3))
    assert not any(past for _, past in reads)
