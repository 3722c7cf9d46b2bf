"""The tables that ``formal-llm bench`` prints and writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.cli.console import counted, err, out, print_text

if TYPE_CHECKING:
    from rich.table import Table

    from formal_llm.llms import Prices
    from formal_llm.packs.openagi.benchmark.plans import Benchmark, PackPlans, Skipped
    from formal_llm.packs.openagi.benchmark.records import ScoredPlan


class Grouping(StrEnum):
    """Under which group a task is counted."""

    kind = "kind"
    published = "published"


class Form(StrEnum):
    """How the table is printed."""

    table = "table"
    markdown = "markdown"
    json = "json"


@dataclass(frozen=True)
class TableStyle:
    """How the tables are shown; ``in_cells``: methods that do not apply have columns, which explain why."""

    form: Form
    published: bool
    grouping: Grouping
    in_cells: bool = False


def tell(run: Benchmark, rows: list[ScoredPlan], skipped: list[Skipped], folder: Path, how: TableStyle) -> None:
    """Write the table of the tasks and repeats of this run in all forms, and print it in one."""
    from formal_llm.packs.openagi.benchmark import tables

    theirs = tables.read_published()
    groups = theirs.groups if how.grouping is Grouping.published else {}
    columns = tables.columns_of(rows, run.unscored, groups)
    if how.in_cells:
        columns = tables.in_order([*columns, *(tables.empty_column(one.llm, one.method, one.why) for one in skipped)])
    scores = run.score_names(groups)
    fewest, most = run.samples
    samples = counted(most, "sample") if fewest == most else f"{fewest} to {counted(most, 'sample')}"
    asked = f"{counted(len(run.tasks), 'task')}, {counted(run.repeats, 'repeat')}, {samples} each"
    title = f"OpenAGI, {asked}; tools: {', '.join(run.judge.executor.toolkit.tools)}"
    known = theirs if how.published else None
    numbers = sorted({column.published for column in known.columns}) if known else []
    notes = [f"not asked: {one.llm} {one.method}: {one.why}" for one in skipped]
    notes += [f"left out: task {number}: no plan is valid with these tools" for number in run.left_out]
    notes += [f"not scored: task {number}: no score for what its plans put out" for number in sorted(run.unscored)]
    beside = [
        (tables.published_title(known, number), [c for c in known.columns if c.published == number], known.scores)
        for number in numbers
        if known is not None
    ]
    markdown = [tables.markdown_table(title, columns, scores), *(f"- {note}" for note in notes)]
    markdown += ["", *(tables.markdown_table(*table) for table in beside)]
    differences = known.differences if known is not None else ()
    markdown += [f"- other there: {one}" for one in differences]
    figures = {
        "title": title,
        "scores": scores,
        "columns": tables.as_data(columns),
        "grouping": how.grouping.value,
        "skipped": [{"llm": one.llm, "method": one.method, "why": one.why} for one in skipped],
        "left_out": run.left_out,
        "not_scored": sorted(run.unscored),
        "published": None if known is None else {
            "source": known.source, "scores": dict(known.scores), "columns": tables.as_data(known.columns),
            "differences": list(known.differences),
        },
    }  # fmt: skip
    data = json.dumps(figures, indent=1, ensure_ascii=False)
    (folder / "table.md").write_text("\n".join(markdown).rstrip("\n") + "\n", encoding="utf-8")
    (folder / "table.json").write_text(data + "\n", encoding="utf-8")
    if how.form is Form.json:
        print_text(data)
    elif how.form is Form.markdown:
        print_text("\n".join(markdown))
    else:
        _print_tables(title, tables.rich_tables(columns, scores, out().width))
        for note in notes:
            print_text(note)
        for above, their_columns, named in beside:
            _print_tables(above, tables.rich_tables(their_columns, named, out().width))
        for one in differences:
            print_text(f"other there: {one}")
    err().print(f"on record in {folder}: plans.jsonl, scores.jsonl, results.jsonl, table.md, table.json")


def report_pack(
    run: PackPlans, rows: list[ScoredPlan], skipped: list[Skipped], folder: Path, form: Form, prices: Prices | None
) -> None:
    """Write the table of the tasks and repeats of this run, and print it."""
    from formal_llm.packs.openagi.benchmark import tables

    columns = tables.columns_of(rows, () if run.reward is not None else run.tasks, prices=prices)
    quality = None if run.reward is None else run.reward.name
    title = f"{run.pack.title}: {counted(len(run.tasks), 'task')}, {counted(run.repeats, 'repeat')}"
    title += f"; average: {quality}" if quality is not None else ""
    notes = [f"not asked: {one.llm} {one.method}: {one.why}" for one in skipped]
    notes += [f"left out: task {number}: {why}" for number, why in run.left_out.items()]
    markdown = "\n".join([tables.markdown_table(title, columns, {}), *(f"- {note}" for note in notes)])
    data = json.dumps(
        {"title": title, "columns": tables.as_data(columns), "notes": notes}, indent=1, ensure_ascii=False
    )
    for name, text in (("table.md", markdown.rstrip("\n")), ("table.json", data)):
        (folder / name).write_text(text + "\n", encoding="utf-8")
    if form is not Form.table:
        print_text(data if form is Form.json else markdown)
    else:
        _print_tables(title, tables.rich_tables(columns, {}, out().width))
        print_text("\n".join(notes)) if notes else None
    err().print(f"on record in {folder}: plans.jsonl, scores.jsonl, results.jsonl, table.md, table.json")


def _print_tables(title: str, tables: list[Table]) -> None:
    print_text(title)
    for table in tables:
        out().print(table)
