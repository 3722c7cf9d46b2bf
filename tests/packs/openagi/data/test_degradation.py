"""Making pictures and texts worse."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from formal_llm.packs.openagi.classical.restoration import blur_width
from formal_llm.packs.openagi.data.degradation import DEGRADATIONS, MASK, Degradation, mask_word
from formal_llm.packs.openagi.data.pixels import Pixels, noise_level
from formal_llm.packs.openagi.scores.images import PSNR
from tests.packs.openagi.any_images import photograph


def apply(degradation: Degradation, image: Image.Image) -> Image.Image:
    return degradation.apply(image, np.random.default_rng(0))


@given(st.sets(st.sampled_from(DEGRADATIONS)), st.integers(0, 100))
def test_what_is_drawn_is_what_is_named(names: set[str], seed: int) -> None:
    drawn = Degradation.from_names(names, random.Random(seed))
    assert drawn.grayscale == ("grayscale" in names)
    assert drawn.low_resolution == ("low-resolutioned" in names)
    assert drawn.blur == 0 if "blurry" not in names else 1 <= drawn.blur <= 2
    assert drawn.noise == 0 if "noisy" not in names else 0.05 <= drawn.noise <= 0.1
    alone = Degradation.from_names(names & {"noisy"}, random.Random(seed))
    assert alone.noise == drawn.noise, "the strength does not depend on the other kinds"


def test_each_kind_does_what_it_says() -> None:
    good = photograph("coffee")
    assert apply(Degradation(), good).tobytes() == good.tobytes()
    assert apply(Degradation(grayscale=True), good).mode == "L"
    assert apply(Degradation(low_resolution=True), good).size == (good.width // 2, good.height // 2)
    noisy = Pixels.from_image(apply(Degradation(noise=0.1), good)).values
    assert noise_level(noisy) == pytest.approx(0.1, rel=0.2)
    assert blur_width(Pixels.from_image(apply(Degradation(blur=2), good)).luminance) > 1.2
    everything = apply(Degradation(True, 2.0, True, 0.1), good)
    assert PSNR()(everything, good) < PSNR()(apply(Degradation(blur=2.0), good), good)


def test_a_single_pixel_has_no_half() -> None:
    assert apply(Degradation(True, 2.0, True, 0.1), Image.new("RGB", (1, 1))).size == (1, 1)


def test_the_same_chance_does_the_same() -> None:
    good, degradation = photograph("coffee"), Degradation(noise=0.1)
    assert apply(degradation, good).tobytes() == apply(degradation, good).tobytes()


@given(st.text(alphabet="ab' .,é\n", max_size=30), st.integers(0, 9))
def test_a_cloze_takes_one_word_and_leaves_its_marks(text: str, seed: int) -> None:
    clozed = mask_word(text, random.Random(seed))
    if not any(character.isalpha() for character in text):
        assert clozed == text
        return
    before, _, after = clozed.partition(MASK)
    assert clozed.count(MASK) == 1
    assert text.startswith(before)
    assert text.endswith(after)
    taken = text[len(before) : len(text) - len(after)]
    assert taken
    assert not any(mark in taken for mark in " .,\n")
