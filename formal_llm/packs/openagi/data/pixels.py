"""Pictures as arrays, for all image tools.

A tool takes any picture that Pillow can hold and returns one of eight bits: gray or colours, with the original
transparency. In between it works on an array of height, width and channels (one or three), where 0 is black and 1 is
white.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

#: Values of pixels: height x width x channels, or height x width.
Floats: TypeAlias = NDArray[np.float32]
#: The maximum number of pixels: more would need gigabytes of memory. Pictures of most cameras have less.
MOST_PIXELS = 40_000_000


@dataclass(frozen=True)
class Pixels:
    """A picture as an array.

    Attributes:
        values: height x width x channels (1: gray, 3: red, green, blue), from 0 to 1.
        alpha: the opacity of each pixel, if the picture has transparency.
    """

    values: Floats
    alpha: Image.Image | None = None

    @classmethod
    def from_image(cls, image: Image.Image) -> Pixels:
        """Create the pixels of a picture, rotated according to its metadata.

        Raises:
            ValueError: the picture has no pixels, or more than ``MOST_PIXELS``.
        """
        check_size(image.width, image.height)
        image = ImageOps.exif_transpose(image)
        if image.mode.startswith(("I", "F")):
            return cls(_scale_to_unit(np.asarray(image).astype(np.float32), image.mode)[..., None])
        alpha = None
        if image.has_transparency_data:
            # Gray with transparency stays gray; a palette may have transparent colours.
            image = image.convert("LA" if image.mode in ("1", "L", "LA", "La") else "RGBA")
            alpha = image.getchannel("A")
        gray = image.mode in ("1", "L", "LA")
        values = np.asarray(image.convert("L" if gray else "RGB"), dtype=np.float32) / np.float32(255)
        return cls(values[..., None] if gray else values, alpha)

    @property
    def luminance(self) -> Floats:
        """The perceived brightness of each pixel, height x width (ITU-R BT.601, with Pillow's weights)."""
        if self.values.shape[2] == 1:
            return self.values[..., 0]
        return self.values @ np.array([0.299, 0.587, 0.114], dtype=np.float32)

    def make_image(self, values: NDArray[np.floating]) -> Image.Image:
        """Create a picture of new values, clipped to 0 to 1, with the transparency resized to it."""
        picture = picture_of(values)
        if self.alpha is not None:
            picture.putalpha(self.alpha.resize(picture.size, Image.Resampling.BILINEAR))
        return picture


def picture_of(values: NDArray[np.floating]) -> Image.Image:
    """Create the picture of an array of height x width x channels from 0 to 1."""
    whole = np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8)
    return Image.fromarray(whole[..., 0] if whole.shape[2] == 1 else whole)


def resize_values(values: Floats, width: int, height: int, filter_: Image.Resampling) -> Floats:
    """Resize an array, each channel with Pillow's filter and without rounding to eight bits."""
    channels = [Image.fromarray(values[..., c]).resize((width, height), filter_) for c in range(values.shape[2])]
    return np.stack([np.asarray(channel, dtype=np.float32) for channel in channels], axis=-1)


def check_size(width: int, height: int) -> None:
    """Raise an error for a picture that is empty or too large to process."""
    if width < 1 or height < 1:
        raise ValueError(f"the picture has no pixels: {width} x {height}")
    if width * height > MOST_PIXELS:
        size = f"{width} x {height}"
        raise ValueError(f"a picture of {size} pixels is too large to work on: at most {MOST_PIXELS:,} pixels")


def noise_level(values: Floats) -> float:
    """Estimate the standard deviation of the noise by the median diagonal detail (Donoho and Johnstone 1994).

    Each block of 2 x 2 pixels has one diagonal difference. Where the picture is smooth, as in most places, it is noise
    alone. Differences of exactly 0 are left out: they occur where the picture is clipped at black or white.
    """
    height, width = values.shape[0] // 2 * 2, values.shape[1] // 2 * 2
    even = values[:height, :width]
    details = (even[::2, ::2] - even[1::2, ::2] - even[::2, 1::2] + even[1::2, 1::2]) / 2
    details = np.abs(details[np.abs(details) > 1e-6])
    return float(np.median(details)) / 0.6745 if details.size else 0.0


def _scale_to_unit(values: Floats, mode: str) -> Floats:
    """Convert integers of 16 or 32 bits, or floating-point numbers, to the scale from 0 to 1.

    The modes ``I`` and ``F`` do not define white: it is the smallest of 1, 255 and 65535 that is not below the
    brightest pixel, else the brightest pixel itself.
    """
    values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    if mode.startswith("I;16"):
        return values / np.float32(65535)
    brightest = float(values.max())
    scales = (1.0, 255.0, 65535.0) if mode == "F" else (255.0, 65535.0)
    white = next((scale for scale in scales if brightest <= scale), brightest)
    clipped: Floats = np.clip(values / np.float32(white), 0, 1)
    return clipped
