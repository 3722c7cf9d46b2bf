"""Local models that write, with transformers: ``transformers:MODEL``."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Callable, Generator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from formal_llm.errors import LLMError, ModelError, ResourceNotFound
from formal_llm.llms.llm import LLM
from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.constrained import TokenGrammars, TokenMask
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.loading import DeviceMap, Placement, base_of, load, model_and_settings, scoring_of
from formal_llm.llms.local.rendering import Prompted, Renderer
from formal_llm.llms.local.text_scorer import PromptScorer, TextSettings, answered_by, text_scorer
from formal_llm.llms.packaged import find_minilm, find_smollm2
from formal_llm.llms.providers import resolve
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.schemas import check_schema
from formal_llm.llms.scoring import BY_TEXT, UNLISTED
from formal_llm.llms.stops import Cutter, cut, first_stop
from formal_llm.llms.text_request import CUT_OFF, Messages, Stream, TextRequest, chat
from formal_llm.llms.usage import TokenUsage

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

#: The placeholder for the bytes of an incomplete character.
_NOT_WHOLE = "\ufffd"
#: The number of preceding tokens that affect the beginning of a text.
_CONTEXT = 16


class _Closed(Exception):
    """No more tokens are wanted."""


class TokenStream:
    """Receives tokens from transformers as they are written (a *streamer*)."""

    def __init__(self) -> None:
        self.tokens: queue.SimpleQueue[list[int] | BaseException | None] = queue.SimpleQueue()
        self.closed = threading.Event()
        self._prompt = True

    def put(self, value: Any) -> None:
        """Add a token; the first call passes the prompt, which is no part of the text."""
        if self.closed.is_set():
            raise _Closed
        if not self._prompt:
            self.tokens.put(value.flatten().tolist())
        self._prompt = False

    def end(self) -> None:
        """Do nothing at the end of the tokens."""


def written_pieces(
    write: Callable[[TokenStream], None],
    tokenizer: PreTrainedTokenizerBase,
    before: Sequence[int],
    new: list[int],
) -> Generator[str]:
    """Yield the pieces of a text while a model writes it.

    Args:
        write: makes the model write its tokens into a stream.
        tokenizer: the tokenizer of the model.
        before: the tokens before the text, as the model reads them.
        new: receives the written tokens.
    """
    stream = TokenStream()

    def work() -> None:
        try:
            write(stream)
        except _Closed:
            pass
        except BaseException as error:
            stream.tokens.put(error)
        finally:
            stream.tokens.put(None)

    thread = threading.Thread(target=work, name="formal_llm stream", daemon=True)
    thread.start()
    yielded = ""
    try:
        while (received := stream.tokens.get()) is not None:
            if isinstance(received, BaseException):
                raise received
            new += received
            text = after(tokenizer, before, new).rstrip(_NOT_WHOLE)
            if text.startswith(yielded) and text != yielded:
                yield text[len(yielded) :]
                yielded = text
        whole = after(tokenizer, before, new)
        if whole.startswith(yielded) and whole != yielded:
            yield whole[len(yielded) :]
    finally:
        stream.closed.set()
        thread.join()


def after(tokenizer: PreTrainedTokenizerBase, before: Sequence[int], new: Sequence[int]) -> str:
    """Return the text of new tokens after others, since some tokenizers drop a space at the beginning of a text."""
    before = before[-_CONTEXT:]
    first = str(tokenizer.decode(list(before), skip_special_tokens=True)) if before else ""
    whole = str(tokenizer.decode([*before, *new], skip_special_tokens=True))
    if whole.startswith(first):
        return whole[len(first) :]
    return str(tokenizer.decode(list(new), skip_special_tokens=True))


def _as_answer(text: str, usage: TokenUsage, ended: str | None) -> Answer:
    """Return a text that was written here, where only the limit of tokens ends one for no known reason."""
    return Answer((), None, text, usage, ended, CUT_OFF if ended is None else "")


def open_tokens(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Return the tokens of a text to continue: with the beginning token of texts, and without the end token."""
    ids = [int(one) for one in tokenizer(text)["input_ids"]]
    if ids and ids[-1] in (tokenizer.eos_token_id, tokenizer.sep_token_id) and ids[-1] != tokenizer.bos_token_id:
        ids.pop()
    begins = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    return ids or [int(begins or 0)]


