"""The benchmark's tables: the layout of the paper's Tables 1 and 2, with its published figures as a table of their own.

Columns are methods of LLMs, rows are the share of valid plans, the score of each group of tasks, and their average over
tasks; below them, what a plan took.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal, cast

from formal_llm import authored
from formal_llm.authored.tables import Items, Keys, NamedEntries, read_toml
from formal_llm.packs.openagi.benchmark.conditions import METHODS, Method
from formal_llm.packs.openagi.benchmark.intervals import Interval, interval
from formal_llm.packs.openagi.benchmark.records import ScoredPlan

if TYPE_CHECKING:
    from rich.table import Table

#: The groups of tasks, in the order of the paper's tables.
GROUPS = ("Task 1", "Task 2", "Task 3", "Task X")


@dataclass(frozen=True, slots=True)
class MethodColumn:
    """The figures of a method of an LLM.

    Attributes:
        llm, method: whose.
        plans: how many plans they are the figures of.
        valid: the share of valid plans, from 0 to 1.
        scores: for each group the mean score over its tasks and repeats; None where no task of it was scored.
        average: the mean over all scored tasks, each counting once; None where none was scored.
        deviation: the standard deviation of the average over the repeats; None for a single repeat.
        questions: the mean number of questions of a plan; None for published figures, which do not tell.
        tokens: the mean number of tokens of a plan, read and written; None where nobody counted any.
        published: the table of the paper that it is from; 0 for one's own figures.
        average_interval: where the average lies with 95 % over other tasks like these; None for published figures.
        note: why there are no plans; empty where there are.
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
    published: int = 0
    average_interval: Interval | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """Figures of others.

    Attributes:
        source: where they are published.
        scores: which score each group has there.
        columns: the figures.
        differences: what is other there than in one's own figures, a sentence each.
        groups: for tasks that are counted under another group there than their own, that group.
    """

    source: str
    scores: Mapping[str, str]
    columns: tuple[MethodColumn, ...]
    differences: tuple[str, ...] = ()
    groups: Mapping[int, str] = field(default_factory=dict)


def columns_of(
    rows: Iterable[ScoredPlan], unscored: Iterable[int] = (), groups: Mapping[int, str] | None = None
) -> list[MethodColumn]:
    """The columns of plans on record: LLMs in the order in which they first occur, each with its methods.

    Args:
        rows: plans with their scores (:meth:`~formal_llm.packs.openagi.benchmark.records.Records.joined`).
        unscored: the tasks that no score can judge.
        groups: for tasks that are counted under another group than their own, that group.
    """
    passed_over = set(unscored)
    by_column: dict[tuple[str, Method], list[ScoredPlan]] = {}
    for row in rows:
        counted: ScoredPlan = {**row, "group": (groups or {}).get(row["task"], row["group"])}
        by_column.setdefault((row["llm"], row["method"]), []).append(counted)
    return in_order([_column(llm, method, some, passed_over) for (llm, method), some in by_column.items()])


def in_order(columns: Sequence[MethodColumn]) -> list[MethodColumn]:
    """Columns with those of an LLM together, its methods in their order."""
    llms = list(dict.fromkeys(column.llm for column in columns))
    return sorted(columns, key=lambda column: (llms.index(column.llm), METHODS.index(cast("Method", column.method))))


def empty_column(llm: str, method: str, why: str) -> MethodColumn:
    """The column of a method that does not apply to an LLM."""
    return MethodColumn(llm, method, 0, 0.0, dict.fromkeys(GROUPS), None, note=why)


def _column(llm: str, method: str, rows: Sequence[ScoredPlan], passed_over: set[int]) -> MethodColumn:
    scored = [row for row in rows if row["task"] not in passed_over]
    averages = _means(scored, "repeat")
    tokens = [row["usage"]["input_tokens"] + row["usage"]["output_tokens"] for row in rows]
    by_group = {group: _mean_over_tasks([row for row in scored if row["group"] == group]) for group in GROUPS}
    return MethodColumn(
        llm, method, len(rows), statistics.fmean(row["valid"] for row in rows), by_group, _mean_over_tasks(scored),
        deviation=statistics.stdev(averages) if len(averages) > 1 else None,
        questions=statistics.fmean(row["questions"] for row in rows),
        tokens=statistics.fmean(tokens) if any(tokens) else None,
        average_interval=interval(_means(scored, "task")),
    )  # fmt: skip


