"""Colours by example."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from PIL import Image

from formal_llm.packs.openagi.classical import colouring
from formal_llm.packs.openagi.classical.colouring import colorization, same_picture
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


def test_the_brightness_stays() -> None:
    gray = photograph("camera")
    coloured = colorization(gray)
    assert coloured.mode == "RGB"
    # Lightness is kept; luma, which weighs the colours otherwise, nearly.
    assert abs(np.asarray(coloured.convert("L")).astype(int) - np.asarray(gray)).mean() < 6


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


def test_different_pictures_are_told_apart() -> None:
    gray = [photograph(picture.name).convert("L") for picture in load_pictures()]
    for number, image in enumerate(gray):
        small = Pixels.from_image(image).luminance
        for place, reference in enumerate(colouring._load_references()):
            assert same_picture(small, reference.luminance) == (number == place)


def test_a_picture_with_colours_keeps_them() -> None:
    for name in COLOURED:
        if name == "hubble":  # a black sky with small dots is nearly gray
            continue
        image = photograph(name)
        assert colorization(image).tobytes() == image.tobytes()
    # Noise that differs from channel to channel is no colour.
    gray = photograph("coffee").convert("L").convert("RGB")
    noisy = Degradation(noise=0.08).apply(gray, np.random.default_rng(0))
    assert colorization(noisy).tobytes() != noisy.tobytes()


def test_without_a_reference_nothing_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(colouring, "_load_references", lambda: ())
    gray = photograph("camera")
    assert colorization(gray).tobytes() == gray.tobytes()


@given(images())
@examples(30)
def test_any_picture(image: Image.Image) -> None:
    result = colorization(image)
    assert result.size == image.size
    assert result.mode in ("L", "LA", "RGB", "RGBA")
    assert colorization(image).tobytes() == result.tobytes()
