"""What the tables of a benchmark say about where its figures differ from the published ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from formal_llm.packs.openagi.data.making import make_data
from tests.cli.inside import runner

run = runner("bench")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("data")
    make_data(folder, tasks=[115, 116], samples=1, side=48)
    return str(folder)


def test_a_task_is_counted_by_its_kind_or_as_the_published_figures_do(data: str, tmp_path: Path) -> None:
    common = ("openagi", "--method", "formal", "--tasks", "115,116", "--repeats", "1", "--samples", "1",
              "--text-score", "chrf", "--data", data, "--out", str(tmp_path), "--show", "json")  # fmt: skip
    figures: dict[str, dict[str, Any]] = {}
    for grouping in ("kind", "published"):
        code, printed, said = run(*common, "--grouping", grouping)
        assert code == 0, said
        figures[grouping] = json.loads(printed)
        assert figures[grouping]["grouping"] == grouping
    scores = {name: made["columns"][0]["scores"] for name, made in figures.items()}
    assert scores["kind"]["Task X"] is None
    both, alone = scores["kind"]["Task 2"], scores["published"]["Task 2"]
    assert scores["published"]["Task X"] == pytest.approx(2 * both - alone)
    averages = [made["columns"][0]["average"] for made in figures.values()]
    assert averages[0] == averages[1]
    assert figures["kind"]["scores"] == {"Task 2": "chrf"}
    assert figures["published"]["scores"] == {"Task 2": "chrf", "Task X": "chrf"}


def test_differences_stand_where_the_figures_do(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    common = ("openagi", "--method", "formal", "--tasks", "116", "--repeats", "1", "--samples", "1",
              "--text-score", "chrf", "--data", data, "--out", str(tmp_path))  # fmt: skip
    code, printed, _ = run(*common)
    assert code == 0
    below = printed[printed.index("PUBLISHED, table 2") :]
    for what in ("distance", "nateraw/vit-base-beans", "openai/clip-vit-base-patch16", "microsoft/deberta-xlarge-mnli",
                 "task 115", "English to German", "two texts", "15 solved examples"):  # fmt: skip
        assert what in below
        assert what in (tmp_path / "table.md").read_text(encoding="utf-8")
    assert below.count("other there: ") == 6
    code, printed, _ = run(*common, "--no-published")
    assert "other there" not in printed
