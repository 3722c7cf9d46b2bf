"""External images, read within limits on bytes, pixels and formats.

A small file can be an image of a billion pixels (a decompression bomb), so the size is checked before any pixel is
decoded. Pillow is imported when the first image is read.
"""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

from formal_llm.errors import InputError, MissingDependency

if TYPE_CHECKING:
    from PIL.Image import Image

#: The default limits on the bytes of a file and the pixels of an image.
MAX_BYTES, MAX_PIXELS = 50_000_000, 40_000_000
#: Formats without scripts or external files, and with a good security record.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
#: How each mode of Pillow is converted to one of the three that this library uses.
_MODES = {"1": "L", "LA": "RGBA", "La": "RGBA", "RGBa": "RGBA", "RGBX": "RGB", "CMYK": "RGB", "YCbCr": "RGB"}


def require_pillow() -> None:
    """Raise a helpful error if Pillow is not installed.

    Raises:
        MissingDependency: Pillow is not installed.
    """
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise MissingDependency("images need Pillow: pip install 'formal-llm[openagi]'") from error


def read_image(data: bytes, *, max_bytes: int = MAX_BYTES, max_pixels: int = MAX_PIXELS, what: str = "") -> Image:
    """Return the image in ``data``, decoded, rotated upright, as ``L``, ``RGB`` or ``RGBA``.

    Args:
        data: a PNG, JPEG, WebP, GIF (its first frame) or BMP file.
        max_bytes: the size limit in bytes.
        max_pixels: the limit on the pixels to decode.
        what: its name in errors.

    Raises:
        InputError: the data is too large, damaged, or not an image of these formats.
        MissingDependency: Pillow is not installed.
    """
    require_pillow()
    from PIL import Image, ImageOps, UnidentifiedImageError

    name = what or "the image"
    if not data:
        raise InputError(f"{name} is empty")
    if len(data) > max_bytes:
        raise InputError(f"{name} has {len(data):,} bytes; at most {max_bytes:,} are read")
    try:
        image: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)  # reads the header, no pixels
        check_pixels(image, max_pixels, name)
        image.load()
        if image.mode.startswith("I;16"):  # a PNG of 16 bits per pixel: its scale is from 0 to 65,535
            image = image.convert("I").point(lambda value: value * (1 / 257) + 0.5).convert("L")
        return normalize_image(ImageOps.exif_transpose(image))
    except InputError:
        raise
    except UnidentifiedImageError as error:
        raise InputError(f"{name} cannot be read as {', '.join(FORMATS[:-1])} or {FORMATS[-1]}") from error
    except Exception as error:  # Pillow's readers raise various exceptions for damaged files
        raise InputError(f"{name} cannot be read as {', '.join(FORMATS[:-1])} or {FORMATS[-1]}: {error}") from error


def check_pixels(image: Image, max_pixels: int, name: str = "the image") -> None:
    """Raise an error if an image has too many pixels or none.

    Raises:
        InputError: it has too many pixels or none.
    """
    width, height = image.size
    if not 0 < width * height <= max_pixels:
        raise InputError(f"{name} has {width} x {height} pixels; from 1 to {max_pixels:,} are allowed")


def normalize_image(image: Image) -> Image:
    """Convert an image to one of the modes ``L``, ``RGB`` and ``RGBA``, and remove everything except its pixels.

    Raises:
        InputError: the values of its mode do not fit into bytes, so the scale would have to be guessed.
    """
    from PIL import Image

    mode = image.mode
    if mode in ("P", "PA"):
        mode = "RGBA" if mode == "PA" or "transparency" in image.info else "RGB"
    mode = _MODES.get(mode, mode)
    if mode not in ("L", "RGB", "RGBA"):
        raise InputError(f"an image of mode {mode} has no bytes as pixels; convert it to L, RGB or RGBA")
    image = image if image.mode == mode else image.convert(mode)
    if type(image) is not Image.Image or image.info:
        # Remove the file's reader, and metadata that would distinguish equal images and appear in every report.
        image = image.copy() if type(image) is Image.Image else image.convert(mode).copy()
        image.info = {}
    return image


def write_png(image: Image, *, level: int = 1) -> bytes:
    """Return the image as a PNG file, by default written fast rather than small."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=level)
    return buffer.getvalue()


def data_uri(image: Image, longest: int | None = None) -> str:
    """Return the image as a ``data:`` URI for a web page.

    ``longest`` is the maximum length of its longer side.
    """
    if longest is not None and max(image.size) > longest:
        image = image.copy()
        image.thumbnail((longest, longest))
    return "data:image/png;base64," + base64.b64encode(write_png(image, level=6)).decode("ascii")
