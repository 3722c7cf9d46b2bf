"""Experts that look for words: the one that belongs in a gap, the ones that answer a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from formal_llm.packs.openagi.classical.language import document_first
from formal_llm.packs.openagi.classical.ngrams import GAP
from formal_llm.packs.openagi.experts.expert import Expert, Tensors, batches
from formal_llm.packs.openagi.experts.loaded import LoadedModel
from formal_llm.packs.openagi.experts.text import longest

if TYPE_CHECKING:
    import torch

#: So many characters around a gap are sure to be more than a model reads.
_NEAR = 8_000


class FillMask(Expert):
    """Fills the gaps of a text, written ``[MASK]``, ``<mask>`` or ``___`` (any ``AutoModelForMaskedLM``).

    The gaps of a text are filled from the left, each with the most probable whole word between what stands around it;
    of a long text only so much counts as the model reads.
    """

    auto = "AutoModelForMaskedLM"

    def load(self) -> LoadedModel:
        """The model, its tokenizer, and which of its tokens are words."""
        import torch

        loaded = super().load()
        tokens = loaded.tokenizer.convert_ids_to_tokens(list(range(len(loaded.tokenizer))))
        special = set(loaded.tokenizer.all_special_tokens)
        # A continuation of a word (## of WordPiece) or a mark is no word.
        loaded.more["words"] = torch.tensor(
            [token not in special and not token.startswith("##") and any(map(str.isalnum, token)) for token in tokens]
        )
        return loaded

    def run(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[str]:
        """Each text without gaps."""
        texts = list(columns[0])
        starts = [0] * len(texts)  # what was filled in is no gap, even if it reads like one
        while gaps := {place: gap for place, text in enumerate(texts) if (gap := GAP.search(text, starts[place]))}:
            words = self._words(loaded, list(gaps.values()))
            for (place, gap), word in zip(gaps.items(), words, strict=True):
                filled = _filled(gap, word)
                texts[place], starts[place] = filled + texts[place][gap.end() :], len(filled)
        return texts

    def _words(self, loaded: LoadedModel, open_: Sequence[re.Match[str]]) -> list[str]:
        """The word for each gap."""
        rows, gaps = zip(*(_around(loaded, gap) for gap in open_), strict=True)
        given = padded(loaded, rows)
        logits = loaded.model(**given).logits.float()
        words = loaded.more["words"].to(logits.device)
        found = []
        for row, gap in enumerate(gaps):
            scores = logits[row, gap, : len(words)].masked_fill(~words[: logits.shape[-1]], float("-inf"))
            found.append(loaded.tokenizer.decode([int(scores.argmax())]).strip())
        return found


def _around(loaded: LoadedModel, match: re.Match[str]) -> tuple[list[int], int]:
    """The tokens around a gap in its text, and the place of the gap among them."""
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
    room = max(longest(loaded) - len(first) - len(last) - 1, 0)
    left = min(len(before), max(room // 2, room - len(after)))
    kept = before[len(before) - left :]
    ids = [*first, *kept, tokenizer.mask_token_id, *after[: room - left], *last]
    return ids, len(first) + left


def _filled(match: re.Match[str], word: str) -> str:
    """The text up to a gap, and the word in it, with a capital letter where a sentence begins."""
    before = match.string[: match.start()]
    if not before.strip() or before.rstrip()[-1] in ".!?":
        word = word[:1].upper() + word[1:]
    return before + word


@dataclass(frozen=True)
class _Window:
    """A part of a document that the model can read at once, behind its question.

    It has the place of the document among the documents, the tokens, and for each token the characters of the document
    that it stands for, None for what is not of the document.
    """

    pair: int
    ids: list[int]
    spans: list[tuple[int, int] | None]


class ExtractiveAnswer(Expert):
    """Answers a question by the passage of a document (any ``AutoModelForQuestionAnswering``).

    A document that is too long to be read at once is read in windows that overlap; the passage with the highest score
    in any of them is the answer.

    Settings:
        overlap: how many tokens two windows share.
        longest_answer: how many tokens an answer may have.
    """

    inputs = ("text", "text")
    auto = "AutoModelForQuestionAnswering"
    defaults = MappingProxyType({"overlap": 128, "longest_answer": 30})

    def run(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[str]:
        """The answer to each question; nothing where there is no document.

        The two may stand in either order: what ends with a question mark is the question.
        """
        pairs = [document_first(*pair) for pair in zip(*columns, strict=True)]
        windows = [
            window
            for place, (document, question) in enumerate(pairs)
            if document.strip()
            for window in self._windows(loaded, place, document, question)
        ]
        best: dict[int, tuple[float, int, int]] = {}
        for some in batches(windows, self.batch):
            found = loaded.model(**padded(loaded, [window.ids for window in some]))
            for row, window in enumerate(some):
                size = len(window.ids)
                starts, ends = found.start_logits[row, :size].float(), found.end_logits[row, :size].float()
                answer = self._best(window, starts, ends)
                if answer is not None and (window.pair not in best or answer[0] > best[window.pair][0]):
                    best[window.pair] = answer
        found_in = [best.get(place, (0.0, 0, 0)) for place in range(len(pairs))]
        return [document[begin:end].strip() for (document, _), (_, begin, end) in zip(pairs, found_in, strict=True)]

    def _windows(self, loaded: LoadedModel, place: int, document: str, question: str) -> list[_Window]:
        tokenizer, most = loaded.tokenizer, longest(loaded)
        asked = tokenizer(
            question, add_special_tokens=False, truncation=True, max_length=most // 2, return_offsets_mapping=True
        )
        question = question[: asked["offset_mapping"][-1][1]] if asked["offset_mapping"] else ""
        room = most - len(asked["input_ids"]) - tokenizer.num_special_tokens_to_add(pair=True)
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

    def _best(self, window: _Window, starts: torch.Tensor, ends: torch.Tensor) -> tuple[float, int, int] | None:
        """The score of the best passage in a window, and its characters in the document."""
        import torch

        outside = torch.tensor([span is None for span in window.spans], device=starts.device)
        if bool(outside.all()):
            return None
        lowest = float("-inf")
        scores = starts.masked_fill(outside, lowest)[:, None] + ends.masked_fill(outside, lowest)[None, :]
        # An answer does not end before it starts, and is not too long.
        within = torch.ones_like(scores, dtype=torch.bool).triu().tril(self.settings["longest_answer"] - 1)
        start, end = divmod(int(scores.masked_fill(~within, lowest).argmax()), len(window.ids))
        first, last = window.spans[start], window.spans[end]
        return None if first is None or last is None else (float(scores[start, end]), first[0], last[1])


def padded(loaded: LoadedModel, rows: Sequence[list[int]]) -> Tensors:
    """Rows of tokens as one batch where the model is."""
    found = loaded.tokenizer.pad({"input_ids": list(rows)}, padding_side="right", return_tensors="pt")
    return {name: found[name].to(loaded.device) for name in ("input_ids", "attention_mask")}
