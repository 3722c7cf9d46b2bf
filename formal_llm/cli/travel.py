"""``formal-llm travel plan`` and ``formal-llm travel verify``."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from formal_llm.authored.files import parse_json, read_bytes, read_text
from formal_llm.cli import options
from formal_llm.cli.console import check_writable, command, err, print_text, write_to
from formal_llm.cli.help_pages import PlainGroup
from formal_llm.cli.plan import answerer
from formal_llm.cli.sources import plan_text
from formal_llm.cli.trace import TracePrinter
from formal_llm.errors import FormalLLMError, InputError, QueryError
from formal_llm.llms.providers import check_providers

if TYPE_CHECKING:
    from formal_llm.packs.travel.benchmark.cases import TravelCase
    from formal_llm.packs.travel.benchmark.judged import JudgedPlan
    from formal_llm.packs.travel.database import World
    from formal_llm.packs.travel.reading import QueryReading

PLAN_HELP = """Plan a trip: it keeps every wish and the budget, whatever the LLM answers.

What is wanted comes as fields (org, dest, days, date, ...), as JSON or in a file; a sentence is read by an LLM, which
--reader names. How it was understood is told before the trip. Without --database the trip is in a small invented world
that ships with the library: Lindhaven, Port Serin, Oriel and eleven more cities, with flights from 8 to 25 March 2022.
Where nothing fits, you are told which wishes to drop, and what it would cost then.

Examples:

  formal-llm travel plan '{"org": "Lindhaven", "dest": "Port Serin", "days": 3, "people_number": 2, "budget": 1400,
      "date": ["2022-03-10", "2022-03-11", "2022-03-12"]}'

  formal-llm travel plan query.json --database TravelPlanner/database --llm openai:gpt-6-luna

  formal-llm travel plan "Two of us want to go from Lindhaven to Port Serin ..." --reader openai:gpt-6-luna

  formal-llm travel plan query.json --days-json trip.json && formal-llm travel verify trip.json --query query.json
"""
VERIFY_HELP = """Verify a trip that anybody planned, by two evaluators.

official: the published evaluator of TravelPlanner, with its known holes, so that figures compare. strict: none of them.
What is wrong is told with the day and the field.

The plan is a list of days as published; a file of submissions has one a line ({"idx": 1, "query": ..., "plan": [...]};
idx counts from 1, index in its place from 0).
--query is what was wanted: its fields (org, dest, days, date, ...) as JSON or in a file, or a sentence, which an LLM
reads (--reader). For many plans, --data names the folder with train.jsonl and database, and each plan is judged by its
own query.

Examples:

  formal-llm travel verify trip.json --query query.json --database TravelPlanner/database --json

  formal-llm travel verify submission.jsonl --data TravelPlanner
