"""Scores of pictures by their pixels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from PIL import Image

from formal_llm.packs.openagi.data.making import Degradation
from formal_llm.packs.openagi.scores.images import SSIM
from tests.packs.openagi.any_images import images, photograph
from tests.strategies import examples


@given(images(), images())
@examples(30)
def test_scores_of_pictures_keep_their_range(one: Image.Image, other: Image.Image) -> None:
    score = SSIM()
    assert score.least <= score(one, other) <= score.most
    assert score(one, one) == pytest.approx(score.most)


def test_worse_pictures_score_lower() -> None:
    score = SSIM()
    good = photograph("coffee")
    strengths = [0.0, 0.02, 0.05, 0.1, 0.3]
    scores = [score(Degradation(noise=s).apply(good, np.random.default_rng(0)), good) for s in strengths]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def test_opposite_pictures_are_below_zero() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)
    assert SSIM()(Image.fromarray(noise), Image.fromarray(255 - noise)) < -0.5


def test_sizes_modes_and_transparency_are_brought_together() -> None:
    good = photograph("astronaut")
    assert SSIM()(good.resize((64, 64)), good) > 0.8
    gray = good.convert("L")
    assert SSIM()(gray, good) == pytest.approx(SSIM()(gray.convert("RGB"), good))
    clear, white = Image.new("RGBA", (8, 8), (0, 0, 0, 0)), Image.new("RGB", (8, 8), "white")
    assert SSIM()(clear, white) == pytest.approx(1)
