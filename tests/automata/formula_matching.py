"""Whether a sequence is in a formula, straight from the definition.

A *span* of a word of length n is a pair (i, j), 0 ≤ i ≤ j ≤ n, and stands for the part word[i:j]. Each operator is an
operation on sets of spans: concatenation composes them as relations, ``or`` and ``and`` unite and intersect, ``not`` is
the complement among all spans. A set of spans is kept as a row of bits for each i: bit j is on where (i, j) is in it.

No derivatives and no automata are used, so that what is compiled from a formula can be tested against this.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

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
    return bool(spans(formula, tuple(word))[0] >> len(word) & 1)


def spans(formula: Formula, word: Sequence[str]) -> SpanSet:
    """The spans of ``word`` that are in the formula."""
    return _Spans(word).of(formula)


class _Spans:
    """The spans of one word, by formula."""

    def __init__(self, word: Sequence[str]) -> None:
        self.word = word
        self.places = range(len(word) + 1)
        self.all = [(2 << len(word)) - (1 << start) for start in self.places]
        self.empty = [1 << start for start in self.places]
        self.single = [1 << start + 1 if start < len(word) else 0 for start in self.places]
        self._known: dict[Formula, SpanSet] = {}

    def of(self, formula: Formula) -> SpanSet:
        found = self._known.get(formula)
        if found is None:
            found = self._known[formula] = self._of(formula, [self.of(part) for part in formula.parts])
        return found

    def _of(self, formula: Formula, parts: list[SpanSet]) -> SpanSet:
        match formula:
            case Atom(name=name):
                return [
                    row if at < len(self.word) and self.word[at] == name else 0 for at, row in enumerate(self.single)
                ]
            case Next():
                return reduce(lambda after, part: self._composed(part, after), reversed(parts))
            case Or():
                return reduce(_united, parts)
            case And():
                return reduce(_intersected, parts)
            case Not():
                return [row & ~taken for row, taken in zip(self.all, parts[0], strict=True)]
            case Until(_, least, most):
                return self._until(parts[0], parts[1], least, most)
            case Eventually():
                return self._composed(self._composed(self.all, parts[0]), self.all)
            case Always():
                return self._until(_intersected(parts[0], self.single), self.empty, 0, None)
            case Repeated():
                return self._until(parts[0], self.empty, 0, None)
        return self.single if formula == ANY else self.empty

    def _composed(self, one: SpanSet, other: SpanSet) -> SpanSet:
        """Concatenation: (i, k) with (i, j) in one and (j, k) in the other."""
        return [self._step(row, other) for row in one]

    def _step(self, row: int, other: SpanSet) -> int:
        found = 0
        while row:
            found |= other[row.bit_length() - 1]
            row ^= 1 << row.bit_length() - 1
        return found

    def _until(self, body: SpanSet, end: SpanSet, least: int, most: int | None) -> SpanSet:
        # Repetitions that are not empty fit at most once into each place, and empty ones add nothing: more rounds than
        # there are places find nothing new.
        rounds = len(self.places)
        if most is None:
            found = list(end)
            for start in reversed(self.places):
                # What begins further right is known already; an empty repetition would lead back here.
                found[start] |= self._step(body[start] & ~self.empty[start], found)
        else:
            found = end
            for _ in range(min(most - least, rounds)):
                found = _united(end, self._composed(body, found))
        for _ in range(min(least, rounds)):
            found = self._composed(body, found)
        return found


def _united(one: SpanSet, other: SpanSet) -> SpanSet:
    return [left | right for left, right in zip(one, other, strict=True)]


def _intersected(one: SpanSet, other: SpanSet) -> SpanSet:
    return [left & right for left, right in zip(one, other, strict=True)]
