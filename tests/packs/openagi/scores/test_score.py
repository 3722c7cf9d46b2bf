"""What all scores have in common: the check of kinds, the scale, the mean."""

from __future__ import annotations

import pytest
from PIL import Image

from formal_llm.packs.openagi.scores.images import SSIM
from formal_llm.packs.openagi.scores.text import ChrF


def test_the_wrong_kind_is_told() -> None:
    with pytest.raises(TypeError, match="ssim compares values of kind image, not str"):
        SSIM()("text", Image.new("L", (1, 1)))
    with pytest.raises(TypeError, match="chrf compares values of kind text, not Image"):
        ChrF()("text", Image.new("L", (1, 1)))


def test_the_mean() -> None:
    assert ChrF().compute_mean([("cat", "cat"), ("dog", "cat")]) == 0.5
    with pytest.raises(ValueError, match="nothing to score"):
        ChrF().compute_mean([])
