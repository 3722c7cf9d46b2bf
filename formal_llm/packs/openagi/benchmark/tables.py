"""The benchmark's tables: the layout of the paper's Tables 1 and 2, with its published figures in a separate table.

Columns are methods of LLMs, rows are the share of valid plans, the score of each group of tasks, their average over
tasks, and the mean usage of a plan.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np

from formal_llm import authored
from formal_llm.authored.tables import Items, Keys, NamedEntries, read_toml
from formal_llm.llms.usage import Prices, TokenUsage
from formal_llm.packs.openagi.benchmark.conditions import METHODS, Method
from formal_llm.packs.openagi.benchmark.records import ScoredPlan

if TYPE_CHECKING:
    from rich.table import Table


#: The number of sets of tasks to draw, and the seed, which makes them always the same.
DRAWS, SEED = 10_000, 0


class Interval(NamedTuple):
    """An interval between two values."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f}"


def compute_interval(values: Sequence[float]) -> Interval | None:
    """Compute the middle 95 % of the means of sets of tasks drawn from these, each as large as this one.

    Returns:
        None for less than two tasks, which allow no conclusion about others.
    """
    if len(values) < 2:
        return None
    drawn = np.random.default_rng(SEED).integers(len(values), size=(DRAWS, len(values)))
    low, high = np.quantile(np.asarray(values, dtype=float)[drawn].mean(axis=1), [0.025, 0.975])
    return Interval(float(low), float(high))


#: The groups of tasks, in the order of the paper's tables.
GROUPS = ("Task 1", "Task 2", "Task 3", "Task X")


@dataclass(frozen=True, slots=True)
class MethodColumn:
    """The figures of a method with an LLM.

    Attributes:
        llm, method: the names of the LLM and the method.
        valid: the share of valid plans, from 0 to 1.
        scores: for each group, the mean score over its tasks and repeats; None if none of its tasks was scored.
        average: the mean over all scored tasks, each counting once; None if none was scored.
        deviation: the standard deviation of the average over the repeats; None for a single repeat.
        questions: the mean number of questions per plan; None for published figures, which do not include it.
        tokens: the mean number of input and output tokens per plan; None if they were not counted.
        requests: the mean number of requests per plan; None if they were not counted.
        cost: the mean cost of a plan; None without prices.
        published: the number of the paper's table; 0 for our own figures.
        average_interval: the 95 % interval of the average over similar tasks; None for published figures.
        note: why there are no plans; empty if there are.
    """

    llm: str
    method: str
    plans: int
    valid: float
    scores: Mapping[str, float | None]
    average: float | None
    deviation: float | None = None
    questions: float | None = None
    tokens: float | None = None
    requests: float | None = None
    cost: float | None = None
    published: int = 0
    average_interval: Interval | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """Figures published by others.

    Attributes:
        source: the publication.
        scores: the score of each group there.
        columns: the figures.
        differences: the differences from our own figures, a sentence each.
        groups: the group there of each task that is counted in another group than its own.
    """

    source: str
    scores: Mapping[str, str]
    columns: tuple[MethodColumn, ...]
    differences: tuple[str, ...] = ()
    groups: Mapping[int, str] = field(default_factory=dict)


def columns_of(
    rows: Iterable[ScoredPlan],
    unscored: Iterable[int] = (),
    groups: Mapping[int, str] | None = None,
    prices: Prices | None = None,
) -> list[MethodColumn]:
    """Compute the columns of recorded plans: LLMs in the order of their first occurrence, each with its methods.

    Args:
        rows: plans with their scores (:meth:`~formal_llm.packs.openagi.benchmark.records.Records.join_scores`).
        unscored: the tasks that no score can judge.
        groups: the group of each task that is counted in another group than its own.
        prices: the prices of tokens.
    """
    passed_over = set(unscored)
    by_column: dict[tuple[str, Method], list[ScoredPlan]] = {}
    for row in rows:
        counted: ScoredPlan = {**row, "group": (groups or {}).get(row["task"], row["group"])}
        by_column.setdefault((row["llm"], row["method"]), []).append(counted)
    return in_order([_make_column(llm, method, some, passed_over, prices) for (llm, method), some in by_column.items()])


