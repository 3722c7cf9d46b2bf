"""Planning the cases of TravelPlanner, on record: a run that was stopped goes on where it was.

Modes: ``sole``: the planner has the reference information of its query. ``two-stage``: an agent collects information
with the published tools first (:mod:`~formal_llm.packs.travel.benchmark.collecting`), and the planner has only that.

What a query means is read from its sentence, by rules or by a model, and the plan is judged by what it really means. So
a plan can be valid for what was read and still fail: that share is told apart.
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

#: Who reads a sentence in a world.
Reader: TypeAlias = Callable[[str, World], TravelQuery]


@dataclass
class Counted:
    """An LLM whose prompts are counted.

    Attributes:
        characters: of all prompts so far.
        longest: of the longest one.
        requests: how many there were.
    """

    llm: LLM
    characters: int = 0
    longest: int = 0
    requests: int = 0

    def choose(self, question: Question) -> Answer:
        """Hand a question on."""
        self._count(len(question.prompt))
        return self.llm.choose(question)

    def _count(self, characters: int) -> None:
        self.characters += characters
        self.longest = max(self.longest, characters)
        self.requests += 1

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or name == "llm":
            raise AttributeError(name)
        found = getattr(self.llm, name)
        return self._counting(found) if name == "generate" else found

    def _counting(self, generate: Callable[..., object]) -> Callable[..., object]:
        def counted(messages: Any, *args: Any, **options: Any) -> object:
            self._count(len(messages) if isinstance(messages, str) else sum(len(str(one)) for one in messages))
            return generate(messages, *args, **options)

        return counted


def read_by_rules(text: str, world: World) -> TravelQuery:
    """What a sentence means, by rules; a date without a year is one of 2022, the year of the data."""
    return read_query(text, world, date(2022, 1, 1)).query


def same_meaning(one: TravelQuery, other: TravelQuery) -> bool:
    """Whether two queries want the same; the order of cuisines makes no difference."""

    def plain(query: TravelQuery) -> TravelQuery:
        cuisines = tuple(sorted(query.constraints.cuisines))
        return replace(query, text="", constraints=replace(query.constraints, cuisines=cuisines))

    return plain(one) == plain(other)


def run_case(
    case: TravelCase, llm: LLM, *, called: str, mode: Mode = "sole", search: Search = "greedy",
    reader: Reader = read_by_rules,
) -> TravelRecord:  # fmt: skip
    """Plan a case.

    Args:
        case: the case.
        llm: who answers.
        called: what the record calls it.
        mode: what the planner is given.
        search: what becomes of the answers.
        reader: who reads the sentence.

    Raises:
        LLMError: the model could not be asked: nothing is to be put on record.
    """
    counted = Counted(llm)
    record = TravelRecord(
        llm=called, mode=mode, search=search, index=case.index, read=None, plan=[], error="", questions=0, requests=0,
        characters=0, steps=0, seconds=0.0,
    )  # fmt: skip
    began = time.process_time()
    try:
        query = reader(case.text, case.world)
        record["read"] = None if case.query is None else same_meaning(query, case.query)
        if mode == "sole":
            world = case.collected if case.reference is not None else case.world
        else:
            collected = collect(case.text, query, case.world, counted)
            world, record["steps"] = collected.world, collected.steps
        made = plan_trip(query, world, counted, search=search)
        record["plan"], record["questions"] = to_json(made.days), made.plan.usage.questions
    except QueryError as error:
        record["read"], record["error"] = False, f"not read: {error}"
    except NoValidPlan as error:
        record["error"] = f"no trip: {error}"
    record["seconds"] = round(time.process_time() - began, 4)
    record["characters"], record["requests"] = counted.characters, counted.requests
    return record


def judge(record: TravelRecord, case: TravelCase, reader: Reader = read_by_rules) -> JudgedPlan:
    """What both evaluators say of the plan of a record, by what the query really means.

    Where nobody has written that down, by what is read.
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
    """Plan all cases that are not on record yet, one after the other; the records of all of them.

    Args:
        cases: the cases.
        llm: who answers.
        records: where the plans are kept.
        called: what the records call who answers.
        mode: what the planner is given.
        search: what becomes of the answers.
        reader: who reads the sentences.
        on_record: called with each, also those that were there.
    """
    found = []
    for case in cases:
        record = records.lines.get((called, mode, search, case.index))
        if record is None:
            record = run_case(case, llm, called=called, mode=mode, search=search, reader=reader)
            records.add(record)
        found.append(record)
        if on_record is not None:
            on_record(record)
    return found


def failures(records: Iterable[TravelRecord]) -> list[str]:
    """Why there is no plan, a line for each case without one."""
    return [f"case {one['index']}: {one['error']}" for one in records if one["error"]]
