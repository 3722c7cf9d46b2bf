"""The verdict of an evaluator on a trip: the checks that it passes, and its errors, with the day and the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.rows import Money

#: The checks that every trip must pass, with their names in the paper (Xie et al. 2024, table 1).
COMMONSENSE = (
    "Within Sandbox", "Complete Information", "Within Current City", "Reasonable City Route", "Diverse Restaurants",
    "Diverse Attractions", "Non-conf. Transportation", "Minimum Nights Stay",
)  # fmt: skip
#: The checks of the wishes of a query.
HARD = ("Budget", "Room Rule", "Room Type", "Cuisine", "Transportation")
#: The result of a check. ``not asked``: the query has no such wish; ``not judged``: the official evaluator checks
#: wishes only if the plan is complete and within the sandbox, and counts them as failed otherwise.
State: TypeAlias = Literal["passed", "failed", "not asked", "not judged"]


@dataclass(frozen=True, slots=True)
class TripFinding:
    """An error in a plan.

    Attributes:
        check: the failed check: one of :data:`COMMONSENSE` or :data:`HARD`.
        problem: a description of the error.
        day: the day, from 1; None if it concerns the whole trip.
        field: the field of that day, such as ``"lunch"``; None if it concerns the whole day.
    """

    check: str
    problem: str
    day: int | None = None
    field: str | None = None

    @property
    def place(self) -> str:
        """The place, such as ``"day 2, lunch"``; empty if it concerns the whole trip."""
        return "" if self.day is None else f"day {self.day}" + (f", {self.field}" if self.field else "")

    def __str__(self) -> str:
        return f"{self.place}{': ' if self.place else ''}{self.problem} ({self.check})"


@dataclass(frozen=True)
class TripVerdict:
    """The verdict of an evaluator on a plan.

    Attributes:
        evaluator: the evaluator.
        delivered: whether there is a plan at all.
        states: the result of each check.
        findings: the errors, in the order of the checks.
        cost: the cost of the trip as far as its fields are known, in dollars; None if it was not computed.
        commit: the commit of the published scripts that the official evaluator follows; empty for the strict one.
    """

    evaluator: Literal["official", "strict"]
    delivered: bool
    states: Mapping[str, State]
    findings: tuple[TripFinding, ...] = ()
    cost: Money | None = None
    commit: str = ""

    def passes(self, checks: Iterable[str]) -> bool:
        """Return whether a plan was delivered and passes all of the checks that the query asks for."""
        return self.delivered and all(self.states[check] in ("passed", "not asked") for check in checks)

    @property
    def commonsense(self) -> bool:
        """Whether it passes all checks of common sense."""
        return self.passes(COMMONSENSE)

    @property
    def hard(self) -> bool:
        """Whether it passes all checks of the wishes."""
        return self.passes(HARD)

    @property
    def final(self) -> bool:
        """Whether it passes all checks."""
        return self.commonsense and self.hard

    def to_dict(self) -> dict[str, object]:
        """Return the verdict as JSON data."""
        return {
            "evaluator": self.evaluator,
            "commit": self.commit or None,
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
    """Return the checks that a query asks for: all checks of common sense, and those of its wishes."""
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
    """Create the verdict on a delivered plan from its errors."""
    order = {check: place for place, check in enumerate((*COMMONSENSE, *HARD))}
    found = tuple(dict.fromkeys(sorted(findings, key=lambda one: (order[one.check], one.day or 0))))
    failed, skipped, wanted = {one.check for one in found}, set(not_judged), set(asked(query))
    states: dict[str, State] = {
        check: "not asked" if check not in wanted
        else "not judged" if check in skipped
        else "failed" if check in failed
        else "passed"
        for check in order
    }  # fmt: skip
    return TripVerdict(evaluator, True, states, found, cost)


def not_delivered(evaluator: Literal["official", "strict"], query: TravelQuery) -> TripVerdict:
    """Create the verdict on a missing plan."""
    wanted = set(asked(query))
    states: dict[str, State] = {
        check: "not judged" if check in wanted else "not asked" for check in (*COMMONSENSE, *HARD)
    }
    return TripVerdict(evaluator, False, states)
