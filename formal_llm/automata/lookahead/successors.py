"""The states of the completion search: their normal form, and what follows them.

A state is what is pending, the open part of a stack, what is left of the resources, and what lower bounds still need.
What is free is left out of it, and where a bound cannot be kept any more, which sums over all that is pending
determine, there is no state at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.exact_sums import ExactSums
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowSymbol
from formal_llm.automata.lookahead.resources import PackedWay
from formal_llm.automata.lookahead.stacks import NOTHING, PendingSymbols, SearchState, Unresolved
from formal_llm.automata.lookahead.work import WorkBudget
from formal_llm.automata.models.automaton import Stack, State

#: A way of a symbol, the symbols it leaves pending as a multiset, and the moves of the free ones that are left out.
_Compiled = tuple[PackedWay, int, float]


#: Where a symbol has more ways, they are not counted, and looked at one after the other as they are tried.
_MANY = 64


class SuccessorStates:
    """What follows the states of a search, for the grammar as it is known now.

    Args:
        demands: the demands that the states are made with.
        work: what this is charged to.

    Attributes:
        sums: the sums that are bounded from both sides.
    """

    def __init__(self, demands: PendingSymbols, work: WorkBudget) -> None:
        self.demands = demands
        self.counters = demands.counters
        self.multisets = demands.multisets
        self.work = work
        self.sums = ExactSums(demands, work)
        self._compiled: dict[int, tuple[_Compiled, ...]] = {}
        #: What looking at a way costs: the longer the numbers, the more.
        self._effort = 0.01 + demands.resources.guard.bit_length() / 800_000

    def normalize_state(
        self, pending: int, unresolved: Unresolved, left: int, needed: int
    ) -> tuple[float, SearchState] | None:
        """(moves of what is free and left out, the state without it); None where some bound cannot be kept any more."""
        cost: float = 0
        if not needed:
            free = pending & self.multisets.free
            if free:
                for symbol, count, _ in self.multisets.list_items(free):
                    cost += symbol.free_steps * count
                pending -= free
        least = total = 0
        useful = False
        units = self.counters.sum_of_needs(needed) if needed else 0
        for symbol, count, unit in self.multisets.list_items(pending):
            if symbol.is_free:
                useful = True
                spare = count - units
                if spare > 0:
                    pending -= spare * unit
                    cost += symbol.free_steps * spare
            else:
                useful = useful or symbol.due
                least += self.demands.resources.least[symbol.index] * count
                total += self.demands.resources.least_total[symbol.index] * count
        if needed and not useful and unresolved is None:
            return None
        if total and not self.demands.resources.covers_least(left, least, total):
            return None
        if needed and not self.demands.resources.covers_due(left, needed):
            return None
        if needed and self.sums and unresolved is None and not self.sums.are_possible(pending, left, needed):
            return None
        return cost, SearchState(pending, unresolved, left, needed)

    def _compile_ways(self, symbol: FlowSymbol) -> tuple[_Compiled, ...]:
        """The ways of a symbol with their children as a packed multiset, and the moves of those left out."""
        compiled = self._compiled.get(symbol.index)
        if compiled is None:
            made: list[_Compiled] = []
            for way in self.demands.resources.ways[symbol.index]:
                pending = 0
                cost: float = way.steps
                for child in way.children:
                    one = self.demands.grammar.symbols[child]
                    if one.is_free and not one.due:
                        cost += one.free_steps
                    else:
                        pending += self.multisets.unit_of(child)
                made.append((way, pending, cost))
            made.sort(key=lambda entry: (entry[1].bit_count(), entry[2]))
            compiled = self._compiled[symbol.index] = tuple(made)
        return compiled

    def _choose_symbol(self, state: SearchState) -> tuple[int, Iterable[_Compiled]]:
        """The pending symbol with the fewest ways left: its unit and those ways."""
        best: tuple[int, Sequence[_Compiled]] | None = None
        for symbol, _, unit in self.multisets.list_items(state.pending):
            ways: Sequence[_Compiled] = self._compile_ways(symbol)
            if len(ways) <= _MANY:
                ways = list(self._affordable_ways(ways, state.left))
            # Where sums are exact, of equals the last, which lies on top of the stack: its rest is asked for next.
            if best is None or len(ways) < len(best[1]) + bool(self.sums):
                best = (unit, ways)
                if len(ways) <= 1:
                    break
        assert best is not None
        unit, ways = best
        return unit, ways if len(ways) <= _MANY else self._affordable_ways(ways, state.left)

    def _affordable_ways(self, ways: Iterable[_Compiled], left: int) -> Iterator[_Compiled]:
        """The ways that what is left can pay."""
        guard, work, effort = self.demands.resources.guard, self.work, self._effort
        for entry in ways:
            work.left -= effort
            if (left - entry[0].need) & guard == guard:
                yield entry

    def list_successors(self, state: SearchState) -> Iterator[tuple[float, SearchState]]:
        """(moves, the state after them) for one pending symbol that has to be worked off, or the open part."""
        work = self.work
        effort = 0.5 + state.pending.bit_count() / 16  # it is done with sooner than a state of the search by prices
        for cost, following in self._raw_successors(state):
            work.left -= effort
            normal = self.normalize_state(*following)
            if normal is not None:
                yield cost + normal[0], normal[1]

    def _raw_successors(self, state: SearchState) -> Iterator[tuple[float, SearchState]]:
        pending, unresolved, left, needed = state
        if unresolved is not None:
            yield from self._resolve_top(state, *unresolved)
        elif pending:
            unit, ways = self._choose_symbol(state)
            for way, children, cost in ways:
                due = self.counters.pay_all(way.reads, needed)
                yield cost, SearchState(pending - unit + children, None, left - way.need, due)

    def _resolve_top(self, state: SearchState, at: State, stack: Stack) -> Iterator[tuple[float, SearchState]]:
        """The ways to work off the top of the open part: accept before it is popped, or pop it in some state."""
        for symbol, target in self.demands.resolve(at, stack.top, stack.rest):
            whole = self.demands.demand_with_top(
                symbol, NOTHING if target is ACCEPTING else self.demands.for_configuration(target, stack.rest)
            )
            if whole.least_steps == INFINITE:
                continue
            left, needed = state.left, state.needed
            if whole.promised:
                left -= self.demands.resources.pack_need(whole.promised)
                if left & self.demands.resources.guard != self.demands.resources.guard:
                    continue
            if needed and whole.paid:
                needed = self.counters.subtract_paid(needed, whole.paid)
            yield whole.free_steps, SearchState(state.pending + whole.pending, whole.unresolved, left, needed)
