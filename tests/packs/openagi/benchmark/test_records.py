"""What is on record, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formal_llm.errors import ResultsError
from formal_llm.llms import resolve
from formal_llm.packs.openagi.benchmark.records import Records


def test_every_value_is_on_record(made: Any, tmp_path: Path) -> None:
    bench = made([7, 184])
    with Records(tmp_path, bench.identity) as records:
        bench.run({"builtin": resolve("builtin")}, ["formal"], records)
        scores = list(records.scores.values())
    assert len(scores) == 2  # both repeats made the same plan
    for row in scores:
        assert row["value"] == pytest.approx(sum(sample["value"] for sample in row["samples"]) / 2)
        for sample in row["samples"]:
            assert [step["name"] for step in sample["steps"]] == row["word"]
            for step in sample["steps"]:
                (file,) = (tmp_path / "values").glob(f"{step['key']}.*")
                assert file.suffix == (".png" if step["kind"] == "image" else ".txt")


def test_another_setting_is_refused(made: Any, tmp_path: Path, data: Path) -> None:
    bench = made([7])
    with Records(tmp_path, bench.identity), pytest.raises(ResultsError, match="another benchmark is writing"):
        Records(tmp_path, bench.identity)
    for other, key in ((made([7], samples=1), "judge"), (made([7], temperature=0.5), "asking")):
        with pytest.raises(ResultsError, match=rf"another setting \({key}"):
            Records(tmp_path, other.identity)
    assert Records(tmp_path, made([7, 50], repeats=9).identity).close() is None


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("setting.json", "no", "no JSON"),
        ("plans.jsonl", "hello", "no file of a benchmark"),
        ("plans.jsonl", '{"llm": 1}\n', "plans.jsonl:1"),
        ("scores.jsonl", "[]\n", "scores.jsonl:1"),
    ],
)
def test_files_that_are_something_else(name: str, text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ResultsError, match=why):
        Records(tmp_path, {})
    assert (tmp_path / name).read_text() == text
