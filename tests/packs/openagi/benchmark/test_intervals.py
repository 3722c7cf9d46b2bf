"""Intervals over tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.openagi.benchmark.intervals import Interval, compute_interval


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_the_mean_is_inside_and_the_values_around(values: list[float]) -> None:
    found = compute_interval(values)
    assert found is not None
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found == compute_interval(values)  # the draws are always the same


def test_it_is_as_wide_as_theory_says() -> None:
    # The mean of 100 draws of 0 and 1 has the standard deviation 0.05; 95 % are within 1.96 of them.
    found = compute_interval([0.0, 1.0] * 50)
    assert found is not None
    assert found.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.012)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.012)


def test_one_task_tells_nothing_of_others() -> None:
    assert compute_interval([]) is compute_interval([0.5]) is None
    assert str(Interval(0.25, 0.5)) == "0.25 to 0.50"
