"""The scorers of models that write, and their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from formal_llm.errors import ModelError
from formal_llm.llms.local.answer_tree import ROOT
from formal_llm.llms.local.causal import CausalScorer, Packing
from formal_llm.llms.local.loading import check_vocabulary
from formal_llm.llms.local.rendering import Prompted, Renderer, Style
from formal_llm.llms.local.scorer import (
    PromptScorer,
    batches,
    by_length,
    cache_argument,
    checkpoints,
    tree_log_probabilities,
)
from formal_llm.llms.scoring import known_mode

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.modeling_outputs import Seq2SeqLMOutput


class Seq2SeqScorer(PromptScorer):
    """An encoder reads the question, a decoder scores whole answers: the number of an option and the end token.

    The decoder first reads its start token for each question, then the longest prefixes of all answers at once, each
    with a copy of the question's keys and values; the encoder's output is projected for attention once.

    Args:
        model: an ``AutoModelForSeq2SeqLM``.
        renderer: converts questions to tokens.
        batch_tokens: the maximum number of tokens that the encoder reads in one pass, which bounds its memory; None: a
            suitable number for the device.

    Raises:
        ModelError: the model's config does not declare the start token of its decoder.
    """

    def __init__(self, model: PreTrainedModel, renderer: Renderer, *, batch_tokens: int | None = None) -> None:
        super().__init__(model, renderer, batch_tokens)
        start = getattr(model.config, "decoder_start_token_id", None)
        if start is None:
            raise ModelError("the config of the model has no decoder_start_token_id: what its decoder begins with")
        self.start = int(start)

    def score(self, prompts: Sequence[Prompted]) -> list[torch.Tensor]:
        """Return for each prompt the log-probabilities with which the model would write its answers."""
        found: dict[int, torch.Tensor] = {}
        lengths = [len(prompt.tokens) for prompt in prompts]
        for chosen in batches(by_length(lengths), lengths, self.batch_tokens):
            trees = [prompts[index].tree for index in chosen]
            values = tree_log_probabilities(self._compute_logits([prompts[index] for index in chosen]), trees)
            found.update(zip(chosen, values, strict=True))
        return [found[index] for index in range(len(prompts))]

    def _compute_logits(self, prompts: Sequence[Prompted]) -> torch.Tensor:
        """Compute the logits at the nodes of the prompts' answer trees."""
        import torch
        from torch.nn.utils.rnn import pad_sequence
        from transformers import DynamicCache, EncoderDecoderCache

        device = self.model.get_input_embeddings().weight.device
        texts = [torch.tensor(prompt.tokens) for prompt in prompts]
        ids = pad_sequence(texts, batch_first=True).to(device)
        mask = pad_sequence([torch.ones_like(text) for text in texts], batch_first=True).to(device)
        self.tokens_read += sum(map(len, texts))
        encoded = self.model.get_encoder()(input_ids=ids, attention_mask=mask)
        starts = torch.full((len(prompts), 1), self.start, device=device)

        # The rows of the second pass: their prompts, their tokens, and the places whose logits are needed.
        owners = [number for number, prompt in enumerate(prompts) for _ in prompt.tree.rows]
        paths = [path for prompt in prompts for path in prompt.tree.rows]
        if not paths:
            return self._run_decoder(starts, encoded[0], mask).logits[:, 0]
        written = [torch.tensor([p.tree.tokens[node] for node in path]) for p in prompts for path in p.tree.rows]
        self.tokens_read += sum(map(len, written))
        tokens = pad_sequence(written, batch_first=True, padding_value=self.start).to(device)
        owner = torch.tensor(owners)  # on the CPU, so that it can index rows on any device
        if checkpoints(self.model):  # it keeps no keys and values
            rows = torch.cat([starts[owner], tokens], dim=1)
            logits = self._run_decoder(rows, encoded[0][owner], mask[owner]).logits
            first, rest = logits[[owners.index(number) for number in range(len(prompts))], 0], logits[:, 1:]
        else:
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            kept = {cache_argument(self.model): cache, "use_cache": True}
            first = self._run_decoder(starts, encoded[0], mask, **kept).logits[:, 0]
            cache.batch_select_indices(owner)
            rest = self._run_decoder(tokens, encoded[0][owner], mask[owner], **kept).logits
        flat = torch.cat([first, rest.flatten(0, 1)])
        places: list[dict[int, int]] = [{ROOT: number} for number in range(len(prompts))]
        for row, (number, path) in enumerate(zip(owners, paths, strict=True)):
            for column, node in enumerate(path):
                places[number].setdefault(node, len(prompts) + row * tokens.shape[1] + column)
        looks = [known[node] for known in places for node in sorted(known)]
        return flat[torch.tensor(looks, device=device)]

    def _run_decoder(
        self, ids: torch.Tensor, encoded: torch.Tensor, mask: torch.Tensor, **settings: object
    ) -> Seq2SeqLMOutput:
        from transformers.modeling_outputs import BaseModelOutput

        return self.model(
            decoder_input_ids=ids,
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            attention_mask=mask,
            **settings,
        )


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
    scoring: str
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
    scoring: str = "number",
    cache_bytes: int = 1 << 30,
    row_tokens: int = 256,
    batch_tokens: int | None = None,
    packing: Packing = "auto",
) -> CausalScorer | Seq2SeqScorer:
    """Create the scorer of a decoder or an encoder-decoder; for the settings see :class:`TextSettings`."""
    known_mode(scoring)
    check_vocabulary(model, tokenizer)
    two_parts = getattr(model.config, "is_encoder_decoder", False)
    chosen: Style = style or ("chat" if getattr(tokenizer, "chat_template", None) else "plain")
    longest = _find_longest(model, tokenizer)
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
    scorer.scoring = scoring
    return scorer


def answered_by(scorer: PromptScorer) -> dict[str, object]:
    """Return the settings that affect the answers of a model."""
    renderer = scorer.renderer
    settings: dict[str, object] = {"dtype": str(scorer.model.dtype), "style": renderer.style, "cue": renderer.cue}
    if scorer.scoring != "number":
        settings["scoring"] = scorer.scoring
    return {**settings, "template": renderer.template_settings} if renderer.template_settings else settings


def _find_longest(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the maximum number of tokens that a model reads; None if unknown."""
    known = [getattr(model.config, name, None) for name in ("max_position_embeddings", "n_positions")]
    limits = [int(length) for length in known if length]
    limit = int(getattr(tokenizer, "model_max_length", 0) or 0)
    if 0 < limit < 10**9:
        limits.append(limit)
    return min(limits, default=None)
