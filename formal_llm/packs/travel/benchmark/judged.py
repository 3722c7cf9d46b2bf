"""Plans with the verdicts of both evaluators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from formal_llm.errors import InputError
from formal_llm.packs.travel.benchmark.cases import TravelCase
from formal_llm.packs.travel.benchmark.tables import RatesRow, rates
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.official import Commit, official
from formal_llm.packs.travel.plan_days import Day, Submission
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.verdict import TripVerdict


@dataclass(frozen=True)
class JudgedPlan:
    """A plan with the verdicts of both evaluators.

    Attributes:
        query: the query.
        days: the plan; empty if none was delivered.
        verdicts: the verdicts of the official and of the strict evaluator.
        index: the number of the case; None if it is not a case.
    """

    query: TravelQuery
    days: tuple[Day, ...]
    verdicts: tuple[TripVerdict, TripVerdict]
    index: int | None = None


def judge_plan(
    days: Sequence[Day], query: TravelQuery, world: World, index: int | None = None, commit: Commit = "da7c1d4"
) -> JudgedPlan:
    """Evaluate a plan with both evaluators, the official one as of a commit."""
    return JudgedPlan(query, tuple(days), (official(days, query, world, commit), strict(days, query, world)), index)


def judge_submissions(
    submissions: Sequence[Submission], cases: Sequence[TravelCase], commit: Commit = "da7c1d4"
) -> list[JudgedPlan]:
    """Evaluate the plans of many cases with both evaluators; a case without a plan counts as not delivered.

    A submission belongs to the case with its sentence, or without a sentence to the case with its number.

    Args:
        submissions: the plans.
        cases: the cases with the meanings of their queries.
        commit: the commit of the published scripts.

    Raises:
        InputError: a submission belongs to no case, or two belong to the same case.
    """
    places = {" ".join(case.text.split()): place for place, case in enumerate(cases)}
    numbers = {case.index: place for place, case in enumerate(cases)}
    plans: dict[int, tuple[Day, ...]] = {}
    for number, one in enumerate(submissions, 1):
        sentence = " ".join(one.query.split())
        if not sentence and one.index is None:
            raise InputError(f"submission {number}: without 'query', 'index' and 'idx' nobody knows what it answers")
        place = places.get(sentence) if sentence or one.index is None else numbers.get(one.index)
        if place is None:
            what = f"the query {sentence[:60]!r}" if sentence else f"index {one.index} (idx {(one.index or 0) + 1})"
            raise InputError(f"submission {number}: none of the {len(cases)} cases has {what}")
        if place in plans:
            raise InputError(f"submission {number}: case {cases[place].index} has a plan already")
        plans[place] = one.days
    return [
        judge_plan(plans.get(place, ()), case.query, case.world, case.index, commit)
        for place, case in enumerate(cases)
        if case.query is not None
    ]


def rates_rows(who: str, judged: Sequence[JudgedPlan]) -> list[RatesRow]:
    """Compute the figures of both evaluators over plans."""
    return [
        RatesRow(who, f"{both[0].evaluator} {both[0].commit}".strip(), rates(both))
        for both in zip(*(one.verdicts for one in judged), strict=True)
    ]
