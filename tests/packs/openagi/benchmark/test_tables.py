"""The benchmark's tables, and the paper's published figures beside them."""

from __future__ import annotations

import io
import statistics
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from formal_llm import TaskPack
from formal_llm.packs.openagi.benchmark.tables import (
    GROUPS,
    MethodColumn,
    columns_of,
    compute_interval,
    markdown_table,
    read_published,
    rich_tables,
)
from tests.strategies import examples


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_the_mean_is_inside_and_the_values_around(values: list[float]) -> None:
    found = compute_interval(values)
    assert found is not None
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found == compute_interval(values)  # the draws are always the same


SCORES = {"Task 2": "bertscore", "Task 3": "ssim"}


def row(llm: str, method: str, task: int, repeat: int, value: float | None, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": more.pop("read", 0), "output_tokens": more.pop("wrote", 0)}
    facts = {"group": "Task 3", "valid": bool(value), "questions": 2, "usage": usage}
    return {"llm": llm, "method": method, "task": task, "repeat": repeat, "value": value, **facts, **more}


ROWS = [
    row("b", "formal", 1, 0, 0.5, read=10, wrote=2),
    row("b", "formal", 1, 1, 0.7, read=30, wrote=2),
    row("b", "formal", 2, 0, 0.1, group="Task 2", questions=5),
    row("b", "formal", 2, 1, 0.3, group="Task 2", questions=5),
    row("b", "formal", 3, 0, 0.9, group="Task 1"),
    row("b", "zero", 1, 0, 0.0),
    row("a", "zero", 1, 0, None, valid=True),
]


def test_the_figures_of_a_column() -> None:
    zero, formal, open_ = columns_of(ROWS, unscored=[3])
    assert (zero.llm, zero.method, formal.method, open_.llm) == ("b", "zero", "formal", "a")
    assert formal.valid == 1
    assert formal.scores == {"Task 1": None, "Task 2": pytest.approx(0.2), "Task 3": pytest.approx(0.6), "Task X": None}
    assert formal.average == pytest.approx(0.4)
    assert formal.deviation == pytest.approx(statistics.stdev([0.3, 0.5]))
    assert formal.questions == pytest.approx((2 + 2 + 5 + 5 + 2) / 5)
    assert formal.tokens == pytest.approx((12 + 32) / 5)
    assert (zero.valid, zero.average, zero.deviation, zero.tokens) == (0, 0, None, None)
    # What is valid and not judged yet has no score.
    assert (open_.valid, open_.average) == (1, None)


def test_a_task_counts_once_however_many_of_its_repeats_are_there() -> None:
    (column,) = columns_of(
        [row("a", "formal", 1, repeat, 0.2) for repeat in range(3)] + [row("a", "formal", 2, 0, 0.8)]
    )
    assert column.average == pytest.approx(0.5)
    assert column.scores["Task 3"] == pytest.approx(0.5)


def test_markdown() -> None:
    table = markdown_table("Title", columns_of(ROWS, unscored=[3]), SCORES).splitlines()
    assert table[0] == "Title"
    assert table[2] == "|  | b zero | b formal | a zero |"
    assert table[4] == "| valid plans | 0.0% | 100.0% | 100.0% |"
    assert table[5] == "| Task 1 (not scored) | - | - | - |"
    assert table[7] == "| Task 3 (ssim) | 0.0000 | 0.6000 | - |"
    assert table[9] == "| average over tasks | 0.0000 | 0.4000 | - |"
    assert table[10].startswith("| ± over repeats | - | 0.1414 |")
    assert {line.count("|") for line in table[2:]} == {5}


@given(
    st.lists(
        st.tuples(st.text("abc:", min_size=1, max_size=30), st.integers(1, 4)), min_size=1, max_size=6, unique=True
    ),
    st.integers(70, 200),
)
@examples(40)
def test_no_figure_is_cut_off(llms: list[tuple[str, int]], width: int) -> None:
    columns = [
        MethodColumn(f"{name} {place}", "typed", 5, 0.125, dict.fromkeys(GROUPS, 0.1234), 0.5678, 0.01, 3.5, 1234.5)
        for place, (name, count) in enumerate(llms)
        for _ in range(count if len(name) < 8 else 1)
    ]
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for table in rich_tables(columns, SCORES, width):
        console.print(table)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in said
    assert said.count("0.5678") == len(columns)
    assert said.count("12.5%") == len(columns)


# -- published figures -------------------------------------------------------------------------------------------------

#: Columns of Table 2 whose average follows from the column in neither way: see published.toml.
STRANGE = {("Flan-T5-Large", "RLTF"), ("Vicuna-7B", "F-LLM+RLTF"), ("LLaMA-2-13B", "RLTF")}
#: Tasks 1, 2, 3 and X among the 17 test tasks.
WEIGHTS = {1: [(1, 9, 3, 4)], 2: [(1, 9, 3, 4), (1, 10, 3, 3)]}


def test_published_figures_agree_with_themselves() -> None:
    published = read_published()
    assert "2402.00798v4" in published.source
    assert [column.published for column in published.columns] == [1] * 9 + [2] * 9
    for column in published.columns:
        figures = [column.scores[group] for group in GROUPS]
        assert all(0 <= figure <= 1 for figure in (*figures, column.valid) if figure is not None)
        means = [
            sum(w * (f or 0) for w, f in zip(weights, figures, strict=True)) / 17
            for weights in WEIGHTS[column.published]
        ]
        near = any(abs(mean - (column.average or 0)) < 1e-4 for mean in means)
        assert near == ((column.llm, column.method) not in STRANGE), column
        assert (column.valid == 1) == column.method.startswith("F-LLM")
        # So many of 17 plans.
        assert any(round(count / 17, 2) == column.valid for count in range(18))


def test_the_published_groups_give_the_published_weights() -> None:
    pack, groups = TaskPack.load("openagi"), read_published().groups
    for moved, weights in (({}, (1, 10, 3, 3)), (groups, (1, 9, 3, 4))):
        counted = Counter(moved.get(number, pack.tasks[number].group) for number in pack.splits["test"])
        assert tuple(counted[group] for group in GROUPS) == weights
    assert not set(groups) - set(pack.splits["test"])
