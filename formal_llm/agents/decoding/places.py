"""Where one can be in a language: what may come next, and where that leads.

A place stands for all configurations that a beginning of a word leads to, those left out that cannot be completed (the
subset construction, made as it is needed). Beginnings that lead to the same configurations share a place, so what is
found out for one serves the others. Where there are too many configurations (left recursion has infinitely many), a
place is known by a beginning itself, and :class:`~formal_llm.automata.languages.prefixes.Prefixes` decides it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import NamedTuple

from formal_llm.automata import Limits, Lookahead, Source, Word
from formal_llm.automata.languages.prefixes import Prefixes, beginning
from formal_llm.automata.models.automaton import HasTerminals
from formal_llm.automata.models.product import product
from formal_llm.errors import NoValidPlan, Undecided

#: How many places are known at a time.
_CACHE = 20_000


class Place:
    """One place in a language. What is true of one beginning that leads here is true of all.

    Attributes:
        word: one of the beginnings that lead here.
        names: the terminals after which a word can be completed for certain, in the order of the alphabet.
        may_stop: whether what was read is a word.
        complete: whether no terminal is missing because a budget of states ran out.
    """

    def __init__(
        self,
        places: Places,
        word: Word,
        kernel: frozenset[Hashable] | None,
        found: _Following,
        kernels: dict[str, frozenset[Hashable]],
    ) -> None:
        self._places = places
        self._kernel = kernel
        self._kernels = kernels
        self.word = word
        self.names, self.may_stop, self.complete = found

    def after(self, name: str) -> Place:
        """Where one of the :attr:`names` leads."""
        return self._places.at((*self.word, name), self._kernels.get(name))

    @cached_property
    def shortest(self) -> Word:
        """The fewest terminals that complete a word from here.

        Raises:
            Undecided: they were not found within the budget of states.
        """
        return () if self.may_stop else self._places.shortest(self.word, self._kernel)


class _Following(NamedTuple):
    names: Word
    may_stop: bool
    complete: bool


class Places:
    """The places of one language.

    Args:
        source: rules, or an automaton of one's own.
        limits: more limits, beside those of the rules.
        max_states: the budget of states of the lookahead.
        max_configurations: how many configurations of one place are followed.

    Raises:
        NoValidPlan: the language has no word.
        Undecided: whether it has one was not found out within the budget of states.
        AutomatonError: of the lookahead.
    """

    def __init__(
        self,
        source: Source,
        limits: Limits | None = None,
        *,
        max_states: int = 20_000,
        max_configurations: int = 1_000,
    ) -> None:
        self.lookahead = Lookahead(source, limits, max_states=max_states)
        verdict = self.lookahead.completable().value
        if verdict == "no":
            raise NoValidPlan("no word keeps the rules and the limits")
        if verdict == "unknown":
            raise Undecided("whether there is any plan was not found out within the budget of states; raise max_states")
        self._max = max_configurations
        self._prefixes: Prefixes | None = None
        self._by_kernel: dict[frozenset[Hashable], Place] = {}
        self._by_word: dict[Word, Place] = {}
        automaton = self.lookahead.automaton
        told = automaton.terminals if isinstance(automaton, HasTerminals) else ()
        self._order = {name: number for number, name in enumerate(told)}
        self.start = self.at((), frozenset([automaton.start()]))

    def at(self, word: Word, kernel: frozenset[Hashable] | None) -> Place:
        """The place that a word leads to.

        Args:
            word: the word.
            kernel: all configurations just after its last terminal that may be completed; None where they are too many.
        """
        place = self._by_word.get(word) if kernel is None else self._by_kernel.get(kernel)
        if place is None:
            followed = None if kernel is None else self._follow(kernel)
            found, kernels = followed or (self._decide(word), {})
            place = Place(self, word, kernel, found, kernels)
            if len(self._by_kernel) + len(self._by_word) > _CACHE:
                self._by_kernel.clear()
                self._by_word.clear()
            if kernel is None:
                self._by_word[word] = place
            else:
                self._by_kernel[kernel] = place
        return place

    def shortest(self, word: Word, kernel: frozenset[Hashable] | None) -> Word:
        """The fewest terminals that complete what a place stands for; see :attr:`Place.shortest`."""
        lookahead, pda = self.lookahead, self.lookahead.pda
        if kernel is not None:
            found = [rest for now in kernel if (rest := lookahead.shortest_word(now)) is not None]
            return min(found, key=len)
        assert pda is not None, "of other automata each configuration is followed"
        begun = Lookahead(product(pda, beginning(word, pda.terminals)), max_states=lookahead.max_states)
        whole = begun.shortest_word()
        assert whole is not None, "only what can be completed has a place"
        return whole[len(word) :]

    def _follow(self, kernel: Iterable[Hashable]) -> tuple[_Following, dict[str, frozenset[Hashable]]] | None:
        """One configuration after the other; None where they are too many."""
        automaton, completable = self.lookahead.automaton, self.lookahead.completable
        after: dict[str, dict[Hashable, str]] = {}
        may_stop = False
        todo = list(kernel)
        seen = set(todo)
        while todo:
            now = todo.pop()
            may_stop = may_stop or automaton.accepting(now)
            for move in automaton.moves(now):
                following = automaton.step(now, move)
                if move.read is not None:
                    after.setdefault(move.read, {})[following] = ""
                elif following not in seen:
                    if len(seen) >= self._max:
                        return None
                    seen.add(following)
                    if completable(following).possible:
                        todo.append(following)
        for found in after.values():
            for following in found:
                found[following] = completable(following).value
        names = [name for name, found in after.items() if "yes" in found.values()]
        complete = not any("unknown" in found.values() and "yes" not in found.values() for found in after.values())
        kernels = {name: frozenset(c for c, value in after[name].items() if value != "no") for name in names}
        last = len(self._order)
        return _Following(tuple(sorted(names, key=lambda n: self._order.get(n, last))), may_stop, complete), kernels

    def _decide(self, word: Word) -> _Following:
        if self._prefixes is None:
            self._prefixes = Prefixes(self.lookahead, max_configurations=self._max)
        return _Following(*self._prefixes.following(word))
