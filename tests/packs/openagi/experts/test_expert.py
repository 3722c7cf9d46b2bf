"""Inputs of one kind go through a model together, and come back in their order."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from formal_llm.packs.openagi.experts.expert import convert_to_rgb, each_alike, each_row, name_likeliest, split_batches
from formal_llm.packs.openagi.experts.loaded import LoadedModel
from tests.packs.openagi.any_images import images


class Model:
    """As much of a model as is asked for."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        self.dtype = dtype
        self.config = SimpleNamespace()


@given(st.lists(st.integers()), st.integers(1, 5))
def test_batches_are_the_items_in_their_order(items: list[int], size: int) -> None:
    found = list(split_batches(items, size))
    assert [item for some in found for item in some] == items
    assert all(len(some) == size for some in found[:-1])
    assert all(1 <= len(some) <= size for some in found)


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(1, 4))
def test_each_alike_is_the_work_one_by_one(kinds: list[int], batch: int) -> None:
    asked: list[list[int]] = []

    def work(places: list[int]) -> list[str]:
        asked.append(list(places))
        return [f"{place} of kind {kinds[place]}" for place in places]

    assert each_alike(kinds, batch, work) == [f"{place} of kind {kind}" for place, kind in enumerate(kinds)]
    assert all(len(places) <= batch and len({kinds[place] for place in places}) == 1 for places in asked)
    # As few as there can be.
    assert len(asked) == sum(-(-kinds.count(kind) // batch) for kind in set(kinds))


def test_rows_of_one_shape_are_put_below_each_other() -> None:
    rows = [{"x": torch.full((1, size), float(place))} for place, size in enumerate((2, 3, 2, 2))]
    shapes: list[tuple[int, ...]] = []

    def work(tensors: dict[str, torch.Tensor]) -> list[float]:
        shapes.append(tuple(tensors["x"].shape))
        return tensors["x"].sum(dim=1).tolist()

    loaded = LoadedModel(Model())
    assert each_row(loaded, rows, 2, work) == [0.0, 3.0, 4.0, 6.0]
    assert shapes == [(2, 2), (1, 2), (1, 3)]
    assert each_row(loaded, [], 2, work) == []


def test_what_a_batch_lacks_is_told() -> None:
    with pytest.raises(ValueError, match="zip"):
        each_alike([0, 0], 2, lambda places: ["only one"])


@given(images())
def test_a_model_sees_red_green_and_blue(image: Image.Image) -> None:
    found = convert_to_rgb(image)
    assert (found.mode, found.size) == ("RGB", image.size)


def test_what_is_transparent_is_seen_on_white() -> None:
    clear = Image.new("RGBA", (2, 1), (255, 0, 0, 0))
    clear.putpixel((1, 0), (255, 0, 0, 255))
    assert [convert_to_rgb(clear).getpixel((x, 0)) for x in (0, 1)] == [(255, 255, 255), (255, 0, 0)]


def test_numbers_with_a_point_have_the_type_of_the_model() -> None:
    row = {"ids": torch.tensor([[1]]), "pixels": torch.tensor([[0.5]])}
    (moved,) = each_row(LoadedModel(Model(torch.bfloat16)), [row], 1, lambda tensors: [tensors])
    assert (moved["ids"].dtype, moved["pixels"].dtype) == (torch.int64, torch.bfloat16)


def test_the_likeliest_class_of_each_row() -> None:
    model = Model()
    model.config = SimpleNamespace(id2label={0: "cat", 1: "Dog"})
    assert name_likeliest(LoadedModel(model), torch.tensor([[0.1, 0.2], [3.0, -1.0]])) == ["Dog", "cat"]
