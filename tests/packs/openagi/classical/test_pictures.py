"""The classical tools for pictures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from PIL import Image

from formal_llm.packs.openagi.classical import colouring, restoration
from formal_llm.packs.openagi.classical.colouring import colorization, same_picture
from formal_llm.packs.openagi.classical.faces import detection, find_faces
from formal_llm.packs.openagi.classical.restoration import blur_width, deblurring, denoising, super_resolution
from formal_llm.packs.openagi.data import pixels
from formal_llm.packs.openagi.data.making import Degradation, _make_view
from formal_llm.packs.openagi.data.pixels import Pixels
from formal_llm.packs.openagi.data.sources import load_pictures
from formal_llm.packs.openagi.scores.images import SSIM
from tests.packs.openagi.any_images import images, photograph
from tests.strategies import examples

COLOURED = [picture.name for picture in load_pictures() if picture.colours]


def test_colours_are_nearer_to_the_truth_than_gray_in_the_mean() -> None:
    pairs = [(photograph(name), photograph(name).convert("L")) for name in COLOURED]
    for score in (SSIM(),):
        before = score.compute_mean((gray, good) for good, gray in pairs)
        assert score.compute_mean((colorization(gray), good) for good, gray in pairs) > before


@pytest.mark.parametrize("name", COLOURED)
def test_no_picture_of_the_task_data_gets_its_own_colours(name: str) -> None:
    place = COLOURED.index(name)
    worst = Degradation(grayscale=True, blur=2.0, low_resolution=True, noise=0.1)
    for sample in (place, place + len(COLOURED), place + 2 * len(COLOURED), place + 3 * len(COLOURED)):
        picture, image, _ = _make_view(sample, 0, 192, colours=True)
        assert picture.name == name
        for degradation in (Degradation(grayscale=True), worst):
            gray = degradation.apply(image, np.random.default_rng(0))
            small = colouring._fit_within(Pixels.from_image(gray).luminance, 128)
            same = [same_picture(small, reference.luminance) for reference in colouring._load_references()]
            assert same[place]


@given(images())
@examples(30)
def test_any_picture(image: Image.Image) -> None:
    result = colorization(image)
    assert result.size == image.size
    assert result.mode in ("L", "LA", "RGB", "RGBA")
    assert colorization(image).tobytes() == result.tobytes()


@pytest.mark.parametrize(
    ("name", "found"),
    [("astronaut", "1 face"), ("chelsea", "no faces"), ("coffee", "no faces"), ("rocket", "no faces")],
)
def test_faces_of_people(name: str, found: str) -> None:
    assert detection(photograph(name, 400)) == found


def test_several_faces_are_counted_and_ordered() -> None:
    face = photograph("astronaut", 256).crop((60, 0, 170, 110))
    both = Image.new("RGB", (300, 200))
    both.paste(face, (180, 60))
    both.paste(face, (0, 20))
    assert detection(both) == "2 faces"
    first, second = find_faces(both)
    assert first.left < 0.3 < 0.6 < second.left
    assert second.left + second.width <= 1


@given(images())
@examples(30)
def test_any_picture_has_a_number_of_faces(image: Image.Image) -> None:
    assert detection(image) == detection(image)
    assert detection(Image.new(image.mode, image.size)) == "no faces"


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
