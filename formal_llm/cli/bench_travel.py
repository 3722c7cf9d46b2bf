"""``formal-llm bench travelplanner``: trips of several LLMs over the cases of TravelPlanner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formal_llm.cli.bench import answers_file
from formal_llm.cli.console import command, err, print_text, progress_bars
from formal_llm.cli.run import make_folder
from formal_llm.cli.travel import CommitOption, TravelSearch, read_wishes
from formal_llm.errors import InputError

if TYPE_CHECKING:
    from formal_llm.packs.travel.benchmark.cases import TravelCase
    from formal_llm.packs.travel.benchmark.records import TravelRecord
    from formal_llm.packs.travel.benchmark.run import Reader
    from formal_llm.packs.travel.benchmark.tables import RatesRow
    from formal_llm.packs.travel.database import World
    from formal_llm.packs.travel.query import TravelQuery

HELP = """Plan the cases of TravelPlanner, and judge the plans by its official evaluator and by a strict one.

--data is a folder with train.jsonl (or validation.jsonl ...) and the published database. Modes: sole: the planner has
the reference information of its query; two-stage: an agent collects information with the published tools first, in 30
steps at most.

Each plan is on record in the folder of --out. A benchmark that was stopped goes on with the same command; more LLMs and
modes are added to it, and --most may grow. The submission of each is there, too, as the leaderboard takes it.

Examples:

  formal-llm bench travelplanner --data TravelPlanner --llm test:random --llm builtin --out bench

  formal-llm bench travelplanner --data TravelPlanner --llm openai:gpt-6-luna --mode two-stage --out bench
"""


class ModeName(StrEnum):
    """What the planner is given."""

    sole = "sole"
    two_stage = "two-stage"


@command
def bench_travelplanner(
    data: Annotated[Path, typer.Option(metavar="DIR", help="The folder with the cases and the database.")],
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the benchmark's records.")],
    llm: Annotated[list[str] | None, typer.Option(help="Who answers; see: formal-llm list llms. Repeatable.")] = None,
    mode: Annotated[list[ModeName] | None, typer.Option(help="What the planner is given. Repeatable.")] = None,
    search: Annotated[TravelSearch, typer.Option(help="What becomes of the answers.")] = TravelSearch.greedy,
    reader: Annotated[
        str | None,
        typer.Option(metavar="LLM", help="The LLM that reads the sentences; else queries come by their fields."),
    ] = None,
    cases: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file of cases, where it is not the first of --data.")
    ] = None,
    most: Annotated[int | None, typer.Option(min=1, help="At most this many cases, the first ones.")] = None,
    commit: CommitOption = "da7c1d4",
    published: Annotated[bool, typer.Option(help="Show the published figures, too.")] = True,
) -> None:
    """Run a benchmark of trips and print its tables."""
    from formal_llm.llms import RecordedLLM, resolve
    from formal_llm.llms.providers import check_providers
    from formal_llm.packs.travel.benchmark.cases import FILES, read_cases
    from formal_llm.packs.travel.benchmark.judged import rates_rows
    from formal_llm.packs.travel.benchmark.records import TravelRecords
    from formal_llm.packs.travel.benchmark.run import judge, run_cases
    from formal_llm.packs.travel.benchmark.tables import DENOMINATORS

    names = list(dict.fromkeys(llm or ["builtin"]))
    check_providers(*names, *([] if reader is None else [reader]))  # before one of them loads a model
    known = read_cases(data, cases)[:most]
    if not known:
        raise InputError(f"{cases or data}: there are no cases")
    make_folder(to)
    file = cases.name if cases is not None else next(name for name in FILES if (data / name).exists())
    split = next((name for name in DENOMINATORS if file.startswith(name)), None)
    reading: Reader | None = None if reader is None else cache(partial(_read_query, reader=reader))
    rows: list[RatesRow] = []
    records_of_method: dict[str, list[TravelRecord]] = {}
    with ExitStack() as opened:
        records = opened.enter_context(TravelRecords(to, {"cases": file, "reader": reader}))
        who = {name: resolve(name) for name in names}
        bars = opened.enter_context(progress_bars())
        for called, one in who.items():
            recorded = opened.enter_context(RecordedLLM(one, answers_file(to, called), again=True))
            for how in dict.fromkeys(mode or [ModeName.sole]):
                name = f"{called} {how.value}" + ("" if search is TravelSearch.greedy else f" {search.value}")
                bar = bars.add_task("", said=name, total=len(known))
                made = run_cases(
                    known, recorded, records, called=called, mode=how.value, search=search.value, reader=reading,
                    on_record=lambda _, bar=bar: bars.advance(bar),  # type: ignore[misc]
                )  # fmt: skip
                records_of_method[name] = made
                judged = [judge(one, case, reading, commit) for one, case in zip(made, known, strict=True)]
                rows += rates_rows(name, judged)
                _write_submission(to, name, known, made)
    _report_results(to, rows, records_of_method, split, published=published)


def _read_query(text: str, world: World, *, reader: str) -> TravelQuery:
    return read_wishes(text, world, reader, None).query


def _write_submission(to: Path, name: str, cases: Sequence[TravelCase], records: Sequence[TravelRecord]) -> None:
    """Write the plans as the leaderboard takes them."""
    lines = [
        json.dumps({"idx": case.index + 1, "query": case.text, "plan": record["plan"] or None}, ensure_ascii=False)
        for case, record in zip(cases, records, strict=True)
    ]
    file = to / f"submission-{name.replace(' ', '-').replace(':', '_').replace('/', '_')}.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _report_results(
    to: Path, rows: list[RatesRow], records_of: dict[str, list[TravelRecord]], split: str | None, *, published: bool
) -> None:
    from formal_llm.packs.travel.benchmark.run import failures
    from formal_llm.packs.travel.benchmark.tables import (
        as_data,
        published_figures,
        published_table,
        rates_table,
        work_table,
    )

    text = rates_table(rows, split) + "\n" + work_table(records_of)
    if published:
        text += "\n" + published_table(published_figures())
    (to / "table.md").write_text(text, encoding="utf-8")
    (to / "table.json").write_text(json.dumps(as_data(rows), indent=1) + "\n", encoding="utf-8")
    print_text(text)
    for name, records in records_of.items():
        for failure in failures(records):
            err().print(f"{name}, {failure}")
    err().print(f"on record in {to}: plans.jsonl, answers, submissions, table.md, table.json")
