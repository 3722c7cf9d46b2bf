"""``formal-llm plan travel`` and ``formal-llm verify travel``."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from formal_llm.authored.files import parse_json, read_bytes, read_text
from formal_llm.cli import options
from formal_llm.cli.console import check_writable, command, err, print_text, write_to
from formal_llm.cli.plan import answerer
from formal_llm.cli.sources import plan_text
from formal_llm.cli.trace import TracePrinter
from formal_llm.errors import FormalLLMError, InputError, QueryError
from formal_llm.llms.llm import check_providers

if TYPE_CHECKING:
    from formal_llm.packs.travel.benchmark.cases import TravelCase
    from formal_llm.packs.travel.benchmark.judged import JudgedPlan
    from formal_llm.packs.travel.database import World
    from formal_llm.packs.travel.query import TravelQuery
    from formal_llm.packs.travel.reading import QueryReading

PLAN_HELP = """Plan a trip: it keeps every wish and the budget, whatever the LLM answers.

What you write is read by rules, or by an LLM (--reader openai:MODEL), and told before the trip. Without --database the
trip is in a small invented world that ships with the library: Lindhaven, Port Serin, Oriel and eleven more cities, with
flights from 8 to 25 March 2022. Where nothing fits, you are told which wishes to drop, and what it would cost then.

Examples:

  formal-llm plan travel "Please plan a trip for 2 people from Lindhaven to Port Serin for 3 days, from March 10th to
      March 12th, 2022, with a budget of $1,400."

  formal-llm plan travel "..." --database TravelPlanner/database --llm openai:gpt-6-luna --page trip.html

  formal-llm plan travel "..." --days-json trip.json && formal-llm verify travel trip.json --query "..."
"""
VERIFY_HELP = """Verify a trip that anybody planned, by two evaluators.

official: the published evaluator of TravelPlanner, with its known holes, so that figures compare. strict: none of them.
What is wrong is told with the day and the field.

The plan is a list of days as published; a file of submissions has one a line ({"idx": 1, "query": ..., "plan": [...]};
idx counts from 1, index in its place from 0).
--query is what was wanted: a sentence, or a file with its fields (org, dest, days, date, ...). For many plans, --data
names the folder with train.jsonl and database, and each plan is judged by its own query.

Examples:

  formal-llm verify travel trip.json --query "Please plan a trip from Lindhaven to Port Serin ..."

  formal-llm verify travel trip.json --query query.json --database TravelPlanner/database --json

  formal-llm verify travel submission.jsonl --data TravelPlanner
