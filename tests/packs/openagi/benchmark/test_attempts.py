"""Many jobs at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formal_llm.errors import ProviderError
from formal_llm.packs.openagi.benchmark.records import Records
from tests.packs.openagi.benchmark.writers import Writer


@pytest.mark.parametrize("concurrency", [None, 1, 3])
def test_threads_make_the_same_plans(concurrency: int | None, made: Any, tmp_path: Path) -> None:
    bench = made([7, 50, 116])
    with Records(tmp_path, bench.identity) as records:
        llms = {"w": Writer("Step 1: Use Sentiment Analysis")}
        bench.run(llms, ["zero", "constrained", "formal"], records, concurrency=concurrency)
        rows = {(row["method"], row["task"], row["repeat"]): row["valid"] for row in records.joined()}
    assert {key for key, valid in rows.items() if key[0] == "zero" and valid} == {("zero", 116, 0), ("zero", 116, 1)}
    assert all(valid for key, valid in rows.items() if key[0] == "formal")
    assert len(rows) == 18


def test_a_provider_that_fails(made: Any, tmp_path: Path) -> None:
    bench = made([7, 50, 116], repeats=2)
    with Records(tmp_path, bench.identity) as records:
        # Now and then: the others are made and executed, and the next run goes on with the rest.
        with pytest.raises(ProviderError):
            bench.run({"w": Writer("Step 1: Use Sentiment Analysis", fail=2)}, ["zero"], records)
        assert (len(records.plans), len(records.scores)) == (4, 1)
        # Always: the run ends soon.
        broken = Writer("", fail=1000)
        with pytest.raises(ProviderError):
            bench.run({"b": broken}, ["zero"], records)
        assert broken.fail == 995
        bench.run({"w": Writer("Step 1: Use Sentiment Analysis")}, ["zero"], records)
        assert len(records.plans) == 6
