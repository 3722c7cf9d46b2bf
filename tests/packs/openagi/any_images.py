"""Pictures of every mode and shape that Pillow has, for hypothesis; and degraded photographs."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from PIL import Image

from formal_llm.packs.openagi.data.sources import load_pictures

MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "I", "I;16", "F")
#: One pixel, a line, a column, what is smaller than any window, odd, and so on.
SIZES = ((1, 1), (1, 40), (37, 1), (2, 3), (7, 7), (9, 31), (24, 25), (40, 33))


@st.composite
def images(draw: st.DrawFn, modes: tuple[str, ...] = MODES, sizes: tuple[tuple[int, int], ...] = SIZES) -> Image.Image:
    """A picture: noise, a ramp, or one colour."""
    mode, (width, height) = draw(st.sampled_from(modes)), draw(st.sampled_from(sizes))
    seed, kind = draw(st.integers(0, 3)), draw(st.sampled_from(["noise", "ramp", "flat"]))
    values = np.zeros((height, width, 3))
    if kind == "noise":
        values = np.random.default_rng(seed).uniform(0, 255, values.shape)
    elif kind == "ramp":
        values += np.linspace(0, 255, width)[None, :, None]
    else:
        values += 80 * seed
    image = Image.fromarray(values.astype(np.uint8))
    if mode == "I;16":
        return Image.fromarray((values[..., 0] * 257).astype(np.uint16))
    if mode == "F":
        return Image.fromarray((values[..., 0] / 255).astype(np.float32))
    if mode == "I":
        return Image.fromarray((values[..., 0] * 200).astype(np.int32))
    if mode == "PA":
        return image.convert("P").convert("PA")
    if mode in ("LA", "RGBA"):
        image = image.convert(mode)
        image.putalpha(Image.fromarray(values[..., 1].astype(np.uint8)))
    return image.convert(mode)


def photograph(name: str, side: int = 128) -> Image.Image:
    """A photograph of the task data, small and of even sides."""
    (picture,) = (one for one in load_pictures() if one.name == name)
    image = picture.open()
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return image.crop((0, 0, image.width // 2 * 2, image.height // 2 * 2))
