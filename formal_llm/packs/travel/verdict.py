"""What an evaluator says of a trip: which checks it passes, and what is wrong, with the day and the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.rows import Money

#: The checks that any trip must pass, by their names in the paper (Xie et al. 2024, table 1).
COMMONSENSE = (
    "Within Sandbox", "Complete Information", "Within Current City", "Reasonable City Route", "Diverse Restaurants",
    "Diverse Attractions", "Non-conf. Transportation", "Minimum Nights Stay",
)  # fmt: skip
#: The checks of what a query wishes for.
HARD = ("Budget", "Room Rule", "Room Type", "Cuisine", "Transportation")
#: What became of a check. ``not asked``: the query does not wish for it; ``not judged``: the official evaluator looks
#: at wishes only where the plan is complete and within the sandbox, and counts them as failed elsewhere.
State: TypeAlias = Literal["passed", "failed", "not asked", "not judged"]


@dataclass(frozen=True, slots=True)
class TripFinding:
    """Something wrong in a plan.

    Attributes:
        check: the check that it fails: one of :data:`COMMONSENSE` or :data:`HARD`.
        problem: what is wrong, in words.
        day: the day, from 1; None where it is about the whole trip.
        field: the field of that day, such as ``"lunch"``; None where it is about the day as a whole.
    """

    check: str
    problem: str
    day: int | None = None
    field: str | None = None

    @property
    def place(self) -> str:
        """``"day 2, lunch"``; empty where it is about the whole trip."""
        return "" if self.day is None else f"day {self.day}" + (f", {self.field}" if self.field else "")

    def __str__(self) -> str:
        return f"{self.place}{': ' if self.place else ''}{self.problem} ({self.check})"


@dataclass(frozen=True)
class TripVerdict:
    """What an evaluator says of a plan.

    Attributes:
        evaluator: whose rules they are.
        delivered: whether there is a plan at all.
        states: for each check what became of it.
        findings: what is wrong, in the order of the checks.
        cost: what the trip costs as far as its fields are known, in dollars; None where that was not looked at.
    """

    evaluator: Literal["official", "strict"]
    delivered: bool
    states: Mapping[str, State]
    findings: tuple[TripFinding, ...] = ()
    cost: Money | None = None

    def passes(self, checks: Iterable[str]) -> bool:
        """Whether a delivered plan passes all of these, as far as they are asked for."""
        return self.delivered and all(self.states[check] in ("passed", "not asked") for check in checks)

    @property
    def commonsense(self) -> bool:
        """Whether it passes all checks that any trip must pass."""
        return self.passes(COMMONSENSE)

    @property
    def hard(self) -> bool:
        """Whether it passes all checks of what the query wishes for."""
        return self.passes(HARD)

    @property
    def final(self) -> bool:
        """Whether it passes all checks."""
        return self.commonsense and self.hard

    def to_dict(self) -> dict[str, object]:
        """The verdict as JSON data."""
        return {
            "evaluator": self.evaluator,
            "delivered": self.delivered,
            "final": self.final,
            "checks": dict(self.states),
            "cost": None if self.cost is None else float(self.cost),
            "findings": [
                {"check": one.check, "day": one.day, "field": one.field, "problem": one.problem}
                for one in self.findings
            ],
        }


def asked(query: TravelQuery) -> tuple[str, ...]:
    """The checks that a query asks for: all of common sense, and its wishes."""
    wishes = {
        "Budget": query.budget is not None,
        "Room Rule": query.constraints.house_rule is not None,
        "Room Type": query.constraints.room_type is not None,
        "Cuisine": bool(query.constraints.cuisines),
        "Transportation": query.constraints.transportation is not None,
    }
    return (*COMMONSENSE, *(check for check in HARD if wishes[check]))


def verdict_of(
    evaluator: Literal["official", "strict"],
    query: TravelQuery,
    findings: Iterable[TripFinding],
    *,
    cost: Money | None = None,
    not_judged: Iterable[str] = (),
) -> TripVerdict:
    """The verdict on a plan that was delivered, from what is wrong with it."""
    order = {check: place for place, check in enumerate((*COMMONSENSE, *HARD))}
    found = tuple(dict.fromkeys(sorted(findings, key=lambda one: (order[one.check], one.day or 0))))
    failed, left, wanted = {one.check for one in found}, set(not_judged), set(asked(query))
    states: dict[str, State] = {
        check: "not asked" if check not in wanted
        else "not judged" if check in left
        else "failed" if check in failed
        else "passed"
        for check in order
    }  # fmt: skip
    return TripVerdict(evaluator, True, states, found, cost)


def not_delivered(evaluator: Literal["official", "strict"], query: TravelQuery) -> TripVerdict:
    """The verdict where there is no plan."""
    wanted = set(asked(query))
    states: dict[str, State] = {
        check: "not judged" if check in wanted else "not asked" for check in (*COMMONSENSE, *HARD)
    }
    return TripVerdict(evaluator, False, states)
