"""Lookahead for any automaton: explore configurations, nearest first.

This knows nothing but the Automaton protocol, so it serves automata that are not pushdown automata, and it is the
plain reference for the faster search in :mod:`formal_llm.automata.lookahead.search`. There may be infinitely many
configurations: a budget ends it. An automaton that :class:`Foresees` is asked instead, wherever it can answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN, least_cost
from formal_llm.automata.lookahead.flow import LENGTH
from formal_llm.automata.lookahead.verdicts import WorkBudget
from formal_llm.automata.models.automaton import Automaton, C, Foresees, HasTerminals, M


class PlainSearch(Generic[C, M]):
    """The search over the configurations of ``automaton``, at most ``max_states`` a query.

    Attributes:
        work: what queries may still cost.
    """

    def __init__(self, automaton: Automaton[C, M], max_states: int) -> None:
        self.automaton = automaton
        self.max_states = max_states
        self.work = WorkBudget()
        self._steps: dict[C, float] = {}
        self._foresees = automaton if isinstance(automaton, Foresees) else None

    def cheapest_cost(self, configuration: C, *, by_length: bool) -> float:
        """The least moves, or least length, to acceptance; infinite for none, ``UNKNOWN`` when the budget is spent."""

        def successor_costs(now: C) -> Iterator[tuple[float, C, float]]:
            for move in self.automaton.moves(now):
                self.work.left -= 1
                price = 1 + (LENGTH if by_length and move.read is not None else 0)
                then = self.automaton.step(now, move)
                least = 0 if self._foresees is None else self._foresees.to_end(then)
                if least is not None:
                    yield price, then, least

        self.work.begin_query()
        ends, over = self.automaton.accepting, lambda: self.work.is_over
        return least_cost((0, configuration, 0), successor_costs, ends, self.max_states, over)

    def least_moves(self, configuration: C) -> float:
        """Like ``cheapest`` in moves, remembered."""
        found = self._steps.get(configuration)
        if found is None and self._foresees is not None:
            least = self._foresees.to_end(configuration)
            found = self._steps[configuration] = INFINITE if least is None else float(least)
        if found is None:
            found = self.cheapest_cost(configuration, by_length=False)
            if found != UNKNOWN or not self.work.is_over:
                self._steps[configuration] = found
        return found

    def remember_moves(self, configuration: C, steps: float) -> None:
        """Remember what :meth:`least_moves` of a search like this one has found."""
        self._steps[configuration] = steps

    def reachable_terminals(self, configuration: C) -> frozenset[str]:
        """The terminals that moves within the budget can read; all of them where the automaton has them at hand."""
        if self._foresees is not None and isinstance(self.automaton, HasTerminals):
            return frozenset(self.automaton.terminals)
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
