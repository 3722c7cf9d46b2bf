"""Trips on the given cases of TravelPlanner: how many are valid, what a plan takes, and our evaluator beside theirs.

Run: python benchmarks/travel.py --data DIR [--official DIR] [--limit N]

DIR holds ``train.jsonl`` and ``database``. The tables:

- final pass of both evaluators for plans with random and built-in answers, and for the annotated plans;
- what a plan takes, by length: questions, characters of prompts, seconds of CPU;
- whether trips make sense: meals for which a journey leaves no time, sights a trip, ratings of restaurants;
- with ``--official``, a folder with ``evaluation``, ``tools`` and ``utils`` of TravelPlanner: single checks of mutated
  plans on which the published scripts and our official evaluator differ (``travel_official.py``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from benchmarks.travel_official import compare
from formal_llm import RandomLLM
from formal_llm.llms import LLM, resolve
from formal_llm.packs.travel.benchmark.cases import TravelCase, read_cases
from formal_llm.packs.travel.benchmark.judged import judge_plan
from formal_llm.packs.travel.benchmark.run import Counted
from formal_llm.packs.travel.benchmark.tables import render_markdown
from formal_llm.packs.travel.hours import find_impossible
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.planning import plan_trip
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.resolved import resolve_plan
from formal_llm.packs.travel.rows import Restaurant


@dataclass(frozen=True)
class Made:
    """A plan, what it took, and whether both evaluators accept it."""

    case: TravelCase
    query: TravelQuery
    days: Sequence[Day]
    passes: tuple[bool, bool]
    questions: int = 0
    characters: int = 0
    seconds: float = 0.0


def judged(case: TravelCase, query: TravelQuery, days: Sequence[Day], **took: float) -> Made:
    """A plan with its verdicts."""
    official, strict = judge_plan(tuple(days), query, case.world).verdicts
    return Made(case, query, days, (official.final, strict.final), **took)  # type: ignore[arg-type]


def planned(case: TravelCase, query: TravelQuery, llm: LLM) -> Made:
    """Plan a case with the reference information that is given with it."""
    counted, began = Counted(llm), time.process_time()
    made = plan_trip(query, case.collected, counted)
    seconds = time.process_time() - began
    questions = made.plan.usage.questions
    return judged(case, query, made.days, questions=questions, characters=counted.characters, seconds=seconds)


def show(plans: dict[str, list[Made]]) -> None:
    """Print the tables."""
    lines = [["answers", "plans", "final pass, official", "final pass, strict"]]
    for name, made in plans.items():
        counts = (sum(one.passes[evaluator] for one in made) for evaluator in (0, 1))
        lines.append([name, str(len(made)), *map(str, counts)])
    print(render_markdown(lines))
    lines = [["days", "answers", "plans", "questions", "most", "characters", "most", "CPU s", "most"]]
    for days in sorted({one.query.days for made in plans.values() for one in made}):
        for name, made in plans.items():
            some = [one for one in made if one.query.days == days and one.questions]
            if some:
                questions, characters = [one.questions for one in some], [one.characters for one in some]
                seconds = [one.seconds for one in some]
                lines.append([
                    str(days), name, str(len(some)), f"{median(questions):.0f}", str(max(questions)),
                    f"{median(characters):,.0f}", f"{max(characters):,}", f"{median(seconds):.3f}",
                    f"{max(seconds):.3f}",
                ])  # fmt: skip
    print(render_markdown(lines))
    lines = [["trips that make sense", "trips", "impossible meals", "sights a trip", "rating"]]
    for name, made in plans.items():
        trips = [resolve_plan(one.days, one.query, one.case.world) for one in made]
        every = [day for trip in trips for day in trip]
        rows = [row for day in every for stop in day.meals for row in stop.rows[:1] if isinstance(row, Restaurant)]
        stars = [row.rating for row in rows if row.rating]  # 0 means that nobody has rated it
        lines.append([
            name, str(len(trips)), str(sum(len(list(find_impossible(trip))) for trip in trips)),
            f"{sum(len(day.sights) for day in every) / len(trips):.1f}", f"{fmean(stars):.2f}",
        ])  # fmt: skip
    print(render_markdown(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with train.jsonl and database")
    parser.add_argument("--official", type=Path, help="the folder with evaluation, tools and utils of TravelPlanner")
    parser.add_argument("--plans", type=int, default=3000, help="how many mutated plans are compared")
    parser.add_argument("--limit", type=int, help="only so many cases")
    given = parser.parse_args()
    cases = [(case, case.query) for case in read_cases(given.data)[: given.limit] if case.query is not None]
    plans = {
        name: [planned(case, query, llm) for case, query in cases]
        for name, llm in (("test:random", RandomLLM(0)), ("builtin", resolve("builtin")))
    }
    plans["annotated"] = [judged(case, query, case.annotated) for case, query in cases if case.annotated]
    show(plans)
    if given.official is not None:
        print(compare(given.official.resolve(), given.data.resolve(), given.plans, 0))


if __name__ == "__main__":
    main()
