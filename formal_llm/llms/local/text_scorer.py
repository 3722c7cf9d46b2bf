"""The scorers of models that write: the probabilities of whole answers, the number of an option and what ends it."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypedDict

import numpy as np

from formal_llm.errors import ModelError
from formal_llm.llms.local.answer_tree import ROOT, AnswerTree
from formal_llm.llms.local.loading import check_vocabulary
from formal_llm.llms.local.packing import NO_IDS, PackablePrompt, count_common, sort_into_rows, write_row
from formal_llm.llms.local.rendering import Prompted, Renderer, Style
from formal_llm.llms.local.scorer import REMEMBERED, Scorer, batches, fitting_tokens
from formal_llm.llms.question import Question
from formal_llm.llms.scoring import Reading, is_selected_at_once, known_mode, readings, weigh_options

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from formal_llm.llms.local.packing import Ids

#: The types of models that may be read in packed rows: their attention takes any mask, and positions as they are given.
PACKABLE = frozenset((
    "cohere", "cohere2", "falcon", "gemma", "gemma2", "gemma3_text", "glm4", "gpt2", "gpt_bigcode", "gpt_neox", "gptj",
    "granite", "llama", "ministral", "mistral", "mixtral", "olmo2", "olmo3", "opt", "phi", "phi3", "qwen2", "qwen3",
    "qwen3_moe", "smollm3", "starcoder2",
))  # fmt: skip
#: How some models scale the logits after their last layer, by the names in their configs.
_SCALINGS = ("logit_scale", "logits_scaling", "final_logit_softcapping")
#: The maximum number of tokens in a packed row, beside those that all rows share.
ROW_TOKENS = 256
#: A common beginning is read first, in a pass of its own, if that saves so many tokens.
_WORTH_A_PASS = 256
_NO_TREE = AnswerTree.of(())
#: For each layer its keys and values.
_Layers: TypeAlias = "list[tuple[torch.Tensor, torch.Tensor]]"


class PromptScorer(Scorer):
    """A model that scores the answers to rendered prompts: a text for each option, and the token that ends it.

    Attributes:
        scoring: the mode of scoring (:mod:`formal_llm.llms.scoring`).
        tokens_read: the number of tokens that the model has read so far, without remembered ones, padding and
            trials.
    """

    def __init__(self, model: PreTrainedModel, renderer: Renderer, batch_tokens: int | None) -> None:
        super().__init__()
        self.model = model
        self.renderer = renderer
        self.tokenizer = renderer.tokenizer
        self.batch_tokens = batch_tokens or fitting_tokens(model, 2_048)
        self.scoring = "number"
        self.tokens_read = 0
        #: The values of earlier readings: the same question for an unknown task is part of many scores.
        self._known: OrderedDict[Hashable, torch.Tensor] = OrderedDict()

    def forget(self) -> None:
        """Forget all computed values, since the weights have changed."""
        super().forget()
        self._known.clear()

    def key(self, question: Question) -> Hashable:
        """Return the tokens of the prompt, and the answers that are scored."""
        numbers = len(question.options) if self.scoring == "number" else None
        answers = numbers or tuple(option.text for option in question.options)
        task = question.task if self.scoring == "calibrated" else ""
        return self.renderer.tokens(question.messages), answers, task

    def weigh_selection(self, question: Question) -> list[float] | None:
        """Weigh a selection by the texts of its options, where texts alone are scored and any set is an answer."""
        if not is_selected_at_once(question, self.scoring):
            return None

        def report(reading: Reading) -> list[float]:
            prompt = self.renderer.answered(reading.messages, reading.answers)
            key = prompt.tokens, reading.answers
            if key not in self._known:
                self._known[key] = self.score([prompt])[0]
            logs: list[float] = self._known[key].tolist()
            return logs

        return weigh_options(question, self.scoring, report)

    def _compute(self, questions: Sequence[Question]) -> list[torch.Tensor]:
        import torch

        parts = [readings(one, self.scoring) for one in questions]
        asked: dict[Hashable, Prompted] = {}
        keys: dict[Reading, Hashable] = {}
        for reading in (reading for part in parts for reading in part):
            prompt = self.renderer.answered(reading.messages, reading.answers)
            keys[reading] = prompt.tokens, reading.answers
            asked.setdefault(keys[reading], prompt)
        known: dict[Hashable, torch.Tensor] = {} if torch.is_grad_enabled() else self._known
        new = [key for key in asked if key not in known]
        if new:
            known.update(zip(new, self.score([asked[key] for key in new]), strict=True))

        def score(way: Sequence[Reading]) -> torch.Tensor:
            found = []
            for reading in way:
                logs = known[keys[reading]]
                found.append(reading.weight * logs[torch.tensor(reading.of, device=logs.device)])
            return torch.log_softmax(torch.stack(found).sum(dim=0), dim=0)

        scores = [score(part) for part in parts]
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return scores

    @abstractmethod
    def score(self, prompts: Sequence[Prompted]) -> list[torch.Tensor]:
        """Return for each prompt the log-probabilities with which the model would write its answers, not normalised."""

    def _pad_rows(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows of tokens, padded on the right, and 1 for each token inside."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        device = self.model.get_input_embeddings().weight.device
        self.tokens_read += sum(map(len, rows))
        texts = [torch.tensor(row, device=device) for row in rows]
        return tuple(pad_sequence(part, batch_first=True) for part in (texts, [torch.ones_like(one) for one in texts]))


def tree_log_probabilities(logits: torch.Tensor, trees: Sequence[AnswerTree]) -> list[torch.Tensor]:
    """Compute the log-probabilities of answers from the logits at the nodes of their trees.

    Args:
        logits: ``[places, vocabulary]``: for each tree the end of its prompt, then its inner nodes in order.
        trees: the answers to each question.

    Returns:
        For each tree a float32 tensor ``[answers]``, which is not normalised over the answers.
    """
    import torch

    logs = torch.log_softmax(logits.float(), dim=-1)
    rows, tokens, answers, counts = [], [], [], []
    place = total = 0
    for tree in trees:
        for number, path in enumerate(tree.paths):
            for node, token in path:
                rows.append(place + 1 + node)
                tokens.append(token)
                answers.append(total + number)
        place += 1 + len(tree.tokens)
        total += len(tree.paths)
        counts.append(len(tree.paths))
    device = logits.device
    picked = logs[torch.tensor(rows, device=device), torch.tensor(tokens, device=device)]
    sums = torch.zeros(total, device=device).index_add(0, torch.tensor(answers, device=device), picked)
    return list(sums.split(counts))


class _KeptPrompt(NamedTuple):
    """The prompt that was read last, with its keys and values: the next prompts usually begin like it."""

    tokens: Ids
    layers: _Layers


class CausalScorer(PromptScorer):
    """A decoder (LLaMA, Qwen, GPT-2 ...) that scores whole answers.

    Models of known types (:data:`PACKABLE`) read packed rows, in which each common prefix is read once
    (:mod:`~formal_llm.llms.local.packing`). All others, and prompts beyond a model's window, are read one by one,
    padded on the right, which takes more time and does not change the answers.

    Args:
        model: an ``AutoModelForCausalLM``.
        renderer: converts questions to tokens.
        batch_tokens: the maximum number of tokens in one pass, which bounds its memory; None: a suitable number for the
            device.

    Attributes:
        packs: whether prompts are packed.
        window: how far back the layer with the shortest view sees; None if all see everything.
    """

    def __init__(self, model: PreTrainedModel, renderer: Renderer, *, batch_tokens: int | None = None) -> None:
        super().__init__(model, renderer, batch_tokens)
        self.row_tokens = ROW_TOKENS
        self.packs = _is_packable(model.config)
        self.window = _find_window(model.config)
        self._nothing = self._kept = _KeptPrompt(NO_IDS, [])

    def forget(self) -> None:
        """Forget all computed values, since the weights have changed."""
        super().forget()
        self._kept = self._nothing

    def score(self, prompts: Sequence[Prompted]) -> list[torch.Tensor]:
        """Return for each prompt the log-probabilities with which the model would write its answers."""
        found: dict[int, torch.Tensor] = {}
        lengths = [len(prompt.tokens) + max(prompt.tree.depths, default=0) for prompt in prompts]
        packs = [self.packs and (self.window is None or length <= self.window) for length in lengths]
        for packed, read in ((True, self._read_packed), (False, self._read_alone)):
            members = [index for index in range(len(prompts)) if packs[index] == packed]
            for chosen, logits in read([prompts[index] for index in members]):
                indices = [members[place] for place in chosen]
                trees = [prompts[index].tree for index in indices]
                found.update(zip(indices, tree_log_probabilities(logits, trees), strict=True))
        return [found[index] for index in range(len(prompts))]

    def _read_packed(self, prompts: Sequence[Prompted]) -> Iterator[tuple[list[int], torch.Tensor]]:
        """Yield for each pass its prompts, and the logits at the nodes of their answer trees."""
        import torch

        if not prompts:
            return
        plain = [PackablePrompt(np.asarray(prompt.tokens, dtype=np.int64), prompt.tree) for prompt in prompts]
        beginning = plain[0].tokens
        for one in plain:  # of which each has a token of its own
            beginning = beginning[: count_common(beginning, one.tokens[:-1])]
        shared = len(beginning)
        rows = sort_into_rows(plain, shared, self.row_tokens)
        kept = self._nothing if torch.is_grad_enabled() else self._kept
        if (len(rows) - 1) * (shared - count_common(kept.tokens, beginning)) > _WORTH_A_PASS:
            kept = self._run_pass([[PackablePrompt(beginning, _NO_TREE)]], kept)[1]
        lengths = [sum(len(plain[i].tokens) - shared + len(plain[i].tree.tokens) for i in row) for row in rows]
        for batch in batches(lengths, self.batch_tokens):
            logits, kept = self._run_pass([[plain[index] for index in rows[number]] for number in batch], kept)
            if not torch.is_grad_enabled():
                self._kept = kept
            yield [index for number in batch for index in rows[number]], logits

    def _run_pass(
        self, prompts: Sequence[Sequence[PackablePrompt]], kept: _KeptPrompt
    ) -> tuple[torch.Tensor, _KeptPrompt]:
        """Read rows of prompts; return the logits at the answers' nodes, and the first prompt as it is kept."""
        import torch
        from transformers import DynamicCache

        begin = min(count_common(kept.tokens, tokens[:-1]) for row in prompts for tokens, _ in row)
        rows = [write_row(row, begin) for row in prompts]
        device = self.model.get_input_embeddings().weight.device
        width = max(len(row.ids) for row in rows)
        self.tokens_read += sum(len(row.ids) for row in rows)

        def pad(parts: list[Ids]) -> torch.Tensor:
            table = np.zeros((len(parts), width), dtype=np.int64)
            for line, part in zip(table, parts, strict=True):
                line[: len(part)] = part
            return torch.from_numpy(table).to(device)

        # Padding has no descendants (it ends before it begins), so that nothing attends to it; and it attends to the
        # first token, since attention to nothing is undefined.
        place = torch.arange(width, device=device)
        order = torch.stack([place * (place < len(row.ids)) for row in rows])[:, :, None]
        seen = (place <= order) & (order < pad([row.ends for row in rows])[:, None])
        mask = torch.nn.functional.pad(seen, (begin, 0), value=True)[:, None]
        # Only SDPA accepts a boolean mask, and on a CPU it converts the mask to numbers again in each layer.
        if self.model.config._attn_implementation != "sdpa" or device.type == "cpu":
            lowest = torch.finfo(self.model.dtype).min
            mask = torch.zeros(mask.shape, dtype=self.model.dtype, device=device).masked_fill_(~mask, lowest)
        cache = None if checkpoints(self.model) else DynamicCache()
        if cache is not None and begin:
            for layer, parts in enumerate(kept.layers):
                cache.update(*(part[:, :, :begin].expand(len(rows), -1, -1, -1) for part in parts), layer)
        hidden = self.model.base_model(
            input_ids=pad([row.ids for row in rows]),
            position_ids=pad([row.positions for row in rows]),
            attention_mask=mask,
            use_cache=cache is not None,
            **{cache_argument(self.model.base_model): cache},
        ).last_hidden_state
        looks = np.concatenate([row.looks + number * width for number, row in enumerate(rows)])
        logits = self._compute_logits(hidden.flatten(0, 1)[torch.from_numpy(looks).to(device)])
        if cache is None:
            return logits, self._nothing
        first = prompts[0][0].tokens
        layers = [(layer.keys[:1, :, : len(first)], layer.values[:1, :, : len(first)]) for layer in cache.layers]
        if not torch.is_grad_enabled():  # a part would keep the memory of the whole pass
            layers = [(keys.clone(), values.clone()) for keys, values in layers]
        return logits, _KeptPrompt(first, layers)

    def _read_alone(self, prompts: Sequence[Prompted]) -> Iterator[tuple[list[int], torch.Tensor]]:
        """Like :meth:`_read_packed`, but each prompt with each longest answer prefix is a right-padded row."""
        widths = [len(prompt.tokens) + max(prompt.tree.depths, default=0) for prompt in prompts]
        heights = [max(len(prompt.tree.rows), 1) for prompt in prompts]
        for chosen in batches(widths, self.batch_tokens, heights):
            members = [prompts[index] for index in chosen]
            rows, looks = _write_out_answers([one.tokens for one in members], [one.tree for one in members])
            ids, mask = self._pad_rows(rows)
            yield chosen, self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits[*looks]

    def _compute_logits(self, states: torch.Tensor) -> torch.Tensor:
        logits = self.model.get_output_embeddings()(states)
        scale, scaling, cap = (getattr(self.model.config, name, None) for name in _SCALINGS)
        if scale:  # Cohere's
            logits = logits * scale
        if scaling:  # Granite's
            logits = logits / scaling
        if cap:  # Gemma's
            logits = (logits / cap).tanh() * cap
        return logits


