"""Text tools by a local language model: results are selected by their probability, without sampling.

Any decoder is suitable; ``--toolkit smollm2`` uses SmolLM2-135M-Instruct. A model this small misses the question when
it writes freely. So only :meth:`~TextTools.text_generation` lets it write. The other tools have it score candidate
answers, all candidates of one text in one pass, by their natural log-probabilities, token by token.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, TypeAlias

from formal_llm.errors import LLMError
from formal_llm.llms import resolve
from formal_llm.llms.local.answer_tree import ROOT, AnswerTree
from formal_llm.llms.local.loading import LOADING
from formal_llm.llms.local.rendering import Prompted
from formal_llm.llms.question import Message
from formal_llm.packs.openagi.classical.language import best_sentences, document_first, split_sentences
from formal_llm.packs.openagi.classical.ngrams import GAP

if TYPE_CHECKING:
    from formal_llm.llms.local.model import TransformersLLM

Ids: TypeAlias = "tuple[int, ...]"
#: Part of the key of every cached result; it changes when the tools compute different results.
VERSION = "1"
#: The maximum numbers of tokens to read of a text, and to write after it.
READ, WRITTEN = 1_000, 48
#: The maximum number of sentences to consider for a summary.
SUMMED = 12
#: The maximum number of sentences to consider for an answer, and of words in the answer.
SENTENCES, ANSWER_WORDS = 8, 10
#: The numbers of words to try in a gap, from the model and from the text, and of tokens after the gap that determine
#: which word is best.
THOUGHT_OF, OF_THE_TEXT, BEHIND = 32, 16, 10

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_MARKS = " \t,.;:!?…\"'“”‘’()[]"
#: The text before a sentence: nothing, or the end of another sentence; then blanks and opening marks.
_BEGINS = re.compile(r"(?:^|[.!?…][\"'”’)]*\s)[\s\"'“‘(]*$")
_SENTENCE = re.compile(r"[.!?…][\"'”’)]*(?=\s|$)")
#: An example of answering a question, so that a small model answers with a phrase, not with a whole sentence.
_EXAMPLE = (
    "Tea came to Europe in 1610 on Dutch ships. At first it was sold by chemists as a medicine. Anna, the Duchess of "
    "Bedford, made it fashionable to drink it in the afternoon."
)
_SHOTS = (("When did tea come to Europe?", "1610"),)
#: The question that measures how probable a phrase is whatever the question, and the weight of that probability.
_ANYTHING, _PRIOR = "What does the text say?", 0.5


class TextTools:
    """Text tools that share one model, which is loaded at the first use, once for all tools that name it alike.

    The same text always gives the same result on the same machine. Threads may share the tools; they take turns.

    Args:
        llm: a decoder as a provider string (``smollm2``, ``transformers:FOLDER``), or a loaded one.

    Raises:
        LLMError: raised when a tool is used: there is no such model, it does not write from left to right, or it is not
            installed (:class:`~formal_llm.errors.MissingDependency`).
    """

    def __init__(self, llm: str | TransformersLLM = "smollm2") -> None:
        self.llm = llm

    # -- the tools ----------------------------------------------------------------------------------------------

    def sentiment(self, text: str) -> str:
        """Determine the sentiment of an English text: ``"positive"`` or ``"negative"``, never neutral.

        The more probable of two answers decides: that the sentiment is the one, or the other.
        """
        with self._model as model:
            prompt = model.tokenize_chat(
                Message("user", f"What is the sentiment of this text?\n\n{model.cut_text(text)}")
            )
            names = ("positive", "negative")
            answers = [model.tokenize_answer(f"The sentiment of the text is {name}.") for name in names]
            (scores,) = model.compute_scores([(prompt, answers)])
        return names[scores[1] > scores[0]]

    def summarization(self, text: str) -> str:
        """Select the sentences of a text that best represent the rest, in order: a third of them, from one to three.

        A sentence represents the others well if they are much more probable as a text with this sentence as its summary
        than as any text: the difference of their log-probabilities. Of a long text, the first twelve sentences count.
        """
        with self._model as model:
            found = split_sentences(model.cut_text(text, most=READ // 2))[:SUMMED]
            if len(found) < 2:
                return " ".join(found)
            rests = [model.tokenize_text(" ".join(found[:place] + found[place + 1 :])) for place in range(len(found))]
            prompts = [model.tokenize_chat(Message("user", f"Write a text with this summary: {one}")) for one in found]
            pairs = [(one, [rest]) for one, rest in zip(prompts, rests, strict=True)]
            *conditional, usual = model.compute_scores(
                [*pairs, (model.tokenize_chat(Message("user", "Write a text.")), rests)]
            )
        gains = [row[0] - before for row, before in zip(conditional, usual, strict=True)]
        count = min(max(round(len(found) / 3), 1), 3)
        best = sorted(range(len(found)), key=gains.__getitem__, reverse=True)[:count]
        return " ".join(found[place] for place in sorted(best))

    def question_answering(self, document: str, question: str) -> str:
        """Find the phrase of a document that answers a question about it, of at most ten words.

        The question must make the phrase more probable as an answer: its log-probability counts, less half of that when
        the question is just what the text says (Holtzman et al. 2021, arXiv 2104.08315). Document and question may be
        in either order. Of a long document, the eight sentences that share the rarest words with the question count.
        """
        document, question = document_first(document, question)
        found = best_sentences(document, question, SENTENCES)
        phrases = list(dict.fromkeys(phrase for one in found for phrase in _list_phrases(one, ANSWER_WORDS)))
        if not phrases:
            return ""
        with self._model as model:
            passage = model.cut_text(" ".join(found))

            def tokenize_prompt(question: str) -> Ids:
                shots = [
                    message
                    for example, answer in _SHOTS
                    for message in (Message("user", f"{_EXAMPLE}\n\n{example}"), Message("assistant", answer))
                ]
                return model.tokenize_chat(*shots, Message("user", f"{passage}\n\n{question}"))

            answers = [model.tokenize_answer(phrase) for phrase in phrases]
            scores, prior = model.compute_scores(
                [(tokenize_prompt(model.cut_text(question)), answers), (tokenize_prompt(_ANYTHING), answers)]
            )
        values = [score - _PRIOR * before for score, before in zip(scores, prior, strict=True)]
        return phrases[max(range(len(phrases)), key=values.__getitem__)]

    def fill_mask(self, text: str) -> str:
        """Fill the gaps of a clozed text, written ``[MASK]``, ``<mask>`` or ``___``.

        Each gap, from the left, gets the word that fits best: by the log-probability of the word after the text before
        the gap, and of the next ten tokens after it. Candidates are the 32 likeliest words of one token and the 16
        nearest words of the text. A text without a gap is returned unchanged.
        """
        start = 0
        while (gap := GAP.search(text, start)) is not None:
            with self._model as model:
                filled = text[: gap.start()] + self._choose_word(model, gap)
            # Inserted text is not searched for gaps, even if it resembles one together with its surroundings.
            text, start = filled + text[gap.end() :], len(filled)
        return text

    def text_generation(self, text: str) -> str:
        """Continue a text by the most probable 48 tokens, up to the last end of a sentence among them.

        The continuation of an empty text is empty. A small model repeats itself and knows little about its subject.
        """
        if not text.strip():
            return ""
        with self._model as model:
            read = model.cut_text(text.rstrip(), end=True)
            continuation = model.llm.continue_text(read, max_tokens=WRITTEN).text
        ends = [found.end() for found in _SENTENCE.finditer(continuation)]
        return (text.rstrip() + (continuation[: ends[-1]] if ends else continuation)).strip()

    # -- the model ----------------------------------------------------------------------------------------------

    @property
    def functions(self) -> Mapping[str, Callable[..., str]]:
        """The tools by the terminals of ``grammars/openagi.cfg``."""
        tools = (self.summarization, self.text_generation, self.fill_mask, self.sentiment, self.question_answering)
        return MappingProxyType({function.__name__: function for function in tools})

    def compute_version(self, file: Path | None = None) -> str:
        """Return a hash of the factors besides the texts, for cache keys; ``file`` is the file of the weights."""
        weights = "" if file is None else f"{file.name} {file.stat().st_size}"
        return hashlib.sha256(f"{VERSION} {self.llm} {weights}".encode()).hexdigest()[:12]

    @property
    def _model(self) -> _Decoder:
        if not isinstance(self.llm, str):
            return self._given
        with LOADING:
            if self.llm not in _LOADED:
                found = _Decoder(resolve(self.llm))  # type: ignore[arg-type]  # _Decoder checks its type
                found.llm.scorer.cache = None  # type: ignore[attr-defined]  # results do not depend on earlier ones
                _LOADED[self.llm] = found
            return _LOADED[self.llm]

    @cached_property
    def _given(self) -> _Decoder:
        assert not isinstance(self.llm, str)
        return _Decoder(self.llm)

    @staticmethod
    def _choose_word(model: _Decoder, gap: re.Match[str]) -> str:
        before, after = gap.string[: gap.start()], gap.string[gap.end() :]
        blank = " " if before[-1:] == " " else ""
        begins = _BEGINS.search(before) is not None
        left = model.tokenize_text(before.removesuffix(blank), end=True)
        right = model.tokenize_text(GAP.split(after)[0])[:BEHIND]
        thought = model.likeliest_words(left, THOUGHT_OF, blank=bool(blank))
        near = [*_WORD.findall(before)[-OF_THE_TEXT // 2 :], *_WORD.findall(GAP.split(after)[0])[: OF_THE_TEXT // 2]]
        words: list[str] = list(
            dict.fromkeys(word[:1].upper() + word[1:] if begins else word for word in [*thought, *near])
        )
        tails = [model.tokenize_text(blank + word) + (right or model.end) for word in words]
        (scores,) = model.compute_scores([(left or model.end, tails)])
        return words[max(range(len(words)), key=scores.__getitem__)]


class _Decoder:
    """A loaded decoder with the operations that the tools need; one tool uses it at a time."""

    def __init__(self, llm: TransformersLLM) -> None:
        scorer = getattr(llm, "scorer", None)
        if not hasattr(scorer, "score") or llm.renderer.style == "seq2seq":
            raise LLMError(f"{llm!r} cannot be used for text tools: they need a decoder that runs here")
        self.llm = llm
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @property
    def end(self) -> Ids:
        """The token that ends one text and therefore precedes the next."""
        return (int(self.llm.renderer.tokenizer.eos_token_id),)

    def tokenize_text(self, text: str, *, end: bool = False) -> Ids:
        """Return the tokens of a text; of a long one the first, or with ``end`` the last."""
        ids = self.llm.renderer.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return tuple(ids[-READ:] if end else ids[:READ])

    def cut_text(self, text: str, *, most: int = READ, end: bool = False) -> str:
        """Cut a text to the part that is read: its beginning, or with ``end`` its end."""
        ids = self.tokenize_text(text, end=end)
        if len(ids) <= most and len(ids) < READ:
            return text
        return str(self.llm.renderer.tokenizer.decode(ids[-most:] if end else ids[:most]))

    def tokenize_chat(self, *messages: Message) -> Ids:
        """Return the tokens of a chat up to the model's answer."""
        return self.llm.renderer.tokens(messages)

    def tokenize_answer(self, text: str) -> Ids:
        """Return the tokens of an answer in a chat, including those that end it."""
        return self.llm.renderer.answer_tokens(text)

    def compute_scores(self, asked: Sequence[tuple[Ids, Sequence[Ids]]]) -> list[list[float]]:
        """Return the log-probabilities of possible continuations of each prompt, computed in one pass.

        A continuation that is a proper prefix of another one scores minus infinity; one that ends a text never is.
        """
        import torch

        prompts, places = [], []
        for read, nexts in asked:
            distinct = dict.fromkeys(nexts)
            beginnings = {one[:length] for one in distinct for length in range(1, len(one))}
            leaves = [one for one in distinct if one not in beginnings]
            prompts.append(Prompted(read, AnswerTree.of(leaves)))
            places.append({one: place for place, one in enumerate(leaves)})
        with torch.no_grad():
            found = [values.tolist() for values in self.llm.scorer.score(prompts)]  # type: ignore[attr-defined]
        return [
            [values[at[one]] if one in at else float("-inf") for one in nexts]
            for (_, nexts), values, at in zip(asked, found, places, strict=True)
        ]

    def likeliest_words(self, read: Ids, count: int, *, blank: bool) -> list[str]:
        """Return the likeliest words of one token after some tokens."""
        import torch

        with torch.no_grad():
            (values,) = self.llm.scorer.score([Prompted(read or self.end, self._words[blank][0])])  # type: ignore[attr-defined]
        names = self._words[blank][1]
        return [names[place] for place in values.topk(min(count, len(names))).indices.tolist()]

    @cached_property
    def _words(self) -> tuple[tuple[AnswerTree, list[str]], tuple[AnswerTree, list[str]]]:
        """All words of one token, without and with a preceding blank: as a tree of answers, and as texts."""
        tokenizer = self.llm.renderer.tokenizer
        written = tokenizer.batch_decode([[number] for number in range(len(tokenizer))])
        special = set(tokenizer.all_special_ids)

        def collect_words(before: str) -> tuple[AnswerTree, list[str]]:
            known = {
                number: word.removeprefix(before)
                for number, word in enumerate(written)
                if number not in special and word.startswith(before) and _WORD.fullmatch(word.removeprefix(before))
            }
            return AnswerTree((), (), (), (), tuple(((ROOT, number),) for number in known)), list(known.values())

        return collect_words(""), collect_words(" ")


#: The loaded models by provider string.
_LOADED: dict[str, _Decoder] = {}


def _list_phrases(sentence: str, most: int) -> list[str]:
    """List all sequences of words in a sentence, up to a length, without surrounding punctuation."""
    words = sentence.split()
    runs = (words[begin : begin + size] for begin in range(len(words)) for size in range(1, most + 1))
    return [phrase for run in runs if (phrase := " ".join(run).strip(_MARKS))]
