"""Restormer against its paper, and its weights as they are published."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from formal_llm.packs.openagi.experts.loading import ModelSource
from formal_llm.packs.openagi.experts.restoration import RestormerRestoration
from formal_llm.packs.openagi.experts.restormer import NetworkSizes, Restormer, convert_restormer, read_restormer
from tests.packs.openagi.experts import tiny_experts


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.slow
def test_the_network_of_the_paper() -> None:
    """26.1 million parameters, and the names and shapes of the published files."""
    weights = Restormer(NetworkSizes()).state_dict()
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
    assert NetworkSizes.from_weights(weights) == NetworkSizes()
    blind = Restormer(NetworkSizes(centred=False)).state_dict()
    assert not any(name.endswith("norm1.body.bias") for name in blind)
    assert NetworkSizes.from_weights(blind) == NetworkSizes(centred=False)


@pytest.mark.parametrize("centred", [True, False])
def test_attention_between_features_as_the_paper_writes_it(centred: bool) -> None:
    """Equations 1 and 2 of the paper with loops over heads and features, and a block around them."""
    torch.manual_seed(0)
    model = Restormer(NetworkSizes.from_weights(tiny_experts.restormer_weights(centred=centred)))
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
    model = Restormer(NetworkSizes.from_weights(tiny_experts.restormer_weights()))
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
    assert model.shape == NetworkSizes.from_weights(weights)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
    expert = RestormerRestoration(ModelSource("denoising", str(folder)), {"tile": 24, "overlap": 8}, batch=2)
    parts = expert.load_model()
    with torch.inference_mode():
        (result,) = expert.run_batch(parts, [photo(37, 20)])
    assert result.size == (37, 20)
    half = RestormerRestoration(ModelSource("denoising", str(folder), dtype="bfloat16")).load_model()
    assert half.model.dtype == torch.bfloat16


def test_weights_for_gray_pictures(tmp_path: Path) -> None:
    shape = NetworkSizes(1, 4, (1, 1, 1, 1), (1, 1, 1, 1), (10, 21, 42, 85), 1)
    torch.save(Restormer(shape).state_dict(), tmp_path / "gray.pth")
    folder = convert_restormer(tmp_path / "gray.pth", tmp_path / "gray")
    expert = RestormerRestoration(ModelSource("denoising", str(folder)))
    with torch.inference_mode():
        (result,) = expert.run_batch(expert.load_model(), [photo(16, 9).convert("L")])
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
