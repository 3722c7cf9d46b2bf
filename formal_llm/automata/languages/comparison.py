"""The differences of two languages: for each, a shortest word that the other does not have.

Both automata read the same word, letter by letter; after a word each may be in several configurations (those that
cannot be completed are left out), and a pair of sets of configurations is a *place*. The places are explored by
length, as in the subset construction (Rabin and Scott 1959): each word leads to one place, so words are distinguished
even if they have many runs, and the words of each length are counted as the paths to places. Finite automata have
finitely many places, and so do finite languages; the answer then holds without a bound on the length. For other
pushdown automata, equality is undecidable (Hopcroft, Motwani and Ullman, section 9.5), and the answer holds up to a
length.

If a word leads to very many configurations, as under left recursion, the words themselves are listed side by side.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.rules import Source
from formal_llm.errors import Undecided

#: The maximum number of configurations to follow after one word.
_CONFIGURATIONS = 500
#: Without a bound, the length beyond the shortest words up to which words are compared: explored, and listed.
_FURTHER, _LISTED_FURTHER = 50, 10
#: The number of terminals before the bound from which a search determines how many must still follow.
_NEAR = 4
#: The budget of such a search, in the tries of :class:`~formal_llm.automata.lookahead.verdicts.WorkBudget`.
_TRIES = 4_000
#: The number of lengths for which words are counted.
_COUNTED = 12


class Count(NamedTuple):
    """The numbers of words of one length in two languages."""

    length: int
    one: int
    other: int


@dataclass(frozen=True)
class Differences:
    """The differences of two languages.

    Attributes:
        only_one: a shortest word that only the first language has; None if there is none of the length compared.
        only_other: likewise for the second language.
        up_to: the length up to which all words were compared; None if all words were, so that the answer is exact.
        counts: the number of words of each length, as far as it was determined on the way.
    """

    only_one: Word | None
    only_other: Word | None
    up_to: int | None
    counts: tuple[Count, ...] = field(default=())

    @property
    def equal(self) -> bool:
        """Whether no difference was found."""
        return self.only_one is None and self.only_other is None

    @property
    def exact(self) -> bool:
        """Whether the answer holds for all words: all were compared, or each language has a word of its own."""
        return self.up_to is None or (self.only_one is not None and self.only_other is not None)


def differences(one: Source, other: Source, max_length: int | None = None, *, max_places: int = 5_000) -> Differences:
    """Determine how two languages differ.

    Args:
        one: a grammar (with its limits) or an automaton, including products.
        other: the other grammar or automaton.
        max_length: the maximum length of words to compare; by default as far as the budget allows (finite automata
            without a bound, others up to well beyond their shortest words).
        max_places: the budget: how many places to explore; ten times as many words are listed.

    Raises:
        ValueError: the length is negative.
    """
    if max_length is not None and max_length < 0:
        raise ValueError("max_length counts from 0")
    sides = Lookahead(one), Lookahead(other)
    try:
        bound = (
            max_length
            if max_length is not None
            else None
            if _are_both_finite(sides)
            else _length_beyond_shortest(sides, _FURTHER)
        )
        found = _Comparison(sides, bound, max_places).compare_languages()
    except _TooManyToCompare:
        bound = max_length if max_length is not None else _length_beyond_shortest(sides, _LISTED_FURTHER)
        found = _compare_listed_words(sides, bound, 10 * max_places)
    # Equal rules, up to labels, have the same words, however many there are.
    return replace(found, up_to=None) if _are_same_automata(*sides) else found


def _are_same_automata(one: Lookahead, other: Lookahead) -> bool:
    """Return whether two automata have equal definitions."""
    if one.pda is None or other.pda is None:
        return False
    return one.pda.fingerprint == other.pda.fingerprint and one.bounds == other.bounds


def _are_both_finite(sides: tuple[Lookahead, Lookahead]) -> bool:
    """Return whether both are finite automata, which limits leave finite."""
    return all(side.pda is not None and not side.pda.uses_stack for side in sides)


def _length_beyond_shortest(sides: tuple[Lookahead, Lookahead], further: int) -> int:
    """Return a length beyond the shortest words."""
    try:
        return max(side.shortest() or 0 for side in sides) + further
    except Undecided:
        return further


class _TooManyToCompare(Exception):
    """Raised when a word leads to more configurations than are followed."""


#: Configurations of either automaton.
_Both = tuple[list[Hashable], list[Hashable]]
#: The configurations to which each letter leads.
_After = dict[str, _Both]
#: The configurations of either automaton after a word.
_Place = tuple[frozenset[Hashable], frozenset[Hashable]]


class _ExploredPlace(NamedTuple):
    """The properties of a place: whether either automaton accepts there, and where each letter leads."""

    accepts: tuple[bool, bool]
    after: _After


class _Comparison:
    """Explores the places that words lead to, length by length."""

    def __init__(self, sides: tuple[Lookahead, Lookahead], bound: int | None, max_places: int) -> None:
        self._sides = sides
        self._bound = bound
        self._max_places = max_places
        names = [name for side in sides if side.pda is not None for name in side.pda.terminals]
        self._ranks = {name: rank for rank, name in enumerate(dict.fromkeys(names))}
        #: Whether a configuration was left out only because its words exceed the bound.
        self._cut = False
        self._known: dict[_Place, _ExploredPlace] = {}
        self._led: dict[_Place, tuple[_Place, str] | None] = {}
        self._steps: dict[_Place, list[_Place]] = {}

    def compare_languages(self) -> Differences:
        start = self._drop_dead(
            ([self._sides[0].automaton.start()], [self._sides[1].automaton.start()]), self._remaining_length(0)
        )
        found: list[Word | None] = [None, None]
        level: list[_Place] = [start]
        self._led[start] = None
        length = 0
        while True:
            for place in level:
                accepts = self._explore_place(place, self._remaining_length(length)).accepts
                for side in (0, 1):
                    if found[side] is None and accepts[side] and not accepts[1 - side]:
                        found[side] = self._word_to_place(place)
            if None not in found or self._bound == length:
                return self._make_differences(start, found, length)
            if len(self._led) > self._max_places:
                return self._make_differences(start, found, length)
            following = [
                after for place in level for after in self._expand_place(place, self._remaining_length(length + 1))
            ]
            if not following:
                return self._make_differences(start, found, self._bound if self._cut else None)
            level, length = following, length + 1

    def _remaining_length(self, length: int) -> float:
        """Return how many terminals may follow after ``length`` terminals."""
        return INFINITE if self._bound is None else self._bound - length

    def _expand_place(self, place: _Place, left: float) -> list[_Place]:
        """Return the new places that one more letter leads to, in the order of the letters."""
        new, steps = [], []
        after = self._known[place].after
        for name in sorted(after, key=lambda name: self._ranks.setdefault(name, len(self._ranks))):
            following = self._drop_dead(after[name], left)
            if any(following):
                steps.append(following)
                if following not in self._led:
                    self._led[following] = (place, name)
                    new.append(following)
        self._steps[place] = steps
        return new

    def _drop_dead(self, configurations: _Both, left: float) -> _Place:
        """Remove the configurations that cannot be completed, or not with at most ``left`` terminals."""
        one, other = (
            frozenset(now for now in these if self._is_alive(side, now, left))
            for side, these in zip(self._sides, configurations, strict=True)
        )
        return one, other

    def _is_alive(self, side: Lookahead, now: Hashable, left: float) -> bool:
        if not side.completable(now).possible:
            return False
        # The effect of limits on the length justifies a search only near the end.
        short = left == INFINITE or side.least_length(now, tries=_TRIES if left <= _NEAR else 0) <= left
        self._cut = self._cut or not short
        return short

    def _explore_place(self, place: _Place, left: float) -> _ExploredPlace:
        known = self._known.get(place)
        if known is None:
            after: _After = {}
            accepts = (
                self._follow_silent_moves(0, place[0], after, left),
                self._follow_silent_moves(1, place[1], after, left),
            )
            known = self._known[place] = _ExploredPlace(accepts, after)
        return known

    def _follow_silent_moves(self, number: int, place: Iterable[Hashable], after: _After, left: float) -> bool:
        """Make the moves without input, record where each letter leads, and return whether the automaton accepts."""
        side = self._sides[number]
        automaton, accepts = side.automaton, False
        seen = set(place)
        todo = list(seen)
        while todo:
            now = todo.pop()
            accepts = accepts or automaton.accepting(now)
            for move in automaton.moves(now):
                following = automaton.step(now, move)
                if move.read is not None:
                    after.setdefault(move.read, ([], []))[number].append(following)
                elif following not in seen and self._is_alive(side, following, left):
                    if len(seen) >= _CONFIGURATIONS:
                        raise _TooManyToCompare
                    seen.add(following)
                    todo.append(following)
        return accepts

    def _word_to_place(self, place: _Place) -> Word:
        word: list[str] = []
        while (led := self._led[place]) is not None:
            place, name = led
            word.append(name)
        return tuple(reversed(word))

    # -- counts --------------------------------------------------------------------------------------------------------

    def _make_differences(self, start: _Place, found: list[Word | None], up_to: int | None) -> Differences:
        return Differences(found[0], found[1], up_to, tuple(self._count_words(start, up_to)))

    def _count_words(self, start: _Place, up_to: int | None) -> list[Count]:
        """Count the words of each length, from the shortest on, as the paths to places."""
        counts: list[Count] = []
        ways = {start: 1}
        length = 0
        last: float = INFINITE if up_to is None else up_to
        while ways and length <= last and len(counts) < _COUNTED:
            totals = [sum(n for place, n in ways.items() if self._known[place].accepts[side]) for side in (0, 1)]
            if counts or any(totals):
                counts.append(Count(length, *totals))
            following: dict[_Place, int] = {}
            for place, number in ways.items():
                for after in self._steps.get(place, ()):
                    following[after] = following.get(after, 0) + number
            ways, length = following, length + 1
        return counts


def _compare_listed_words(sides: tuple[Lookahead, Lookahead], max_length: int, max_words: int) -> Differences:
    """Compare two languages by listing their words side by side."""
    found: list[Word | None] = [None, None]
    counts: dict[int, list[int]] = {}
    up_to, length = max_length, 0
    if sides[0].pda is None or sides[1].pda is None:
        raise TypeError("words are listed for grammars and pushdown automata, not for other automata")
    for number, (word, *has) in enumerate(_merge_word_lists(sides[0].pda, sides[1].pda, max_length)):
        if len(word) > length:
            if None not in found:
                up_to = length
                break
            length = len(word)
        if number >= max_words:
            up_to = length - 1
            counts.pop(length, None)
            break
        row = counts.setdefault(length, [0, 0])
        for side in (0, 1):
            row[side] += has[side]
            if has[side] and not has[1 - side] and found[side] is None:
                found[side] = word
    return Differences(found[0], found[1], up_to, tuple(Count(n, *row) for n, row in sorted(counts.items())))


def _merge_word_lists(one: PDA, other: PDA, max_length: int) -> Iterator[tuple[Word, bool, bool]]:
    """Yield the words of two languages, each once, shorter ones first, with whether either language has it."""
    order = tuple(dict.fromkeys((*one.terminals, *other.terminals)))
    ranks = {name: rank for rank, name in enumerate(order)}

    def rank_word(word: Word | None) -> tuple[float, list[int]]:
        return (math.inf, []) if word is None else (len(word), [ranks[name] for name in word])

    ours, theirs = words(one, max_length, order=order), words(other, max_length, order=order)
    mine, yours = next(ours, None), next(theirs, None)
    while (first := min(mine, yours, key=rank_word)) is not None:
        yield first, mine == first, yours == first
        mine, yours = (next(ours, None) if mine == first else mine, next(theirs, None) if yours == first else yours)
