"""Restoring experts: large pictures in pieces, Swin2SR against the model itself, Restormer against its paper."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from formal_llm.errors import CheckpointError
from formal_llm.packs.openagi.experts.tiling import Tiling
from formal_llm.packs.openagi.experts.loading import LoadedModel, ModelSource
from formal_llm.packs.openagi.experts.restoration import Restoration, RestormerRestoration, Swin2SR, padded
from formal_llm.packs.openagi.experts.restormer import Restormer, Shape, convert_restormer, read_restormer
from tests.packs.openagi.experts import tiny_experts
from tests.packs.openagi.any_images import images


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("restoring")
    torch.manual_seed(0)
    tiny_experts.super_resolution(root / "x2")
    tiny_experts.realworld(root / "x4")
    tiny_experts.restormer(root / "restormer")
    return {name: root / name for name in ("x2", "x4", "restormer")}


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


# -- pieces ------------------------------------------------------------------------------------------------------------

TILINGS = st.builds(
    lambda height, width, tile, share: Tiling(height, width, tile, int(share * (tile - 1))),
    st.integers(1, 70), st.integers(1, 70), st.integers(2, 40), st.floats(0, 0.6),
)  # fmt: skip


@given(TILINGS, st.sampled_from([1, 2, 4]))
def test_cut_and_joined_is_the_picture(tiling: Tiling, scale: int) -> None:
    values = np.random.default_rng(0).random((tiling.height, tiling.width, 3)).astype(np.float32)
    pieces = tiling.cut(values)
    assert {piece.shape[:2] for piece in pieces} == {tiling.piece}
    assert max(tiling.piece) <= tiling.tile
    enlarged = [piece.repeat(scale, axis=0).repeat(scale, axis=1) for piece in pieces]
    joined = tiling.join(enlarged, scale)
    np.testing.assert_allclose(joined, values.repeat(scale, axis=0).repeat(scale, axis=1), atol=1e-5)


@given(TILINGS)
def test_neighbours_overlap_as_far_as_they_shall(tiling: Tiling) -> None:
    rows = sorted({row for row, _ in tiling.places})
    height, _ = tiling.piece
    assert rows[0] == 0
    assert rows[-1] + height == tiling.height
    assert all(next_ - row <= height - tiling.overlap for row, next_ in pairwise(rows))


def test_no_seams() -> None:
    """Pieces that differ by a constant go over into one another without a step."""
    tiling = Tiling(8, 60, 40, 20)
    joined = tiling.join([np.full((8, 40, 1), value, dtype=np.float32) for value in (0.0, 1.0)])
    assert np.abs(np.diff(joined[0, :, 0])).max() < 0.1


@given(st.integers(1, 20), st.integers(1, 20), st.sampled_from([1, 3]), st.sampled_from([1, 4, 8]))
def test_padding(height: int, width: int, channels: int, multiple: int) -> None:
    values = np.random.default_rng(0).random((height, width, channels)).astype(np.float32)
    found = padded(values, multiple)
    assert found.shape == (math.ceil(height / multiple) * multiple, math.ceil(width / multiple) * multiple, 3)
    assert (found[:height, :width] == values).all()


class Doubled(Restoration):
    """A network that repeats pixels: pieces, batches and sizes must not show."""

    def load(self) -> LoadedModel:
        return LoadedModel(torch.nn.Identity())

    def scale(self, parts: LoadedModel) -> int:
        return 2

    def multiple(self, parts: LoadedModel) -> int:
        return 4

    def restored(self, parts: LoadedModel, pixels: Any) -> Any:
        return torch.nn.functional.interpolate(pixels, scale_factor=2.0, mode="nearest")


class NoModel:
    dtype = torch.float32


@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(images(), min_size=1, max_size=4), st.integers(1, 30), st.booleans(), st.integers(1, 3))
def test_any_pictures(pictures: list[Image.Image], tile: int, keep: bool, batch: int) -> None:
    expert = Doubled(ModelSource("x", "a/b"), {"tile": tile, "overlap": tile // 3, "keep_size": keep}, batch=batch)
    results = expert.run(LoadedModel(NoModel()), pictures)
    for picture, result in zip(pictures, results, strict=True):
        assert result.size == (picture.size if keep else (2 * picture.width, 2 * picture.height))
        assert result.mode in ("L", "LA", "RGB", "RGBA")
        if picture.mode in ("L", "RGB") and not keep:
            assert result.tobytes() == picture.resize(result.size, Image.Resampling.NEAREST).tobytes()


# -- Swin2SR -----------------------------------------------------------------------------------------------------------


def test_a_picture_that_fits_is_what_the_model_makes_of_it(places: dict[str, Path]) -> None:
    from transformers import Swin2SRForImageSuperResolution

    expert = Swin2SR(ModelSource("super_resolution", str(places["x2"])), {"tile": 64})
    parts, image = expert.load(), photo(24, 16)
    model = Swin2SRForImageSuperResolution.from_pretrained(places["x2"])
    pixels = torch.from_numpy(np.asarray(image).astype(np.float32) / 255).permute(2, 0, 1)[None]
    with torch.inference_mode():
        made = model(pixel_values=pixels).reconstruction[0].permute(1, 2, 0).clamp(0, 1).numpy()
        (result,) = expert.run(parts, [image])
    assert np.abs(np.asarray(result, dtype=int) - np.rint(made * 255)).max() <= 1


def test_a_large_picture_goes_through_in_pieces(places: dict[str, Path]) -> None:
    source = ModelSource("super_resolution", str(places["x2"]))
    whole, small = Swin2SR(source, {"tile": 100}), Swin2SR(source, {"tile": 24, "overlap": 8}, batch=5)
    parts, image = whole.load(), photo(61, 40)
    sizes: list[tuple[int, ...]] = []
    parts.model.register_forward_pre_hook(
        lambda _module, _args, kwargs: sizes.append(tuple(kwargs["pixel_values"].shape)), with_kwargs=True
    )
    with torch.inference_mode():
        (first,), (second,) = whole.run(parts, [image]), small.run(parts, [image])
    assert sizes[0] == (1, 3, 40, 64)
    assert [size[0] for size in sizes[1:]] == [5, 3]
    assert {size[2:] for size in sizes[1:]} == {(24, 24)}
    assert first.size == second.size == (122, 80)


def test_four_times_and_back(places: dict[str, Path]) -> None:
    expert = Swin2SR(ModelSource("denoising", str(places["x4"])), {"keep_size": True, "tile": 64})
    parts = expert.load()
    assert expert.scale(parts) == 4
    with torch.inference_mode():
        assert [r.size for r in expert.run(parts, [photo(9, 21), photo(1, 1)])] == [(9, 21), (1, 1)]


# -- Restormer ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_network_of_the_paper() -> None:
    """26.1 million parameters, and the names and shapes of the published files."""
    weights = Restormer(Shape()).state_dict()
    assert sum(tensor.numel() for tensor in weights.values()) == 26_126_644
    for name, shape in {
        "patch_embed.proj.weight": (48, 3, 3, 3),
        "encoder_level1.3.attn.temperature": (1, 1, 1),
        "encoder_level2.5.norm1.body.bias": (96,),
        "down2_3.body.0.weight": (48, 96, 3, 3),
        "latent.7.ffn.project_in.weight": (2042, 384, 1, 1),
        "up4_3.body.0.weight": (768, 384, 3, 3),
        "reduce_chan_level3.weight": (192, 384, 1, 1),
        "decoder_level1.0.attn.qkv_dwconv.weight": (288, 1, 3, 3),
        "refinement.3.ffn.dwconv.weight": (510, 1, 3, 3),
        "output.weight": (3, 96, 3, 3),
    }.items():
        assert tuple(weights[name].shape) == shape, name
    assert Shape.of(weights) == Shape()
    blind = Restormer(Shape(centred=False)).state_dict()
    assert not any(name.endswith("norm1.body.bias") for name in blind)
    assert Shape.of(blind) == Shape(centred=False)


@pytest.mark.parametrize("centred", [True, False])
def test_attention_between_features_as_the_paper_writes_it(centred: bool) -> None:
    """Equations 1 and 2 of the paper with loops over heads and features, and a block around them."""
    torch.manual_seed(0)
    model = Restormer(Shape.of(tiny_experts.restormer_weights(centred=centred)))
    block = model.encoder_level2[0]
    attention, features, heads = block.attn, 8, 2
    x = torch.rand(1, features, 4, 6)
    with torch.no_grad():
        attention.temperature.copy_(torch.tensor([0.7, 1.9]).reshape(2, 1, 1))
        mixed = attention.qkv_dwconv(attention.qkv(x))[0].reshape(3, features, 24)
        out = torch.zeros(features, 24)
        size = features // heads
        for head in range(heads):
            mine = slice(head * size, (head + 1) * size)
            query, key, value = (part[mine] for part in mixed)
            for place in range(size):
                scores = [float(query[place] @ other / (query[place].norm() * other.norm())) for other in key]
                shares = np.exp(np.array(scores) * float(attention.temperature[head]))
                shares /= shares.sum()
                out[head * size + place] = sum(float(share) * row for share, row in zip(shares, value, strict=True))
        expected = attention.project_out(out.reshape(1, features, 4, 6))
        torch.testing.assert_close(attention(x), expected, rtol=1e-4, atol=1e-5)
        norm = torch.nn.functional.layer_norm(x.permute(0, 2, 3, 1), (features,)).permute(0, 3, 1, 2)
        if centred:
            torch.testing.assert_close(block.norm1(x), norm, rtol=1e-4, atol=1e-5)
        else:
            spread = (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
            torch.testing.assert_close(block.norm1(x), x / spread)


def test_a_network_of_zeros_changes_nothing() -> None:
    model = Restormer(Shape.of(tiny_experts.restormer_weights()))
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        pixels = torch.rand(2, 3, 16, 24)
        assert torch.equal(model(pixels), pixels)


def test_a_published_file_is_converted(tmp_path: Path) -> None:
    weights = tiny_experts.restormer_weights(centred=False)
    torch.save({"params": weights}, tmp_path / "real_denoising.pth")
    folder = convert_restormer(tmp_path / "real_denoising.pth", tmp_path / "converted")
    model = read_restormer(folder / "model.safetensors")
    assert not model.training
    assert model.shape == Shape.of(weights)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
    expert = RestormerRestoration(ModelSource("denoising", str(folder)), {"tile": 24, "overlap": 8}, batch=2)
    parts = expert.load()
    with torch.inference_mode():
        (result,) = expert.run(parts, [photo(37, 20)])
    assert result.size == (37, 20)
    half = RestormerRestoration(ModelSource("denoising", str(folder), dtype="bfloat16")).load()
    assert half.model.dtype == torch.bfloat16


def test_weights_for_gray_pictures(tmp_path: Path) -> None:
    shape = Shape(1, 4, (1, 1, 1, 1), (1, 1, 1, 1), (10, 21, 42, 85), 1)
    torch.save(Restormer(shape).state_dict(), tmp_path / "gray.pth")
    folder = convert_restormer(tmp_path / "gray.pth", tmp_path / "gray")
    expert = RestormerRestoration(ModelSource("denoising", str(folder)))
    with torch.inference_mode():
        (result,) = expert.run(expert.load(), [photo(16, 9).convert("L")])
    assert (result.size, result.mode) == ((16, 9), "L")


class Evil:
    """A pickle that would run code."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("was_here"),))


def test_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"params": {"weight": torch.zeros(3)}}, "other.pth")
    torch.save([torch.zeros(3)], "list.pth")
    for name in ("other.pth", "list.pth"):
        with pytest.raises(ValueError, match=f"{name} does not hold the weights of a Restormer"):
            convert_restormer(name, "out")
    lacking = tiny_experts.restormer_weights()
    del lacking["output.weight"]
    torch.save(lacking, "lacking.pth")
    with pytest.raises(ValueError, match=r"output\.weight"):
        convert_restormer("lacking.pth", "out")
    torch.save({"params": Evil()}, "evil.pth")
    with pytest.raises(pickle.UnpicklingError):
        convert_restormer("evil.pth", "out")
    assert not Path("was_here").exists()
    assert not Path("out").exists()


def test_a_checkpoint_that_is_no_restormer(places: dict[str, Path]) -> None:
    expert = RestormerRestoration(ModelSource("denoising", str(places["x2"])))
    with pytest.raises(CheckpointError, match=r"denoising: the checkpoint .* cannot be read as Restormer"):
        expert.load()