def _mean_over_tasks(rows: Sequence[ScoredPlan]) -> float | None:
    """The mean over tasks of the means over their repeats, which of a run that was stopped are not equally many."""
    means = _means(rows, "task")
    return statistics.fmean(means) if means else None


def _means(rows: Sequence[ScoredPlan], key: Literal["task", "repeat"]) -> list[float]:
    """The mean score of the plans with the same task, or of the same repeat; of those that were judged."""
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
    """The paper's figures, from ``tasks/openagi/published.toml``.

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


# -- how they look -----------------------------------------------------------------------------------------------------


def lines_of(columns: Sequence[MethodColumn], scores: Mapping[str, str]) -> list[list[str]]:
    """The rows of a table as texts: what it is, by the group's name for its score, then a figure for each column."""
    lines = [["valid plans", *(column.note or f"{column.valid:.1%}" for column in columns)]]
    for group in GROUPS:
        shown = [_figure(column.scores[group]) for column in columns]
        lines.append([f"{group} ({scores.get(group) or 'not scored'})", *shown])
    lines.append(["average over tasks", *(_figure(column.average) for column in columns)])
    if any(column.deviation is not None for column in columns):
        lines.append(["± over repeats", *(_figure(column.deviation) for column in columns)])
    if any(column.average_interval is not None for column in columns):
        lines.append(["95 % over tasks", *(str(column.average_interval or "-") for column in columns)])
    if not all(column.published for column in columns):
        lines.append(["questions per plan", *(_figure(column.questions, 1) for column in columns)])
        lines.append(["tokens per plan", *(_figure(column.tokens, 0) for column in columns)])
        lines.append(["plans", *(str(column.plans) for column in columns)])
    return lines


def _figure(value: float | None, places: int = 4) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def rich_tables(columns: Sequence[MethodColumn], scores: Mapping[str, str], width: int) -> list[Table]:
    """Tables for the terminal: as many as it takes to keep each within a width. The methods of an LLM stay together.

    Args:
        columns: the columns.
        scores: for each group the name of its score.
        width: in characters.
    """
    by_llm = [[column for column in columns if column.llm == llm] for llm in dict.fromkeys(c.llm for c in columns)]
    room = width - max(len(line[0]) for line in lines_of(columns, scores)) - 4
    shown: list[list[MethodColumn]] = []
    for group in by_llm:
        for part in [group] if _width(group) <= room else [[column] for column in group]:
            if shown and _width(shown[-1] + part) <= room:
                shown[-1] += part
            else:
                shown.append(list(part))
    return [_rich(part, scores) for part in shown]


def _width(columns: Sequence[MethodColumn]) -> int:
    def widest(column: MethodColumn) -> int:
        return max(len(column.llm), len(column.method), len(column.note), len(str(column.average_interval or "")), 6)

    return sum(widest(column) + 3 for column in columns)


def _rich(columns: Sequence[MethodColumn], scores: Mapping[str, str]) -> Table:
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
    """A table in Markdown, with its title above."""
    heads = ["", *(f"{column.llm} {column.method}" for column in columns)]
    return markdown_lines(title, heads, lines_of(columns, scores))


def markdown_lines(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table in Markdown, with its title above; its first columns, ``left`` many, are texts."""
    marks = ["---" if place < left else "---:" for place in range(len(heads))]
    rows = [[head.replace("|", "\\|") for head in heads], marks, *lines]
    return f"{title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def published_title(published: Published, table: int) -> str:
    """The title of a table of published figures, so that nobody takes them for one's own."""
    return f"PUBLISHED, table {table} of {published.source}: other models, tools and data, for reference only"


def as_data(columns: Sequence[MethodColumn]) -> list[dict[str, object]]:
    """Columns as JSON data."""
    return [asdict(column) for column in columns]
