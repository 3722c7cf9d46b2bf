"""Images from outside: within limits, whatever the file says of itself."""

from __future__ import annotations

import base64
import contextlib
import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from formal_llm.errors import InputError
from formal_llm.tools import IMAGE
from formal_llm.tools.images import data_uri, normalize_image, read_image
from tests.tools.picture_tools import picture


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int, *extra: bytes, rows: int = 10) -> bytes:
    """A file that says it is so large, whatever it holds."""
    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return head + b"".join(extra) + chunk(b"IDAT", zlib.compress(b"\0" * rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(9_000, 9_000), (20_000, 20_000), (2**31 - 1, 2**31 - 1), (10_001, 10_000)])
def test_decompression_bombs_are_not_decoded(size: tuple[int, int]) -> None:
    import tracemalloc

    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            read_image(png(*size))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_bombs_in_metadata() -> None:
    text = chunk(b"zTXt", b"comment\0\0" + zlib.compress(b"x" * 200_000_000, 9))
    with pytest.raises(InputError):
        read_image(png(8, 8, text))


def test_damaged_images_and_formats_that_are_not_read() -> None:
    whole = io.BytesIO()
    picture(size=64).save(whole, "PNG")
    data = whole.getvalue()
    for damaged in (
        b"",
        data[:50],
        data[: len(data) // 2],
        b"GIF89a",
        b"\xff\xd8\xff" * 10,
        b"%PDF-1.4",
        b"P6 1 1 255\n",
    ):
        with pytest.raises(InputError):
            read_image(damaged)
    for name in ("PPM", "TIFF", "EPS", "PCX", "ICO"):
        other = io.BytesIO()
        picture(size=32).save(other, name)
        with pytest.raises(InputError, match="cannot be read as PNG, JPEG"):
            read_image(other.getvalue())


def test_random_damage_is_an_error_or_an_image() -> None:
    import random

    rng = random.Random(0)
    for name in ("PNG", "JPEG", "GIF", "BMP", "WEBP"):
        file = io.BytesIO()
        picture(size=24).save(file, name)
        for _ in range(60):
            data = bytearray(file.getvalue())
            for _ in range(rng.randint(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            with contextlib.suppress(InputError):
                assert read_image(bytes(data)).mode in ("L", "RGB", "RGBA")


def test_photos_are_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    Image.new("RGB", (20, 10)).save(file, "JPEG", exif=exif)
    image = read_image(file.getvalue())
    assert image.size == (10, 20)
    assert image.info == {}


def test_metadata_and_readers_do_not_travel() -> None:
    image = picture()
    image.info["comment"] = "secret"
    clean = normalize_image(image)
    assert clean.info == {}
    assert image.info == {"comment": "secret"}
    assert type(IMAGE.load(IMAGE.dump(image))) is Image.Image


@pytest.mark.parametrize("mode", ["I;16", "I;16B"])
def test_16_bits_a_pixel_are_scaled_to_8(mode: str) -> None:
    values = np.array([[0, 257, 127 * 257 + 100, 65_535]], dtype=">u2" if mode == "I;16B" else "<u2")
    buffer = io.BytesIO()
    Image.frombytes(mode, (4, 1), values.tobytes()).save(buffer, "PNG")
    read = read_image(buffer.getvalue())
    assert read.mode == "L"
    assert list(read.tobytes()) == [0, 1, 127, 255]


@pytest.mark.parametrize(
    ("longest", "size"), [(None, (30, 10)), (30, (30, 10)), (31, (30, 10)), (29, (29, 10)), (15, (15, 5)), (1, (1, 1))]
)
def test_an_image_for_a_page_is_no_longer_than_it_may_be(longest: int | None, size: tuple[int, int]) -> None:
    image = Image.new("RGB", (30, 10), "red")
    head, _, data = data_uri(image, longest).partition(",")
    assert head == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as read:
        assert read.size == size
    assert image.size == (30, 10)
