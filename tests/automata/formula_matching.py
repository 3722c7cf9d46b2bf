"""Whether a sequence is in a formula, straight from the definition.

Each operator is an operation on sets of spans: a span (i, j) of a word stands for its part word[i:j]. Concatenation
composes them as relations, ``or`` and ``and`` unite and intersect, ``not`` is the complement among all spans. A set is
kept as a row of bits for each i: bit j is on where (i, j) is in it. No derivatives and no automata are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from operator import and_, or_

from formal_llm.automata.models.formula import (
    ANY,
    Always,
    And,
    Atom,
    Eventually,
    Formula,
    Next,
    Not,
    Or,
    Repeated,
    Until,
)

SpanSet = list[int]


def matches(formula: Formula, word: Sequence[str]) -> bool:
    """Whether a sequence over Σ is in L(formula), by looking at all its parts; the time is cubic in its length."""
    places = range(len(word) + 1)
    every = [(2 << len(word)) - (1 << start) for start in places]
    empty = [1 << start for start in places]
    single = [1 << start + 1 if start < len(word) else 0 for start in places]

    def step(row: int, other: SpanSet) -> int:
        return reduce(or_, (other[at] for at in places if row >> at & 1), 0)

    def joined(one: SpanSet, other: SpanSet) -> SpanSet:
        return [step(row, other) for row in one]

    def repeated(body: SpanSet, end: SpanSet, least: int, most: int | None) -> SpanSet:
        # Repetitions that are not empty fit at most once into each place, and empty ones add nothing.
        found = [*end]
        if most is None:  # what begins further right is known already
            for start in reversed(places):
                found[start] |= step(body[start] & ~empty[start], found)
        for _ in range(min((most or 0) - least, len(places))):
            found = [*map(or_, end, joined(body, found))]
        for _ in range(min(least, len(places))):
            found = joined(body, found)
        return found

    @cache
    def spans(formula: Formula) -> SpanSet:
        parts = [spans(part) for part in formula.parts]
        match formula:
            case Atom(name=name):
                return [row if word[at : at + 1] == (name,) else 0 for at, row in enumerate(single)]
            case Next():
                return reduce(joined, parts)
            case Or():
                return reduce(lambda one, other: [*map(or_, one, other)], parts)
            case And():
                return reduce(lambda one, other: [*map(and_, one, other)], parts)
            case Not():
                return [row & ~taken for row, taken in zip(every, parts[0], strict=True)]
            case Until(_, least, most):
                return repeated(parts[0], parts[1], least, most)
            case Eventually():
                return joined(joined(every, parts[0]), every)
            case Always():
                return repeated([*map(and_, parts[0], single)], empty, 0, None)
            case Repeated():
                return repeated(parts[0], empty, 0, None)
        return single if formula == ANY else empty

    word = tuple(word)
    return bool(spans(formula)[0] >> len(word) & 1)
