"""Free text of a model that runs here: what it writes, and how probable a text is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from formal_llm.errors import LLMError
from formal_llm.llms.generation import Generated, Messages, chat, cut
from formal_llm.llms.local.rendering import Renderer
from formal_llm.llms.usage import TokenUsage

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def write(
    model: PreTrainedModel,
    renderer: Renderer,
    messages: Messages,
    max_tokens: int,
    stop: Sequence[str],
    temperature: float,
) -> Generated:
    """What comes next in a chat; the arguments are as of ``TransformersLLM.generate``."""
    import torch

    ids, tokenizer = renderer.tokens(chat(messages)), renderer.tokenizer
    two_parts = renderer.style == "seq2seq"
    if renderer.longest is not None and not two_parts:
        if len(ids) >= renderer.longest:
            raise LLMError(f"the chat has {len(ids):,} tokens and the model reads {renderer.longest:,}")
        max_tokens = min(max_tokens, renderer.longest - len(ids))
    prompt = torch.tensor([ids], device=model.get_input_embeddings().weight.device)
    how = {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
    if stop:
        how |= {"stop_strings": list(stop), "tokenizer": tokenizer}
    padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    with torch.no_grad():
        written = model.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=max_tokens,
            pad_token_id=padding,
            **how,
        )
    new = written[0, 1 if two_parts else len(ids) :]  # without the decoder's start token
    text = tokenizer.decode(new, skip_special_tokens=True)
    return Generated(cut(text, stop), TokenUsage(1, len(ids), len(new)))


def log_probability(model: PreTrainedModel, renderer: Renderer, messages: Messages, continuation: str) -> float:
    """The natural logarithm of the probability that exactly ``continuation`` comes next, without what ends it."""
    import torch

    before = list(renderer.tokens(chat(messages)))
    ids = renderer.continuation_tokens(continuation)
    if not ids:
        raise ValueError("the continuation has no token")
    if renderer.longest is not None and len(before) + len(ids) > renderer.longest:
        raise LLMError(f"chat and continuation have {len(before) + len(ids):,} tokens; the model reads fewer")
    device = model.get_input_embeddings().weight.device
    with torch.no_grad():
        if renderer.style == "seq2seq":
            start = int(model.config.decoder_start_token_id)
            logits = model(
                input_ids=torch.tensor([before], device=device),
                decoder_input_ids=torch.tensor([[start, *ids[:-1]]], device=device),
            ).logits[0]
        else:
            logits = model(input_ids=torch.tensor([[*before, *ids]], device=device)).logits[0, len(before) - 1 : -1]
        logs = torch.log_softmax(logits.float(), dim=-1)
        return float(logs[torch.arange(len(ids)), torch.tensor(ids)].sum())