#: The settings that a provider string may have besides :class:`TextSettings`.
_IN_TEXTS = {"dtype", "device", "local_files_only"}


class TransformersLLM(LocalLLM):
    """A local causal (LLaMA, Qwen ...) or encoder-decoder (T5 ...) model, run with transformers.

    The probability of an option is that of its whole answer, the number and the token that ends it, among the legal
    answers: nothing is generated, and 1 and 12 are distinguished. ``scoring`` selects other ways to score options. The
    shared parts of questions are read once (see :class:`~formal_llm.llms.local.text_scorer.CausalScorer`).

    Args:
        model: a folder, or a name on the hub; or the folder of trained adapters, such as ``RUN/final``.
        device, dtype, device_map, local_files_only: see :class:`~formal_llm.llms.local.loading.Placement`.
        settings: ``style``, ``cue``, ``template_settings``, ``batch_tokens``, ``scoring``; see
            :class:`TextSettings`. The default scoring of adapters is that of their training.

    Raises:
        MissingDependency: torch or transformers are not installed.
        ResourceNotFound, ModelError: the model does not exist, or it cannot be used.
    """

    provider = "transformers"
    reads = frozenset({"chat", "task"})  # the task: for ``calibrated``
    can = frozenset({"choose", "write", "continue", "object", "grammar", "score"})

    def __init__(
        self,
        model: str,
        *,
        device: str = "auto",
        dtype: str = "auto",
        device_map: DeviceMap | None = None,
        local_files_only: bool = False,
        **settings: Unpack[TextSettings],
    ) -> None:
        if unknown := settings.keys() - TextSettings.__annotations__.keys():  # reported before the model is loaded
            raise TypeError(f"unknown settings: {', '.join(sorted(unknown))}")
        if "scoring" not in settings and (trained := scoring_of(model)):
            settings["scoring"] = trained
        network, tokenizer = load(model, "text", Placement(device, dtype, device_map, local_files_only))
        scorer = text_scorer(network, tokenizer, **settings)
        super().__init__(scorer, model, answered_by(scorer))

    @classmethod
    def of(
        cls,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str = "",
        **settings: Unpack[TextSettings],
    ) -> TransformersLLM:
        """Create an LLM from a model that is already loaded.

        Args:
            model: an ``AutoModelForCausalLM`` or ``AutoModelForSeq2SeqLM``.
            tokenizer: its tokenizer.
            name: its name, which should change whenever its weights do.
            settings: see :class:`TextSettings`.
        """
        llm = cls.__new__(cls)
        scorer = text_scorer(model, tokenizer, **settings)
        LocalLLM.__init__(llm, scorer, name, answered_by(scorer))
        return llm

    @classmethod
    def from_text(cls, text: str) -> TransformersLLM:
        """Create an LLM from a provider string's second half: ``models/qwen3?enable_thinking=false&dtype=bfloat16``.

        After the question mark come ``dtype``, ``device``, ``local_files_only``, settings of :class:`TextSettings`, and
        the chat template's own settings.

        Raises:
            ValueError: a part is no setting.
            MissingDependency, ResourceNotFound, ModelError: see the class; also raised for a name that the chat
                template does not read.
        """
        model, settings = model_and_settings(text)
        own = _IN_TEXTS | TextSettings.__annotations__.keys()
        template = {name: settings.pop(name) for name in list(settings) if name not in own}
        if template:
            settings["template_settings"] = template
        return cls(model, **settings)  # type: ignore[arg-type]  # their values are checked where they are used

    @property
    def wording(self) -> str:  # type: ignore[override]
        """The preferred wording: without a list of options if only their texts are scored."""
        assert isinstance(self.scorer, PromptScorer)
        return UNLISTED if self.scorer.scoring in BY_TEXT else ""

    @property
    def renderer(self) -> Renderer:
        """The renderer that converts questions to tokens."""
        assert isinstance(self.scorer, PromptScorer)
        return self.scorer.renderer

    def write(self, request: TextRequest) -> Answer:
        """Write a text; with a temperature above 0 it is drawn with torch's random numbers.

        A model that is to keep a schema is shown it, and held to it token by token, as to a grammar.

        Raises:
            LLMError: the request is too long for the model; or it continues a text, and the model is an
                encoder-decoder, which does not.
        """
        mask, stop = None, request.stop
        if request.grammar is not None:
            mask = self._grammars.hold_to_lark(request.grammar.lark)
        elif request.schema is not None:
            check_schema(request.schema)
            mask, request = self._grammars.hold_to_schema(request.schema), request.show_schema()
        ids = self._read_ids(request)
        _, new = self._write_ids(
            ids, max_tokens=request.max_tokens, stop=stop, temperature=request.temperature, mask=mask
        )
        tokenizer = self.scorer.tokenizer
        text = after(tokenizer, ids, new) if request.continues else tokenizer.decode(new, skip_special_tokens=True)
        return _as_answer(cut(text, stop), TokenUsage(1, len(ids), len(new)), self._find_end(new, text, stop))

    @cached_property
    def _grammars(self) -> TokenGrammars:
        size = int(self.scorer.model.get_output_embeddings().weight.shape[0])
        return TokenGrammars(self.scorer.tokenizer, size, self._ends)

    def stream(self, request: TextRequest, /) -> Stream:
        """Like :meth:`write`, piece by piece; closing the stream stops the writing. What is masked is one piece."""
        if request.kind not in ("write", "continue"):
            yield from super().stream(request)
            return
        ids = self._read_ids(request)
        before = [] if self.renderer.style == "seq2seq" else ids
        yield from self._stream_tokens(ids, before, request.max_tokens, request.stop, request.temperature)

    def _read_ids(self, request: TextRequest) -> list[int]:
        return self._prompt_ids(request.prompt) if request.continues else list(self.renderer.tokens(request.messages))

    def _stream_tokens(
        self, ids: Sequence[int], before: Sequence[int], max_tokens: int, stop: Sequence[str], temperature: float
    ) -> Stream:
        def write(streamer: TokenStream) -> None:
            self._write_ids(ids, max_tokens=max_tokens, stop=stop, temperature=temperature, streamer=streamer)

        new: list[int] = []
        pieces, cutter = written_pieces(write, self.scorer.tokenizer, before, new), Cutter(stop)
        try:
            for piece in pieces:
                if certain := cutter.feed(piece):
                    yield certain
                if cutter.ended is not None:
                    break
        finally:
            pieces.close()
        if rest := cutter.close():
            yield rest
        ended = self._find_end(new, "", ()) if cutter.ended is None else cutter.ended
        yield _as_answer(cutter.whole, TokenUsage(1, len(ids), len(new)), ended)

    def _prompt_ids(self, prompt: str) -> list[int]:
        if self.renderer.style == "seq2seq":
            raise LLMError(f"{self.name or 'the model'} is an encoder-decoder, which does not go on with a text")
        return open_tokens(self.scorer.tokenizer, prompt)

    def _find_end(self, new: Sequence[int], text: str, stop: Sequence[str]) -> str | None:
        """Return what ended a text, see :class:`~formal_llm.llms.Answer`."""
        found = first_stop(text, stop)
        if found is not None:
            return found[1]
        return "" if new and new[-1] in self._ends else None

    @cached_property
    def _ends(self) -> list[int]:
        """The tokens that end a text."""
        ends = getattr(self.scorer.model.generation_config, "eos_token_id", None)
        ends = self.scorer.tokenizer.eos_token_id if ends is None else ends
        return [ends] if isinstance(ends, int) else list(ends or ())

    def _write_ids(
        self,
        ids: Sequence[int],
        *,
        max_tokens: int,
        stop: Sequence[str],
        temperature: float,
        mask: TokenMask | None = None,
        streamer: object = None,
    ) -> tuple[int, list[int]]:
        import torch

        model, renderer, tokenizer = self.scorer.model, self.renderer, self.scorer.tokenizer
        two_parts = renderer.style == "seq2seq"
        options: dict[str, object] = (
            {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
        )
        options |= {"logits_processor": [mask]} if mask is not None else {}
        options |= {"streamer": streamer} if streamer is not None else {}
        if stop:
            options |= {"stop_strings": list(stop), "tokenizer": tokenizer}
        padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        if renderer.longest is not None and not two_parts:
            if len(ids) >= renderer.longest:
                raise LLMError(f"the chat has {len(ids):,} tokens and the model reads {renderer.longest:,}")
            max_tokens = min(max_tokens, renderer.longest - len(ids))
        with self._lock, torch.no_grad():
            prompt = torch.tensor([list(ids)], device=model.get_input_embeddings().weight.device)
            written = model.generate(
                input_ids=prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=max_tokens,
                pad_token_id=padding,
                eos_token_id=self._ends or None,
                **options,
            )
        return len(ids), written[0, 1 if two_parts else len(ids) :].tolist()  # without the decoder's start token

    def log_probabilities(self, messages: Messages, texts: Sequence[str], /) -> list[tuple[float, int]]:
        """Return how probable it is that exactly each text comes next, see :class:`ScoringLLM`.

        Args:
            messages: the chat; a single text stands for a message of the user.
            texts: the texts, at least one token long each.

        Returns:
            For each text the natural logarithm of its probability, without the token that ends it, and its tokens.

        Raises:
            LLMError: both together are too long for the model.
            ValueError: a text has no token.
        """
        import torch

        assert isinstance(self.scorer, PromptScorer)
        renderer = self.renderer
        with self._lock, torch.no_grad():
            before = renderer.tokens(chat(messages))
            written = [renderer.continuation_tokens(text) for text in texts]
            if not all(written):
                raise ValueError("a text has no token")
            longest = len(before) + max(map(len, written), default=0)
            if renderer.longest is not None and longest > renderer.longest:
                raise LLMError(f"chat and continuation have {longest:,} tokens; the model reads fewer")
            scores = self.scorer.score([Prompted(before, AnswerTree.of([ids])) for ids in written])
        return [(float(score), len(ids)) for score, ids in zip(scores, written, strict=True)]

    def _measure_length(self, question: Question) -> int:
        return len(self.renderer.prompt(question).tokens)


def with_adapter(llm: str, folder: Path) -> LLM:
    """Load the model of a provider string with adapters that were trained on it.

    Args:
        llm: ``minilm``, ``encoder:MODEL``, ``smollm2``, ``transformers:MODEL``, the last two with settings.
        folder: the folder of the adapters, such as ``RUN/best``.

    Raises:
        ResourceNotFound: there are no adapters in the folder.
        ModelError: the LLM is no local model, or the adapters were trained on another one.
    """
    base = base_of(str(folder))
    if base is None:
        raise ResourceNotFound("folder of adapters", str(folder), [])
    provider, _, rest = llm.partition(":")
    model, question, settings = rest.partition("?")
    if provider == "smollm2":
        model, question, settings = "", "?" if rest else "", rest
    if provider not in ("minilm", "encoder", "smollm2", "transformers"):
        raise ModelError(
            f"{llm} takes no adapters: they are for a model that runs here (minilm, smollm2, transformers:)"
        )
    own = {"minilm": find_minilm, "smollm2": find_smollm2}.get(provider, lambda: Path(model))()
    if str(own) != base and not (own.exists() and Path(base).exists() and own.samefile(base)):
        raise ModelError(f"the adapters in {folder} were trained on {base}, not on {llm}")
    kind = "encoder" if provider in ("minilm", "encoder") else "transformers"
    return resolve(f"{kind}:{folder}{question}{settings}")


def fingerprint(folder: Path) -> str:
    """Return six digits that identify the adapters in a folder.

    Raises:
        ResourceNotFound: there are no adapters.
    """
    file = folder / "adapter_model.safetensors"
    if not file.is_file():
        raise ResourceNotFound("adapter file", str(file), [])
    return hashlib.sha256(file.read_bytes()).hexdigest()[:6]
