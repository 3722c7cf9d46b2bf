"""Colorization by example: a gray picture takes the colours of the most similar of a few reference pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image

from formal_llm.packs.openagi.data.pixels import Floats, Pixels, noise_level, resize_values
from formal_llm.packs.openagi.data.sources import load_pictures

#: The longer side of the pictures whose pixels are searched, and of those that are compared as a whole.
_SIDE, _THUMBNAIL = 128, 48
#: The maximum colour of a gray picture, on the scale from 0 to 1.
_GRAY = 0.01
#: Colours are applied at half strength: a wrong one is worse than a pale one, and there are few references.
_STRENGTH = 0.5
#: Above this correlation a reference is considered the same picture as the one to colour. In the task data, pictures
#: have 0.86 or more with themselves, however degraded, and 0.77 or less with others.
_SAME = 0.8


def colorization(image: Image.Image) -> Image.Image:
    """Add colours to a grayscale picture, by example.

    Among some photographs (those of the task data, which scikit-image contains) the one with the most similar
    brightness and texture is selected; each pixel takes the mean colour of the pixels there that are most similar in
    brightness, surrounding brightness, and texture (after Welsh et al. 2002). The brightness does not change.

    The tints are plausible, not true: the method does not recognize objects, so they are kept pale. A reference that
    shows the same picture is skipped, so that a picture of the task data does not get its own colours back. A picture
    with colours keeps them.
    """
    pixels = Pixels.from_image(image)
    if _has_colours(pixels):
        return pixels.make_image(pixels.values)
    gray = pixels.luminance
    small = _fit_within(gray, _SIDE)
    others = [reference for reference in _load_references() if not same_picture(small, reference.luminance)]
    if not others:
        return pixels.make_image(pixels.values)
    nearest = min(others, key=lambda reference: _measure_distance(_compute_statistics(small), reference.statistics))
    return pixels.make_image(_with_chroma(gray, _chroma_of(small, nearest)))


def same_picture(luminance: Floats, reference: Floats) -> bool:
    """Return whether a picture is the reference or at least three quarters of it, by correlating small versions.

    Both are blurred first, so that noise, blur, and a size that is matched only approximately do not matter.
    """
    from scipy.ndimage import gaussian_filter
    from skimage.feature import match_template

    whole = gaussian_filter(_fit_within(reference, _THUMBNAIL), 1.5)
    for side in range(_THUMBNAIL, _THUMBNAIL * 3 // 4 - 1, -1):
        # A part of another shape may be longer than the whole on one side.
        piece = gaussian_filter(_fit_within(luminance, side), 1.5)[: whole.shape[0], : whole.shape[1]]
        if min(piece.shape) >= 8 and piece.std() > 0.01 and float(np.max(match_template(whole, piece))) > _SAME:
            return True
    return False


@dataclass(frozen=True)
class _Reference:
    """A reference picture: its brightness, the colour of each pixel (a and b of CIELAB), its statistics."""

    luminance: Floats
    chroma: Floats
    statistics: Floats


@cache
def _load_references() -> tuple[_Reference, ...]:
    from skimage.color import rgb2lab

    references = []
    for picture in load_pictures():
        if picture.colours:
            image = picture.open()
            image.thumbnail((_SIDE, _SIDE), Image.Resampling.BOX)
            pixels = Pixels.from_image(image)
            chroma = rgb2lab(pixels.values)[..., 1:].astype(np.float32)
            references.append(_Reference(pixels.luminance, chroma, _compute_statistics(pixels.luminance)))
    return tuple(references)


def _has_colours(pixels: Pixels) -> bool:
    """Return whether the picture has colours beyond noise that differs between its channels."""
    if pixels.values.shape[2] == 1:
        return False
    height, width = pixels.values.shape[:2]
    small = resize_values(pixels.values, min(width, 32), min(height, 32), Image.Resampling.BOX)
    # The largest of three noisy values is 1.7 standard deviations above the smallest; each is a mean of many pixels.
    noise = 2 * noise_level(pixels.values) * (small[..., 0].size / (height * width)) ** 0.5
    return bool(float((small.max(axis=2) - small.min(axis=2)).mean()) > _GRAY + noise)


def _fit_within(luminance: Floats, side: int) -> Floats:
    """Shrink a picture so that its longer side is at most ``side``."""
    height, width = luminance.shape
    factor = min(1.0, side / max(height, width))
    size = max(round(width * factor), 1), max(round(height * factor), 1)
    return resize_values(luminance[..., None], *size, Image.Resampling.BOX)[..., 0]


def _compute_features(luminance: Floats) -> Floats:
    """Compute for each pixel the brightness near it and in a wider area, and the roughness around it."""
    from scipy.ndimage import gaussian_filter

    near, far = gaussian_filter(luminance, 1.0), gaussian_filter(luminance, 6.0)
    rough = np.sqrt(np.maximum(gaussian_filter(luminance**2, 2.0) - gaussian_filter(luminance, 2.0) ** 2, 0))
    return np.stack([near, 0.5 * far, 2 * rough], axis=-1).reshape(-1, 3)


def _compute_statistics(luminance: Floats) -> Floats:
    """Compute the distribution of brightness and roughness over a picture: quantiles of both."""
    return np.quantile(_compute_features(luminance)[:, [0, 2]], np.linspace(0.05, 0.95, 10), axis=0).astype(np.float32)


def _measure_distance(one: Floats, other: Floats) -> float:
    return float(abs(one - other).mean())


def _chroma_of(luminance: Floats, reference: _Reference) -> Floats:
    """Find the colours of the reference for a picture with this brightness."""
    from scipy.ndimage import gaussian_filter
    from scipy.spatial import cKDTree

    tree = cKDTree(_compute_features(reference.luminance))
    _, nearest = tree.query(_compute_features(luminance), k=min(48, reference.luminance.size))
    colours = reference.chroma.reshape(-1, 2)[np.asarray(nearest).reshape(luminance.size, -1)].mean(axis=1)
    smooth: Floats = gaussian_filter(colours.reshape(*luminance.shape, 2), (1.5, 1.5, 0)).astype(np.float32)
    return smooth


def _with_chroma(luminance: Floats, chroma: Floats) -> Floats:
    """Combine the brightness of a picture with the colours of a smaller one."""
    from skimage.color import lab2rgb, rgb2lab

    height, width = luminance.shape
    lightness = rgb2lab(np.repeat(luminance[..., None], 3, axis=2))[..., :1]
    large = resize_values(chroma, width, height, Image.Resampling.BICUBIC)
    # The brightest and the darkest pixels have no room for colour: it would be clipped, with a warning.
    room = _STRENGTH * np.clip(np.minimum(lightness, 100 - lightness) / 25, 0, 1)
    values: Floats = lab2rgb(np.concatenate([lightness, large * room], axis=2)).clip(0, 1).astype(np.float32)
    return values
