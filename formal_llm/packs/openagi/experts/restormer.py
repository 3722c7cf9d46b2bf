"""Restormer, a network that restores pictures, implemented from its paper.

Zamir et al. 2022, "Restormer: Efficient Transformer for High-Resolution Image Restoration", arXiv 2111.09881.

It is a U-shaped network of four levels: at each level the picture is half as wide and has twice the features. The
blocks are transformers whose attention is between features instead of between pixels (section 3.1 of the paper), so
that the cost is linear in the number of pixels, not quadratic, and whose feed-forward part is gated (section 3.2).

No library provides it, and its authors publish weights as files of PyTorch, which :func:`convert_restormer` converts to
safetensors. The names of the weights are the authors'; the sizes of the network are derived from the weights.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class NetworkSizes:
    """The sizes of a network; the defaults are those of the paper.

    Attributes:
        channels: 3 for colours, 1 for gray pictures.
        width: the number of features of the first level; each further level has twice as many.
        blocks: the number of blocks of each level.
        heads: the number of attention heads of each level.
        hidden: the number of gated features in the feed-forward part of each level: 2.66 times the features.
        refinement: the number of blocks that refine the result at full size.
        centred: whether the layer norms subtract the mean and have a bias: true of the weights for deblurring, not of
            those for denoising.
    """

    channels: int = 3
    width: int = 48
    blocks: tuple[int, ...] = (4, 6, 6, 8)
    heads: tuple[int, ...] = (1, 2, 4, 8)
    hidden: tuple[int, ...] = (127, 255, 510, 1021)
    refinement: int = 4
    centred: bool = True

    @classmethod
    def from_weights(cls, weights: Mapping[str, torch.Tensor]) -> NetworkSizes:
        """Derive the sizes of a network from its weights.

        Raises:
            KeyError: the weights are not those of a Restormer.
        """
        levels = ("encoder_level1", "encoder_level2", "encoder_level3", "latent")

        def count_blocks(level: str) -> int:
            return len({name.split(".")[1] for name in weights if name.startswith(f"{level}.")})

        return cls(
            channels=weights["patch_embed.proj.weight"].shape[1],
            width=weights["patch_embed.proj.weight"].shape[0],
            blocks=tuple(map(count_blocks, levels)),
            heads=tuple(weights[f"{level}.0.attn.temperature"].shape[0] for level in levels),
            hidden=tuple(weights[f"{level}.0.ffn.project_out.weight"].shape[1] for level in levels),
            refinement=count_blocks("refinement"),
            centred="latent.0.norm1.body.bias" in weights,
        )


class Restormer(nn.Module):  # type: ignore[misc]  # torch is typed in part
    """The network with given sizes."""

    def __init__(self, shape: NetworkSizes) -> None:
        super().__init__()
        self.shape = shape
        wide = [shape.width * 2**level for level in range(4)]

        def make_blocks(level: int, count: int, features: int | None = None) -> nn.Sequential:
            # At full size the decoder keeps the features of both branches, and with them the hidden size of level 2.
            features = wide[level] if features is None else features
            hidden = shape.hidden[wide.index(features)]
            return nn.Sequential(*(_Block(features, shape.heads[level], hidden, shape.centred) for _ in range(count)))

        self.patch_embed = nn.ModuleDict({"proj": _make_conv(shape.channels, wide[0], 3)})
        self.encoder_level1 = make_blocks(0, shape.blocks[0])
        self.down1_2 = _make_halving(wide[0])
        self.encoder_level2 = make_blocks(1, shape.blocks[1])
        self.down2_3 = _make_halving(wide[1])
        self.encoder_level3 = make_blocks(2, shape.blocks[2])
        self.down3_4 = _make_halving(wide[2])
        self.latent = make_blocks(3, shape.blocks[3])
        self.up4_3 = _make_doubling(wide[3])
        self.reduce_chan_level3 = _make_conv(wide[3], wide[2], 1)
        self.decoder_level3 = make_blocks(2, shape.blocks[2])
        self.up3_2 = _make_doubling(wide[2])
        self.reduce_chan_level2 = _make_conv(wide[2], wide[1], 1)
        self.decoder_level2 = make_blocks(1, shape.blocks[1])
        self.up2_1 = _make_doubling(wide[1])
        self.decoder_level1 = make_blocks(0, shape.blocks[0], wide[1])
        self.refinement = make_blocks(0, shape.refinement, wide[1])
        self.output = _make_conv(wide[1], shape.channels, 3)

    @property
    def dtype(self) -> torch.dtype:
        """The number type of the weights."""
        return self.output.weight.dtype

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Restore pictures x channels x height x width, from 0 to 1; height and width are multiples of 8."""
        first = self.encoder_level1(self.patch_embed["proj"](pixels))
        second = self.encoder_level2(self.down1_2["body"](first))
        third = self.encoder_level3(self.down2_3["body"](second))
        deepest = self.latent(self.down3_4["body"](third))
        # Each level of the decoder also receives the output of the encoder's same level.
        up = torch.cat([self.up4_3["body"](deepest), third], 1)
        up = self.decoder_level3(self.reduce_chan_level3(up))
        up = torch.cat([self.up3_2["body"](up), second], 1)
        up = self.decoder_level2(self.reduce_chan_level2(up))
        up = torch.cat([self.up2_1["body"](up), first], 1)
        # The network learns the residual.
        return pixels + self.output(self.refinement(self.decoder_level1(up)))


