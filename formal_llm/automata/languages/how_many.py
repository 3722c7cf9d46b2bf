"""How many plans there are, as far as that can be told of an infinite language, too."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.errors import InfiniteLanguage, Undecided

#: Of an infinite language the plans are counted that are at most so much longer than the shortest.
FURTHER = 4


@dataclass(frozen=True)
class PlanCount:
    """How many plans there are, as far as that can be told of an infinite language, too.

    Attributes:
        number: how many.
        of: what was counted.
        bound: the most terminals of those that were counted, where there are infinitely many.
    """

    number: int
    of: Literal["words", "derivations"]
    bound: int | None = None

    def describe_count(self, bounded: str) -> str:
        """The figure for a person; ``bounded`` says what the bound is a bound of, as in ``of at most {} terminals``."""
        figure = f"{self.number:,}{'' if self.of == 'words' else ' derivations (a plan may have several)'}"
        return figure if self.bound is None else f"infinitely many; {figure} {bounded.format(self.bound)}"


def count_plans(lookahead: Lookahead, configuration: Hashable = None) -> PlanCount:
    """Count the completions of a configuration; those of an infinite language up to a length above the shortest.

    Raises:
        Undecided: they were not counted within the budget.
    """
    try:
        return _count_plans_of(lookahead, configuration, "words")
    except Undecided:
        # Words that may have several derivations have to be held one by one; derivations are counted without.
        return _count_plans_of(lookahead, configuration, "derivations")


def _count_plans_of(lookahead: Lookahead, configuration: Hashable, of: Literal["words", "derivations"]) -> PlanCount:
    try:
        return PlanCount(lookahead.count(configuration, of=of), of)
    except InfiniteLanguage:
        bound = (lookahead.shortest(configuration) or 0) + FURTHER
        return PlanCount(lookahead.count(configuration, of=of, max_length=bound), of, bound)