def in_order(columns: Sequence[MethodColumn]) -> list[MethodColumn]:
    """Sort columns so that those of an LLM are together, with its methods in their order."""
    llms = list(dict.fromkeys(column.llm for column in columns))
    return sorted(columns, key=lambda column: (llms.index(column.llm), METHODS.index(cast("Method", column.method))))


def empty_column(llm: str, method: str, why: str) -> MethodColumn:
    """Create the column of a method that does not apply to an LLM."""
    return MethodColumn(llm, method, 0, 0.0, dict.fromkeys(GROUPS), None, note=why)


def _make_column(
    llm: str, method: str, rows: Sequence[ScoredPlan], passed_over: set[int], prices: Prices | None
) -> MethodColumn:
    scored = [row for row in rows if row["task"] not in passed_over]
    averages = _compute_means(scored, "repeat")
    tokens = [row["usage"]["input_tokens"] + row["usage"]["output_tokens"] for row in rows]
    requests = [row["usage"].get("requests", 0) for row in rows]
    grouped = any(row["group"] in GROUPS for row in rows)
    by_group = {
        group: _mean_over_tasks([row for row in scored if row["group"] == group]) for group in GROUPS if grouped
    }
    return MethodColumn(
        llm, method, len(rows), statistics.fmean(row["valid"] for row in rows), by_group, _mean_over_tasks(scored),
        deviation=statistics.stdev(averages) if len(averages) > 1 else None,
        questions=statistics.fmean(row["questions"] for row in rows),
        tokens=statistics.fmean(tokens) if any(tokens) else None,
        requests=statistics.fmean(requests) if any(requests) else None,
        cost=None if prices is None else statistics.fmean(prices.cost(TokenUsage(**row["usage"])) for row in rows),
        average_interval=compute_interval(_compute_means(scored, "task")),
    )  # fmt: skip


def _mean_over_tasks(rows: Sequence[ScoredPlan]) -> float | None:
    """Return the mean over tasks of the means over repeats, whose number varies in an interrupted run."""
    means = _compute_means(rows, "task")
    return statistics.fmean(means) if means else None


def _compute_means(rows: Sequence[ScoredPlan], key: Literal["task", "repeat"]) -> list[float]:
    """Return the mean score of the judged plans of each task, or of each repeat."""
    values: dict[int, list[float]] = {}
    for row in rows:
        if row["value"] is not None:
            values.setdefault(row[key], []).append(row["value"])
    return [statistics.fmean(some) for some in values.values()]


_COLUMN = {"table": int, "llm": str, "method": str, "valid": float, "average": float, **dict.fromkeys(GROUPS, float)}
_PUBLISHED = Keys(
    {
        "source": str,
        "scores": NamedEntries(str),
        "differences": Items(str),
        "groups": NamedEntries(str),
        "columns": Items(Keys(_COLUMN, needed=(*_COLUMN,))),
    },
    needed=("source", "scores", "differences", "groups", "columns"),
)


def read_published() -> Published:
    """Read the paper's figures from ``tasks/openagi/published.toml``.

    Raises:
        NotationError: the file cannot be read.
    """
    file = authored.find("tasks", "openagi") / "published.toml"
    data = read_toml(file, _PUBLISHED)
    columns = (
        MethodColumn(
            row["llm"], row["method"], 0, float(row["valid"]), {group: float(row[group]) for group in GROUPS},
            float(row["average"]), published=row["table"],
        )
        for row in data["columns"]
    )  # fmt: skip
    groups = {int(task): group for task, group in data["groups"].items()}
    return Published(data["source"], data["scores"], tuple(columns), tuple(data["differences"]), groups)


# -- rendering ---------------------------------------------------------------------------------------------------------


