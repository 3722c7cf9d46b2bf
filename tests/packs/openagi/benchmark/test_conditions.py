"""The prompts, and many jobs at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formal_llm.errors import ProviderError
from formal_llm.packs.openagi.benchmark.conditions import PlanKey
from formal_llm.packs.openagi.benchmark.records import Records
from tests.packs.openagi.benchmark.writers import Writer


def test_free_text_is_read_verified_and_paid_for(made: Any, tmp_path: Path) -> None:
    bench = made([7, 50], repeats=1)
    writer = Writer("Step 1: Use Colorization\nStep 2: Return the result")
    with Records(tmp_path, bench.identity) as records:
        bench.run({"w": writer}, ["zero", "few"], records)
        plan = records.plans[PlanKey("w", "zero", 7, 0)]
        other = records.plans[PlanKey("w", "few", 50, 0)]
    assert plan["word"] == ["colorization", "input_image"]
    assert plan["valid"]
    assert plan["steps"] == ["Use Colorization", "Return the result"]
    assert plan["usage"]["input_tokens"] == 100
    assert not other["valid"]
    assert "Colorization cannot stand at place 1" in other["reason"]
    zero, few = writer.prompts[0], writer.prompts[2]
    task = "Given grayscale image, how to return the regular image step by step?"
    # Some tools are not there, so those that are there are told.
    assert zero.startswith("The tools are: Colorization, Super Resolution, ")
    assert "Captioning" not in zero
    assert zero.endswith(f"\n\nProblem: {task}.\nWhat is its solution? Use 'Step' to mark.")
    assert few.endswith(f"Problem: {task}.\nSolution:")
    # No example is the task itself, and none uses a tool that is not there.
    assert few.count(task) == 1
    assert few.count("Problem: ") == 5 + 1
    assert "Step 1: Use Sentiment Analysis;" in few


@pytest.mark.parametrize("concurrency", [None, 1, 3])
def test_threads_make_the_same_plans(concurrency: int | None, made: Any, tmp_path: Path) -> None:
    bench = made([7, 50, 116])
    with Records(tmp_path, bench.identity) as records:
        llms = {"w": Writer("Step 1: Use Sentiment Analysis")}
        bench.run(llms, ["zero", "names", "formal"], records, concurrency=concurrency)
        rows = {(row["method"], row["task"], row["repeat"]): row["valid"] for row in records.join_scores()}
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
