"""Trips: how many are valid, how many queries are read right, what a plan takes, and whether a "no" is right.

Four tables:

- the given cases of TravelPlanner (needs ``--data``): read right, final pass of both evaluators for what was read right
  with random answers, annotated plans that the official evaluator accepts;
- what a plan takes: questions, requests, characters of prompts, seconds of CPU; by length, median and worst;
- the slowest plans;
- generated queries on the own world: solved, or proven to have no trip by an integer program (OR-tools), which also
  tells the least that a trip can cost; with random answers, none may be invalid.

Run::

    python benchmarks/travel.py --data DIR [--queries 500]

DIR holds ``train.jsonl`` and ``database``; without it only the last tables are printed.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.travel_oracle import cheapest
from formal_llm.errors import NoValidPlan, QueryError
from formal_llm.llms import resolve
from formal_llm.llms.llm import LLM
from formal_llm.packs.travel.benchmark.cases import TravelCase, read_cases
from formal_llm.packs.travel.benchmark.judged import judge_plan
from formal_llm.packs.travel.benchmark.run import Counted, read_by_rules, same_meaning
from formal_llm.packs.travel.benchmark.tables import markdown
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.generated import random_query
from formal_llm.packs.travel.planning import plan_trip
from formal_llm.packs.travel.query import TravelQuery

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
    print(markdown(lines))
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
    print(markdown(lines))
    worst = sorted(told, key=lambda one: -one.seconds)[:5]
    rows = [[one.name, str(one.days), f"{one.seconds:.3f}", str(one.questions)] for one in worst]
    print(markdown([["the slowest", "days", "CPU s", "questions"], *rows]))


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
    print(markdown([[f"{count} generated queries", ""], *([name, str(number)] for name, number in counts.items())]))
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
        work(given_cases(read_cases(asked.data)))
    work(generated(World.shipped(), asked.queries))


if __name__ == "__main__":
    main()
