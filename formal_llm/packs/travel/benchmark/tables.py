"""The tables of the benchmark in the layout of the paper, its figures, and the published ones.

Micro counts checks, macro plans that pass all checks of a kind, final those that pass all (Xie et al. 2024, 3.3). The
published scripts divide by the fixed numbers of the whole split; for fewer cases, both figures are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from formal_llm import authored
from formal_llm.authored.tables import Items, Keys, read_toml
from formal_llm.packs.travel.benchmark.records import TravelRecord
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


_SHAPE = Keys({"figures": Items(Keys({"method": str, "final": str, "mode": str}, needed=("method", "final")))})


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure from a paper.

    Attributes:
        method: the method.
        final: the final pass rate in percent, as published: ``">98"``.
        mode: ``"sole"`` or ``"two-stage"``; empty if it is unknown.
    """

    method: str
    final: str
    mode: str = ""


@dataclass(frozen=True, slots=True)
class RatesRow:
    """A row of the table: the planner, the evaluator and the figures."""

    who: str
    evaluator: str
    rates: Rates


def published_figures() -> list[PublishedFigure]:
    """Read the published figures that ship with the library."""
    data = read_toml(authored.find("tasks", "travel") / "published.toml", _SHAPE)
    return [PublishedFigure(one["method"], one["final"], one.get("mode", "")) for one in data["figures"]]


def rates_table(rows: Sequence[RatesRow], split: str | None = None) -> str:
    """Write the figures in the layout of the paper, in percent, as Markdown.

    Args:
        rows: the rows.
        split: the split of the cases; further rows use its fixed numbers as denominators.
    """
    lines = [["", "evaluator", "of", *COLUMNS]]
    for row in rows:
        counts = [f"{part}/{whole}" for part, whole in row.rates.counts]
        shares = [f"{share:.1%}" for share in row.rates.compute_shares()]
        cells = [f"{share} ({count})" for share, count in zip(shares, counts, strict=True)]
        lines.append([row.who, row.evaluator, "cases given", *cells])
        if split is not None:
            of_split = [f"{share:.1%}" for share in row.rates.compute_shares(split)]
            lines.append([row.who, row.evaluator, f"whole {split} split", *of_split])
    return render_markdown(lines)


def published_table(figures: Sequence[PublishedFigure]) -> str:
    """Write the published figures as Markdown."""
    rows = [["PUBLISHED, other models and splits", "mode", "final"]]
    rows += [[one.method, one.mode, f"{one.final}%"] for one in figures]
    return render_markdown(rows)


def render_markdown(lines: Sequence[Sequence[str]]) -> str:
    """Write lines of cells as a Markdown table with the first line as its header."""
    ruled = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in ruled)


def as_data(rows: Sequence[RatesRow]) -> list[Mapping[str, object]]:
    """Convert the rows to JSON data."""
    return [
        {"who": row.who, "evaluator": row.evaluator, "cases": row.rates.cases}
        | {name: {"passed": part, "of": whole} for name, (part, whole) in zip(COLUMNS, row.rates.counts, strict=True)}
        for row in rows
    ]


def work_table(records_of: Mapping[str, Sequence[TravelRecord]]) -> str:
    """Write the resources used by plans as Markdown, from the records of each planner."""
    lines = [["", "read right", "questions", "most", "requests", "most", "prompt characters", "most", "CPU s", "most"]]
    for who, records in records_of.items():
        known = [one["read"] for one in records if one["read"] is not None]
        planned = [one for one in records if one["plan"]]
        columns = (
            ([one["questions"] for one in planned], 0), ([one["requests"] for one in planned], 0),
            ([one["characters"] for one in planned], 0), ([one["seconds"] for one in planned], 3),
        )  # fmt: skip
        cells = [who, f"{sum(known)}/{len(known)}"]
        for values, places in columns:
            cells += [f"{median(values or [0]):,.{places}f}", f"{max(values, default=0):,.{places}f}"]
        lines.append(cells)
    return render_markdown(lines)
