"""The cheapest completion of a configuration, in moves or in terminals: A* over the states of the completion search.

What remains is estimated by the cheapest completions without limits, and by the prices of what lower bounds need;
neither overrates. An example of prices: a day needs 1,000 minutes, no step takes more than 10, and each step takes 3
moves. So a minute costs 3/10 of a move at least, and no day can be done in fewer than 300 moves. In general they are
the dual values of the cheapest flow, once, at the start (:func:`formal_llm.automata.lookahead.program.price_needs`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN, least_cost
from formal_llm.automata.lookahead.flow import LENGTH
from formal_llm.automata.lookahead.program import price_needs
from formal_llm.automata.lookahead.search import CompletionSearch, States
from formal_llm.automata.lookahead.stacks import Measure, PendingSymbols, SearchState, StackDemand
from formal_llm.automata.lookahead.verdicts import pause_garbage_collection
from formal_llm.automata.models.automaton import Automaton, C, M, Stack, State, Word
from formal_llm.errors import Undecided

_CACHE = 200_000
#: The most ways of a grammar whose lower bounds are priced.
_LARGEST = 40_000


class _Prices(NamedTuple):
    """What each symbol costs at least beyond what it pays, what a unit of each lower bound costs, all times scale."""

    rest: dict[int, int]
    due: dict[int, int]
    scale: int


class _TriesSpent(Exception):
    """The tries that one of the bounds may cost are spent."""


class ShortestSearch:
    """The search for the cheapest by a measure, beside the ``completion`` search of the same grammar."""

    def __init__(self, completion: CompletionSearch, measure: Measure) -> None:
        self.completion, self.measure = completion, measure
        self.counters, self.work = completion.counters, completion.work
        self.demands = PendingSymbols(completion.demands.grammar, measure, completion.demands)
        self._forget()

    def _forget(self) -> None:
        """Forget what was concluded from an older version of the grammar."""
        self._states = States(self.demands, self.work)
        self._prices: list[_Prices | None] = []
        #: What has been found, by the state where the search begins.
        self._found: dict[SearchState, float] = {}
        #: What is left to one of the :meth:`lower_bounds`.
        self._tries: float = INFINITE

    def find_cheapest(self, state: State, stack: Stack, remaining: int, needed: int) -> float:
        """What the cheapest completion of a configuration costs.

        Infinite when there is none, ``UNKNOWN`` when the budget is spent.
        """
        demand = self._demand_of(state, stack)
        if not self.counters.bounds:
            return self._least_of(demand)  # nothing to search: nothing is limited
        alike = self.completion.demands.for_configuration(state, stack)
        if self.completion.decide(alike, remaining, needed)[0] == INFINITE:
            return INFINITE
        begin = self._begin(demand, remaining, needed)
        if begin is None:
            return INFINITE
        cost, root, estimate = begin
        found = self._found.get(root)
        if found is None:
            if len(self._found) > _CACHE:
                self._found.clear()
            states, over = self.completion.max_states, lambda: self.work.is_over
            found = least_cost((0, root, estimate), self._list_successors, _is_complete, states, over)
            if found != UNKNOWN or not self.work.is_over:
                self._found[root] = found
        return found if found == UNKNOWN else cost + found

    def lower_bounds(self, places: Sequence[tuple[tuple[State, Stack], int, int]], tries: float) -> list[float]:
        """Lower bounds of costs, found in ``tries`` together; nothing found before plays a part.

        Args:
            places: (state and stack, what is left, what is needed) of each.
            tries: what the search may cost where lower bounds are open.
        """
        found: list[float] = []
        for number, (inner, remaining, needed) in enumerate(places):
            demand = self._demand_of(*inner)
            least = self._least_of(demand)
            if needed and tries and least < INFINITE:
                self._tries = part = tries / (len(places) - number)
                least = max(least, self._lower_bound(demand, remaining, needed))
                tries -= part - max(0.0, self._tries)
                self._tries = INFINITE
            found.append(least)
        return found

    def _lower_bound(self, demand: StackDemand, remaining: int, needed: int) -> float:
        begin = self._begin(demand, remaining, needed)
        if begin is None:
            return INFINITE
        try:
            found = least_cost(begin, self._list_successors, _is_complete, self.completion.max_states)
        except _TriesSpent:
            found = UNKNOWN
        return begin[0] + begin[2] if found == UNKNOWN else found

    def _demand_of(self, state: State, stack: Stack) -> StackDemand:
        demand = self.demands.for_configuration(state, stack)
        if self._states.version != self.demands.version:
            self._forget()
        return demand

    def _least_of(self, demand: StackDemand) -> float:
        least: float = getattr(demand, self.measure.least)
        return least

    def _begin(self, demand: StackDemand, remaining: int, needed: int) -> tuple[float, SearchState, float] | None:
        """(what is certain to be paid, the state, an estimate of the rest); None where no completion is left."""
        rest = self.demands.rest_of(demand, remaining, needed)
        normal = rest and self._states.normalize(*rest)
        if not normal:
            return None
        cost, state = normal
        return demand.free_cost + cost, state, self._estimate(state)

    def _list_successors(self, state: SearchState) -> Iterator[tuple[float, SearchState, float]]:
        for cost, after in self._states.list_successors(state):
            self._tries -= 1
            if self._tries < 0:
                raise _TriesSpent
            yield cost, after, self._estimate(after)

    def _estimate(self, state: SearchState) -> float:
        """A lower bound of what it costs to complete a state."""
        least = self._states.least_cost(state)
        if state.needed and state.unresolved is None:
            if not self._prices:
                self._prices.append(self._make_prices())
            prices = self._prices[0]
            if prices is not None:
                worth = sum(
                    [prices.due[shift] * amount for _, shift, amount in self.counters.open_bounds(state.needed)]
                )
                items = self.demands.multisets.list_items(state.pending)
                worth += sum([prices.rest[symbol.index] * count for symbol, count, _ in items])
                least = max(least, -(-worth // prices.scale))
        return least

    @pause_garbage_collection()
    def _make_prices(self) -> _Prices | None:
        """What lower bounds cost; None where that is not known."""
        ways = [(index, way) for index, group in self.demands.flow.ways.items() for way in group]
        if len(ways) > _LARGEST:
            return None
        rows: dict[tuple[str, int], Counter[int]] = {("symbol", index): Counter() for index in self.demands.flow.ways}
        rows |= {("due", shift): Counter() for _, shift, _ in self.counters.lower}
        costs, heads = [], []
        for number, (index, way) in enumerate(ways):
            costs.append(len(way.reads) if self.measure.per_terminal else way.steps)
            heads.append(index)
            rows["symbol", index][number] += 1
            for child in way.children:
                rows["symbol", child][number] -= 1
            for shift, weight in self.counters.list_payments(way.reads):
                rows["due", shift][number] += weight
        start = self.demands.grammar.pda.start()
        demand = self.demands.for_configuration(start.state, start.stack)
        items = self.demands.multisets.list_items(demand.pending)
        sides = {("symbol", symbol.index): count for symbol, count, _ in items}
        sides |= {("due", shift): amount for _, shift, amount in self.counters.open_bounds(self.counters.needed)}
        priced = price_needs(costs, heads, rows, sides)
        if priced is None:
            return None
        values, scale = priced
        unit = self.measure.per_terminal or 1
        return _Prices(
            {index: values["symbol", index] * unit for index in self.demands.flow.ways},
            {shift: values["due", shift] * unit for _, shift, _ in self.counters.lower},
            scale,
        )


def _is_complete(state: SearchState) -> bool:
    return state.is_complete


def shortest_word(automaton: Automaton[C, M], cheapest: Callable[[C], float], now: C) -> Word | None:
    """One of the shortest completions of a configuration, from what the cheapest one costs anywhere.

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
