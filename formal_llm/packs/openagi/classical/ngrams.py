"""A language model by counts of one, two and three words: it fills gaps and continues texts.

It is trained on six chapters of a book and knows which words follow which, not what they mean.
"""

from __future__ import annotations

import random
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from formal_llm.packs.openagi.data.sources import load_prose

#: A gap: the masks of common models, or three or more underscores.
GAP = re.compile(r"\[MASK\]|<mask>|_{3,}", re.IGNORECASE)
_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[.!?,;:]")
#: A number of characters around a gap that always contains the words that count.
_NEAR = 400
_MARKS = frozenset(".!?,;:")
_ENDS = frozenset(".!?")
#: The weights of trigrams, bigrams and unigrams in the interpolation.
_WEIGHTS = (0.6, 0.3, 0.1)


class NGrams:
    """Counts of one, two and three successive tokens in texts: words in lower case, and punctuation marks."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.counts: tuple[Counter[tuple[str, ...]], ...] = (Counter(), Counter(), Counter())
        self.following: dict[tuple[str, ...], Counter[str]] = {}
        self.preceding: dict[str, Counter[str]] = {}
        for text in texts:
            self._count_run(split_tokens(text))

    def _count_run(self, run: Sequence[str]) -> None:
        for size, counter in enumerate(self.counts, start=1):
            counter.update(zip(*(run[start:] for start in range(size)), strict=False))
        for place, token in enumerate(run):
            for size in (1, 2):
                if place >= size:
                    self.following.setdefault(tuple(run[place - size : place]), Counter())[token] += 1
            if place:
                self.preceding.setdefault(token, Counter())[run[place - 1]] += 1

    def compute_probability(self, token: str, before: Sequence[str]) -> float:
        """Compute the probability of a token after others (the last two count), interpolated (Jelinek, Mercer 1980)."""
        one, two, three = self.counts
        pair, context = tuple(before[-1:]), tuple(before[-2:])
        result = _WEIGHTS[2] * (one[(token,)] + 0.1) / (one.total() + 0.1 * len(one) + 1)
        if pair and one[pair]:
            result += _WEIGHTS[1] * two[(*pair, token)] / one[pair]
        if len(context) == 2 and two[context]:
            result += _WEIGHTS[0] * three[(*context, token)] / two[context]
        return result

    def fill_gap(self, before: Sequence[str], after: Sequence[str]) -> str:
        """Find the word that fits best between two sequences of tokens."""
        fits = set(self.following.get(tuple(before[-2:]), ())) | set(self.following.get(tuple(before[-1:]), ()))
        fits |= set(self.preceding.get(after[0], ())) if after else set()
        if not any(token not in _MARKS for token in fits):
            fits = {token for (token,) in self.counts[0]}

        def compute_fitness(token: str) -> tuple[float, str]:
            result = self.compute_probability(token, before)
            context = [*before[-1:], token]
            for following in after[:2]:
                result *= self.compute_probability(following, context)
                context.append(following)
            return result, token

        return max((compute_fitness(token) for token in fits if token not in _MARKS), default=(0.0, ""))[1]

    def draw_next(self, before: Sequence[str], rng: random.Random) -> str:
        """Draw a token to follow others by its frequency there; the longest known context decides."""
        contexts = (tuple(before[-2:]), tuple(before[-1:]), (".",))
        known = next(self.following[context] for context in contexts if self.following.get(context))
        # Sorted, so that the result does not depend on the order in which the texts were read.
        choices = sorted(known.items())
        return rng.choices([token for token, _ in choices], [count for _, count in choices])[0]


def fill_mask(text: str) -> str:
    """Fill the gaps of a clozed text, written ``[MASK]``, ``<mask>`` or ``___``.

    Each gap, from the left, gets the most probable word between its neighbours, by counts of three successive words in
    prose of the public domain and in the text itself. A text without a gap is returned unchanged.
    """
    if GAP.search(text) is None:
        return text
    # A gap is often filled by a word of the same text.
    model = NGrams([*load_prose().split("\n\n"), *GAP.split(text)])
    start = 0
    while (gap := GAP.search(text, start)) is not None:
        before, after = text[: gap.start()], text[gap.end() :]
        # Only a few words around the gap count, and a long text may have many gaps.
        left, right = split_tokens(before[-_NEAR:]), split_tokens(GAP.split(after[:_NEAR])[0])
        word = model.fill_gap(left, right)
        begins = not left or left[-1] in _ENDS
        filled = before + (word.capitalize() if begins else word)
        # Inserted text is not searched for gaps, even if it resembles one together with its surroundings.
        text, start = filled + after, len(filled)
    return text


def text_generation(text: str) -> str:
    """Continue a text by one or two sentences.

    The words are drawn one by one, as they follow one another in the same prose as for ``fill_mask``. The result
    resembles the prose and has no meaning. The same text is always continued in the same way.
    """
    rng = random.Random(zlib.crc32(text.encode()))
    model = _load_model()
    start = split_tokens(text)
    continuation: list[str] = []
    while len(continuation) < 60:
        token = model.draw_next([*start, *continuation], rng)
        if token in _MARKS and (not continuation or continuation[-1] in _MARKS):
            continue
        continuation.append(token)
        if token in _ENDS and len(continuation) >= 12:
            break
    if continuation[-1] not in _ENDS:
        continuation.append(".")
    begins = not start or start[-1] in _ENDS
    return (text.rstrip() + " " + _join_tokens(continuation, begins)).strip()


def split_tokens(text: str) -> list[str]:
    """Split a text into words in lower case and punctuation marks."""
    return [token.casefold() for token in _TOKEN.findall(text)]


def _join_tokens(run: Sequence[str], begins: bool) -> str:
    """Join tokens with the usual spacing and capitalization."""
    text = ""
    for token in run:
        if token in _MARKS:
            text += token
        else:
            capitalize = begins or token.split("'")[0] == "i" or token in _find_names()
            text += " " + (token.capitalize() if capitalize else token)
        begins = token in _ENDS
    return text.strip()


@cache
def _find_names() -> frozenset[str]:
    """Return the words that the prose always capitalizes, even within a sentence."""
    inside = re.findall(r"(?<=[a-z,] )[A-Z][a-z]+\b", load_prose())
    small = set(re.findall(r"\b[a-z]+\b", load_prose()))
    return frozenset(word.casefold() for word in inside if word.casefold() not in small)


@cache
def _load_model() -> NGrams:
    """Return the model of the prose. It is not trained on the task data, or it would know the masked words."""
    return NGrams(load_prose().split("\n\n"))
