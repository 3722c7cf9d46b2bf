"""Making task data."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from formal_llm import TaskPack
from formal_llm.errors import ResourceNotFound
from formal_llm.packs.openagi.classical.restoration import blur_width
from formal_llm.packs.openagi.data import pixels
from formal_llm.packs.openagi.data.making import DEGRADATIONS, MASK, Degradation, make_data, mask_word
from formal_llm.packs.openagi.data.pixels import Pixels, noise_level
from formal_llm.packs.openagi.data.samples import read_data
from formal_llm.packs.openagi.scores.images import SSIM
from tests.packs.openagi.any_images import images, photograph


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One sample of each of the 185 tasks."""
    folder = tmp_path_factory.mktemp("openagi")
    return folder, make_data(folder, samples=1, side=48)


def test_every_task_has_data_that_fit_its_sentence(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    data = read_data(folder)
    tasks = TaskPack.load("openagi").tasks
    assert list(data) == list(range(185))
    for number, task in enumerate(tasks):
        (sample,) = data[number]
        images = [value for value in sample.inputs.values() if isinstance(value, Image.Image)]
        texts = [value for value in sample.inputs.values() if isinstance(value, str)]
        assert bool(images) == ("image" in task.inputs), task
        assert bool(texts) == ("text" in task.inputs), task
        assert len(texts) == (2 if "document" in task.description else 1 if texts else 0)
        assert "".join(texts).count("[MASK]") == task.description.count("clozed")
        ((kind, expected),) = sample.outputs.items()
        if "Task 3" in task.group:
            assert isinstance(expected, Image.Image)
            assert expected.size == (48, 48)
        else:
            assert isinstance(expected, str) == (kind != "images")
        for image in images:
            assert image.size == ((24, 24) if "low-resolutioned" in task.description else (48, 48))
            assert image.mode == ("L" if "grayscale" in task.description else "RGB")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_same_seed_makes_the_same_and_a_task_does_not_depend_on_others(tmp_path: Path) -> None:
    for name, tasks, seed in (("a", [0, 117], 3), ("b", [117, 0], 3), ("c", [117], 3), ("d", [0, 117], 4)):
        make_data(tmp_path / name, tasks=tasks, samples=2, seed=seed, side=32)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert content(tmp_path / "a/117") == content(tmp_path / "c/117")
    assert content(tmp_path / "a/0") != content(tmp_path / "d/0")


def test_what_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match="0 to 184"):
        make_data(tmp_path / "a", tasks=[185])
    assert not (tmp_path / "a").exists()
    for wrong in ({"samples": 0}, {"side": 3}, {"seed": -1}):
        with pytest.raises(ValueError, match="at least"):
            make_data(tmp_path / "a", **wrong)  # type: ignore[arg-type]
    make_data(tmp_path / "a", tasks=[180], samples=1)
    with pytest.raises(FileExistsError, match="give another folder"):
        make_data(tmp_path / "a", tasks=[180], samples=1)


def test_data_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "180" / "inputs").mkdir(parents=True)
    (tmp_path / "180" / "inputs" / "context.txt").write_text("mine\n")
    with pytest.raises(FileExistsError, match="holds task data already"):
        make_data(tmp_path, tasks=[180], samples=1)
    assert (tmp_path / "180" / "inputs" / "context.txt").read_text() == "mine\n"
    with pytest.raises(NotADirectoryError, match="is no folder"):
        make_data(tmp_path / "180" / "inputs" / "context.txt")


def test_a_run_that_was_stopped_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(json, "dumps", stopped)  # all samples are written, the index is not
        with pytest.raises(KeyboardInterrupt):
            make_data(tmp_path / "a", tasks=[0, 1], samples=3, side=32)
    assert (tmp_path / "a" / "1" / "inputs" / "images" / "2.png").exists()
    make_data(tmp_path / "a", tasks=[0], samples=2, side=32)
    make_data(tmp_path / "b", tasks=[0], samples=2, side=32)
    found, wanted = (
        {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in "ab"
    )
    assert found == wanted


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
    assert SSIM()(everything, good) < SSIM()(apply(Degradation(blur=2.0), good), good)


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


def test_empty_and_enormous_pictures_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no pixels: 0 x 3"):
        Pixels.from_image(Image.new("L", (0, 3)))
    monkeypatch.setattr(pixels, "MOST_PIXELS", 100)
    assert Pixels.from_image(Image.new("L", (10, 10))).values.size == 100
    with pytest.raises(ValueError, match="10 x 11 pixels is too large"):
        Pixels.from_image(Image.new("L", (10, 11)))
