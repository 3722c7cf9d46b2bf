"""Plan the cases of TravelPlanner and record the results: an interrupted run can be resumed.

Modes: ``sole``: the planner has the reference information of its query. ``two-stage``: first an agent collects
information with the published tools (:mod:`~formal_llm.packs.travel.benchmark.collecting`); the planner has only that.

The query is read from its sentence, by rules or by a model, but the plan is judged by the true meaning. So a plan can
be valid for the query as read and still fail: the share of correctly read queries is reported separately.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeAlias

from formal_llm.errors import NoValidPlan, QueryError
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.packs.travel.benchmark.cases import TravelCase
from formal_llm.packs.travel.benchmark.collecting import collect
from formal_llm.packs.travel.benchmark.judged import JudgedPlan, judge_plan
from formal_llm.packs.travel.benchmark.records import Mode, TravelRecord, TravelRecords
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import read_plan, to_json
from formal_llm.packs.travel.planning import plan_trip
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.reading import read_query
from formal_llm.planning.drivers.planner import Search

#: Reads the sentence of a query for a world.
Reader: TypeAlias = Callable[[str, World], TravelQuery]


@dataclass
class Counted:
    """An LLM with counted prompts.

    Attributes:
        characters: the characters of all prompts so far.
        longest: the characters of the longest prompt.
        requests: the number of prompts.
    """

    llm: LLM
    characters: int = 0
    longest: int = 0
    requests: int = 0

    def choose(self, question: Question) -> Answer:
        """Count a question and forward it."""
        self._count_request(len(question.prompt))
        return self.llm.choose(question)

    def _count_request(self, characters: int) -> None:
        self.characters += characters
        self.longest = max(self.longest, characters)
        self.requests += 1

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or name == "llm":
            raise AttributeError(name)
        found = getattr(self.llm, name)
        return self._wrap_generate(found) if name == "generate" else found

    def _wrap_generate(self, generate: Callable[..., object]) -> Callable[..., object]:
        def generate_counted(messages: Any, *args: Any, **options: Any) -> object:
            self._count_request(len(messages) if isinstance(messages, str) else sum(len(str(one)) for one in messages))
            return generate(messages, *args, **options)

        return generate_counted


def read_by_rules(text: str, world: World) -> TravelQuery:
    """Read a sentence by rules; a date without a year is in 2022, the year of the data."""
    return read_query(text, world, date(2022, 1, 1)).query


def same_meaning(one: TravelQuery, other: TravelQuery) -> bool:
    """Return whether two queries are equivalent; the order of cuisines is irrelevant."""

    def normalize_query(query: TravelQuery) -> TravelQuery:
        cuisines = tuple(sorted(query.constraints.cuisines))
        return replace(query, text="", constraints=replace(query.constraints, cuisines=cuisines))

    return normalize_query(one) == normalize_query(other)


def run_case(
    case: TravelCase, llm: LLM, *, called: str, mode: Mode = "sole", search: Search = "greedy",
    reader: Reader = read_by_rules,
) -> TravelRecord:  # fmt: skip
    """Plan a case.

    Args:
        case: the case.
        llm: the model that answers.
        called: the name of the model in the record.
        mode: the information available to the planner.
        search: the search strategy.
        reader: reads the sentence.

    Raises:
        LLMError: the request to the model failed, so the case should not be recorded.
    """
    counted = Counted(llm)
    record = TravelRecord(
        llm=called, mode=mode, search=search, index=case.index, read=None, plan=[], error="", questions=0, requests=0,
        characters=0, steps=0, seconds=0.0,
    )  # fmt: skip
    start = time.process_time()
    try:
        query = reader(case.text, case.world)
        record["read"] = None if case.query is None else same_meaning(query, case.query)
        if mode == "sole":
            world = case.collected if case.reference is not None else case.world
        else:
            collected = collect(case.text, query, case.world, counted)
            world, record["steps"] = collected.world, collected.steps
        trip = plan_trip(query, world, counted, search=search)
        record["plan"], record["questions"] = to_json(trip.days), trip.plan.usage.questions
    except QueryError as error:
        record["read"], record["error"] = False, f"not read: {error}"
    except NoValidPlan as error:
        record["error"] = f"no trip: {error}"
    record["seconds"] = round(time.process_time() - start, 4)
    record["characters"], record["requests"] = counted.characters, counted.requests
    return record


def judge(record: TravelRecord, case: TravelCase, reader: Reader = read_by_rules) -> JudgedPlan:
    """Evaluate the plan of a record with both evaluators by the true meaning of the query.

    If that is unknown, the query as read is used.
    """
    query = case.query if case.query is not None else reader(case.text, case.world)
    return judge_plan(read_plan(record["plan"]), query, case.world, case.index)


def run_cases(
    cases: Sequence[TravelCase],
    llm: LLM,
    records: TravelRecords,
    *,
    called: str,
    mode: Mode = "sole",
    search: Search = "greedy",
    reader: Reader = read_by_rules,
    on_record: Callable[[TravelRecord], None] | None = None,
) -> list[TravelRecord]:
    """Plan all cases without a record sequentially, and return the records of all cases.

    Args:
        cases: the cases.
        llm: the model that answers.
        records: the records of the benchmark.
        called: the name of the model in the records.
        mode: the information available to the planner.
        search: the search strategy.
        reader: reads the sentences.
        on_record: called with each record, including existing ones.
    """
    found = []
    for case in cases:
        record = records.lines.get((called, mode, search, case.index))
        if record is None:
            record = run_case(case, llm, called=called, mode=mode, search=search, reader=reader)
            records.add_record(record)
        found.append(record)
        if on_record is not None:
            on_record(record)
    return found


def failures(records: Iterable[TravelRecord]) -> list[str]:
    """List the reasons why there is no plan, one line for each case without a plan."""
    return [f"case {one['index']}: {one['error']}" for one in records if one["error"]]