def lines_of(columns: Sequence[MethodColumn], scores: Mapping[str, str]) -> list[list[str]]:
    """Return the rows of a table as texts: the name of the row, for groups with the score, and a figure per column."""
    lines = [["valid plans", *(column.note or f"{column.valid:.1%}" for column in columns)]]
    grouped = any(column.scores for column in columns)
    for group in GROUPS if grouped else ():
        figures = [_format_figure(column.scores[group]) for column in columns]
        lines.append([f"{group} ({scores.get(group) or 'not scored'})", *figures])
    if grouped or any(column.average is not None for column in columns):
        lines.append(["average over tasks", *(_format_figure(column.average) for column in columns)])
    if any(column.deviation is not None for column in columns):
        lines.append(["± over repeats", *(_format_figure(column.deviation) for column in columns)])
    if any(column.average_interval is not None for column in columns):
        lines.append(["95 % over tasks", *(str(column.average_interval or "-") for column in columns)])
    if not all(column.published for column in columns):
        lines.append(["questions per plan", *(_format_figure(column.questions, 1) for column in columns)])
        if any(column.requests for column in columns):
            lines.append(["requests per plan", *(_format_figure(column.requests, 1) for column in columns)])
        lines.append(["tokens per plan", *(_format_figure(column.tokens, 0) for column in columns)])
        if any(column.cost is not None for column in columns):
            lines.append(["cost per plan", *(_format_figure(column.cost, 6) for column in columns)])
        lines.append(["plans", *(str(column.plans) for column in columns)])
    return lines


def _format_figure(value: float | None, places: int = 4) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def rich_tables(columns: Sequence[MethodColumn], scores: Mapping[str, str], width: int) -> list[Table]:
    """Create tables for the terminal, as many as needed to fit a width. The methods of an LLM stay together.

    ``scores`` has the name of the score of each group; the ``width`` counts characters.
    """
    by_llm = [[column for column in columns if column.llm == llm] for llm in dict.fromkeys(one.llm for one in columns)]
    room = width - max(len(line[0]) for line in lines_of(columns, scores)) - 4
    tables: list[list[MethodColumn]] = []
    for group in by_llm:
        for part in [group] if _measure_width(group) <= room else [[column] for column in group]:
            if tables and _measure_width(tables[-1] + part) <= room:
                tables[-1] += part
            else:
                tables.append(list(part))
    return [_make_rich_table(part, scores) for part in tables]


def _measure_width(columns: Sequence[MethodColumn]) -> int:
    def measure_column(column: MethodColumn) -> int:
        return max(len(column.llm), len(column.method), len(column.note), len(str(column.average_interval or "")), 6)

    return sum(measure_column(column) + 3 for column in columns)


def _make_rich_table(columns: Sequence[MethodColumn], scores: Mapping[str, str]) -> Table:
    from rich.table import Table

    table = Table()
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(f"{column.llm}\n{column.method}", justify="right", no_wrap=True)
    for line in lines_of(columns, scores):
        if line[0] in ("average over tasks", "questions per plan"):
            table.add_section()
        table.add_row(*line)
    return table


def markdown_table(title: str, columns: Sequence[MethodColumn], scores: Mapping[str, str]) -> str:
    """Write a table in Markdown, below its title."""
    heads = ["", *(f"{column.llm} {column.method}" for column in columns)]
    return markdown_lines(title, heads, lines_of(columns, scores))


def markdown_lines(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """Write a table in Markdown, below its title; its first ``left`` columns are texts."""
    marks = ["---" if place < left else "---:" for place in range(len(heads))]
    rows = [[head.replace("|", "\\|") for head in heads], marks, *lines]
    return f"{title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def published_title(published: Published, table: int) -> str:
    """Return the title of a table of published figures, which distinguishes them from our own."""
    return f"PUBLISHED, table {table} of {published.source}: other models, tools and data, for reference only"


def as_data(columns: Sequence[MethodColumn]) -> list[dict[str, object]]:
    """Convert columns to JSON data."""
    return [asdict(column) for column in columns]
