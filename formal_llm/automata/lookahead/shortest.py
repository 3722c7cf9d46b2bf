"""The cheapest completion of a configuration, in moves or in terminals: A* over the states of the completion search.

What remains is estimated by the cheapest completions without limits, which never overrate.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE, least_cost
from formal_llm.automata.lookahead.flow import ACCEPTING, LENGTH, FlowSymbol
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.stacks import SearchState, Unresolved
from formal_llm.automata.models.automaton import Stack, State


class _Measure(NamedTuple):
    """What a search for the cheapest completion counts: attributes of a symbol, and the price of a terminal."""

    least: str
    free: str
    per_terminal: int = 0


_BY_LENGTH, _BY_STEPS = _Measure("least_length", "free_length", LENGTH), _Measure("least_steps", "free_steps")


def _complete(state: SearchState) -> bool:
    return not state.pending and state.unresolved is None and not state.needed


class ShortestSearch:
    """The search for the cheapest, beside the ``completion`` search of the same grammar."""

    def __init__(self, completion: CompletionSearch) -> None:
        self.completion = completion
        self.demands = completion.demands
        self.multisets = completion.multisets
        self.counters = completion.counters
        self.grammar = completion.grammar
        self.max_states = completion.max_states

    def find(
        self, state: State, stack: Stack, remaining: int, needed: int, *, by_length: bool, max_states: int | None = None
    ) -> float:
        """The least moves, or the least length (in the unit of :data:`flow.LENGTH`), of a completion.

        Infinite when there is none, ``UNKNOWN`` when the budget is spent.
        """
        demand = self.demands.of(state, stack)
        found = self.completion.steps(demand, remaining, needed)
        if found == INFINITE:
            return INFINITE
        if not self.counters.bounds and not demand.pending and demand.unresolved is None:
            return demand.least_length if by_length else demand.least_steps  # nothing to search: nothing is limited
        measure = _BY_LENGTH if by_length else _BY_STEPS
        begin = self._weigh(measure, [], (state, stack), self.demands.resources.of(remaining), needed)
        if begin is None:
            return INFINITE
        budget = self.max_states if max_states is None else max_states
        return least_cost(begin, partial(self._weighed_successors, measure), _complete, budget)

    def _weigh(
        self,
        measure: _Measure,
        symbols: list[FlowSymbol],
        unresolved: Unresolved,
        left: int,
        needed: int,
        pending: int = 0,
    ) -> tuple[float, SearchState, float] | None:
        """A state with its certain costs taken out: (those costs, the state, an estimate of the rest)."""
        cost: float = 0
        estimate: float = 0
        symbols = list(symbols)
        while unresolved is not None:
            state, stack = unresolved
            ways = [
                (symbol, target)
                for symbol, target in self.demands.resolve(state, stack.top, stack.rest)
                if target is ACCEPTING or self.demands.of(target, stack.rest).least_steps < INFINITE
            ]
            if len(ways) > 1:
                break
            if not ways:
                return None
            symbols.append(ways[0][0])
            unresolved = None if ways[0][1] is ACCEPTING else (ways[0][1], stack.rest)
        for symbol in symbols:
            name = self.demands.resources.leaves.get(symbol.index)
            if name is not None:
                left -= self.demands.resources.need(self.counters.need.get(name, 0))
                if left & self.demands.resources.guard != self.demands.resources.guard:
                    return None
                needed = self.counters.pay(name, needed)
                cost += 1 + measure.per_terminal
            else:
                pending += self.multisets.unit(symbol.index)
        least_sum = total = 0
        for symbol, count, unit in self.multisets.items(pending):
            least = getattr(symbol, measure.least)
            if least == INFINITE:
                return None
            if least == getattr(symbol, measure.free):
                # No more copies can help a lower bound than units are needed; the cheapest is best for the others.
                spare = max(0, count - (self.counters.units(needed) if symbol.due else 0))
                pending -= spare * unit
                cost += least * spare
                count -= spare
            if count:
                estimate += least * count
                least_sum += self.demands.resources.least[symbol.index] * count
                total += self.demands.resources.least_total[symbol.index] * count
        if total and not self.demands.resources.cover(left, least_sum, total):
            return None
        if needed:
            estimate = max(estimate, measure.per_terminal * self.counters.reads(needed))
        return cost, SearchState(pending, unresolved, left, needed), estimate

    def _weighed_successors(self, measure: _Measure, state: SearchState) -> Iterator[tuple[float, SearchState, float]]:
        pending, unresolved, left, needed = state
        following: list[tuple[float, tuple[float, SearchState, float] | None]] = []
        if unresolved is not None:
            at, stack = unresolved
            for symbol, target in self.demands.resolve(at, stack.top, stack.rest):
                rest = None if target is ACCEPTING else (target, stack.rest)
                following.append((0, self._weigh(measure, [symbol], rest, left, needed, pending)))
        elif pending:
            symbol, _, unit = next(self.multisets.items(pending))
            for way in self.demands.resources.ways[symbol.index]:
                if (left - way.need) & self.demands.resources.guard == self.demands.resources.guard:
                    due = self.counters.pay_all(way.reads, needed)
                    children = [self.grammar.symbols[child] for child in way.children]
                    cost = way.steps + measure.per_terminal * len(way.reads)
                    following.append((cost, self._weigh(measure, children, None, left - way.need, due, pending - unit)))
        for price, weighed in following:
            if weighed is not None:
                yield price + weighed[0], weighed[1], weighed[2]
