"""The leftmost derivations of a word, those with fewer productions first.

Ambiguity of a grammar is undecidable (Hopcroft, Motwani and Ullman, section 9.5), so it is determined up to
a length, with a shortest word as the witness.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, NamedTuple

from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.symbols import Production

#: A leftmost derivation: its productions in order.
Derivation = tuple[Production, ...]


@dataclass(frozen=True, slots=True)
class Derivations:
    """The leftmost derivations of a word, those with fewer productions first.

    Attributes:
        found: the derivations, each as its productions in order. A selection is expanded as in
            :attr:`CFG.expanded`.
        complete: whether these are all; False if there are more than were requested (infinitely many, if symbols
            derive themselves without reading anything).
    """

    found: tuple[Derivation, ...]
    complete: bool


def derivations(cfg: CFG, word: Iterable[str], limit: int = 100) -> Derivations:
    """Return at most ``limit`` leftmost derivations of ``word``: one for each of its derivation trees."""
    found = tuple(islice(DerivationLister(cfg).list_derivations(tuple(word)), limit + 1))
    return Derivations(found[:limit], len(found) <= limit)


class _PendingSymbol(NamedTuple):
    """A stack of symbols to derive, with the fewest productions that derive the rest from each position."""

    symbol: str
    below: _PendingSymbol | None
    least: Mapping[int, int]


class DerivationLister:
    """Lists the derivations of words of one grammar, the shortest first."""

    def __init__(self, cfg: CFG) -> None:
        self._cfg = cfg
        #: The productions that begin with each symbol; those of ε under None.
        self._by_first: dict[str | None, list[int]] = {}
        for index, production in enumerate(cfg.expanded):
            self._by_first.setdefault(production.body[0] if production.body else None, []).append(index)

    def list_derivations(self, word: Word) -> Iterator[Derivation]:
        """Yield derivations best first; the estimate of the remaining cost is exact, so no step is in vain."""
        spans = self._find_spans(word)
        number = count()
        bottom = _PendingSymbol("", None, {len(word): 0})
        begin = self._push_symbol(self._cfg.start, bottom, spans)
        heap: list[tuple[int, int, int, _PendingSymbol, int, Any]] = []
        if 0 in begin.least:
            heap.append((begin.least[0], 0, 0, begin, 0, None))
        while heap:
            # Ties: the derivation that has progressed further comes first, so that the first one is found at once.
            _, negated, _, stack, at, path = heapq.heappop(heap)
            while stack.below is not None and stack.symbol in self._cfg.terminals:
                stack, at = stack.below, at + 1
            if stack.below is None:
                yield _path_to_derivation(path)
                continue
            used = 1 - negated
            for production in self._cfg.by_head[stack.symbol]:
                after = stack.below
                for name in reversed(production.body):
                    after = self._push_symbol(name, after, spans)
                if at in after.least:
                    heapq.heappush(heap, (used + after.least[at], -used, next(number), after, at, (production, path)))

    @staticmethod
    def _push_symbol(
        name: str, below: _PendingSymbol, spans: Mapping[str, Mapping[tuple[int, int], int]]
    ) -> _PendingSymbol:
        least: dict[int, int] = {}
        for (begin, end), cost in spans.get(name, {}).items():
            if end in below.least:
                total = cost + below.least[end]
                least[begin] = min(total, least.get(begin, total))
        return _PendingSymbol(name, below, least)

    def _find_spans(self, word: Word) -> dict[str, dict[tuple[int, int], int]]:
        """Return for each symbol the parts of the word that it derives, with the fewest productions for each.

        Knuth's generalisation of Dijkstra's algorithm (1977), over items (production, symbols passed, begin, end).
        """
        spans: dict[str, dict[tuple[int, int], int]] = {}
        starting: dict[tuple[str, int], list[tuple[int, int]]] = {}
        waiting: dict[tuple[str, int], list[tuple[int, int, int, int]]] = {}
        seen: set[tuple[int, int, int, int]] = set()
        #: (cost, production, symbols passed, begin, end); production -1 for the terminal at ``begin``.
        heap = [(0, -1, 0, at, at + 1) for at in range(len(word))]
        heap += [(1, index, 0, at, at) for index in self._by_first.get(None, ()) for at in range(len(word) + 1)]
        heapq.heapify(heap)
        while heap:
            cost, index, passed, begin, end = heapq.heappop(heap)
            item = (index, passed, begin, end)
            if item in seen:
                continue
            seen.add(item)
            body = self._cfg.expanded[index].body if index >= 0 else ()
            if passed < len(body):
                name = body[passed]
                waiting.setdefault((name, end), []).append((cost, index, passed, begin))
                for to, more in starting.get((name, end), ()):
                    heapq.heappush(heap, (cost + more, index, passed + 1, begin, to))
                continue
            name = self._cfg.expanded[index].head if index >= 0 else word[begin]
            if (begin, end) in spans.setdefault(name, {}):
                continue
            spans[name][begin, end] = cost
            starting.setdefault((name, begin), []).append((end, cost))
            for more, index, passed, since in waiting.get((name, begin), ()):
                heapq.heappush(heap, (cost + more, index, passed + 1, since, end))
            for index in self._by_first.get(name, ()):
                heapq.heappush(heap, (cost + 1, index, 1, begin, end))
        return spans


def _path_to_derivation(path: Any) -> Derivation:
    productions = []
    while path is not None:
        production, path = path
        productions.append(production)
    return tuple(reversed(productions))


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """A word and two of its leftmost derivations; productions that differ only in their text are distinct."""

    word: Word
    derivations: tuple[Derivation, Derivation]


def ambiguity_witness(cfg: CFG, max_length: int) -> Ambiguity | None:
    """Return a shortest word with two leftmost derivations; None if no word of at most ``max_length`` has two."""
    deriving = DerivationLister(cfg)
    for word in words(cfg, max_length):
        first, *more = islice(deriving.list_derivations(word), 2)
        if more:
            return Ambiguity(word, (first, more[0]))
    return None
