"""The words of a language: listed one by one, and counted."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Literal

from formal_llm.automata.languages.prefixes import ConfigurationSet, ConfigurationSets
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.rules import Source
from formal_llm.errors import InfiniteLanguage, Undecided

#: How much longer than the shortest plan the counted plans of an infinite language may be.
FURTHER = 4


def words(source: Source, max_length: int) -> Iterator[Word]:
    """Yield the words of at most ``max_length`` terminals within the limits, each once.

    Shorter ones come first, words of one length in the order of the alphabet. They are generated on demand.

    Args:
        source: a grammar (with its limits) or an automaton.
        max_length: the maximum number of terminals.
    """
    start = ConfigurationSets(Lookahead(source)).start
    for length in range(max_length + 1):
        yield from _list_words_of_length(start, length)


def _list_words_of_length(start: ConfigurationSet, length: int) -> Iterator[Word]:
    """Yield the words of one length, depth first; a set from which none was found is not entered again."""
    barren: set[tuple[ConfigurationSet, int]] = set()
    here, word, yielded = start, list[str](), 0
    #: For each prefix of the word: its set, the terminals to try after it, and the words that were yielded before it.
    open_: list[tuple[ConfigurationSet, Iterator[str], int]] = []
    while True:
        left = length - len(word)
        if here.is_viable is not False and here.least_length <= left and (here, left) not in barren:
            if left:
                open_.append((here, iter(here.next_terminals), yielded))
            elif here.may_stop:
                yielded += 1
                yield tuple(word)
        while open_:
            below, names, before = open_[-1]
            del word[len(open_) - 1 :]
            if (name := next(names, None)) is not None:
                word.append(name)
                here = below.after_terminal(name)
                break
            open_.pop()
            if yielded == before:
                barren.add((below, length - len(open_)))
        else:
            return


@dataclass(frozen=True)
class PlanCount:
    """The number of plans, as far as it can be determined even for an infinite language.

    Attributes:
        of: the objects that were counted.
        bound: the maximum number of terminals of the counted ones, if there are infinitely many.
    """

    number: int
    of: Literal["words", "derivations"]
    bound: int | None = None

    def describe_count(self, bounded: str) -> str:
        """Format the count for display; ``bounded`` describes the bound, as in ``of at most {} terminals``."""
        figure = f"{self.number:,}{'' if self.of == 'words' else ' derivations (a plan may have several)'}"
        return figure if self.bound is None else f"infinitely many; {figure} {bounded.format(self.bound)}"


def count_plans(lookahead: Lookahead, configuration: Hashable = None) -> PlanCount:
    """Count the completions of a configuration; in an infinite language, up to a length above the shortest.

    Raises:
        Undecided: the budget was too small to count them.
    """
    try:
        return _count_plans_of(lookahead, configuration, "words")
    except Undecided as undecided:
        # Words with several derivations must be told apart; derivations can be counted without that.
        try:
            return _count_plans_of(lookahead, configuration, "derivations")
        except InfiniteLanguage:  # a cycle adds nothing
            raise undecided from None


def _count_plans_of(lookahead: Lookahead, configuration: Hashable, of: Literal["words", "derivations"]) -> PlanCount:
    try:
        return PlanCount(lookahead.count(configuration, of=of), of)
    except InfiniteLanguage:
        bound = (lookahead.shortest(configuration) or 0) + FURTHER
        return PlanCount(lookahead.count(configuration, of=of, max_length=bound), of, bound)
