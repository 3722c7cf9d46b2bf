"""The cheapest completion of a configuration, in moves or in terminals: A* over the states of the completion search.

What remains is estimated by the cheapest completions without limits, and by the prices of what lower bounds need;
neither overrates. An example of prices: a day needs 1,000 minutes, no step takes more than 10, and each step takes 3
moves. So a minute costs 3/10 of a move at least, and no day can be done in fewer than 300 moves. In general they are
the dual values of the cheapest flow, once, at the start (:func:`formal_llm.automata.lookahead.program.price_needs`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN, least_cost
from formal_llm.automata.lookahead.flow import ACCEPTING, LENGTH, FlowSymbol
from formal_llm.automata.lookahead.program import price_needs
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.stacks import SearchState, Unresolved
from formal_llm.automata.lookahead.verdicts import pause_garbage_collection
from formal_llm.automata.models.automaton import Automaton, C, M, Stack, State, Word
from formal_llm.errors import Undecided

_CACHE = 200_000
#: The most ways of a grammar whose lower bounds are priced.
_LARGEST = 40_000


class _CostMeasure(NamedTuple):
    """What a search for the cheapest completion counts: attributes of a symbol, and the price of a terminal."""

    least: str
    free: str
    per_terminal: int = 0


_BY_LENGTH, _BY_STEPS = _CostMeasure("least_length", "free_length", LENGTH), _CostMeasure("least_steps", "free_steps")


class _Prices(NamedTuple):
    """What each symbol costs at least beyond what it pays, what a unit of each lower bound costs, all times scale."""

    rest: dict[int, int]
    due: dict[int, int]
    scale: int


class _TriesSpent(Exception):
    """The tries that one of the bounds may cost are spent."""


def _is_complete(state: SearchState) -> bool:
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
        self._version = -1
        #: What is left to one of the :meth:`lower_length_bounds`.
        self._tries: float = INFINITE

    def fresh_completion_search(self) -> CompletionSearch:
        """Make a completion search that remembers only what follows from the rules alone."""
        self._forget_old_version()
        alone = ShortestSearch(self.completion.fresh_copy())
        alone._forget_old_version()
        alone._prices, alone._dues = self._prices, self._dues
        return alone.completion

    def _forget_old_version(self) -> None:
        """Forget what was concluded from an older version of the grammar."""
        if self._version != self.demands.version:
            self._version = self.demands.version
            self._prices: dict[_CostMeasure, _Prices | None] = {}
            self._dues: dict[int, tuple[int, list[tuple[int, int]]]] = {}
            #: What the search for the cheapest has found, by the state where it begins.
            self._cheapest: dict[tuple[_CostMeasure, SearchState], float] = {}

    def find_cheapest(self, state: State, stack: Stack, remaining: int, needed: int, *, by_length: bool) -> float:
        """The least moves, or the least length (in the unit of :data:`flow.LENGTH`), of a completion.

        Infinite when there is none, ``UNKNOWN`` when the budget is spent.
        """
        demand = self.demands.for_configuration(state, stack)
        if not self.counters.bounds:
            return demand.least_length if by_length else demand.least_steps  # nothing to search: nothing is limited
        if self.completion.completion_moves(demand, remaining, needed) == INFINITE:
            return INFINITE
        measure = _BY_LENGTH if by_length else _BY_STEPS
        self._forget_old_version()
        begin = self._weigh_state(measure, [], (state, stack), self.demands.resources.resources_left(remaining), needed)
        if begin is None:
            return INFINITE
        cost, root, estimate = begin
        found = self._cheapest.get((measure, root))
        if found is None:
            if len(self._cheapest) > _CACHE:
                self._cheapest.clear()
            after = partial(self._weighed_successors, measure)
            found = least_cost((0, root, estimate), after, _is_complete, self.max_states, self._is_work_over)
            if found != UNKNOWN or not self._is_work_over():
                self._cheapest[measure, root] = found
        return found if found == UNKNOWN else cost + found

    def lower_length_bounds(self, places: Sequence[tuple[tuple[State, Stack], int, int]], tries: float) -> list[float]:
        """Lower bounds of lengths, in terminals, found in ``tries`` together; nothing found before plays a part.

        Args:
            places: (state and stack, what is left, what is needed) of each.
            tries: what the search may cost where lower bounds are open.
        """
        found: list[float] = []
        for number, ((state, stack), remaining, needed) in enumerate(places):
            least = self.demands.for_configuration(state, stack).least_length
            if needed and tries and least < INFINITE:
                self._tries = part = tries / (len(places) - number)
                least = max(least, self._lower_length_bound(state, stack, remaining, needed))
                tries -= part - max(0.0, self._tries)
                self._tries = INFINITE
            found.append(least if least == INFINITE else least // LENGTH)
        return found

    def _lower_length_bound(self, state: State, stack: Stack, remaining: int, needed: int) -> float:
        self._forget_old_version()
        begin = self._weigh_state(
            _BY_LENGTH, [], (state, stack), self.demands.resources.resources_left(remaining), needed
        )
        if begin is None:
            return INFINITE
        try:
            found = least_cost(begin, partial(self._weighed_successors, _BY_LENGTH), _is_complete, self.max_states)
        except _TriesSpent:
            found = UNKNOWN
        return begin[0] + begin[2] if found == UNKNOWN else found

    def _is_work_over(self) -> bool:
        return self.completion.work.is_over

    def _get_prices(self, measure: _CostMeasure) -> _Prices | None:
        """What lower bounds cost by a measure; None where that is not known."""
        if measure not in self._prices:
            self._prices[measure] = self._make_prices(measure)
        return self._prices[measure]

    @pause_garbage_collection()
    def _make_prices(self, measure: _CostMeasure) -> _Prices | None:
        resources, counters = self.demands.resources, self.counters
        ways = [(index, way) for index, group in resources.ways.items() for way in group]
        if len(ways) > _LARGEST:
            return None
        rows: dict[tuple[str, int], Counter[int]] = {("symbol", index): Counter() for index in resources.ways}
        rows |= {("due", shift): Counter() for _, shift, _ in counters.lower}
        costs, heads = [], []
        for number, (index, way) in enumerate(ways):
            costs.append(len(way.reads) if measure.per_terminal else way.steps)
            heads.append(index)
            rows["symbol", index][number] += 1
            for child in way.children:
                rows["symbol", child][number] -= 1
            for name in way.reads:
                for shift, _, weight in counters.dues.get(name, ()):
                    rows["due", shift][number] += weight
        start = self.grammar.pda.start()
        demand = self.demands.for_configuration(start.state, start.stack)
        sides = {("symbol", symbol.index): count for symbol, count, _ in self.multisets.list_items(demand.pending)}
        sides |= {("due", shift): amount for _, shift, amount in counters.open_bounds(counters.needed)}
        priced = price_needs(costs, heads, rows, sides)
        if priced is None:
            return None
        values, scale = priced
        unit = measure.per_terminal or 1
        return _Prices(
            {index: values["symbol", index] * unit for index in resources.ways},
            {shift: values["due", shift] * unit for _, shift, _ in counters.lower},
            scale,
        )

    def _needs_of(self, needed: int) -> tuple[int, list[tuple[int, int]]]:
        """(the terminals that have to be read before nothing is needed; the lower bounds and what each needs)."""
        found = self._dues.get(needed)
        if found is None:
            if len(self._dues) > _CACHE:
                self._dues.clear()
            due = [(shift, amount) for _, shift, amount in self.counters.open_bounds(needed)]
            found = self._dues[needed] = self.counters.least_reads(needed), due
        return found

    def _weigh_state(
        self,
        measure: _CostMeasure,
        symbols: list[FlowSymbol],
        unresolved: Unresolved,
        left: int,
        needed: int,
        pending: int = 0,
    ) -> tuple[float, SearchState, float] | None:
        """A state with its certain costs taken out: (those costs, the state, an estimate of the rest)."""
        cost: float = 0
        estimate: float = 0
        certain = self._follow_only_way(symbols, unresolved)
        if certain is None:
            return None
        symbols, unresolved = certain
        for symbol in symbols:
            name = self.demands.resources.leaves.get(symbol.index)
            if name is not None:
                left -= self.demands.resources.pack_need(self.counters.need.get(name, 0))
                if left & self.demands.resources.guard != self.demands.resources.guard:
                    return None
                needed = self.counters.pay_for(name, needed)
                cost += 1 + measure.per_terminal
            else:
                pending += self.multisets.unit_of(symbol.index)
        least_sum = total = 0
        for symbol, count, unit in self.multisets.list_items(pending):
            least = getattr(symbol, measure.least)
            if least == INFINITE:
                return None
            if least == getattr(symbol, measure.free):
                # No more copies can help a lower bound than units are needed; the cheapest is best for the others.
                spare = max(0, count - (self.counters.sum_of_needs(needed) if symbol.due else 0))
                pending -= spare * unit
                cost += least * spare
                count -= spare
            if count:
                estimate += least * count
                least_sum += self.demands.resources.least[symbol.index] * count
                total += self.demands.resources.least_total[symbol.index] * count
        if total and not self.demands.resources.covers_least(left, least_sum, total):
            return None
        if needed:
            estimate = max(estimate, self._least_cost_of_needs(measure, pending, unresolved, needed))
            if estimate == INFINITE:
                return None
        return cost, SearchState(pending, unresolved, left, needed), estimate

    def _least_cost_of_needs(self, measure: _CostMeasure, pending: int, unresolved: Unresolved, needed: int) -> float:
        """A lower bound of what it costs to meet the lower bounds that are open."""
        reads, due = self._needs_of(needed)
        least: float = measure.per_terminal * reads
        if unresolved is None:
            prices = self._get_prices(measure)
            if prices is not None:
                worth = sum([prices.due[shift] * amount for shift, amount in due])
                worth += sum([prices.rest[s.index] * count for s, count, _ in self.multisets.list_items(pending)])
                least = max(least, -(-worth // prices.scale))
        return least

    def _follow_only_way(
        self, symbols: list[FlowSymbol], unresolved: Unresolved
    ) -> tuple[list[FlowSymbol], Unresolved] | None:
        """The symbols, with those of the way down the stack as far as there is only one; None where there is none."""
        symbols = list(symbols)
        while unresolved is not None:
            state, stack = unresolved
            ways = [
                (symbol, target)
                for symbol, target in self.demands.resolve(state, stack.top, stack.rest)
                if target is ACCEPTING or self.demands.for_configuration(target, stack.rest).least_steps < INFINITE
            ]
            if len(ways) > 1:
                break
            if not ways:
                return None
            symbols.append(ways[0][0])
            unresolved = None if ways[0][1] is ACCEPTING else (ways[0][1], stack.rest)
        return symbols, unresolved

    def _weighed_successors(
        self, measure: _CostMeasure, state: SearchState
    ) -> Iterator[tuple[float, SearchState, float]]:
        pending, unresolved, left, needed, _ = state
        following: list[tuple[float, tuple[float, SearchState, float] | None]] = []
        if unresolved is not None:
            at, stack = unresolved
            for symbol, target in self.demands.resolve(at, stack.top, stack.rest):
                rest = None if target is ACCEPTING else (target, stack.rest)
                following.append((0, self._weigh_state(measure, [symbol], rest, left, needed, pending)))
        elif pending:
            symbol, _, unit = next(self.multisets.list_items(pending))
            self._tries -= len(self.demands.resources.ways[symbol.index])
            if self._tries < 0:
                raise _TriesSpent
            for way in self.demands.resources.ways[symbol.index]:
                if (left - way.need) & self.demands.resources.guard == self.demands.resources.guard:
                    due = self.counters.pay_all(way.reads, needed)
                    children = [self.grammar.symbols[child] for child in way.children]
                    cost = way.steps + measure.per_terminal * len(way.reads)
                    following.append(
                        (cost, self._weigh_state(measure, children, None, left - way.need, due, pending - unit))
                    )
        self.completion.work.left -= len(following)
        for price, weighed in following:
            if weighed is not None:
                yield price + weighed[0], weighed[1], weighed[2]


def shortest_word(automaton: Automaton[C, M], cheapest: Callable[[C], float], now: C) -> Word | None:
    """One of the shortest completions of a configuration, by :meth:`ShortestSearch.find_cheapest` of lengths.

    Raises:
        Undecided: the budget of states ran out before it was known.
    """
    left = cheapest(now)
    if left == INFINITE:
        return None
    word: list[str] = []
    # Moves are part of the measure, so each step makes what is left strictly smaller.
    while not (automaton.accepting(now) and left == 0):
        for move in automaton.moves(now):
            after = automaton.step(now, move)
            rest = cheapest(after)
            if rest != UNKNOWN and rest + 1 + (LENGTH if move.read is not None else 0) == left:
                if move.read is not None:
                    word.append(move.read)
                now, left = after, rest
                break
        else:
            raise Undecided("the shortest word was not found within the budget of states; raise max_states")
    return tuple(word)
