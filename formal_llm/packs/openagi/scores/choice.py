"""The choice of scores, by the kinds of the output and of the expected value."""

from __future__ import annotations

from dataclasses import dataclass

from formal_llm.llms.packaged import find_minilm
from formal_llm.packs.openagi.scores.images import SSIM
from formal_llm.packs.openagi.scores.score import Score
from formal_llm.packs.openagi.scores.text import BERTScore


@dataclass(frozen=True, slots=True)
class Scores:
    """The score for each kind of output and expected value.

    Attributes:
        texts: the score of a text against a text.
        images: the score of an image against an image.
        image_text: the score of an image against a text; None if there is none, so that such tasks cannot be judged.
    """

    texts: Score
    images: Score
    image_text: Score | None = None

    @classmethod
    def make_offline(cls) -> Scores:
        """Create scores that need no download: BERTScore with MiniLM, SSIM, and none for an image against a text.

        Raises:
            MissingDependency: MiniLM is not installed.
        """
        find_minilm()
        return cls(BERTScore(), SSIM())

    def get_score(self, output: str, expected: str) -> Score | None:
        """Return the score for an output and an expected value of these kinds; None if there is none."""
        pairs = {("text", "text"): self.texts, ("image", "image"): self.images, ("image", "text"): self.image_text}
        return pairs.get((output, expected))

    @property
    def identity(self) -> dict[str, object]:
        """The factors that determine the values, as JSON data."""
        scores = {"texts": self.texts, "images": self.images, "image_text": self.image_text}
        return {kinds: None if score is None else score.identity for kinds, score in scores.items()}
