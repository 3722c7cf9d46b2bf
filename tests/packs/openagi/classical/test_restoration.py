"""Restoring pictures: better than nothing on photographs, harmless on everything else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from PIL import Image
from scipy.ndimage import gaussian_filter

from formal_llm.packs.openagi.classical import restoration
from formal_llm.packs.openagi.classical.restoration import blur_width, deblurring, denoising, super_resolution
from formal_llm.packs.openagi.data import pixels
from formal_llm.packs.openagi.data.making import Degradation
from formal_llm.packs.openagi.scores.images import SSIM
from tests.packs.openagi.any_images import images, photograph
from tests.strategies import examples

SHARP = ["astronaut", "coffee", "camera"]
TRIALS = [
    (denoising, Degradation(noise=0.08)),
    (deblurring, Degradation(blur=1.5)),
    (super_resolution, Degradation(low_resolution=True)),
]
TOOLS = [tool for tool, _ in TRIALS]


@pytest.mark.parametrize("name", SHARP)
@pytest.mark.parametrize(("tool", "degradation"), TRIALS, ids=lambda value: getattr(value, "__name__", ""))
def test_it_restores(tool: Callable[[Image.Image], Image.Image], degradation: Degradation, name: str) -> None:
    good = photograph(name)
    bad = degradation.apply(good, np.random.default_rng(0))
    restored = tool(bad)
    assert restored.size == good.size
    assert restored.mode == good.mode
    # The score brings a small picture to its size by bicubic interpolation: that is what has to be beaten.
    for score in (SSIM(),):
        assert score(restored, good) > score(bad, good)


@pytest.mark.parametrize("tool", TOOLS)
@given(images())
@examples(40)
def test_any_picture_gives_one_of_eight_bits(tool: Callable[[Image.Image], Image.Image], image: Image.Image) -> None:
    before = image.tobytes()
    result = tool(image)
    times = 2 if tool is super_resolution else 1
    assert result.size == (times * image.width, times * image.height)
    transparent = image.mode in ("LA", "PA", "RGBA")
    gray = image.mode in ("1", "L", "LA", "I", "I;16", "F")
    assert (
        result.mode
        == {(True, True): "LA", (True, False): "L", (False, True): "RGBA", (False, False): "RGB"}[gray, transparent]
    )
    assert image.tobytes() == before, "the given picture is not changed"
    assert tool(image).tobytes() == result.tobytes(), "the same picture gives the same result"


@pytest.mark.parametrize("tool", [denoising, deblurring])
def test_what_lacks_the_defect_stays(tool: Callable[[Image.Image], Image.Image]) -> None:
    flat = Image.new("RGB", (64, 64), (10, 200, 30))
    assert tool(flat).tobytes() == flat.tobytes()
    sharp = photograph("chelsea")
    assert deblurring(sharp).tobytes() == sharp.tobytes()


@pytest.mark.parametrize("width", [1.0, 1.5, 2.0, 3.0])
def test_the_width_of_a_blur_is_measured_and_rarely_overrated(width: float) -> None:
    for name in SHARP:
        blurred = Degradation(blur=width).apply(photograph(name, 256), np.random.default_rng(0))
        found = blur_width(pixels.Pixels.from_image(blurred).luminance)
        assert 0.6 * width < found < 1.15 * width


@pytest.mark.parametrize("width", [1.5, 3.0])
def test_the_filter_of_a_blur_of_the_same_width_restores_best(width: float) -> None:
    sharp = np.random.default_rng(0).random((96, 96, 3), dtype=np.float32)
    sharp = gaussian_filter(sharp, (1, 1, 0))
    blurred = gaussian_filter(sharp, (width, width, 0))
    errors = {
        factor: float(np.square(restoration._apply_wiener(blurred, width * factor, 0.0) - sharp).mean())
        for factor in (0.7, 0.9, 1.0, 1.1, 1.4)
    }
    assert min(errors, key=errors.__getitem__) == 1.0
    assert errors[1.0] < 0.7 * float(np.square(blurred - sharp).mean())


def test_a_large_picture_is_denoised_in_squares_without_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = Degradation(noise=0.08).apply(photograph("coffee"), np.random.default_rng(0))
    whole = denoising(noisy)
    monkeypatch.setattr(restoration, "_TILE", 50)
    difference = np.asarray(denoising(noisy)).astype(int) - np.asarray(whole)
    assert abs(difference).max() <= 1


@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_too_large_is_refused_before_any_work(
    tool: Callable[[Image.Image], Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pixels, "MOST_PIXELS", 300)
    with pytest.raises(ValueError, match="too large"):
        tool(Image.new("L", (20, 20)))
    if tool is super_resolution:
        with pytest.raises(ValueError, match="20 x 20 pixels is too large"):
            tool(Image.new("L", (10, 10)))
