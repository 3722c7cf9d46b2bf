"""Restoring experts: large pictures in pieces, and Swin2SR against the model itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from formal_llm.packs.openagi.experts.loaded import LoadedModel
from formal_llm.packs.openagi.experts.loading import ModelSource
from formal_llm.packs.openagi.experts.restoration import Restoration, Swin2SR, Tiling
from formal_llm.packs.openagi.experts.toolkit import ExpertToolkit
from tests.packs.openagi.any_images import images
from tests.packs.openagi.experts import tiny_experts
from tests.packs.openagi.experts.expert_cases import picture

TILINGS = st.builds(
    lambda height, width, tile, share: Tiling(height, width, tile, int(share * (tile - 1))),
    st.integers(1, 70), st.integers(1, 70), st.integers(2, 40), st.floats(0, 0.6),
)  # fmt: skip


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("restoring")
    torch.manual_seed(0)
    tiny_experts.super_resolution(root / "x2")
    tiny_experts.realworld(root / "x4")
    return {name: root / name for name in ("x2", "x4")}


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


class Doubled(Restoration):
    """A network that repeats pixels: pieces, batches and sizes must not show."""

    def load_model(self) -> LoadedModel:
        return LoadedModel(torch.nn.Identity())

    def get_scale(self, parts: LoadedModel) -> int:
        return 2

    def get_multiple(self, parts: LoadedModel) -> int:
        return 4

    def restore_pixels(self, parts: LoadedModel, pixels: Any) -> Any:
        return torch.nn.functional.interpolate(pixels, scale_factor=2.0, mode="nearest")


class NoModel:
    dtype = torch.float32


@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(images(), min_size=1, max_size=4), st.integers(1, 30), st.booleans(), st.integers(1, 3))
def test_any_pictures(pictures: list[Image.Image], tile: int, keep: bool, batch: int) -> None:
    expert = Doubled(ModelSource("x", "a/b"), {"tile": tile, "overlap": tile // 3, "keep_size": keep}, batch=batch)
    results = expert.run_batch(LoadedModel(NoModel()), pictures)
    for image, result in zip(pictures, results, strict=True):
        assert result.size == (image.size if keep else (2 * image.width, 2 * image.height))
        assert result.mode in ("L", "LA", "RGB", "RGBA")
        if image.mode in ("L", "RGB") and not keep:
            assert result.tobytes() == image.resize(result.size, Image.Resampling.NEAREST).tobytes()


# -- Swin2SR -----------------------------------------------------------------------------------------------------------


def test_a_picture_that_fits_is_what_the_model_makes_of_it(places: dict[str, Path]) -> None:
    from transformers import Swin2SRForImageSuperResolution

    expert = Swin2SR(ModelSource("super_resolution", str(places["x2"])), {"tile": 64})
    parts, image = expert.load_model(), photo(24, 16)
    model = Swin2SRForImageSuperResolution.from_pretrained(places["x2"])
    pixels = torch.from_numpy(np.asarray(image).astype(np.float32) / 255).permute(2, 0, 1)[None]
    with torch.inference_mode():
        made = model(pixel_values=pixels).reconstruction[0].permute(1, 2, 0).clamp(0, 1).numpy()
        (result,) = expert.run_batch(parts, [image])
    assert np.abs(np.asarray(result, dtype=int) - np.rint(made * 255)).max() <= 1


def test_a_large_picture_goes_through_in_pieces(places: dict[str, Path]) -> None:
    source = ModelSource("super_resolution", str(places["x2"]))
    whole, small = Swin2SR(source, {"tile": 100}), Swin2SR(source, {"tile": 24, "overlap": 8}, batch=5)
    parts, image = whole.load_model(), photo(61, 40)
    sizes: list[tuple[int, ...]] = []
    parts.model.register_forward_pre_hook(
        lambda _module, _args, kwargs: sizes.append(tuple(kwargs["pixel_values"].shape)), with_kwargs=True
    )
    with torch.inference_mode():
        (first,), (second,) = whole.run_batch(parts, [image]), small.run_batch(parts, [image])
    assert sizes[0] == (1, 3, 40, 64)
    assert [size[0] for size in sizes[1:]] == [5, 3]
    assert {size[2:] for size in sizes[1:]} == {(24, 24)}
    assert first.size == second.size == (122, 80)


def test_four_times_and_back(places: dict[str, Path]) -> None:
    expert = Swin2SR(ModelSource("denoising", str(places["x4"])), {"keep_size": True, "tile": 64})
    parts = expert.load_model()
    assert expert.get_scale(parts) == 4
    with torch.inference_mode():
        assert [r.size for r in expert.run_batch(parts, [photo(9, 21), photo(1, 1)])] == [(9, 21), (1, 1)]


# -- any ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1, 1), (3, 1), (16, 16), (17, 5), (50, 70)])
def test_super_resolution_is_twice_as_high_and_wide(size: tuple[int, int], kit: ExpertToolkit) -> None:
    for mode in ("RGB", "L", "RGBA"):
        result = kit["super_resolution"](picture(5, *size, mode=mode))
        assert result.size == (2 * size[0], 2 * size[1])
        assert result.mode == mode


@given(TILINGS, st.sampled_from([1, 2, 4]))
def test_cut_and_joined_is_the_picture(tiling: Tiling, scale: int) -> None:
    values = np.random.default_rng(0).random((tiling.height, tiling.width, 3)).astype(np.float32)
    pieces = tiling.cut_pieces(values)
    assert {piece.shape[:2] for piece in pieces} == {tiling.piece}
    assert max(tiling.piece) <= tiling.tile
    enlarged = [piece.repeat(scale, axis=0).repeat(scale, axis=1) for piece in pieces]
    joined = tiling.join_pieces(enlarged, scale)
    np.testing.assert_allclose(joined, values.repeat(scale, axis=0).repeat(scale, axis=1), atol=1e-5)
