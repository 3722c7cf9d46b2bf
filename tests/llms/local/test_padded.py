"""Prompts read one by one: the logits are those of the whole text at the places that are looked at."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.padded import read_padded
from formal_llm.llms.local.rendering import Prompted

TREE = AnswerTree.of([[5, 2], [6, 7, 2], [6, 2]])  # inner nodes: (5), (6), (6, 7)
PROMPTS = [
    Prompted((9, 8, 7, 4, 3), TREE),
    Prompted((9, 8), AnswerTree.of([[5], [6]])),  # nothing beyond the end of the prompt
    Prompted((4, 9, 8), TREE),
]


@pytest.mark.parametrize("batch_tokens", [1, 30, 10_000])
def test_logits_are_those_of_each_text_alone(batch_tokens: int, llama: Any) -> None:
    looked: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        for chosen, logits in read_padded(llama, PROMPTS, batch_tokens):
            counts = [1 + len(PROMPTS[index].tree.tokens) for index in chosen]
            looked.update(zip(chosen, logits.split(counts), strict=True))
        assert looked.keys() == {0, 1, 2}
        for index, prompt in enumerate(PROMPTS):
            beginnings = [[], [5], [6], [6, 7]] if prompt.tree is TREE else [[]]
            for found, beginning in zip(looked[index], beginnings, strict=True):
                alone = llama(input_ids=torch.tensor([[*prompt.tokens, *beginning]])).logits[0, -1]
                assert torch.allclose(found, alone, atol=1e-5)


def test_no_prompts(llama: Any) -> None:
    assert list(read_padded(llama, [], 100)) == []
