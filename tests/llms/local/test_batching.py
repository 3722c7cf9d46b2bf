"""Batches: everything once, in its order, and no more tokens than were allowed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.local.batching import batches, by_length, fitting_tokens

TEXTS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 5)), max_size=30)


@given(TEXTS, st.integers(1, 200), st.randoms())
def test_batches_hold_each_text_once_in_order_and_not_too_much(
    texts: list[tuple[int, int]], most: int, random: Any
) -> None:
    lengths, rows = [length for length, _ in texts], [many for _, many in texts]
    order = list(range(len(texts)))
    random.shuffle(order)
    found = list(batches(order, lengths, most, rows))
    assert [index for batch in found for index in batch] == order
    for batch in found:
        taken = max(lengths[i] for i in batch) * sum(rows[i] for i in batch)
        assert taken <= most or len(batch) == 1


@given(TEXTS, st.integers(1, 200))
def test_a_batch_ends_only_where_the_next_text_would_be_too_much(texts: list[tuple[int, int]], most: int) -> None:
    lengths = [length for length, _ in texts]
    found = list(batches(by_length(lengths), lengths, most))
    for batch, after in pairwise(found):
        assert max(lengths[i] for i in [*batch, after[0]]) * (len(batch) + 1) > most


def test_the_shortest_come_first_and_equals_stay() -> None:
    assert by_length([3, 1, 3, 2]) == [1, 3, 0, 2]


@pytest.mark.parametrize(("device", "tokens"), [("cpu", 7), ("meta", 8_192)])
def test_few_tokens_on_a_cpu(device: str, tokens: int) -> None:
    class Network:
        def get_input_embeddings(self) -> Any:
            return torch.nn.Embedding(3, 2, device=device)

    assert fitting_tokens(Network(), 7) == tokens  # type: ignore[arg-type]  # all that is looked at