def _is_packable(config: PreTrainedConfig) -> bool:
    attention = getattr(config, "_attn_implementation", "")
    return config.model_type in PACKABLE and attention in ("sdpa", "eager") and not getattr(config, "alibi", False)


def _find_window(config: PreTrainedConfig) -> int | None:
    """Return how long a prompt may be that every layer sees as a whole, with the same positions as shorter ones."""
    rope = getattr(config, "rope_parameters", None) or {}
    rope = getattr(config, "rope_parameters", None) or {}
    ropes = [rope, *(part for part in rope.values() if isinstance(part, dict))]  # some have one for each type of layer
    # Beyond this length other factors scale the positions, and those of everything in the same pass.
    sizes = [one["original_max_position_embeddings"] for one in ropes if one.get("rope_type") == "longrope"]
    return min((size for size in (getattr(config, "sliding_window", None), *sizes) if size), default=None)


class Seq2SeqScorer(PromptScorer):
    """An encoder reads the question, a decoder scores whole answers: the number of an option and the end token.

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
        for chosen in batches([len(prompt.tokens) for prompt in prompts], self.batch_tokens):
            members = [prompts[index] for index in chosen]
            values = tree_log_probabilities(self._compute_logits(members), [one.tree for one in members])
            found.update(zip(chosen, values, strict=True))
        return [found[index] for index in range(len(prompts))]

    def _compute_logits(self, prompts: Sequence[Prompted]) -> torch.Tensor:
        """Compute the logits at the nodes of the prompts' answer trees."""
        from transformers.modeling_outputs import BaseModelOutput

        ids, mask = self._pad_rows([list(prompt.tokens) for prompt in prompts])
        encoded = self.model.get_encoder()(input_ids=ids, attention_mask=mask)[0]
        trees = [prompt.tree for prompt in prompts]
        rows, looks = _write_out_answers([(self.start,)] * len(prompts), trees)
        owners = [number for number, tree in enumerate(trees) for _ in tree.rows or ((),)]
        written, _ = self._pad_rows(rows)
        return self.model(
            decoder_input_ids=written,
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded[owners]),
            attention_mask=mask[owners],
            use_cache=False,
        ).logits[*looks]


