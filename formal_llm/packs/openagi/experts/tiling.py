"""Large pictures in pieces: cut with an overlap, worked on piece by piece, and put together without seams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formal_llm.packs.openagi.data.pixels import Floats


@dataclass(frozen=True)
class Tiling:
    """How a picture is cut. All its pieces are of one size, so that they go through a model together.

    Attributes:
        height, width: the size of the picture, in pixels.
        tile: the longest side of a piece.
        overlap: how many pixels neighbours share at least; less than ``tile``.
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
        rows, columns = (self._starts(length) for length in (self.height, self.width))
        return [(row, column) for row in rows for column in columns]

    def _starts(self, length: int) -> list[int]:
        if length <= self.tile:
            return [0]
        step = self.tile - self.overlap
        count = -(-(length - self.tile) // step) + 1
        # The last piece ends where the picture does, and the others are spread evenly.
        return [round(number * (length - self.tile) / (count - 1)) for number in range(count)]

    def cut(self, values: Floats) -> list[Floats]:
        """The pieces of a picture of height x width x channels."""
        height, width = self.piece
        return [values[row : row + height, column : column + width] for row, column in self.places]

    def join(self, pieces: Sequence[Floats], scale: int = 1) -> Floats:
        """The picture of pieces that were made ``scale`` times as high and wide.

        Where pieces overlap, each counts the less the nearer its edge is.
        """
        height, width = (side * scale for side in self.piece)
        weight = np.outer(self._ramp(height, scale), self._ramp(width, scale)).astype(np.float32)[..., None]
        channels = pieces[0].shape[2]
        total = np.zeros((self.height * scale, self.width * scale, channels), dtype=np.float32)
        weights = np.zeros((*total.shape[:2], 1), dtype=np.float32)
        for (row, column), piece in zip(self.places, pieces, strict=True):
            where = slice(row * scale, row * scale + height), slice(column * scale, column * scale + width)
            total[where] += piece * weight
            weights[where] += weight
        return total / weights

    def _ramp(self, length: int, scale: int) -> Floats:
        steps = np.arange(1, length + 1, dtype=np.float32)
        return np.minimum(np.minimum(steps, steps[::-1]), self.overlap * scale + 1)
