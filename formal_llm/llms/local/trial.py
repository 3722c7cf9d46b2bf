"""Whether the attention of a decoder can be controlled token by token, by its parameters and then by a trial.

Many models cannot be: those with linear attention or a state, those whose positions cannot be given, those that look
both ways. Reading each prompt by itself takes more time and changes no answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.prefix_cache import PrefixCache
from formal_llm.llms.local.rendering import Prompted

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    #: For each pass the prompts in it, and the logits where their trees are looked at.
    Passes: TypeAlias = Iterator[tuple[list[int], torch.Tensor]]

_NEEDED = ("attention_mask", "position_ids", "past_key_values")


def why_not_packed(
    model: PreTrainedModel,
    packed: Callable[[Sequence[Prompted], PrefixCache], Passes],
    alone: Callable[[Sequence[Prompted]], Passes],
) -> str:
    """Why a model cannot be read in packed rows; empty where they give what it gives for each prompt alone.

    Args:
        model: an ``AutoModelForCausalLM``; it is left as it is.
        packed: reads prompts in packed rows, with a cache of beginnings.
        alone: reads each prompt by itself.
    """
    import torch

    if reason := _why_not_by_its_looks(model):
        return reason
    size = int(model.get_input_embeddings().weight.shape[0])
    ids = [token % size for token in (5, 11, 7, 3, 13, 2, 9, 4, 8, 6, 12, 10)]
    tree = AnswerTree.of([[1 % size, 2 % size], [3 % size, 4 % size], [3 % size, 1 % size]])
    prompts = [Prompted(tuple(part), tree) for part in (ids[:8], [*ids[:5], *ids[8:12]], ids[:3])]
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            plain = dict(_by_prompt(alone(prompts), tree))
            cache = PrefixCache(1 << 24)
            for _ in range(2):  # the second time with what the first one kept
                cache.tick()
                for index, logits in _by_prompt(packed(prompts, cache), tree):
                    off = float((logits.float() - plain[index].float()).abs().max())
                    scale = float(plain[index].float().abs().max().clamp(min=1e-3))
                    if not off <= scale * (1e-3 if logits.dtype == torch.float32 else 5e-2):
                        return f"its logits are off by {off:.2g} then"
    except (ValueError, NotImplementedError) as error:  # so models refuse what they cannot do
        return f"it refuses to ({error})"
    finally:
        model.train(training)
    return ""


def _why_not_by_its_looks(model: PreTrainedModel) -> str:
    """What a model lacks that packed rows need; empty where nothing can be seen."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    takes = inspect.signature(model.base_model.forward).parameters
    lacking = next((name for name in _NEEDED if name not in takes), None)
    if lacking is not None:
        return f"it takes no {lacking}"
    head = model.get_output_embeddings()
    width = getattr(model.config.get_text_config(), "hidden_size", None)
    if model.base_model is model or head is None or width not in (None, getattr(head, "in_features", width)):
        return "its logits are not made of its last hidden states alone"
    kept = {type(layer) for layer in DynamicCache(config=model.config).layers}
    others = sorted(kind.__name__ for kind in kept - {DynamicLayer, DynamicSlidingWindowLayer})
    return f"its layers keep something else than keys and values ({others[0]})" if others else ""


def _by_prompt(passes: Passes, tree: AnswerTree) -> Iterator[tuple[int, torch.Tensor]]:
    """The logits of each prompt, where all have one tree."""
    size = 1 + len(tree.tokens)
    for chosen, logits in passes:
        for place, index in enumerate(chosen):
            yield index, logits[place * size : (place + 1) * size]
