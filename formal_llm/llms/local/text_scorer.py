"""The scorers of models that write, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypedDict

from formal_llm.llms.local.causal import CausalScorer, Packing
from formal_llm.llms.local.loading import check_vocabulary
from formal_llm.llms.local.rendering import Renderer, Style
from formal_llm.llms.local.scorer import PromptScorer
from formal_llm.llms.local.seq2seq import Seq2SeqScorer
from formal_llm.llms.scoring import Scoring, named, weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class TextSettings(TypedDict, total=False):
    """The settings of a model that writes.

    Attributes:
        style: ``"chat"`` for the tokenizer's chat template, ``"plain"``; None: the template if there is one.
        cue: the end of a plain prompt.
        template_settings: the settings of the chat template, such as ``{"enable_thinking": False}``.
        scoring: how options are scored, see :mod:`~formal_llm.llms.scoring`.
        cache_bytes: the memory for earlier keys and values; 0 for none.
        row_tokens, batch_tokens: the maximum number of tokens in one row, and in one pass (which bounds the memory);
            None: a suitable number for the device.
        packing: whether common prefixes are read once; ``"auto"``: if the model supports it.
    """

    style: Literal["chat", "plain"] | None
    cue: str
    template_settings: Mapping[str, object] | None
    scoring: Scoring
    cache_bytes: int
    row_tokens: int
    batch_tokens: int | None
    packing: Packing


def text_scorer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    style: Literal["chat", "plain"] | None = None,
    cue: str = "Answer:",
    template_settings: Mapping[str, object] | None = None,
    scoring: Scoring = "number",
    cache_bytes: int = 1 << 30,
    row_tokens: int = 256,
    batch_tokens: int | None = None,
    packing: Packing = "auto",
) -> CausalScorer | Seq2SeqScorer:
    """Create the scorer of a decoder or an encoder-decoder; for the settings see :class:`TextSettings`."""
    ways = weights(scoring)
    check_vocabulary(model, tokenizer)
    two_parts = getattr(model.config, "is_encoder_decoder", False)
    chosen: Style = style or ("chat" if getattr(tokenizer, "chat_template", None) else "plain")
    longest = _longest(model, tokenizer)
    renderer = Renderer(
        tokenizer, "seq2seq" if two_parts else chosen, cue=cue, longest=longest, template_settings=template_settings
    )
    scorer: CausalScorer | Seq2SeqScorer = (
        Seq2SeqScorer(model, renderer, batch_tokens=batch_tokens)
        if two_parts
        else CausalScorer(
            model, renderer, cache_bytes=cache_bytes, row_tokens=row_tokens, batch_tokens=batch_tokens, packing=packing
        )
    )
    scorer.scoring = ways
    return scorer


def answered_by(scorer: PromptScorer) -> dict[str, object]:
    """Return the settings that affect the answers of a model."""
    renderer = scorer.renderer
    settings: dict[str, object] = {"dtype": str(scorer.model.dtype), "style": renderer.style, "cue": renderer.cue}
    if scorer.scoring != {"number": 1.0}:
        settings["scoring"] = named(scorer.scoring)
    return {**settings, "template": renderer.template_settings} if renderer.template_settings else settings


def _longest(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the maximum number of tokens that a model reads; None if unknown."""
    known = [getattr(model.config, name, None) for name in ("max_position_embeddings", "n_positions")]
    limits = [int(length) for length in known if length]
    limit = int(getattr(tokenizer, "model_max_length", 0) or 0)
    if 0 < limit < 10**9:
        limits.append(limit)
    return min(limits, default=None)
