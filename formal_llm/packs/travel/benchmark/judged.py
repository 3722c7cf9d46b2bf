"""Plans with the verdicts of both evaluators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from formal_llm.errors import InputError
from formal_llm.packs.travel.benchmark.cases import TravelCase
from formal_llm.packs.travel.benchmark.tables import RatesRow, rates
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.official import official
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


def judge_plan(days: Sequence[Day], query: TravelQuery, world: World, index: int | None = None) -> JudgedPlan:
    """Evaluate a plan with both evaluators."""
    return JudgedPlan(query, tuple(days), (official(days, query, world), strict(days, query, world)), index)


def judge_submissions(submissions: Sequence[Submission], cases: Sequence[TravelCase]) -> list[JudgedPlan]:
    """Evaluate the plans of many cases with both evaluators; a case without a plan counts as not delivered.

    A submission belongs to the case with its sentence, or without a sentence to the case with the number ``idx``,
    counted from 1 as on the leaderboard.

    Args:
        submissions: the plans.
        cases: the cases with the meanings of their queries.

    Raises:
        InputError: a submission belongs to no case, or two belong to the same case.
    """
    places = {" ".join(case.text.split()): place for place, case in enumerate(cases)}
    plans: dict[int, tuple[Day, ...]] = {}
    for number, one in enumerate(submissions, 1):
        sentence = " ".join(one.query.split())
        place = places.get(sentence) if sentence else one.index - 1 if one.index is not None else None
        if not sentence and one.index is None:
            raise InputError(f"submission {number}: it has neither 'query' nor 'idx', so nobody knows what it answers")
        if place is None or not 0 <= place < len(cases):
            what = f"the query {sentence[:60]!r}" if sentence else f"idx {one.index}"
            raise InputError(f"submission {number}: none of the {len(cases)} cases has {what}")
        if place in plans:
            raise InputError(f"submission {number}: case {cases[place].index} has a plan already")
        plans[place] = one.days
    return [
        judge_plan(plans.get(place, ()), case.query, case.world, case.index)
        for place, case in enumerate(cases)
        if case.query is not None
    ]


def rates_rows(who: str, judged: Sequence[JudgedPlan]) -> list[RatesRow]:
    """Compute the figures of both evaluators over plans."""
    return [
        RatesRow(who, evaluator, rates(one.verdicts[place] for one in judged))
        for place, evaluator in enumerate(("official", "strict"))
    ]
