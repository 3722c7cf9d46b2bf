"""The degradation of pictures and texts, as in the benchmark, so that tools can restore them.

The benchmark (Ge et al. 2023) makes a picture gray, blurs it, adds noise, and lowers its resolution; in a text it
masks a word. The differences here: a low resolution is half the width and height, not a strongly compressed JPEG; the
noise is added last, as in a camera; blur and noise are stronger and vary.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFilter

from formal_llm.packs.openagi.data.pixels import Pixels, picture_of

#: The words of the tasks' sentences for the degradations of a picture, in the order in which they are applied.
DEGRADATIONS = ("grayscale", "blurry", "low-resolutioned", "noisy")
MASK = "[MASK]"


@dataclass(frozen=True)
class Degradation:
    """The degradation of a picture.

    Attributes:
        grayscale: whether its colours are removed.
        blur: the standard deviation of the Gaussian blur in pixels; 0 for none.
        low_resolution: whether its width and height are halved.
        noise: the standard deviation of the Gaussian noise, where white is 1; 0 for none.
    """

    grayscale: bool = False
    blur: float = 0.0
    low_resolution: bool = False
    noise: float = 0.0

    @classmethod
    def from_names(cls, names: Iterable[str], rng: random.Random) -> Degradation:
        """Create a degradation of some kinds, named as in ``DEGRADATIONS``, with random strengths."""
        named = frozenset(names)
        # Both are always drawn, so that a picture is equally blurry in all tasks.
        blur, noise = round(rng.uniform(1.0, 2.0), 2), round(rng.uniform(0.05, 0.1), 3)
        return cls(
            grayscale="grayscale" in named,
            blur=blur if "blurry" in named else 0.0,
            low_resolution="low-resolutioned" in named,
            noise=noise if "noisy" in named else 0.0,
        )

    def apply(self, image: Image.Image, rng: np.random.Generator) -> Image.Image:
        """Degrade a gray or coloured picture; the noise comes from ``rng``."""
        if self.grayscale:
            image = image.convert("L")
        if self.blur:
            image = image.filter(ImageFilter.GaussianBlur(self.blur))
        if self.low_resolution:
            half = max(image.width // 2, 1), max(image.height // 2, 1)
            image = image.resize(half, Image.Resampling.BICUBIC)
        if self.noise:
            values = Pixels.from_image(image).values
            image = picture_of(values + rng.normal(0, self.noise, values.shape))
        return image


def mask_word(text: str, rng: random.Random) -> str:
    """Replace one word of a text by ``[MASK]``, as in the benchmark; a text without words is unchanged."""
    found = list(re.finditer(r"[^\W_]+(?:['’-][^\W_]+)*", text))
    if not found:
        return text
    word = rng.choice(found)
    return text[: word.start()] + MASK + text[word.end() :]
