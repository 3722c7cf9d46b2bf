"""Trips: how many are valid, how many queries are read right, what a plan takes, and whether a "no" is right.

The tables:

- the given cases of TravelPlanner (needs ``--data``): read right, final pass of both evaluators for what was read right
  with random answers, annotated plans that the official evaluator accepts;
- what a plan takes: questions, requests, characters of prompts, seconds of CPU; by length, median and worst;
- the slowest plans;
- whether trips make sense: meals for which a journey leaves no time, sights a trip, ratings of restaurants, kilometres
  between two sights of a day; of the annotated plans, too;
- drafts: requests of a plan where the model writes all of it at once, with so many slips (a script that wants a trip
  drawn at random, and answers each question with the first option);
- the two-stage mode with random answers;
- generated queries on the own world: solved, or proven to have no trip by an integer program (OR-tools), which also
  tells the least that a trip can cost; with random answers, none may be invalid.

Run::

    python benchmarks/travel.py --data DIR [--queries 500]

DIR holds ``train.jsonl`` and ``database``; without it only the last tables are printed.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.travel_oracle import cheapest
from formal_llm.errors import NoValidPlan, QueryError
from formal_llm.llms import resolve
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import LLM
from formal_llm.llms.text_doubles import FunctionTextLLM
from formal_llm.packs.travel.benchmark.cases import TravelCase, read_cases
from formal_llm.packs.travel.benchmark.judged import judge_plan
from formal_llm.packs.travel.benchmark.run import Counted, judge, read_by_rules, run_case, same_meaning
from formal_llm.packs.travel.benchmark.tables import render_markdown
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.generated import random_query
from formal_llm.packs.travel.hours import find_impossible
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.planning import plan_trip
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.resolved import resolve_plan
from formal_llm.packs.travel.rows import Attraction, Restaurant, measure_arc

LLMS = ("test:random", "builtin")


class Measured(NamedTuple):
    """What a plan took, and whether it is valid."""

    name: str
    days: int
    official: bool
    strict: bool
    questions: int
    characters: int
    longest: int
    seconds: float
    cost: int


def planned(name: str, query: TravelQuery, given: World, world: World, llm: LLM) -> Measured:
    """Plan a query in the world that is given, judge the plan in the whole one."""
    counted = Counted(llm)
    began = time.process_time()
    made = plan_trip(query, given, counted)
    seconds = time.process_time() - began
    official, strict = judge_plan(made.days, query, world).verdicts
    questions = made.plan.usage.questions
    cost = round(100 * made.cost)
    return Measured(
        name, query.days, official.final, strict.final, questions, counted.characters, counted.longest, seconds, cost
    )


def given_cases(cases: Sequence[TravelCase]) -> list[Measured]:
    """The table of the given cases; what each of the plans took, with random answers and with built-in ones."""
    right: dict[int, TravelQuery] = {}
    for case in cases:
        try:
            query = read_by_rules(case.text, case.world)
        except QueryError as error:
            print(f"case {case.index} is not read: {error}")
            continue
        if case.query is not None and same_meaning(query, case.query):
            right[case.index] = query
    lines = [["the given cases", "of", "share"]]
    lines.append(_share("queries read right by rules", len(right), len(cases)))
    measured: dict[str, list[Measured]] = {}
    for name in LLMS:
        llm = resolve(name)
        done = measured[name] = [
            planned(f"case {case.index}, {name}", right[case.index], case.collected, case.world, llm)
            for case in cases
            if case.index in right
        ]
        lines.append(_share(f"final pass, official, {name}", sum(one.official for one in done), len(right)))
        lines.append(_share(f"final pass, strict, {name}", sum(one.strict for one in done), len(right)))
    verdicts = [
        judge_plan(case.annotated, case.query, case.world).verdicts
        for case in cases
        if case.query is not None and case.annotated
    ]
    for place, evaluator in enumerate(("official", "strict")):
        passed = sum(both[place].final for both in verdicts)
        lines.append(_share(f"annotated plans accepted, {evaluator}", passed, len(verdicts)))
    print(render_markdown(lines))
    return [one for done in measured.values() for one in done]


def work(measured: Iterable[Measured]) -> None:
    """The tables of what plans took."""
    told = list(measured)
    lines = [["days", "answers", "plans", "questions", "most", "characters", "most", "longest prompt", "CPU s", "most"]]
    for days in sorted({one.days for one in told}):
        for name in LLMS:
            some = [one for one in told if one.days == days and one.name.endswith(name)]
            if some:
                questions, characters = [one.questions for one in some], [one.characters for one in some]
                seconds = [one.seconds for one in some]
                lines.append([
                    str(days), name, str(len(some)), f"{median(questions):.0f}", str(max(questions)),
                    f"{median(characters):,.0f}", f"{max(characters):,}", f"{max(one.longest for one in some):,}",
                    f"{median(seconds):.3f}", f"{max(seconds):.3f}",
                ])  # fmt: skip
    print(render_markdown(lines))
    worst = sorted(told, key=lambda one: -one.seconds)[:5]
    rows = [[one.name, str(one.days), f"{one.seconds:.3f}", str(one.questions)] for one in worst]
    print(render_markdown([["the slowest", "days", "CPU s", "questions"], *rows]))


def _plan_days(llm: str, case: TravelCase, query: TravelQuery) -> Sequence[Day]:
    return plan_trip(query, case.collected, llm).days


def senses(cases: Sequence[TravelCase]) -> None:
    """The table of what makes sense."""
    lines = [["trips that make sense", "trips", "impossible meals", "sights a trip", "rating", "km between sights"]]
    makers: dict[str, Callable[[TravelCase, TravelQuery], Sequence[Day]]] = {
        name: partial(_plan_days, name) for name in LLMS
    }
    makers["annotated"] = lambda case, _: case.annotated or ()
    for name, make in makers.items():
        trips = [(resolve_plan(make(case, case.query), case.query, case.world)) for case in cases if case.query]
        every = [day for trip in trips for day in trip]
        rated = [
            row.rating for day in every for stop in day.meals for row in stop.rows[:1] if isinstance(row, Restaurant)
        ]
        places = [
            [row.place for stop in day.sights for row in stop.rows[:1] if isinstance(row, Attraction)] for day in every
        ]
        apart = [measure_arc(a, b) for day in places for a, b in pairwise(day) if a and b]
        stars = [rating for rating in rated if rating]  # 0 means that nobody has rated it
        lines.append([
            name, str(len(trips)), str(sum(len(list(find_impossible(trip))) for trip in trips)),
            f"{sum(len(day.sights) for day in every) / len(trips):.1f}", f"{sum(stars) / len(stars):.2f}",
            f"{median(apart or [0]):.1f}",
        ])  # fmt: skip
    print(render_markdown(lines))


class Drafter:
    """Writes a trip that it wants, with some names gone wrong."""

    def __init__(self, word: Sequence[str], slips: int, seed: int) -> None:
        self._word, self._slips, self._random = word, slips, random.Random(seed)

    def __call__(self, asked: Writing) -> str:  # noqa: ARG002
        """The draft."""
        word = list(self._word)
        for place in self._random.sample(range(len(word)), min(self._slips, len(word))):
            word[place] = self._random.choice([*self._word, "The Unknown Inn, Nowhere"])
        return "\n".join(f"{number}. {name}" for number, name in enumerate(word, 1))


def drafts(cases: Sequence[TravelCase]) -> None:
    """The table of drafts."""
    lines = [["slips of a draft", "plans", "valid, both", "requests", "most", "most of 7 days", "characters", "most"]]
    for slips in (0, 1, 3):
        requests: list[tuple[int, int]] = []
        characters, valid = [], 0
        for case in cases:
            if case.query is None:
                continue
            wanted = plan_trip(case.query, case.collected, "test:random").plan.word
            counted = Counted(FunctionTextLLM(Drafter(wanted, slips, case.index)))
            made = plan_trip(case.query, case.collected, counted, search="draft")
            valid += all(one.final for one in judge_plan(made.days, case.query, case.world).verdicts)
            requests.append((counted.requests, case.query.days))
            characters.append(counted.characters)
        counts, long = [count for count, _ in requests], [count for count, days in requests if days == 7]
        lines.append([
            str(slips), str(len(requests)), str(valid), f"{median(counts):.0f}", str(max(counts)),
            str(max(long, default=0)), f"{median(characters):,.0f}", f"{max(characters):,}",
        ])  # fmt: skip
    print(render_markdown(lines))


def two_stages(cases: Sequence[TravelCase]) -> None:
    """The table of the two-stage mode with random answers."""
    lines = [["two stages, test:random", "cases", "delivered", "final, official", "final, strict", "steps, most"]]
    for days in sorted({case.query.days for case in cases if case.query is not None}):
        some = [case for case in cases if case.query is not None and case.query.days == days]
        records = [run_case(case, resolve("test:random"), called="chance", mode="two-stage") for case in some]
        judged = [judge(record, case).verdicts for record, case in zip(records, some, strict=True)]
        lines.append([
            f"{days} days", str(len(some)), str(sum(one.delivered for one, _ in judged)),
            str(sum(one.final for one, _ in judged)), str(sum(one.final for _, one in judged)),
            str(max(record["steps"] for record in records)),
        ])  # fmt: skip
    print(render_markdown(lines))


def generated(world: World, count: int) -> list[Measured]:
    """The table of generated queries; what each of the plans took."""
    llm, counts, told = resolve("test:random"), Counter[str](), []
    for seed in range(count):
        query = random_query(world, seed)
        least = cheapest(query, world)
        possible = least is not None and (query.budget is None or least <= 100 * query.budget)
        try:
            one = planned(f"query {seed}, test:random", query, world, world, llm)
        except NoValidPlan:
            counts["no trip, and the integer program agrees" if not possible else "WRONGLY no trip"] += 1
            continue
        told.append(one)
        counts["a trip" if possible else "WRONGLY a trip"] += 1
        counts["invalid, official"] += not one.official
        counts["invalid, strict"] += not one.strict
        if least is not None and seed % 5 == 0:
            counts["least cost looked for"] += 1
            counts["least cost found"] += _least(query, world, least)
    print(
        render_markdown([[f"{count} generated queries", ""], *([name, str(number)] for name, number in counts.items())])
    )
    return told


def _least(query: TravelQuery, world: World, least: int) -> bool:
    """Whether a trip is found for the least money, and none for a cent less."""
    at = replace(query, budget=-(-least // 100))
    below = replace(query, budget=(least - 1) // 100)
    try:
        plan_trip(at, world, "test:random")
    except NoValidPlan:
        return False
    try:
        plan_trip(below, world, "test:random")
    except NoValidPlan:
        return True
    return False


def _share(name: str, part: int, whole: int) -> list[str]:
    return [name, f"{part}/{whole}", f"{part / whole:.1%}" if whole else "-"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder with train.jsonl and database")
    parser.add_argument("--queries", type=int, default=500, help="how many queries are generated")
    asked = parser.parse_args()
    if asked.data is not None:
        cases = read_cases(asked.data)
        work(given_cases(cases))
        senses(cases)
        drafts(cases)
        two_stages(cases)
    work(generated(World.shipped(), asked.queries))


if __name__ == "__main__":
    main()
