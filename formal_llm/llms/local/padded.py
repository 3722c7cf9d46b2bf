"""Prompts read one by one, padded on the right: the way that every decoder knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from formal_llm.llms.local.answer_tree import ROOT
from formal_llm.llms.local.batching import batches, by_length
from formal_llm.llms.local.rendering import Prompted

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def read_padded(
    model: PreTrainedModel, prompts: Sequence[Prompted], batch_tokens: int
) -> Iterator[tuple[list[int], torch.Tensor]]:
    """For each pass the prompts in it, and the logits where their trees are looked at.

    Each prompt with each of its longest answer beginnings is a row of its own.

    Args:
        model: an ``AutoModelForCausalLM``.
        prompts: what is read.
        batch_tokens: how many tokens are read in one pass.
    """
    import torch

    device = model.get_input_embeddings().weight.device
    widths = [len(prompt.tokens) + max(prompt.tree.depths, default=0) for prompt in prompts]
    heights = [max(len(prompt.tree.rows), 1) for prompt in prompts]
    order = by_length([len(prompt.tokens) for prompt in prompts])
    for chosen in batches(order, widths, batch_tokens, heights):
        width = max(widths[index] for index in chosen)
        ids = torch.zeros((sum(heights[index] for index in chosen), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        looks = []
        row = 0
        for index in chosen:
            prompt, tree = prompts[index], prompts[index].tree
            end = len(prompt.tokens) - 1
            places = {ROOT: row * width + end}
            for path in tree.rows or ((),):
                text = [*prompt.tokens, *(tree.tokens[node] for node in path)]
                ids[row, : len(text)] = torch.tensor(text)
                mask[row, : len(text)] = 1
                for node in path:
                    places.setdefault(node, row * width + end + tree.depths[node])
                row += 1
            looks += [places[node] for node in range(ROOT, len(tree.tokens))]
        logits = model(input_ids=ids.to(device), attention_mask=mask.to(device), use_cache=False).logits
        yield chosen, logits.flatten(0, 1)[torch.tensor(looks, device=logits.device)]
