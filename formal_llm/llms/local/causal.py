"""Decoder-only models (LLaMA, Qwen, GPT-2 ...) as scorers of options."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal

import numpy as np

from formal_llm.llms.local.answer_tree import ROOT
from formal_llm.llms.local.kept_graphs import KeptGraphs
from formal_llm.llms.local.packing import (
    PackablePrompt,
    PackedRow,
    sorted_rows,
    write_row,
)
from formal_llm.llms.local.prefix_cache import PrefixCache
from formal_llm.llms.local.reach import declared_window, why_not_packed
from formal_llm.llms.local.rendering import Prompted, Renderer
from formal_llm.llms.local.scorer import (
    PromptScorer,
    batches,
    by_length,
    cache_argument,
    tree_log_probabilities,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from formal_llm.llms.local.packing import Ids
    from formal_llm.llms.local.prefix_cache import Layers

Packing = Literal["auto", "on", "off"]
#: How some models scale the logits after their last layer, by the names in their configs.
_SCALINGS = ("logit_scale", "logits_scaling", "final_logit_softcapping")
#: The number of empty places that the trial puts between cached and read tokens, which usually exceeds a row's width.
_SPREAD = 1_024


class CausalScorer(PromptScorer):
    """A decoder that scores whole answers: the number of an option and the token that ends it.

    Prompts are packed into rows in which each common prefix is read once (:mod:`~formal_llm.llms.local.packing`), and
    keys and values are kept for later questions. Models whose attention cannot be masked freely (linear attention, some
    position encodings) are detected by a trial when they are loaded, with a warning; their prompts are read one by one,
    padded on the right, which takes more time and does not change the answers.

    Args:
        model: an ``AutoModelForCausalLM``.
        renderer: converts questions to tokens.
        cache_bytes: the memory for keys and values between calls; 0 for none.
        row_tokens: the maximum number of tokens in one row.
        batch_tokens: the maximum number of tokens in one pass, which bounds its memory; None: a suitable number for the
            device.
        packing: ``"auto"``: depending on the trial; ``"on"`` and ``"off"`` skip the trial.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        renderer: Renderer,
        *,
        cache_bytes: int = 1 << 30,
        row_tokens: int = 256,
        batch_tokens: int | None = None,
        packing: Packing = "auto",
    ) -> None:
        super().__init__(model, renderer, batch_tokens)
        self.row_tokens = row_tokens
        self.cache = PrefixCache(cache_bytes) if cache_bytes else None
        text_config = model.config.get_text_config()
        self._scaling = {name: getattr(text_config, name, None) for name in _SCALINGS}
        self._spread = 0  # the number of empty places between past tokens and those that are read
        self.packs = packing == "on"
        self.window = declared_window(model.config)
        if packing == "auto":
            self._spread = min(_SPREAD, (renderer.longest or _SPREAD) // 2)
            reason = why_not_packed(model, self._score_packed, self._score_padded)
            self._spread = 0
            self.packs = not reason
            if reason:
                warnings.warn(
                    f"{type(model).__name__} reads each prompt by itself, which takes more time and changes no answer. "
                    f"It cannot be determined what each token attends to: {reason} (packing='off' avoids the trial)",
                    stacklevel=2,
                )

    def forget(self) -> None:
        """Forget all computed values, since the weights have changed."""
        super().forget()
        if self.cache is not None:
            self.cache.clear()

    @contextmanager
    def keeping_graphs(self, most: int) -> Iterator[None]:
        """Like :meth:`Scorer.keeping_graphs`; nothing is kept if ``most`` is 0."""
        self.forget()
        self.graphs = KeptGraphs(most, list(self.model.parameters())) if most else None
        try:
            yield
        finally:
            self.graphs = None

    def score(self, prompts: Sequence[Prompted]) -> list[torch.Tensor]:
        """Return for each prompt the log-probabilities with which the model would write its answers."""
        import torch

        cache = None if torch.is_grad_enabled() else self.cache
        if cache is not None:
            cache.tick()
        found: dict[int, torch.Tensor] = {}
        together: list[int] = []
        alone: list[int] = []
        for index, prompt in enumerate(prompts):
            length = len(prompt.tokens) + max(prompt.tree.depths, default=0)
            fits = self.window is None or length <= self.window
            (together if self.packs and fits else alone).append(index)
        passes = (
            (together, self._score_packed([prompts[index] for index in together], cache)),
            (alone, self._score_padded([prompts[index] for index in alone])),
        )
        for members, read in passes:
            for chosen, logits in read:
                indices = [members[place] for place in chosen]
                trees = [prompts[index].tree for index in indices]
                if self.graphs is not None and logits.requires_grad and not torch.is_grad_enabled():
                    with self.graphs.reading():
                        values = tree_log_probabilities(logits, trees)
                    values = self.graphs.answered(values)
                else:
                    values = tree_log_probabilities(logits, trees)
                found.update(zip(indices, values, strict=True))
        return [found[index] for index in range(len(prompts))]

    # -- packed rows --------------------------------------------------------------------------------------------

    def _score_packed(
        self, prompts: Sequence[Prompted], cache: PrefixCache | None
    ) -> Iterator[tuple[list[int], torch.Tensor]]:
        """Yield for each pass its prompts, and the logits at the nodes of their answer trees."""
        import torch

        plain = [PackablePrompt(np.asarray(prompt.tokens, dtype=np.int64), prompt.tree) for prompt in prompts]
        graphs = None if torch.is_grad_enabled() else self.graphs
        for batch in self._plan_passes(plain):
            members = [index for row in batch for index in row]
            tokens = sum(len(plain[index].tokens) for index in members)
            keeps_graph = graphs is not None and graphs.begin(tokens)
            storage = graphs if keeps_graph else cache
            if storage is not None:  # looked up for each pass, since making room moves slots
                storage.make_room(tokens)
                for index in members:
                    one = plain[index]
                    slots = storage.find(one.tokens)[: len(one.tokens) - 1]  # the logits of the last token are needed
                    plain[index] = PackablePrompt(one.tokens, one.tree, len(slots), slots)
            rows = [[plain[index] for index in row] for row in batch]
            with graphs.reading() if graphs is not None and keeps_graph else nullcontext():
                logits = self._run_pass(rows, storage)
            yield members, logits

    def _run_pass(self, rows: Sequence[Sequence[PackablePrompt]], keeps: PrefixCache | None) -> torch.Tensor:
        """Run one pass over what ``keeps`` does not have yet, and keep it; return the logits at the answers' nodes."""
        import torch

        written = [write_row(row) for row in rows]
        hidden, layers = self._read_rows(written, keeps)
        if keeps is not None:
            keeps.keep(written, rows, layers)
        width = hidden.shape[1]
        looks = np.concatenate([look + number * width for number, row in enumerate(written) for look in row.looks])
        states = hidden.flatten(0, 1)[torch.from_numpy(looks).to(hidden.device)]
        return self._compute_logits(states)

    def _plan_passes(self, prompts: Sequence[PackablePrompt]) -> Iterator[list[list[int]]]:
        """Yield for each pass its rows, as indices of prompts."""
        rows = sorted_rows(prompts, self.row_tokens)
        lengths = [sum(len(prompts[i].tokens) + len(prompts[i].tree.tokens) for i in row) for row in rows]
        for batch in batches(by_length(lengths), lengths, self.batch_tokens):
            yield [rows[number] for number in batch]

    def _read_rows(self, rows: Sequence[PackedRow], past: PrefixCache | None) -> tuple[torch.Tensor, Layers]:
        """Run one pass; return the last hidden states ``[rows, tokens, width]`` and, with a past, keys and values."""
        import torch
        from transformers import DynamicCache

        device = self.model.get_input_embeddings().weight.device
        self.tokens_read += sum(len(row.ids) for row in rows)
        before = max(len(row.past_slots) for row in rows)
        before += self._spread if before else 0
        read = max(len(row.ids) for row in rows)

        def padded(parts: list[Ids], length: int, fill: int) -> torch.Tensor:
            table = np.full((len(parts), length), fill, dtype=np.int64)
            for line, part in zip(table, parts, strict=True):
                line[: len(part)] = part
            return torch.from_numpy(table).to(device)

        # Padding has no descendants (it ends before it begins), so that nothing attends to it; and it attends to the
        # root, since attention to nothing is undefined.
        order = padded([row.order for row in rows], read, 0)[:, :, None]
        begins = [padded([row.past_order for row in rows], before, 1), padded([row.order for row in rows], read, 1)]
        ends = [padded([row.past_ends for row in rows], before, 0), padded([row.ends for row in rows], read, 0)]
        mask = ((torch.cat(begins, 1)[:, None] <= order) & (order < torch.cat(ends, 1)[:, None]))[:, None]
        # Only SDPA accepts a boolean mask, and on a CPU it converts the mask to numbers again in each layer.
        if getattr(self.model.config, "_attn_implementation", "") != "sdpa" or device.type == "cpu":
            mask = torch.zeros(mask.shape, dtype=self.model.dtype, device=device).masked_fill_(
                ~mask, torch.finfo(self.model.dtype).min
            )
        key_values = DynamicCache() if past is not None else None
        if key_values is not None and past is not None and before:
            slots = padded([row.past_slots for row in rows], before, 0)
            for layer in range(past.layers):
                key_values.update(*past.gather(layer, slots), layer)
        hidden = self.model.base_model(
            input_ids=padded([row.ids for row in rows], read, 0),
            position_ids=padded([row.positions for row in rows], read, 0),
            attention_mask=mask,
            use_cache=key_values is not None,
            **{cache_argument(self.model.base_model): key_values},
        ).last_hidden_state
        if key_values is None:
            return hidden, []
        return hidden, [(layer.keys[:, :, before:], layer.values[:, :, before:]) for layer in key_values.layers]

    def _score_padded(self, prompts: Sequence[Prompted]) -> Iterator[tuple[list[int], torch.Tensor]]:
        """Like :meth:`_score_packed`, but each prompt with each longest answer prefix is a right-padded row."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        device = self.model.get_input_embeddings().weight.device
        widths = [len(prompt.tokens) + max(prompt.tree.depths, default=0) for prompt in prompts]
        heights = [max(len(prompt.tree.rows), 1) for prompt in prompts]
        order = by_length([len(prompt.tokens) for prompt in prompts])
        for chosen in batches(order, widths, self.batch_tokens, heights):
            width = max(widths[index] for index in chosen)
            rows: list[torch.Tensor] = []
            looks = []
            for index in chosen:
                prompt, tree = prompts[index], prompts[index].tree
                end = len(prompt.tokens) - 1
                places = {ROOT: len(rows) * width + end}
                for path in tree.rows or ((),):
                    for node in path:
                        places.setdefault(node, len(rows) * width + end + tree.depths[node])
                    rows.append(torch.tensor([*prompt.tokens, *(tree.tokens[node] for node in path)]))
                    self.tokens_read += len(rows[-1])
                looks += [places[node] for node in range(ROOT, len(tree.tokens))]
            ids = pad_sequence(rows, batch_first=True)
            mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
            logits = self.model(input_ids=ids.to(device), attention_mask=mask.to(device), use_cache=False).logits
            yield chosen, logits.flatten(0, 1)[torch.tensor(looks, device=logits.device)]

    def _compute_logits(self, states: torch.Tensor) -> torch.Tensor:
        logits = self.model.get_output_embeddings()(states)
        if scale := self._scaling["logit_scale"]:  # Cohere's
            logits = logits * scale
        if scaling := self._scaling["logits_scaling"]:  # Granite's
            logits = logits / scaling
        if cap := self._scaling["final_logit_softcapping"]:  # Gemma's
            logits = (logits / cap).tanh() * cap
        return logits