def _write_out_answers(
    contexts: Sequence[Sequence[int]], trees: Sequence[AnswerTree]
) -> tuple[list[list[int]], tuple[list[int], list[int]]]:
    """Write each context with each of the longest beginnings of its answers as a row.

    Returns:
        The rows, and the rows and columns of the nodes: for each tree the end of its context, then its inner nodes.
    """
    rows: list[list[int]] = []
    looks: list[tuple[int, int]] = []
    for context, tree in zip(contexts, trees, strict=True):
        end = len(context) - 1
        places = {ROOT: (len(rows), end)}
        for path in tree.rows or ((),):
            for node in path:
                places.setdefault(node, (len(rows), end + tree.depths[node]))
            rows.append([*context, *(tree.tokens[node] for node in path)])
        looks += [places[node] for node in range(ROOT, len(tree.tokens))]
    return rows, ([row for row, _ in looks], [column for _, column in looks])


def cache_argument(model: PreTrainedModel) -> str:
    """Return the name by which a model takes keys and values: ``cache``, before transformers 5.24 another one."""
    return "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"


def checkpoints(model: PreTrainedModel) -> bool:
    """Return whether a model recomputes its activations in the backward pass, and so keeps no keys and values."""
    wanted = getattr(model, "is_activation_checkpointing", None)
    return bool(model.training and (model.is_gradient_checkpointing if wanted is None else wanted))


class TextSettings(TypedDict, total=False):
    """The settings of a model that writes.

    Attributes:
        style: ``"chat"`` for the tokenizer's chat template, ``"plain"``; None: the template if there is one.
        cue: the end of a plain prompt.
        template_settings: the settings of the chat template, such as ``{"enable_thinking": False}``.
        scoring: how options are scored, see :mod:`~formal_llm.llms.scoring`.
        batch_tokens: the maximum number of tokens in one pass, which bounds the memory; None: a suitable number for the
            device.
    """

    style: Literal["chat", "plain"] | None
    cue: str
    template_settings: Mapping[str, object] | None
    scoring: str
    batch_tokens: int | None


def text_scorer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    style: Literal["chat", "plain"] | None = None,
    cue: str = "Answer:",
    template_settings: Mapping[str, object] | None = None,
    scoring: str = "number",
    batch_tokens: int | None = None,
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
    made = Seq2SeqScorer if two_parts else CausalScorer
    scorer = made(model, renderer, batch_tokens=batch_tokens)
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
