"""The figures of the paper: how many plans are delivered, how many checks and how many plans pass.

Micro counts checks, macro plans that pass all checks of a kind, final those that pass all (Xie et al. 2024, 3.3).
The published scripts divide by fixed numbers, those of the whole split; where fewer cases are given, both are told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from formal_llm.packs.travel.verdict import COMMONSENSE, HARD, TripVerdict

#: What the published scripts divide by: plans, checks of common sense, checks of wishes.
DENOMINATORS = {"train": (45, 360, 105), "validation": (180, 1440, 420), "test": (1000, 8000, 2290)}
#: The columns of the paper's tables.
COLUMNS = ("delivery", "commonsense micro", "commonsense macro", "hard micro", "hard macro", "final")


@dataclass(frozen=True, slots=True)
class Rates:
    """How many of how many, over the cases given.

    Attributes:
        cases: how many there are.
        delivered: plans that there are.
        commonsense_checks, hard_checks: checks that the queries ask for.
        commonsense_passed, hard_passed: those that are passed.
        commonsense, hard, final: plans that pass all checks of common sense, of wishes, of both.
    """

    cases: int
    delivered: int
    commonsense_checks: int
    commonsense_passed: int
    hard_checks: int
    hard_passed: int
    commonsense: int
    hard: int
    final: int

    @property
    def counts(self) -> tuple[tuple[int, int], ...]:
        """How many of how many, for each of :data:`COLUMNS`."""
        return (
            (self.delivered, self.cases),
            (self.commonsense_passed, self.commonsense_checks),
            (self.commonsense, self.cases),
            (self.hard_passed, self.hard_checks),
            (self.hard, self.cases),
            (self.final, self.cases),
        )

    def shares(self, split: str | None = None) -> tuple[float, ...]:
        """The share for each of :data:`COLUMNS`, from 0 to 1.

        Args:
            split: divide by the fixed numbers of a split, as the published scripts do; by the cases given where None.
        """
        if split is None:
            return tuple(part / whole if whole else 0.0 for part, whole in self.counts)
        plans, commonsense, hard = DENOMINATORS[split]
        whole = (plans, commonsense, plans, hard, plans, plans)
        return tuple(part / fixed for (part, _), fixed in zip(self.counts, whole, strict=True))


def rates(verdicts: Iterable[TripVerdict]) -> Rates:
    """The figures over the verdicts of one evaluator."""
    told = list(verdicts)

    def asked(checks: Iterable[str]) -> int:
        return sum(one.states[check] != "not asked" for one in told for check in checks)

    def passed(checks: Iterable[str]) -> int:
        return sum(one.states[check] == "passed" for one in told for check in checks)

    return Rates(
        len(told), sum(one.delivered for one in told),
        asked(COMMONSENSE), passed(COMMONSENSE), asked(HARD), passed(HARD),
        # The published script looks at wishes only where it judged them, and a plan it did not judge passes nothing.
        sum(one.commonsense for one in told), sum(one.hard for one in told), sum(one.final for one in told),
    )  # fmt: skip
