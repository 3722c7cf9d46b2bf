"""Finding faces."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from PIL import Image

from formal_llm.packs.openagi.classical.faces import detection, find_faces
from tests.packs.openagi.any_images import images, photograph
from tests.strategies import examples


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


def test_gray_transparent_and_large_pictures() -> None:
    face = photograph("astronaut", 300)
    for mode in ("L", "RGBA", "P"):
        assert detection(face.convert(mode)) == "1 face"
    assert detection(face.resize((1500, 1500))) == "1 face"


def test_side_by_side_in_threads() -> None:
    pictures = [photograph("astronaut", 200), photograph("coffee", 200)] * 8
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(detection, pictures)) == ["1 face", "no faces"] * 8


@given(images())
@examples(30)
def test_any_picture(image: Image.Image) -> None:
    assert detection(image) == detection(image)
    assert detection(Image.new(image.mode, image.size)) == "no faces"
