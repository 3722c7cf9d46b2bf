"""Which prompts may be read in a packed row.

In a packed row the mask alone determines what a token attends to. Layers that only see the last tokens (GPT-Neo,
Mistral, Gemma 3) would see more there than otherwise, so a prompt must fit into the smallest window that the config of
the model declares, under any of the usual names. Whether a model reads packed rows at all is tried when it is loaded.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.prefix_cache import PrefixCache
from formal_llm.llms.local.rendering import Prompted
from formal_llm.llms.local.scorer import cache_argument

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

    Passes: TypeAlias = Iterator[tuple[list[int], torch.Tensor]]

#: Names of settings that bound how far back a layer sees: ``sliding_window``, ``window_size``, ``keep_window_size``,
#: ``attention_chunk_size``, ``local_attention``, ``index_topk`` ...
_WINDOW = re.compile(
    r"window|(attention|attn)_(chunk|span|block)|local_(attention|attn|radius|size)|index_(topk|block)|^(block|chunk)_size$"
)
#: Similar names with other meanings: numbers of layers, heads, blocks, indices of layers.
_OTHER = re.compile(r"^(num|use|max)_|(layers|heads|blocks|indexes|indices)$|pattern|kernel|probs|dropout|theta")


def declared_window(config: PreTrainedConfig) -> int | None:
    """Return the smallest window in a config, whether or not a layer uses it; None if there is none."""
    text = config.get_text_config()
    own = {name: getattr(text, name, None) for name in dir(type(text)) if isinstance(name, str) and _is_window(name)}
    return min(
        (*_list_sizes(text.to_dict()), *(size for value in own.values() for size in _list_numbers(value))), default=None
    )


def _list_sizes(settings: Mapping[object, object]) -> Iterator[int]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            if "model_type" not in value:  # settings of layers, not of another model
                yield from _list_sizes(value)
        elif isinstance(name, str) and _is_window(name):
            yield from _list_numbers(value)


def _is_window(name: str) -> bool:
    return bool(_WINDOW.search(name)) and not _OTHER.search(name)


def _list_numbers(value: object) -> Iterator[int]:
    if isinstance(value, (list, tuple)):  # one for each layer
        for one in value:
            yield from _list_numbers(one)
    elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
        yield value


_NEEDED = ("attention_mask", "position_ids")


def why_not_packed(
    model: PreTrainedModel,
    packed: Callable[[Sequence[Prompted], PrefixCache], Passes],
    alone: Callable[[Sequence[Prompted]], Passes],
) -> str:
    """Return why a model cannot be read in packed rows; empty if they give the same as each prompt alone.

    Args:
        model: an ``AutoModelForCausalLM``, which is left unchanged.
        packed: reads prompts in packed rows, with a cache of prefixes.
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
            for _ in range(2):  # the second time with the cache of the first one
                cache.tick()
                for index, logits in _by_prompt(packed(prompts, cache), tree):
                    off = float((logits.float() - plain[index].float()).abs().max())
                    scale = float(plain[index].float().abs().max().clamp(min=1e-3))
                    if not off <= scale * (1e-3 if logits.dtype == torch.float32 else 5e-2):
                        return f"its logits are off by {off:.2g} then"
    except (ValueError, NotImplementedError) as error:  # raised by models for what they do not support
        return f"it refuses to ({error})"
    finally:
        model.train(training)
    return ""


def _why_not_by_its_looks(model: PreTrainedModel) -> str:
    """Return what a model lacks for packed rows, judging by its signature; empty if nothing is found."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    takes = inspect.signature(model.base_model.forward).parameters
    lacking = next((name for name in (*_NEEDED, cache_argument(model.base_model)) if name not in takes), None)
    if lacking is not None:
        return f"it takes no {lacking}"
    head = model.get_output_embeddings()
    width = getattr(model.config.get_text_config(), "hidden_size", None)
    if model.base_model is model or head is None or width not in (None, getattr(head, "in_features", width)):
        return "its logits are not made of its last hidden states alone"
    kept = {type(layer) for layer in DynamicCache(config=model.config).layers}
    if DynamicSlidingWindowLayer in kept and declared_window(model.config) is None:
        return "it has windows that its config does not declare"
    others = sorted(kind.__name__ for kind in kept - {DynamicLayer, DynamicSlidingWindowLayer})
    return f"its layers keep something else than keys and values ({others[0]})" if others else ""


def _by_prompt(passes: Passes, tree: AnswerTree) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield the logits of each prompt, all of which have the same tree."""
    size = 1 + len(tree.tokens)
    for chosen, logits in passes:
        for place, index in enumerate(chosen):
            yield index, logits[place * size : (place + 1) * size]
