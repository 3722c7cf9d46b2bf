"""Edits that turn one word into another.

Inserting, deleting and substituting a symbol each have a weight; the distance of two words is the least weight of edits
that turn one into the other (Levenshtein 1966; the algorithm is that of Wagner and Fischer 1974).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from formal_llm.automata.models.automaton import Word


@dataclass(frozen=True, slots=True)
class EditWeights:
    """The costs of edits.

    Args:
        insert: the cost of adding a missing terminal.
        delete: the cost of removing a terminal.
        substitute: the cost of replacing a terminal by another.

    Raises:
        ValueError: a weight is negative or not finite.
    """

    insert: int | float = 1
    delete: int | float = 1
    substitute: int | float = 1

    def __post_init__(self) -> None:
        for name in ("insert", "delete", "substitute"):
            weight = getattr(self, name)
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of {name} must be a number from 0, not {weight!r}")

    @property
    def lost(self) -> int | float:
        """The least cost of losing a symbol of the word."""
        return min(self.delete, self.substitute)

    @property
    def gained(self) -> int | float:
        """The least cost of gaining a symbol that is not in the word."""
        return min(self.insert, self.substitute)


#: Weights by which every edit costs the same.
UNIT_WEIGHTS = EditWeights()


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a word.

    Attributes:
        position: the index in the word before any edit; an insertion comes before that index.
        old: the removed terminal; None for an insertion.
        new: the added terminal; None for a deletion.
    """

    kind: Literal["insert", "delete", "substitute"]
    position: int
    old: str | None = None
    new: str | None = None

    def __str__(self) -> str:
        if self.kind == "insert":
            return f"insert {self.new} at place {self.position + 1}"
        if self.kind == "delete":
            return f"delete {self.old} at place {self.position + 1}"
        return f"replace {self.old} at place {self.position + 1} by {self.new}"


def find_edits(word: Word, other: Word, weights: EditWeights = UNIT_WEIGHTS) -> tuple[Edit, ...]:
    """Return the cheapest edits that turn ``word`` into ``other``, from left to right."""
    rows = [[column * weights.insert for column in range(len(other) + 1)]]
    for at, old in enumerate(word, 1):
        above = rows[-1]
        row = [at * weights.delete]
        for to, new in enumerate(other, 1):
            kept = above[to - 1] + (0 if old == new else weights.substitute)
            row.append(min(kept, above[to] + weights.delete, row[to - 1] + weights.insert))
        rows.append(row)
    edits: list[Edit] = []
    at, to = len(word), len(other)
    while at or to:
        cost = rows[at][to]
        same = at > 0 and to > 0 and word[at - 1] == other[to - 1]
        if at and to and cost == rows[at - 1][to - 1] + (0 if same else weights.substitute):
            at, to = at - 1, to - 1
            if not same:
                edits.append(Edit("substitute", at, word[at], other[to]))
        elif at and cost == rows[at - 1][to] + weights.delete:
            at -= 1
            edits.append(Edit("delete", at, word[at]))
        else:
            to -= 1
            edits.append(Edit("insert", at, None, other[to]))
    return tuple(reversed(edits))


def weigh_edits(made: tuple[Edit, ...], weights: EditWeights = UNIT_WEIGHTS) -> int | float:
    """Return the total cost of edits."""
    prices = {"insert": weights.insert, "delete": weights.delete, "substitute": weights.substitute}
    return sum(prices[edit.kind] for edit in made)


def apply_edits(made: tuple[Edit, ...], word: Word) -> Word:
    """Return ``word`` after the edits that :func:`find_edits` found for it."""
    new = list(word)
    for edit in reversed(made):
        stop = edit.position + (edit.kind != "insert")
        new[edit.position : stop] = [] if edit.new is None else [edit.new]
    return tuple(new)
