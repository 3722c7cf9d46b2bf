"""The differences of two languages: for each, a shortest word that the other does not have.

Both automata read the same word, letter by letter; after a word each is in a set of configurations
(:mod:`formal_llm.automata.languages.prefixes`), and a pair of sets is a *place*. The places are explored by length:
each word leads to one place, so words are distinguished even if they have many runs, and the words of each length are
counted as the paths to places. Finite automata have finitely many places, and so do finite languages; the answer then
holds for all words. For other pushdown automata, equality is undecidable (Hopcroft, Motwani and Ullman, section 9.5),
and the answer holds up to a length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from formal_llm.automata.languages.prefixes import ConfigurationSet, ConfigurationSets
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.rules import Source

#: What a set with too many configurations to follow costs of the budget; others cost 1, and more if they are large.
_UNFOLLOWED = 50
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


#: The sets of configurations of both automata after a word.
_Place = tuple[ConfigurationSet, ConfigurationSet]


def differences(one: Source, other: Source, max_length: int | None = None, *, max_places: int = 5_000) -> Differences:
    """Determine how two languages differ.

    Args:
        one: a grammar (with its limits) or an automaton, including products.
        other: the other grammar or automaton.
        max_length: the maximum length of words to compare; by default as far as the budget allows.
        max_places: the budget: how many places to explore.

    Raises:
        ValueError: the length is negative.
        Undecided: a word leads to too many configurations of an automaton that is no pushdown automaton.
    """
    if max_length is not None and max_length < 0:
        raise ValueError("max_length counts from 0")
    sides = Lookahead(one), Lookahead(other)
    names = list(dict.fromkeys(name for side in sides for name in side.automaton.terminals))
    start = (ConfigurationSets(sides[0]).start, ConfigurationSets(sides[1]).start)
    seen, level = {start}, dict[_Place, Word]({start: ()})
    found: list[Word | None] = [None, None]
    length, budget = 0, float(max_places)
    while True:
        for place, word in level.items():
            ends = [side.may_stop for side in place]
            for side in (0, 1):
                if found[side] is None and ends[side] and not ends[1 - side]:
                    found[side] = word
            sizes = [side.configurations for side in place]
            budget -= sum(_UNFOLLOWED if size is None else 1 + len(size) // 20 for size in sizes) / 2
        if None not in found or length == max_length or budget < 0:
            break
        following: dict[_Place, Word] = {}
        for place, word in level.items():
            for name, after in _list_places_after(place, names):
                if after not in seen:
                    seen.add(after)
                    following[after] = (*word, name)
        if not following:
            return Differences(found[0], found[1], None, _count_words(start, names, None))
        level, length = following, length + 1
    # Equal rules, up to labels, have the same words, however many there are.
    up_to = None if _are_same_automata(*sides) else length
    return Differences(found[0], found[1], up_to, _count_words(start, names, length))


def _list_places_after(place: _Place, names: Iterable[str]) -> Iterator[tuple[str, _Place]]:
    """Yield the terminals with which a word of either language goes on, and where they lead."""
    for name in names:
        after = place[0].after_terminal(name), place[1].after_terminal(name)
        if not (after[0].is_viable is after[1].is_viable is False):
            yield name, after


def _count_words(start: _Place, names: list[str], up_to: int | None) -> tuple[Count, ...]:
    """Count the words of each length, from the shortest on, as the paths to places."""
    counts: list[Count] = []
    ways, length = {start: 1}, 0
    while ways and (up_to is None or length <= up_to) and len(counts) < _COUNTED:
        totals = [sum(number for place, number in ways.items() if place[side].may_stop) for side in (0, 1)]
        if counts or any(totals):
            counts.append(Count(length, *totals))
        following: dict[_Place, int] = {}
        for place, number in ways.items() if length != up_to else ():
            for _, after in _list_places_after(place, names):
                following[after] = following.get(after, 0) + number
        ways, length = following, length + 1
    return tuple(counts)


def _are_same_automata(one: Lookahead, other: Lookahead) -> bool:
    """Return whether two automata have equal definitions."""
    if one.pda is None or other.pda is None:
        return False
    return one.pda.fingerprint == other.pda.fingerprint and one.bounds == other.bounds
