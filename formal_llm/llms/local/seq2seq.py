"""Encoder-decoder models (T5, BART ...) as scorers of options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from formal_llm.errors import ModelError
from formal_llm.llms.local.answer_tree import ROOT
from formal_llm.llms.local.rendering import Prompted, Renderer
from formal_llm.llms.local.scorer import (
    PromptScorer,
    batches,
    by_length,
    cache_argument,
    checkpoints,
    tree_log_probabilities,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel
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
            values = tree_log_probabilities(self._read([prompts[index] for index in chosen]), trees)
            found.update(zip(chosen, values, strict=True))
        return [found[index] for index in range(len(prompts))]

    def _read(self, prompts: Sequence[Prompted]) -> torch.Tensor:
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
            return self._decode(starts, encoded[0], mask).logits[:, 0]
        written = [torch.tensor([p.tree.tokens[node] for node in path]) for p in prompts for path in p.tree.rows]
        self.tokens_read += sum(map(len, written))
        tokens = pad_sequence(written, batch_first=True, padding_value=self.start).to(device)
        owner = torch.tensor(owners)  # on the CPU, so that it can index rows on any device
        if checkpoints(self.model):  # it keeps no keys and values
            rows = torch.cat([starts[owner], tokens], dim=1)
            logits = self._decode(rows, encoded[0][owner], mask[owner]).logits
            first, rest = logits[[owners.index(number) for number in range(len(prompts))], 0], logits[:, 1:]
        else:
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            kept = {cache_argument(self.model): cache, "use_cache": True}
            first = self._decode(starts, encoded[0], mask, **kept).logits[:, 0]
            cache.batch_select_indices(owner)
            rest = self._decode(tokens, encoded[0][owner], mask[owner], **kept).logits
        flat = torch.cat([first, rest.flatten(0, 1)])
        places: list[dict[int, int]] = [{ROOT: number} for number in range(len(prompts))]
        for row, (number, path) in enumerate(zip(owners, paths, strict=True)):
            for column, node in enumerate(path):
                places[number].setdefault(node, len(prompts) + row * tokens.shape[1] + column)
        looks = [known[node] for known in places for node in sorted(known)]
        return flat[torch.tensor(looks, device=device)]

    def _decode(
        self, ids: torch.Tensor, encoded: torch.Tensor, mask: torch.Tensor, **settings: object
    ) -> Seq2SeqLMOutput:
        from transformers.modeling_outputs import BaseModelOutput

        return self.model(
            decoder_input_ids=ids,
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            attention_mask=mask,
            **settings,
        )