"""

DatabaseOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder of CSV files; the shipped world where left out.")
]
ReferenceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The reference information of a query, as JSON, in its place.")
]
ReaderOption = Annotated[
    str | None, typer.Option(metavar="LLM", help="The LLM that reads sentences; see: formal-llm list llms.")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Make it an error where a wish was not understood.")]
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
    text: Annotated[
        str, typer.Argument(metavar="QUERY", help="What is wanted: its fields as JSON, a file, or a sentence.")
    ],
    llm: options.LLMOption = "builtin",
    database: DatabaseOption = None,
    reference: ReferenceOption = None,
    reader: ReaderOption = None,
    today: TodayOption = None,
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
    prefer: Annotated[
        str, typer.Option(help="What comes first: rating, cheap, little-travel, sights, or weights: rating=2,cheap=1.")
    ] = "rating",
    cache: Annotated[Path | None, typer.Option(help="A file of answers: what it has is not asked again.")] = None,
    record: Annotated[Path | None, typer.Option(help="Record questions and answers, to be replayed.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show on stderr what is asked and answered.")] = False,
) -> None:
    """Plan a trip."""
    from formal_llm.packs.travel.candidates import Preference
    from formal_llm.packs.travel.plan_days import to_text
    from formal_llm.packs.travel.planning import PAGES, plan_trip
    from formal_llm.packs.travel.trip_text import trip_text, understood_text

    check_writable(days_json, cache, record)
    wanted = Preference.from_text(prefer)
    check_providers(llm, *([] if reader is None else [reader]))
    world = read_world(database, reference)
    only_json = str(days_json) == "-"
    reading = read_wishes(text, world, reader, today)
    if strict:
        check_understood(reading)
    if not only_json:
        print_text(understood_text(reading.query) + "\n")
    print_reading(reading)
    with answerer(llm, cache, record) as who:
        made = plan_trip(
            reading.query, world, who, prefer=wanted, search=search.value,
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


@command
def verify_travel(
    plan: Annotated[str, typer.Argument(help='A file with the plan or plans; "-" for standard input.')],
    query: Annotated[
        str | None,
        typer.Option(metavar="QUERY", help="What was wanted: its fields as JSON, a file, or a sentence."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Judge each plan by its own case of this folder.")
    ] = None,
    cases: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file of cases, where it is not the first of --data.")
    ] = None,
    database: DatabaseOption = None,
    reference: ReferenceOption = None,
    reader: ReaderOption = None,
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
        wanted = None
        if query is not None:
            reading = read_wishes(query, world, reader, today, called="--query")
            print_reading(reading)
            wanted = reading.query
        if wanted is None and any(not one.query for one in submissions):
            raise FormalLLMError("what was wanted? give --query, its fields as JSON or in a file, or --data")
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


def read_wishes(
    given: str, world: World, reader: str | None, today: datetime | None, called: str = "QUERY"
) -> QueryReading:
    """What is wanted: fields as JSON, a sentence that an LLM reads, or a file with one of them.

    Raises:
        InputError: there is no such file, it is no JSON, or a sentence has no reader.
        QueryError, NotationError: what is wanted lacks something or contradicts itself.
    """
    from formal_llm.packs.travel.query import query_of
    from formal_llm.packs.travel.reading import QueryReading, read_query_with

    text = given
    if len(given) <= 255 and Path(given).is_file():
        text, called = read_text(Path(given)), given
    elif given.endswith((".json", ".txt")):
        raise InputError(f"{called}: there is no file {given}")
    if text.lstrip().startswith("{"):
        try:
            fields = parse_json(text)
        except ValueError as error:
            raise InputError(f"{called}: this is no JSON: {error}") from None
        assert isinstance(fields, dict)  # it begins with a brace
        return QueryReading(query_of(fields))
    if reader is None:
        raise InputError(
            f"{called}: an LLM reads sentences: name one with --reader, or give fields as JSON "
            '({"org": ..., "dest": ..., "days": ..., "date": [...]})'
        )
    day: date | None = None if today is None else today.date()
    with answerer(reader, None, None) as who:
        return read_query_with(who, text, world, day)


def check_understood(reading: QueryReading) -> None:
    """Raise an error where a wish was not understood."""
    if unclear := _list_unclear(reading):
        raise QueryError(reading.query.text, [("wishes", problem, None) for problem in unclear])


def print_reading(reading: QueryReading) -> None:
    """Report on standard error what was taken for granted, and what was not understood."""
    for assumption in reading.assumed:
        err().print(f"taken for granted: {assumption}")
    for problem in _list_unclear(reading):
        err().print(problem, style="yellow")


def _list_unclear(reading: QueryReading) -> list[str]:
    return [f"not understood: {part}" for part in reading.not_understood]


def _read_cases(data: Path, file: Path | None, reader: str | None, today: datetime | None) -> list[TravelCase]:
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


app = typer.Typer(
    cls=PlainGroup, help="Plan a trip, or verify one: every wish and the budget are kept.", no_args_is_help=True
)
app.command("plan", help=PLAN_HELP)(plan_travel)
app.command("verify", help=VERIFY_HELP)(verify_travel)
