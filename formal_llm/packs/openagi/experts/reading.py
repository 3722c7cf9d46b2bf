"""Experts that find words: the word for a gap, the passage that answers a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from formal_llm.packs.openagi.classical.language import document_first
from formal_llm.packs.openagi.classical.ngrams import GAP
from formal_llm.packs.openagi.experts.expert import Expert, Tensors, split_batches
from formal_llm.packs.openagi.experts.loaded import LoadedModel
from formal_llm.packs.openagi.experts.text import get_token_limit

if TYPE_CHECKING:
    import torch

#: A number of characters around a gap that always exceeds what a model reads.
_NEAR = 8_000


class FillMask(Expert):
    """Fills the gaps of a text, written ``[MASK]``, ``<mask>`` or ``___`` (any ``AutoModelForMaskedLM``).

    The gaps of a text are filled from the left, each with the most probable whole word in its context, which is limited
    to what the model can read.
    """

    auto = "AutoModelForMaskedLM"

    def load_model(self) -> LoadedModel:
        """Load the model and its tokenizer, and determine which of its tokens are words."""
        import torch

        loaded = super().load_model()
        tokens = loaded.tokenizer.convert_ids_to_tokens(list(range(len(loaded.tokenizer))))
        special = set(loaded.tokenizer.all_special_tokens)
        # A continuation of a word (## of WordPiece) or a punctuation mark is not a word.
        loaded.more["words"] = torch.tensor(
            [token not in special and not token.startswith("##") and any(map(str.isalnum, token)) for token in tokens]
        )
        return loaded

    def run_batch(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[str]:
        """Fill the gaps of each text."""
        texts = list(columns[0])
        starts = [0] * len(texts)  # inserted text is not searched for gaps
        while gaps := {place: gap for place, text in enumerate(texts) if (gap := GAP.search(text, starts[place]))}:
            words = self._predict_words(loaded, list(gaps.values()))
            for (place, gap), word in zip(gaps.items(), words, strict=True):
                filled = _fill_gap(gap, word)
                texts[place], starts[place] = filled + texts[place][gap.end() :], len(filled)
        return texts

    def _predict_words(self, loaded: LoadedModel, open_: Sequence[re.Match[str]]) -> list[str]:
        rows, gaps = zip(*(_tokenize_around(loaded, gap) for gap in open_), strict=True)
        batch = pad_rows(loaded, rows)
        logits = loaded.model(**batch).logits.float()
        words = loaded.more["words"].to(logits.device)
        found = []
        for row, gap in enumerate(gaps):
            scores = logits[row, gap, : len(words)].masked_fill(~words[: logits.shape[-1]], float("-inf"))
            found.append(loaded.tokenizer.decode([int(scores.argmax())]).strip())
        return found


def _tokenize_around(loaded: LoadedModel, match: re.Match[str]) -> tuple[list[int], int]:
    """Return the tokens around a gap in its text, and the place of the gap among them."""
    tokenizer, text = loaded.tokenizer, match.string
    before, after = (
        tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"]
        for part in (
            text[max(match.start() - _NEAR, 0) : match.start()],
            GAP.sub(tokenizer.mask_token, text[match.end() : match.end() + _NEAR]),
        )
    )
    first = [tokenizer.cls_token_id] if tokenizer.cls_token_id is not None else []
    last = [tokenizer.sep_token_id] if tokenizer.sep_token_id is not None else []
    room = max(get_token_limit(loaded) - len(first) - len(last) - 1, 0)
    left = min(len(before), max(room // 2, room - len(after)))
    kept = before[len(before) - left :]
    ids = [*first, *kept, tokenizer.mask_token_id, *after[: room - left], *last]
    return ids, len(first) + left


def _fill_gap(match: re.Match[str], word: str) -> str:
    """Return the text up to a gap and the word in it, capitalized at the beginning of a sentence."""
    before = match.string[: match.start()]
    if not before.strip() or before.rstrip()[-1] in ".!?":
        word = word[:1].upper() + word[1:]
    return before + word


@dataclass(frozen=True)
class _Window:
    """A part of a document, after its question, that the model can read at once.

    It holds the place of the document among the documents, the tokens, and for each token its range of characters in
    the document, None for tokens outside the document.
    """

    pair: int
    ids: list[int]
    spans: list[tuple[int, int] | None]


class ExtractiveAnswer(Expert):
    """Answers a question by the passage of a document (any ``AutoModelForQuestionAnswering``).

    A document that is too long is read in overlapping windows; the passage with the highest score in any of them is the
    answer.

    Settings:
        overlap: the number of tokens that two windows share.
        longest_answer: the maximum number of tokens in an answer.
    """

    inputs = ("text", "text")
    auto = "AutoModelForQuestionAnswering"
    defaults = MappingProxyType({"overlap": 128, "longest_answer": 30})

    def run_batch(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[str]:
        """Answer each question; the answer is empty if there is no document.

        Document and question may be in either order: the question ends with a question mark.
        """
        pairs = [document_first(*pair) for pair in zip(*columns, strict=True)]
        windows = [
            window
            for place, (document, question) in enumerate(pairs)
            if document.strip()
            for window in self._split_windows(loaded, place, document, question)
        ]
        best: dict[int, tuple[float, int, int]] = {}
        for some in split_batches(windows, self.batch):
            found = loaded.model(**pad_rows(loaded, [window.ids for window in some]))
            for row, window in enumerate(some):
                size = len(window.ids)
                starts, ends = found.start_logits[row, :size].float(), found.end_logits[row, :size].float()
                answer = self._find_best(window, starts, ends)
                if answer is not None and (window.pair not in best or answer[0] > best[window.pair][0]):
                    best[window.pair] = answer
        found_in = [best.get(place, (0.0, 0, 0)) for place in range(len(pairs))]
        return [document[begin:end].strip() for (document, _), (_, begin, end) in zip(pairs, found_in, strict=True)]

    def _split_windows(self, loaded: LoadedModel, place: int, document: str, question: str) -> list[_Window]:
        tokenizer, most = loaded.tokenizer, get_token_limit(loaded)
        encoded = tokenizer(
            question, add_special_tokens=False, truncation=True, max_length=most // 2, return_offsets_mapping=True
        )
        question = question[: encoded["offset_mapping"][-1][1]] if encoded["offset_mapping"] else ""
        room = most - len(encoded["input_ids"]) - tokenizer.num_special_tokens_to_add(pair=True)
        found = tokenizer(
            question, document, truncation="only_second", max_length=most,
            stride=max(min(self.settings["overlap"], room // 2), 0),
            return_overflowing_tokens=True, return_offsets_mapping=True,
        )  # fmt: skip
        windows = []
        for number, ids in enumerate(found["input_ids"]):
            parts = zip(found["offset_mapping"][number], found.sequence_ids(number), strict=True)
            windows.append(_Window(place, ids, [(span[0], span[1]) if part == 1 else None for span, part in parts]))
        return windows

    def _find_best(self, window: _Window, starts: torch.Tensor, ends: torch.Tensor) -> tuple[float, int, int] | None:
        """Find the best passage in a window; return its score and its range of characters in the document."""
        import torch

        outside = torch.tensor([span is None for span in window.spans], device=starts.device)
        if bool(outside.all()):
            return None
        lowest = float("-inf")
        scores = starts.masked_fill(outside, lowest)[:, None] + ends.masked_fill(outside, lowest)[None, :]
        # An answer must not end before it starts, nor be too long.
        within = torch.ones_like(scores, dtype=torch.bool).triu().tril(self.settings["longest_answer"] - 1)
        start, end = divmod(int(scores.masked_fill(~within, lowest).argmax()), len(window.ids))
        first, last = window.spans[start], window.spans[end]
        return None if first is None or last is None else (float(scores[start, end]), first[0], last[1])


def pad_rows(loaded: LoadedModel, rows: Sequence[list[int]]) -> Tensors:
    """Pad rows of tokens to one batch on the device of the model."""
    found = loaded.tokenizer.pad({"input_ids": list(rows)}, padding_side="right", return_tensors="pt")
    return {name: found[name].to(loaded.device) for name in ("input_ids", "attention_mask")}
