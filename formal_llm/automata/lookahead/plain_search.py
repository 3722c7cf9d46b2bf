"""Lookahead for any automaton: explore configurations, nearest first.

This knows nothing but the Automaton protocol, so it serves automata that are not pushdown automata, and it is the
plain reference for the faster search in :mod:`formal_llm.automata.lookahead.search`. There may be infinitely many
configurations: a budget ends it.
"""

from __future__ import annotations

import heapq
from typing import Generic

from formal_llm.automata.lookahead.flow import INFINITE, LENGTH
from formal_llm.automata.lookahead.search import UNKNOWN
from formal_llm.automata.models.automaton import Automaton, C, M


class PlainSearch(Generic[C, M]):
    """The search over the configurations of ``automaton``, at most ``max_states`` a query."""

    def __init__(self, automaton: Automaton[C, M], max_states: int) -> None:
        self.automaton = automaton
        self.max_states = max_states
        self._steps: dict[C, float] = {}

    def cheapest(self, configuration: C, *, by_length: bool) -> float:
        """The least moves, or least length, to acceptance; infinite for none, ``UNKNOWN`` when the budget is spent."""
        best: dict[C, float] = {configuration: 0}
        queue: list[tuple[float, int, C]] = [(0, 0, configuration)]
        done: set[C] = set()
        tie = 0
        while queue:
            cost, _, now = heapq.heappop(queue)
            if now in done:
                continue
            if self.automaton.accepting(now):
                return cost
            if len(done) >= self.max_states:
                return UNKNOWN
            done.add(now)
            for move in self.automaton.moves(now):
                total = cost + 1 + (LENGTH if by_length and move.read is not None else 0)
                after = self.automaton.step(now, move)
                if total < best.get(after, INFINITE):
                    best[after] = total
                    tie += 1
                    heapq.heappush(queue, (total, tie, after))
        return INFINITE

    def steps(self, configuration: C) -> float:
        """Like ``cheapest`` in moves, remembered."""
        found = self._steps.get(configuration)
        if found is None:
            found = self._steps[configuration] = self.cheapest(configuration, by_length=False)
        return found

    def terminals(self, configuration: C) -> frozenset[str]:
        """The terminals that moves within the budget can read."""
        seen = {configuration}
        todo = [configuration]
        found: set[str] = set()
        while todo and len(seen) < self.max_states:
            now = todo.pop()
            for move in self.automaton.moves(now):
                if move.read is not None:
                    found.add(move.read)
                after = self.automaton.step(now, move)
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        return frozenset(found)