class _Block(nn.Module):  # type: ignore[misc]
    """Attention between features, then a gated feed-forward part, each with a residual connection."""

    def __init__(self, features: int, heads: int, hidden: int, centred: bool) -> None:
        super().__init__()
        self.norm1 = _Norm(features, centred)
        self.attn = _Attention(features, heads)
        self.norm2 = _Norm(features, centred)
        self.ffn = _Gated(features, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.ffn(self.norm2(x))


class _Norm(nn.Module):  # type: ignore[misc]
    """A layer norm over the features of each pixel."""

    def __init__(self, features: int, centred: bool) -> None:
        super().__init__()
        self.body = nn.ParameterDict({"weight": torch.ones(features)})
        if centred:
            self.body["bias"] = torch.zeros(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spread = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
        weight = self.body["weight"][:, None, None]
        if "bias" not in self.body:
            return x / spread * weight
        return (x - x.mean(1, keepdim=True)) / spread * weight + self.body["bias"][:, None, None]


class _Attention(nn.Module):  # type: ignore[misc]
    """Multi-Dconv head transposed attention: between features, over all pixels (section 3.1)."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))
        self.qkv = _make_conv(features, 3 * features, 1)
        self.qkv_dwconv = _make_conv(3 * features, 3 * features, 3, groups=3 * features)
        self.project_out = _make_conv(features, features, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pictures, _, height, width = x.shape
        # Pictures x (query, key, value) x heads x features x pixels.
        split = self.qkv_dwconv(self.qkv(x)).reshape(pictures, 3, self.heads, -1, height * width)
        query, key, value = split.unbind(1)
        likeness = functional.normalize(query, dim=-1) @ functional.normalize(key, dim=-1).transpose(-2, -1)
        mixed = (likeness * self.temperature).softmax(-1) @ value
        return self.project_out(mixed.reshape(x.shape))


class _Gated(nn.Module):  # type: ignore[misc]
    """Gated-Dconv feed-forward: one half of the features determines how much of the other passes (section 3.2)."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.project_in = _make_conv(features, 2 * hidden, 1)
        self.dwconv = _make_conv(2 * hidden, 2 * hidden, 3, groups=2 * hidden)
        self.project_out = _make_conv(hidden, features, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, passed = self.dwconv(self.project_in(x)).chunk(2, dim=1)
        return self.project_out(functional.gelu(gate) * passed)


def _make_conv(from_: int, to: int, side: int, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(from_, to, side, padding=side // 2, groups=groups, bias=False)


def _make_halving(features: int) -> nn.ModuleDict:
    """Create a layer that halves the height and width and doubles the features."""
    return nn.ModuleDict({"body": nn.Sequential(_make_conv(features, features // 2, 3), nn.PixelUnshuffle(2))})


def _make_doubling(features: int) -> nn.ModuleDict:
    """Create a layer that doubles the height and width and halves the features."""
    return nn.ModuleDict({"body": nn.Sequential(_make_conv(features, features * 2, 3), nn.PixelShuffle(2))})


def read_restormer(file: str | os.PathLike[str], dtype: str = "float32") -> Restormer:
    """Load the network with the weights of a safetensors file, ready for use on the CPU.

    Raises:
        KeyError, RuntimeError: the weights are not those of a Restormer.
        OSError: the file cannot be read.
    """
    from safetensors.torch import load_file

    weights = load_file(file)
    model = Restormer(NetworkSizes.from_weights(weights))
    model.load_state_dict(weights)
    model.eval().to(getattr(torch, dtype))
    return model


def convert_restormer(file: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """Convert a weight file, as the authors publish it, to a checkpoint for the loader ``restormer``.

    The files are on the releases page of github.com/swz30/Restormer; OpenAGI uses ``real_denoising.pth`` and
    ``single_image_defocus_deblurring.pth``. A file of PyTorch is a pickle; it is read with ``weights_only=True``, which
    creates only tensors from it.

    Args:
        file: the ``.pth`` file.
        folder: the folder to write ``model.safetensors`` to, created if missing.

    Returns:
        The folder, to be used as the checkpoint.

    Raises:
        ValueError: the file does not hold the weights of a Restormer.
        pickle.UnpicklingError: the file holds something other than tensors.
        OSError: a file cannot be read or written.
    """
    from safetensors.torch import save_file

    content = torch.load(file, map_location="cpu", weights_only=True)
    weights = content.get("params", content) if isinstance(content, dict) else None
    try:
        if weights is None:
            raise KeyError("no names")
        Restormer(NetworkSizes.from_weights(weights)).load_state_dict(weights)
    except (KeyError, RuntimeError, AttributeError, IndexError) as error:
        raise ValueError(f"{os.fspath(file)} does not hold the weights of a Restormer ({error})") from error
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, target / "model.safetensors")
    return target
