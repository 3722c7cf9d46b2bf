"""Pictures of any kind as numbers, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from PIL import Image

from formal_llm.packs.openagi.data import pixels
from formal_llm.packs.openagi.data.pixels import Pixels, noise_level, resize_values
from tests.packs.openagi.any_images import images


@given(images())
def test_every_picture_becomes_numbers_from_0_to_1(image: Image.Image) -> None:
    found = Pixels.from_image(image)
    assert found.values.dtype == np.float32
    assert found.values.shape[:2] == (image.height, image.width)
    assert found.values.shape[2] in (1, 3)
    assert 0 <= found.values.min() <= found.values.max() <= 1
    assert found.luminance.shape == (image.height, image.width)
    assert (found.alpha is not None) == (image.mode in ("LA", "PA", "RGBA"))


@given(images(modes=("L", "LA", "RGB", "RGBA")))
def test_eight_bits_come_back_as_they_were(image: Image.Image) -> None:
    found = Pixels.from_image(image)
    back = found.make_image(found.values)
    assert back.mode == image.mode
    assert back.tobytes() == image.tobytes()


@pytest.mark.parametrize(
    ("values", "dtype", "white"),
    [
        ([0, 65535], np.uint16, 1.0),
        ([0, 100], np.uint16, 100 / 65535),
        ([0, 100], np.int32, 100 / 255),
        ([-5, 1000], np.int32, 1000 / 65535),
        ([0, 0.5], np.float32, 0.5),
        ([0, 51], np.float32, 0.2),
        ([0, 1e6], np.float32, 1.0),
        ([np.nan, 0.5], np.float32, 0.5),
    ],
)
def test_what_is_white_in_wide_modes(values: list[float], dtype: type, white: float) -> None:
    found = Pixels.from_image(Image.fromarray(np.array([values], dtype=dtype))).values
    assert found[0, :, 0].tolist() == pytest.approx([0, white])


def test_a_camera_held_upright() -> None:
    image = Image.new("L", (4, 2))
    exif = image.getexif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    image.info["exif"] = exif.tobytes()
    assert Pixels.from_image(image).values.shape == (4, 2, 1)


def test_a_transparent_colour_of_a_palette() -> None:
    image = Image.new("P", (2, 1))
    image.info["transparency"] = 0
    assert Pixels.from_image(image).alpha is not None


def test_empty_and_enormous_pictures_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no pixels: 0 x 3"):
        Pixels.from_image(Image.new("L", (0, 3)))
    monkeypatch.setattr(pixels, "MOST_PIXELS", 100)
    assert Pixels.from_image(Image.new("L", (10, 10))).values.size == 100
    with pytest.raises(ValueError, match="10 x 11 pixels is too large"):
        Pixels.from_image(Image.new("L", (10, 11)))


def test_the_noise_is_measured() -> None:
    smooth = np.linspace(0.3, 0.7, 128, dtype=np.float32)[None, :, None].repeat(128, axis=0)
    assert noise_level(smooth) < 0.001
    for sigma in (0.01, 0.05, 0.1):
        noisy = smooth + np.random.default_rng(0).normal(0, sigma, smooth.shape).astype(np.float32)
        assert noise_level(noisy) == pytest.approx(sigma, rel=0.1)
    assert noise_level(smooth[:1]) == 0


def test_resizing_does_not_round() -> None:
    values = np.full((4, 4, 3), 0.123456, dtype=np.float32)
    assert resize_values(values, 2, 6, Image.Resampling.BICUBIC).shape == (6, 2, 3)
    assert resize_values(values, 2, 6, Image.Resampling.BICUBIC)[0, 0, 0] == pytest.approx(0.123456, abs=1e-6)
