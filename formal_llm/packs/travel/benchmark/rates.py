"""The figures of the paper: the shares of delivered plans, of passed checks, and of plans that pass.

Micro counts checks, macro plans that pass all checks of a kind, final those that pass all (Xie et al. 2024, 3.3). The
published scripts divide by the fixed numbers of the whole split; for fewer cases, both figures are reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from formal_llm.packs.travel.verdict import COMMONSENSE, HARD, TripVerdict

#: The denominators of the published scripts: plans, checks of common sense, checks of wishes.
DENOMINATORS = {"train": (45, 360, 105), "validation": (180, 1440, 420), "test": (1000, 8000, 2290)}
#: The columns of the paper's tables.
COLUMNS = ("delivery", "commonsense micro", "commonsense macro", "hard micro", "hard macro", "final")


@dataclass(frozen=True, slots=True)
class Rates:
    """The counts over the given cases.

    Attributes:
        cases: the number of cases.
        delivered: the delivered plans.
        commonsense_checks, hard_checks: the checks that the queries ask for.
        commonsense_passed, hard_passed: the passed checks.
        commonsense, hard, final: the plans that pass all checks of common sense, of wishes, of both.
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
        """The number passed and the total, for each of :data:`COLUMNS`."""
        return (
            (self.delivered, self.cases),
            (self.commonsense_passed, self.commonsense_checks),
            (self.commonsense, self.cases),
            (self.hard_passed, self.hard_checks),
            (self.hard, self.cases),
            (self.final, self.cases),
        )

    def compute_shares(self, split: str | None = None) -> tuple[float, ...]:
        """Return the share for each of :data:`COLUMNS`, from 0 to 1.

        Args:
            split: the split whose fixed numbers are the denominators, as in the published scripts; None for the cases.
        """
        if split is None:
            return tuple(part / whole if whole else 0.0 for part, whole in self.counts)
        plans, commonsense, hard = DENOMINATORS[split]
        whole = (plans, commonsense, plans, hard, plans, plans)
        return tuple(part / fixed for (part, _), fixed in zip(self.counts, whole, strict=True))


def rates(verdicts: Iterable[TripVerdict]) -> Rates:
    """Count the results in the verdicts of one evaluator."""
    judged = list(verdicts)

    def count_asked(checks: Iterable[str]) -> int:
        return sum(one.states[check] != "not asked" for one in judged for check in checks)

    def count_passed(checks: Iterable[str]) -> int:
        return sum(one.states[check] == "passed" for one in judged for check in checks)

    return Rates(
        len(judged), sum(one.delivered for one in judged),
        count_asked(COMMONSENSE), count_passed(COMMONSENSE), count_asked(HARD), count_passed(HARD),
        # The published script counts only wishes that it judged, and a plan that it did not judge passes nothing.
        sum(one.commonsense for one in judged), sum(one.hard for one in judged), sum(one.final for one in judged),
    )  # fmt: skip
