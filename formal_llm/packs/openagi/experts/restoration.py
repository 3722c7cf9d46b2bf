"""Experts that restore pictures: higher resolution, less noise, less blur.

Both kinds of networks take a picture of any size and return one whose sides are a fixed multiple. Large pictures are
processed in pieces, so that memory stays bounded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from formal_llm.packs.openagi.data.pixels import Floats, Pixels, resize_values
from formal_llm.packs.openagi.experts.expert import Expert, each_alike
from formal_llm.packs.openagi.experts.loaded import LoadedModel

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Tiling:
    """A division of a picture into overlapping pieces of one size, which a model processes together.

    Attributes:
        height, width: the size of the picture, in pixels.
        tile: the longest side of a piece.
        overlap: the minimum number of pixels that neighbours share; less than ``tile``.
    """

    height: int
    width: int
    tile: int
    overlap: int

    @property
    def piece(self) -> tuple[int, int]:
        """The height and width of each piece."""
        return min(self.height, self.tile), min(self.width, self.tile)

    @property
    def places(self) -> list[tuple[int, int]]:
        """The upper left corner of each piece."""
        rows, columns = (self._list_starts(length) for length in (self.height, self.width))
        return [(row, column) for row in rows for column in columns]

    def _list_starts(self, length: int) -> list[int]:
        if length <= self.tile:
            return [0]
        step = self.tile - self.overlap
        count = -(-(length - self.tile) // step) + 1
        # The last piece ends at the edge of the picture, and the others are spread evenly.
        return [round(number * (length - self.tile) / (count - 1)) for number in range(count)]

    def cut_pieces(self, values: Floats) -> list[Floats]:
        """Cut a picture of height x width x channels into its pieces."""
        height, width = self.piece
        return [values[row : row + height, column : column + width] for row, column in self.places]

    def join_pieces(self, pieces: Sequence[Floats], scale: int = 1) -> Floats:
        """Join pieces that were enlarged ``scale`` times to a picture.

        Where pieces overlap, the weight of each decreases towards its edge.
        """
        height, width = (side * scale for side in self.piece)
        weight = np.outer(self._make_ramp(height, scale), self._make_ramp(width, scale)).astype(np.float32)[..., None]
        channels = pieces[0].shape[2]
        total = np.zeros((self.height * scale, self.width * scale, channels), dtype=np.float32)
        weights = np.zeros((*total.shape[:2], 1), dtype=np.float32)
        for (row, column), piece in zip(self.places, pieces, strict=True):
            area = slice(row * scale, row * scale + height), slice(column * scale, column * scale + width)
            total[area] += piece * weight
            weights[area] += weight
        return total / weights

    def _make_ramp(self, length: int, scale: int) -> Floats:
        steps = np.arange(1, length + 1, dtype=np.float32)
        return np.minimum(np.minimum(steps, steps[::-1]), self.overlap * scale + 1)


class Restoration(Expert):
    """A network that maps pictures to pictures.

    Settings:
        keep_size: whether to resize the result to the size of the picture.
        tile: the longest side, in pixels, of the pieces that the network processes.
        overlap: the number of pixels that neighbouring pieces share.
    """

    inputs = ("image",)
    output = "image"
    defaults = MappingProxyType({"keep_size": False, "tile": 256, "overlap": 32})

    @abstractmethod
    def get_scale(self, loaded: LoadedModel) -> int:
        """Return the factor by which the output is higher and wider."""

    @abstractmethod
    def get_multiple(self, loaded: LoadedModel) -> int:
        """Return the number of which the sides of a picture must be multiples."""

    @abstractmethod
    def restore_pixels(self, loaded: LoadedModel, pixels: torch.Tensor) -> torch.Tensor:
        """Run the network on a tensor of pictures x 3 x height x width from 0 to 1."""

    def run_batch(self, loaded: LoadedModel, *columns: Sequence[Image.Image]) -> list[Image.Image]:
        """Restore each picture, keeping gray pictures gray, and transparency."""
        images = [Pixels.from_image(image) for image in columns[0]]
        tile = max(self.settings["tile"], 1)
        overlap = min(self.settings["overlap"], tile - 1)
        sizes = [pixels.values.shape[:2] for pixels in images]
        tilings = [Tiling(height, width, tile, overlap) for height, width in sizes]
        pieces = [
            piece for pixels, tiling in zip(images, tilings, strict=True) for piece in tiling.cut_pieces(pixels.values)
        ]
        restored = iter(self._restore_pieces(loaded, pieces))
        scale = self.get_scale(loaded)
        results = []
        for pixels, tiling in zip(images, tilings, strict=True):
            values = tiling.join_pieces([next(restored) for _ in tiling.places], scale)
            if self.settings["keep_size"] and scale != 1:
                values = resize_values(values, tiling.width, tiling.height, Image.Resampling.LANCZOS)
            results.append(pixels.make_image(values))
        return results

    def _restore_pieces(self, loaded: LoadedModel, pieces: Sequence[Floats]) -> list[Floats]:
        """Run the network on pieces of pictures, those of one size together."""
        import torch

        multiple, scale = self.get_multiple(loaded), self.get_scale(loaded)

        def restore_pieces(places: Sequence[int]) -> list[Floats]:
            height, width = pieces[places[0]].shape[:2]
            stack = np.stack([pad_sides(pieces[place], multiple) for place in places]).transpose(0, 3, 1, 2)
            pixels = torch.from_numpy(np.ascontiguousarray(stack)).to(loaded.device, loaded.model.dtype)
            output = self.restore_pixels(loaded, pixels).float().cpu().numpy().transpose(0, 2, 3, 1)
            output = output[:, : height * scale, : width * scale]
            gray = [pieces[place].shape[2] == 1 for place in places]
            return [one.mean(axis=2, keepdims=True) if was else one for one, was in zip(output, gray, strict=True)]

        return each_alike([piece.shape[:2] for piece in pieces], self.batch, restore_pieces)


class Swin2SR(Restoration):
    """Enlarges a picture (Swin2SR, Conde et al. 2022).

    A network that was trained to undo noise, blur and compression while enlarging restores a picture if the result is
    reduced to the original size (``keep_size``).
    """

    def load_model(self) -> LoadedModel:
        """Load the model without its image processor, whose work is done here, for pieces and for any size."""
        return LoadedModel(self.source.load_model("Swin2SRForImageSuperResolution"))

    def get_scale(self, loaded: LoadedModel) -> int:
        """Return the factor of the checkpoint, usually 2 or 4."""
        return int(loaded.model.config.upscale)

    def get_multiple(self, loaded: LoadedModel) -> int:
        """Return the side of the network's attention windows."""
        return int(loaded.model.config.window_size)

    def restore_pixels(self, loaded: LoadedModel, pixels: torch.Tensor) -> torch.Tensor:
        """Return the network's reconstruction."""
        return loaded.model(pixel_values=pixels).reconstruction


def pad_sides(values: Floats, multiple: int) -> Floats:
    """Pad a picture to three channels and to sides that are multiples, mirroring it at its right and lower edge."""
    height, width = (-side % multiple for side in values.shape[:2])
    if values.shape[2] == 1:
        values = np.repeat(values, 3, axis=2)
    return np.pad(values, ((0, height), (0, width), (0, 0)), mode="symmetric")
