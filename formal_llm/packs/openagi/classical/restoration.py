"""Restoration of pictures without weights: less noise, less blur, higher resolution.

The tools against noise and blur first measure the defect in the picture, and return a picture without it unchanged.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from formal_llm.packs.openagi.data.pixels import Floats, Pixels, check_size, noise_level, resize_values

#: The noise (one gray level) and the blur in pixels below which a picture is considered clean and sharp.
LEAST_NOISE, LEAST_BLUR = 1 / 255, 0.5
#: The widest blur, in pixels, that is undone; beyond it the details are lost.
MOST_BLUR = 4.0
#: Large pictures are denoised in overlapping squares, so that memory stays bounded: their side and overlap.
_TILE, _OVERLAP = 1024, 16


def denoising(image: Image.Image) -> Image.Image:
    """Remove the noise from a noisy picture.

    Non-local means (Buades et al. 2005): a pixel becomes the mean of the pixels nearby, weighted by the similarity of
    their surroundings to its own, where differences of the size of the noise do not count. The strength of the noise
    is measured.

    Args:
        image: any picture. Noise that is correlated between pixels (of JPEG, of an enlarged picture) remains.
    """
    pixels = Pixels.from_image(image)
    sigma = noise_level(pixels.values)
    return pixels.make_image(pixels.values if sigma < LEAST_NOISE else _without_noise(pixels.values, sigma))


def deblurring(image: Image.Image) -> Image.Image:
    """Sharpen a blurry picture.

    This is a Wiener filter for a Gaussian blur, whose width is measured at the edges of the picture; the filter is
    weaker for a noisier picture, since it amplifies the noise with the detail.

    Args:
        image: any picture. Motion blur, or blur in only one part of the picture, is not undone.
    """
    pixels = Pixels.from_image(image)
    width = blur_width(pixels.luminance)
    if width < LEAST_BLUR:
        return pixels.make_image(pixels.values)
    return pixels.make_image(_apply_wiener(pixels.values, width, noise_level(pixels.values)))


def super_resolution(image: Image.Image) -> Image.Image:
    """Enlarge a low-resolution picture to twice its width and height.

    This is Lanczos interpolation with iterated back-projection (Irani and Peleg 1991): the difference between the
    given picture and the reduced enlargement is enlarged and added, several times. The result shows all the detail of
    the small picture, and invents none.

    Args:
        image: any picture that is not too large when doubled.
    """
    check_size(2 * image.width, 2 * image.height)
    pixels = Pixels.from_image(image)
    small = pixels.values
    height, width = small.shape[:2]
    large = resize_values(small, 2 * width, 2 * height, Image.Resampling.LANCZOS)
    for _ in range(4):
        missing = small - resize_values(large, width, height, Image.Resampling.BICUBIC)
        large = large + resize_values(missing, 2 * width, 2 * height, Image.Resampling.BICUBIC)
    return pixels.make_image(large)


def blur_width(luminance: Floats) -> float:
    """Estimate the standard deviation in pixels of a picture's Gaussian blur; 0 if it has no edges to measure.

    Blurring an edge again by one pixel lowers its slope by a ratio r, and an ideal edge that was blurred by s has
    r = sqrt(1 + 1/s^2) (Zhuo and Sim 2011). No edge of a picture is ideal, so the sharper ones count: the third with
    the least blur. The estimate is rather too small than too large, since that avoids ripples.
    """
    from scipy.ndimage import gaussian_filter, maximum_filter

    def compute_slope(values: Floats) -> Floats:
        down, right = np.gradient(values)
        steepness: Floats = np.hypot(down, right)
        return steepness

    if min(luminance.shape) < 8:
        return 0.0
    before, after = compute_slope(luminance), compute_slope(gaussian_filter(luminance, 1.0))
    edges = (before >= maximum_filter(before, 5)) & (before > max(float(np.quantile(before, 0.9)), 2 / 255))
    ratio = before[edges] / np.maximum(after[edges], 1e-6)
    ratio = ratio[ratio > 1.001]
    return min(float(np.quantile(1 / np.sqrt(ratio**2 - 1), 0.35)), MOST_BLUR) if ratio.size else 0.0


def _without_noise(values: Floats, sigma: float) -> Floats:
    """Apply non-local means in overlapping squares."""
    from skimage.restoration import denoise_nl_means

    height, width, channels = values.shape
    # The filter compares 5 x 5 pixels around each pixel up to 6 away, so a picture must not be smaller than that.
    padded = np.pad(values, ((_OVERLAP, _OVERLAP), (_OVERLAP, _OVERLAP), (0, 0)), mode="symmetric")
    clean = np.empty_like(values)
    for top in range(0, height, _TILE):
        for left in range(0, width, _TILE):
            bottom, right = min(top + _TILE, height), min(left + _TILE, width)
            square = padded[top : bottom + 2 * _OVERLAP, left : right + 2 * _OVERLAP]
            done = denoise_nl_means(
                square if channels == 3 else square[..., 0],
                patch_size=5, patch_distance=6, h=0.6 * sigma, sigma=sigma, fast_mode=True,
                channel_axis=-1 if channels == 3 else None,
            )  # fmt: skip
            inside = done[_OVERLAP : _OVERLAP + bottom - top, _OVERLAP : _OVERLAP + right - left]
            clean[top:bottom, left:right] = inside.reshape(bottom - top, right - left, channels)
    return clean


def _apply_wiener(values: Floats, width: float, noise: float) -> Floats:
    """Apply the Wiener filter of a Gaussian blur, with the squared Laplacian as a prior for the roughness."""
    from scipy.fft import fftfreq, irfft2, rfft2, rfftfreq

    # The picture is mirrored at its border, so that the border does not act as an edge.
    margin = int(4 * width) + 8
    padded = np.pad(values, ((margin, margin), (margin, margin), (0, 0)), mode="symmetric")
    rows, columns = padded.shape[:2]
    squared = (fftfreq(rows)[:, None] ** 2 + rfftfreq(columns)[None] ** 2).astype(np.float32) * (2 * np.pi) ** 2
    blur = np.exp(-(width**2) / 2 * squared)
    # Found by experiment on eleven pictures: the least value that suppresses the noise of eight bits; more for noise.
    care = 1e-3 + 100 * noise**2
    inverse = blur / (blur**2 + care * squared**2)
    channels = [irfft2(rfft2(padded[..., channel]) * inverse, s=(rows, columns)) for channel in range(values.shape[2])]
    sharp = np.stack(channels, axis=-1).astype(np.float32)
    return sharp[margin : margin + values.shape[0], margin : margin + values.shape[1]]
