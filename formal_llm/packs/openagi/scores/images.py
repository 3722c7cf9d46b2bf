"""The score of images by their pixels: SSIM. It needs no weights."""

from __future__ import annotations

import numpy as np
from PIL import Image

from formal_llm.packs.openagi.data.pixels import Floats, Pixels, resize_values
from formal_llm.packs.openagi.scores.score import Score


class SSIM(Score):
    """Structural similarity (Wang et al. 2004), the mean over colours and windows of 7 x 7 pixels.

    1 for equal images, about 0 for unrelated ones, below 0 for opposite ones. The output is resized to the size of the
    expected image; transparent pixels are composited on white.
    """

    name = "ssim"
    kind = "image"
    least = -1.0

    def _compare_pair(self, output: Image.Image, expected: Image.Image) -> float:
        from skimage.metrics import structural_similarity

        one, other = _align_pictures(output, expected)
        missing = [(0, max(7 - length, 0)) for length in other.shape[:2]]
        one, other = (np.pad(values, [*missing, (0, 0)], mode="symmetric") for values in (one, other))
        return float(structural_similarity(one, other, data_range=1.0, channel_axis=-1))


def _align_pictures(output: Image.Image, expected: Image.Image) -> tuple[Floats, Floats]:
    """Convert both images to arrays of the size of the expected one; in colour if either has colours."""
    one, other = _on_white(output), _on_white(expected)
    height, width = other.shape[:2]
    if one.shape[:2] != (height, width):
        one = np.clip(resize_values(one, width, height, Image.Resampling.BICUBIC), 0, 1)
    channels = max(one.shape[2], other.shape[2])
    return np.broadcast_to(one, (height, width, channels)), np.broadcast_to(other, (height, width, channels))


def _on_white(image: Image.Image) -> Floats:
    pixels = Pixels.from_image(image)
    if pixels.alpha is None:
        return pixels.values
    opaque = np.asarray(pixels.alpha, dtype=np.float32)[..., None] / 255
    return (pixels.values * opaque + (1 - opaque)).astype(np.float32)
