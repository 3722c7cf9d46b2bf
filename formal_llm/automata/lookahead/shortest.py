"""The cheapest completion of a configuration, in moves or in terminals: A* over the states of the completion search.

What remains is estimated by the cheapest completions without limits, and by the prices of what lower bounds need;
neither overrates. Whether there is a completion of a given number of moves is an easier question than which is the
shortest, and is asked by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN, least_cost, some_way
from formal_llm.automata.lookahead.exact.prices import CostEstimate, PricedWay
from formal_llm.automata.lookahead.flow import ACCEPTING, LENGTH, FlowSymbol
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.stacks import SearchState, Unresolved
from formal_llm.automata.lookahead.verdicts import BUDGET, FILTER, SEARCH, TIME, pause_garbage_collection
from formal_llm.automata.models.automaton import Automaton, C, M, Stack, State, Word
from formal_llm.errors import Undecided

_CACHE = 200_000
#: The states that a search for any completion may visit beside the way; and the symbols for each further one, of the
#: grammar, since what decides otherwise takes time in proportion to these.
_DETOURS, _PER_STATE = 50, 8


class _CostMeasure(NamedTuple):
    """What a search for the cheapest completion counts: attributes of a symbol, and the price of a terminal."""

    least: str
    free: str
    per_terminal: int = 0


_BY_LENGTH, _BY_STEPS = _CostMeasure("least_length", "free_length", LENGTH), _CostMeasure("least_steps", "free_steps")


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
        completion.guide = self.find_some_completion

    def fresh_completion_search(self) -> CompletionSearch:
        """Make a completion search that remembers only what follows from the rules alone."""
        self._forget_old_version()
        alone = ShortestSearch(self.completion.fresh_copy())
        alone._forget_old_version()
        alone._estimates, alone._dues = self._estimates, self._dues
        return alone.completion

    def _forget_old_version(self) -> None:
        """Forget what was concluded from an older version of the grammar."""
        if self._version != self.demands.version:
            self._version = self.demands.version
            self._estimates: dict[_CostMeasure, CostEstimate] = {}
            self._dues: dict[int, tuple[int, list[tuple[int, int]]]] = {}
            #: What the search for the cheapest has found, by the state where it begins.
            self._cheapest: dict[tuple[_CostMeasure, SearchState], float] = {}
            #: For states of :meth:`decide_within_steps` what is known of the moves that are left: (at least, at most).
            self._bounds: dict[SearchState, tuple[float, float]] = {}
            #: What needs most of those with the same pending and left, and the moves of some completion of it.
            self._dearest: dict[tuple[int, Unresolved, int], tuple[int, float]] = {}

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

    def decide_within_steps(
        self, state: State, stack: Stack, remaining: int, needed: int, steps: int
    ) -> tuple[float, str]:
        """Whether a completion takes at most ``steps`` moves.

        Returns:
            (the moves of one that does; infinite where none does, ``UNKNOWN`` when the budget is spent; what decided).
        """
        self._forget_old_version()
        begin = self._weigh_state(
            _BY_STEPS, [], (state, stack), self.demands.resources.resources_left(remaining), needed
        )
        # Interchangeable terminals share a resource, but those that wait on the stack are certain ones.
        promised, guard = self.demands.for_configuration(state, stack).promised, self.counters.guard
        if begin is None or (remaining - promised) & guard != guard:
            return INFINITE, FILTER
        cost, root, estimate = begin
        least, enough = self._known_bounds(root)
        if cost + max(estimate, least) > steps:
            return INFINITE, FILTER
        if cost + enough <= steps:
            return cost + enough, FILTER if _is_complete(root) else SEARCH
        self.completion.work.begin_query()
        found = self._some_way(begin, steps, self.max_states)
        return found, SEARCH if found != UNKNOWN else TIME if self._is_work_over() else BUDGET

    def _some_way(self, begin: tuple[float, SearchState, float], most: float, max_states: int) -> float:
        """As :func:`some_way`; what was learnt of the states on the way is noted."""
        if len(self._bounds) > _CACHE:
            self._bounds.clear()
            self._dearest.clear()
        after = partial(self._weighed_successors, _BY_STEPS)
        found, way = some_way(begin, after, self._known_bounds, most, max_states, self._is_work_over)
        if found == INFINITE:
            _, enough = self._known_bounds(begin[1])
            self._bounds[begin[1]] = most - begin[0] + 1, enough
        for passed, spent in way:
            low, high = self._known_bounds(passed)
            self._bounds[passed] = low, min(high, found - spent)
            place = passed.pending, passed.unresolved, passed.left
            if self.counters.sum_of_needs(passed.needed) > self.counters.sum_of_needs(
                self._dearest.get(place, (0, 0.0))[0]
            ):
                self._dearest[place] = passed.needed, found - spent
        return found

    def find_some_completion(self, state: SearchState) -> float:
        """The moves of some completion of a state with open lower bounds: what pays best is tried first.

        Infinite when there is none, ``UNKNOWN`` where it is not found almost straight ahead.
        """
        self._forget_old_version()
        begin = self._weigh_state(_BY_STEPS, [], state.unresolved, state.left, state.needed, state.pending)
        if begin is None:
            return INFINITE
        most = _DETOURS + 2 * int(begin[2]) + len(self.grammar.symbols) // _PER_STATE
        return self._some_way(begin, INFINITE, min(most, self.max_states))

    def _is_work_over(self) -> bool:
        return self.completion.work.is_over

    def _known_bounds(self, state: SearchState) -> tuple[float, float]:
        if _is_complete(state):
            return 0, 0
        found = self._bounds.get(state)
        if found is None and state.needed:
            # With less to pay, and all else equal, what completes the one completes the other.
            more, moves = self._dearest.get((state.pending, state.unresolved, state.left), (0, INFINITE))
            if more and not self.counters.subtract_paid(state.needed, more):
                return 0, moves
        return found or (0, INFINITE)

    def _get_estimate(self, measure: _CostMeasure) -> CostEstimate:
        """What lower bounds cost by a measure; sums come first, since counted uses are dear one by one."""
        if measure not in self._estimates:
            self._estimates[measure] = self._make_estimate(measure)
        return self._estimates[measure]

    @pause_garbage_collection()
    def _make_estimate(self, measure: _CostMeasure) -> CostEstimate:
        dues = self.counters.dues
        ways: list[PricedWay] = []
        for index, group in self.demands.resources.ways.items():
            for way in group:
                pays: dict[int, int] = {}
                for name in way.reads:
                    for shift, _, weight in dues.get(name, ()):
                        pays[shift] = pays.get(shift, 0) + weight
                ways.append((index, way.steps + measure.per_terminal * len(way.reads), pays, way.children))
        due = sorted(self.counters.open_bounds(self.counters.needed), key=lambda due: due[0].terminal is not None)
        return CostEstimate(ways, [shift for _, shift, _ in due])

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
            kept = [(symbol.index, count) for symbol, count, _ in self.multisets.list_items(pending)]
            least = max(least, self._get_estimate(measure).least_cost_of(kept, due))
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
        pending, unresolved, left, needed = state
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