"""

DatabaseOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder of CSV files; the shipped world where left out.")
]
ReferenceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The reference information of a query, as JSON, in its place.")
]
ReaderOption = Annotated[
    str, typer.Option(metavar="rules|LLM", help="Who reads the sentence: rules, or an LLM; see: formal-llm list llms.")
]
AskOption = Annotated[
    str | None, typer.Option(metavar="person|LLM", help="Who is asked what was not understood, in numbered questions.")
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Make it an error where a wish was not understood, or is not kept.")
]
CommitOption = Annotated[
    Literal["da7c1d4", "before-ed379c4"], typer.Option(help="The published scripts that `official` follows.")
]
TodayOption = Annotated[
    datetime | None, typer.Option(formats=["%Y-%m-%d"], help="What day it is, for dates without a year.")
]


class TravelSearch(StrEnum):
    """How answers lead to a trip."""

    greedy = "greedy"
    best_first = "best-first"
    sample = "sample"
    draft = "draft"


@command
def plan_travel(
    text: Annotated[str, typer.Argument(help='What is wanted: "Please plan a trip from ...".')],
    llm: options.LLMOption = "builtin",
    database: DatabaseOption = None,
    reference: ReferenceOption = None,
    reader: ReaderOption = "rules",
    today: TodayOption = None,
    ask: AskOption = None,
    strict: StrictOption = False,
    search: Annotated[
        TravelSearch, typer.Option(help="Follow each answer, find the most probable trip, draw, or draft and mend.")
    ] = TravelSearch.greedy,
    most_options: Annotated[
        int | None, typer.Option(min=2, help='How many options a question has at most; the others are behind "more".')
    ] = None,
    days_json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the days as published; - prints nothing else.")
    ] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the trip as a web page, with a map.")] = None,
    prefer: Annotated[
        str, typer.Option(help="What comes first: rating, cheap, little-travel, sights, or weights: rating=2,cheap=1.")
    ] = "rating",
    front: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all trips that no other surpasses as a page with a chart."),
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="A file of answers: what it has is not asked again.")] = None,
    record: Annotated[Path | None, typer.Option(help="Record questions and answers, to be replayed.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show on stderr what is asked and answered.")] = False,
) -> None:
    """Plan a trip."""
    from formal_llm.packs.travel.candidates import Preference
    from formal_llm.packs.travel.fronts import find_front
    from formal_llm.packs.travel.page import front_page, trip_page
    from formal_llm.packs.travel.plan_days import to_text
    from formal_llm.packs.travel.planning import PAGES, plan_trip, trips_of
    from formal_llm.packs.travel.trip_text import trip_text, understood_text

    check_writable(days_json, page, front, cache, record)
    wanted = Preference.from_text(prefer)
    check_providers(llm, *([] if reader == "rules" else [reader]), *([] if ask is None else [ask]))
    world = read_world(database, reference)
    only_json = str(days_json) == "-"
    reading = read_wishes(text, world, reader, today, ask)
    if strict:
        check_understood(reading)
    if not only_json:
        print_text(understood_text(reading.query) + "\n")
    print_reading(reading)
    kept = tuple(wish for wish in reading.query.wishes if wish not in reading.not_enforced)
    query = replace(reading.query, wishes=kept)
    with answerer(llm, cache, record) as who:
        made = plan_trip(
            query, world, who, prefer=wanted, search=search.value,
            on_event=TracePrinter(err()) if trace else None,
            pages=PAGES if most_options is None else replace(PAGES, options=most_options),
        )  # fmt: skip
    if only_json:
        print_text(to_text(made.days))
    else:
        print_text(trip_text(made.days, reading.query, world))
        usage = made.plan.usage
        err().print(f"questions: {usage.questions}; choices without one: {usage.forced}")
        if days_json is not None:
            write_to(days_json, to_text(made.days))
    if page is not None:
        notes = {"Not understood": reading.not_understood, "Taken for granted": reading.assumed}
        write_to(page, trip_page(made.days, reading.query, world, about={"Chosen by": llm}, notes=notes))
    if front is not None:
        trip = trips_of(query, world)
        found = find_front(trip)
        err().print(f"trips that no other surpasses in costs, ratings, travel time and sights: {len(found)}")
        write_to(front, front_page(found, trip))


@command
def verify_travel(
    plan: Annotated[str, typer.Argument(help='A file with the plan or plans; "-" for standard input.')],
    query: Annotated[
        str | None, typer.Option(metavar="TEXT|FILE", help="What was wanted: a sentence, or a file with its fields.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Judge each plan by its own case of this folder.")
    ] = None,
    cases: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file of cases, where it is not the first of --data.")
    ] = None,
    database: DatabaseOption = None,
    reference: ReferenceOption = None,
    reader: ReaderOption = "rules",
    today: TodayOption = None,
    commit: CommitOption = "da7c1d4",
    as_json: options.JsonOption = False,
) -> None:
    """Verify a trip."""
    from formal_llm.packs.travel.benchmark.judged import judge_plan, judge_submissions
    from formal_llm.packs.travel.plan_days import read_submissions

    called = "standard input" if plan == "-" else plan
    submissions = read_submissions(plan_text(plan), called)
    if data is not None:
        if query is not None or database is not None or reference is not None:
            raise FormalLLMError("--data brings the queries and the database: no --query, --database or --reference")
        judged = judge_submissions(submissions, _read_cases(data, cases, reader, today), commit)
    else:
        world = read_world(database, reference)
        wanted = None if query is None else _read_query(query, world, reader, today)
        if wanted is None and any(not one.query for one in submissions):
            raise FormalLLMError("what was wanted? give --query, a sentence or a file with its fields, or --data")
        judged = [
            judge_plan(one.days, wanted or read_wishes(one.query, world, reader, today).query, world, None, commit)
            for one in submissions
        ]
    _print_verdicts(judged, as_json=as_json)
    if not all(verdict.final for one in judged for verdict in one.verdicts):
        raise typer.Exit(1)


def read_world(database: Path | None, reference: Path | None) -> World:
    """The world of ``--database`` or ``--reference``; the shipped one where there is neither."""
    from formal_llm.packs.travel.database import World
    from formal_llm.packs.travel.folder import read_folder

    if reference is None:
        return World.shipped() if database is None else World.from_folder(database)
    cities = None if database is None else read_folder(database).cities
    try:
        return World.from_reference(parse_json(read_bytes(reference)), cities)
    except ValueError as error:
        if isinstance(error, FormalLLMError):
            raise
        raise InputError(f"{reference}: this is no JSON: {error}") from None


def read_wishes(text: str, world: World, reader: str, today: datetime | None, ask: str | None = None) -> QueryReading:
    """What a sentence means, read by rules or by an LLM; what is unclear is asked, and where the two differ."""
    from formal_llm.packs.travel.reading import ask_about, read_query, read_query_with

    day: date | None = None if today is None else today.date()
    second = None
    if reader == "rules":
        reading = read_query(text, world, day)
    else:
        with answerer(reader, None, None) as who:
            reading = read_query_with(who, text, world, day)  # type: ignore[arg-type]  # reports itself who cannot write
            with suppress(QueryError):  # another language
                second = None if ask is None else read_query(text, world, day)
    if ask is None:
        return reading
    with answerer(ask, None, None) as who:
        return ask_about(reading, who, second)


def check_understood(reading: QueryReading) -> None:
    """Raise an error where a wish was not understood, or is not kept."""
    if unclear := _list_unclear(reading):
        raise QueryError(reading.query.text, [("wishes", problem, None) for problem in unclear])


def print_reading(reading: QueryReading) -> None:
    """Report on standard error what was taken for granted, what was not understood, and what is not kept."""
    for assumption in reading.assumed:
        err().print(f"taken for granted: {assumption}")
    for problem in _list_unclear(reading):
        err().print(problem, style="yellow")


def _list_unclear(reading: QueryReading) -> list[str]:
    unread = [f"not understood: {part}" for part in reading.not_understood]
    return unread + [f"understood, but not kept: {wish}" for wish in reading.not_enforced]


def _read_query(given: str, world: World, reader: str, today: datetime | None) -> TravelQuery:
    """The query of ``--query``."""
    from formal_llm.packs.travel.query import query_of

    if len(given) > 255 or not Path(given).is_file():
        if given.endswith((".json", ".txt")):
            raise InputError(f"--query: there is no file {given}")
        reading = read_wishes(given, world, reader, today)
        print_reading(reading)
        return reading.query
    text = read_text(Path(given))
    if not text.lstrip().startswith("{"):
        return _read_query(text, world, reader, today)
    try:
        fields = parse_json(text)
    except ValueError as error:
        raise InputError(f"{given}: this is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InputError(f"{given}: a query is an object with org, dest, days, date, ...")
    return query_of(fields)


def _read_cases(data: Path, file: Path | None, reader: str, today: datetime | None) -> list[TravelCase]:
    """The cases of a folder, each with what its query means."""
    from formal_llm.packs.travel.benchmark.cases import read_cases

    return [
        case if case.query is not None
        else replace(case, query=read_wishes(case.text, case.world, reader, today).query)
        for case in read_cases(data, file)
    ]  # fmt: skip


def _print_verdicts(judged: list[JudgedPlan], *, as_json: bool) -> None:
    """Print the verdicts of the evaluators: of one plan all of them, of many a line each and the rates."""
    from formal_llm.packs.travel.benchmark.judged import rates_rows
    from formal_llm.packs.travel.benchmark.tables import as_data, rates_table
    from formal_llm.packs.travel.trip_text import format_money, understood_text, verdicts_text

    rows = rates_rows("", judged)
    if as_json:
        verdicts = [{"index": one.index, "verdicts": [verdict.to_dict() for verdict in one.verdicts]} for one in judged]
        print_text(json.dumps({"plans": verdicts, "rates": as_data(rows)}, indent=2))
        return
    if len(judged) == 1:
        print_text(understood_text(judged[0].query) + "\n" + verdicts_text(judged[0].verdicts))
        for verdict in judged[0].verdicts:
            if verdict.cost is not None:
                print_text(f"{verdict.evaluator}: the trip costs {format_money(verdict.cost)}")
        return
    for place, one in enumerate(judged):
        for verdict in one.verdicts:
            if not verdict.final:
                why = str(verdict.findings[0]) if verdict.findings else "no plan"
                more = f", and {len(verdict.findings) - 1} more" if len(verdict.findings) > 1 else ""
                print_text(f"{one.index if one.index is not None else place}: {verdict.evaluator}: {why}{more}")
    print_text(rates_table(rows))
