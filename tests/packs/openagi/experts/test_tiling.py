"""Large pictures in pieces: cut, overlapped, joined."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.openagi.experts.tiling import Tiling

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
