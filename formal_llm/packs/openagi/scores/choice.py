"""Which score judges what: by name, and by the kinds of what comes out and of what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from formal_llm.llms.local.minilm import find_minilm
from formal_llm.packs.openagi.scores.images import PSNR, SSIM
from formal_llm.packs.openagi.scores.score import Score
from formal_llm.packs.openagi.scores.text import BERTScore, ChrF, TokenF1

#: The scores that need no weights, by their names.
SCORES: Mapping[str, Score] = MappingProxyType({score.name: score for score in (SSIM(), PSNR(), ChrF(), TokenF1())})


@dataclass(frozen=True, slots=True)
class Scores:
    """The score for each kind of output and expected value.

    Attributes:
        texts: for text against text.
        images: for picture against picture.
        image_text: for a picture against a text; None where there is none, then such tasks cannot be judged.
    """

    texts: Score
    images: Score
    image_text: Score | None = None

    @classmethod
    def offline(cls) -> Scores:
        """Scores that need no download: BERTScore with MiniLM, SSIM, and none for a picture against a text.

        Raises:
            MissingDependency: MiniLM is not installed.
        """
        find_minilm()
        return cls(BERTScore(), SSIM())

    def of(self, output: str, expected: str) -> Score | None:
        """The score for an output and an expected value of these kinds; None where there is none."""
        pairs = {("text", "text"): self.texts, ("image", "image"): self.images, ("image", "text"): self.image_text}
        return pairs.get((output, expected))

    @property
    def identity(self) -> dict[str, object]:
        """What the values depend on, as JSON data."""
        scores = {"texts": self.texts, "images": self.images, "image_text": self.image_text}
        return {kinds: None if score is None else score.identity for kinds, score in scores.items()}
