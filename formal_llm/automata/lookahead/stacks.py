"""What a stack asks for: the way from stacks to multisets, and the states of the search, which consist of these.

The stack of a pushdown automaton becomes a :class:`StackDemand`: a multiset of flow symbols and a few sums. A demand is
made from the demand of the stack below, so on a stack that grows and shrinks it costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.classes import FlowWays
from formal_llm.automata.lookahead.flow import ACCEPTING, LENGTH, FlowGrammar, FlowSymbol
from formal_llm.automata.models.automaton import Stack, State

_BITS = 32
_COUNT = (1 << _BITS) - 1
_CACHE = 200_000
#: The stacks of which detours are kept: the options of a question lead to a few stacks.
_DETOURS = 100

#: The part of a stack, and the state above it, where it is not settled how its symbols will be worked off.
Unresolved = tuple[State, Stack] | None


#: What there is to finish: what is pending, the open part of the stack, what is left, needed, and the moves.
Rest = tuple[int, Unresolved, int, int, float]


class Measure(NamedTuple):
    """What completions cost.

    Attributes:
        per_terminal: the price of a terminal, on top of its move.
        least, free: the attribute of a symbol with the cost of its cheapest completion, and of that without limits.
        is_exact: whether the cheapest completion is wanted. Then a free symbol is left out only where no limited
            terminal would complete it more cheaply.
    """

    per_terminal: int
    least: str
    free: str
    is_exact: bool = True


#: The moves of any completion; the fewest moves; the least length (in the unit of :data:`flow.LENGTH`).
ANY = Measure(0, "least_steps", "free_steps", is_exact=False)
FEWEST_MOVES = Measure(0, "least_steps", "free_steps")
SHORTEST = Measure(LENGTH, "least_length", "free_length")


class StackDemand(NamedTuple):
    """What a stack asks for, whatever is read before.

    Attributes:
        pending: the symbols that are not free, packed with their counts.
        unresolved: the part of the stack where it is not settled in which state a symbol will be popped.
        promised: what terminals waiting on the stack will take from the upper bounds (as the counters pack it).
        paid: what they will pay to the lower bounds, packed.
        free_cost: what it costs to complete all that is not in ``pending`` or ``unresolved``.
        least_steps: moves that any completion needs at least; infinite where there is none.
        least_length: the same for terminals, in the unit of :data:`flow.LENGTH`.
    """

    pending: int
    unresolved: Unresolved
    promised: int
    paid: int
    free_cost: float
    least_steps: float
    least_length: float


NOTHING = StackDemand(0, None, 0, 0, 0, 0, 0)
DEAD = StackDemand(0, None, 0, 0, INFINITE, INFINITE, INFINITE)


class Multisets:
    """Multisets of flow symbols, each packed into one number: a field of bits for the count of each symbol.

    Fields are handed out as symbols turn up, so that numbers stay small in large grammars. ``unit`` is one of a symbol;
    sums of units are multisets.
    """

    def __init__(self, grammar: FlowGrammar, can_drop: Callable[[FlowSymbol], bool] = attrgetter("is_free")) -> None:
        self._grammar = grammar
        self._can_drop = can_drop
        self._fields: list[FlowSymbol] = []
        self._units: dict[int, int] = {}
        #: All bits of the fields of symbols that can be left out where nothing is needed.
        self.free = 0

    def unit_of(self, index: int) -> int:
        """One of the symbol with this index."""
        unit = self._units.get(index)
        if unit is None:
            shift = len(self._fields) * _BITS
            unit = self._units[index] = 1 << shift
            symbol = self._grammar.symbols[index]
            self._fields.append(symbol)
            if self._can_drop(symbol):
                self.free |= _COUNT << shift
        return unit

    def list_items(self, pending: int) -> Iterator[tuple[FlowSymbol, int, int]]:
        """(symbol, count, unit) of each symbol in a multiset."""
        while pending:
            place = ((pending & -pending).bit_length() - 1) // _BITS
            shift = place * _BITS
            count = pending >> shift & _COUNT
            yield self._fields[place], count, 1 << shift
            pending -= count << shift


class SearchState(NamedTuple):
    """A state of the search: what is pending, what limits leave, what lower bounds still need.

    ``moves`` is how many moves may still be taken; any number where it is infinite.
    """

    pending: int
    unresolved: Unresolved
    left: int
    needed: int
    moves: float = INFINITE

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do."""
        return not self.pending and self.unresolved is None and not self.needed


class PendingSymbols:
    """The demands of stacks, for one flow grammar.

    Args:
        grammar: the flow grammar.
        measure: what completions cost.
        like: the demands of the same grammar by another measure; what does not depend on it is shared.

    Attributes:
        grammar: the flow grammar.
        counters: its bounds, packed.
        flow: the ways of its symbols, as the grammar is known now.
        classes: what limits leave, as it is packed there.
        multisets: how multisets of its symbols are packed.
        version: changes whenever the grammar has learnt symbols; demands from before are stale then.
    """

    def __init__(self, grammar: FlowGrammar, measure: Measure = ANY, like: PendingSymbols | None = None) -> None:
        self.grammar = grammar
        self.measure = measure
        self._like = like
        self.resolve = grammar.resolve_top
        self.counters = grammar.counters
        self.multisets = Multisets(grammar, self.can_drop)
        self.version = 0
        self._demands: dict[tuple[State, Stack], StackDemand] = {}
        self._detours: dict[tuple[State, Stack, int], dict[str, int]] = {}
        start = grammar.pda.start()
        for _ in grammar.walk_stack(start.state, start.stack):
            pass  # all symbols are met, so that what is concluded of them need not be forgotten soon
        self._refresh_symbols()

    def can_drop(self, symbol: FlowSymbol) -> bool:
        """Whether a symbol can be left out, lower bounds aside: what completes it without limits is as good as any."""
        return symbol.is_free and (not self.measure.is_exact or self.least_cost(symbol) == self.free_cost(symbol))

    def least_cost(self, symbol: FlowSymbol) -> float:
        """What the cheapest completion of a symbol costs, limits aside."""
        cost: float = getattr(symbol, self.measure.least)
        return cost

    def free_cost(self, symbol: FlowSymbol) -> float:
        """What the cheapest completion of a symbol without limited terminals costs."""
        cost: float = getattr(symbol, self.measure.free)
        return cost

    def _refresh_symbols(self) -> None:
        """Take in the symbols that the grammar has learnt since; what was concluded without them is forgotten."""
        self.flow: FlowWays
        self._symbols = len(self.grammar.symbols)
        if self._like is not None and self._like._symbols == self._symbols:
            self.flow = self._like.flow
        else:
            self.flow = FlowWays(self.grammar, exchange=not self.grammar.has_open_symbols)
        self.classes = self.flow.classes
        self.version += 1
        self._demands.clear()
        self._below_cache: dict[tuple[State, Stack], StackDemand] = {}

    def for_configuration(self, state: State, stack: Stack) -> StackDemand:
        """The demand of a stack worked off from ``state``."""
        found = self._demands.get((state, stack))
        if found is None:
            found = self._make_demand(state, stack)
            if len(self.grammar.symbols) != self._symbols:
                self._refresh_symbols()
                found = self._make_demand(state, stack)
        return found

    def rest_of(self, demand: StackDemand, remaining: int, needed: int, most_moves: float = INFINITE) -> Rest | None:
        """What there is to finish of a stack, what waits on it to be read taken; None where that is impossible."""
        most_moves -= demand.free_cost
        if demand.least_steps == INFINITE or most_moves < 0:
            return None
        if needed and demand.paid:
            needed = self.counters.subtract_paid(needed, demand.paid)
        remaining -= demand.promised
        if remaining & self.counters.guard != self.counters.guard:
            return None
        return demand.pending, demand.unresolved, self.classes.left_of(remaining), needed, most_moves

    def demand_below(self, state: State, stack: Stack) -> StackDemand | None:
        """The demand of what lies under the top, where it is sure in which state it will be reached."""
        found = self._below_cache.get((state, stack))
        if found is None:
            targets = [] if self.grammar.has_whole_stacks else self.grammar.target_states(state, stack.top)
            if len(targets) != 1:
                return None
            target = targets[0]
            found = NOTHING if target is ACCEPTING else self.for_configuration(target, stack.rest)
            self._below_cache[state, stack] = found
        return found

    def detours_of_stack(self, state: State, stack: Stack) -> dict[str, int]:
        """For each terminal that a completion may use, limits aside, by how many terminals that lengthens it."""
        if (known := self._detours.get((state, stack, len(self.grammar.symbols)))) is not None:
            return known
        found: dict[str, int] = {}
        for ways in self.grammar.walk_stack(state, stack):
            for symbol, _ in ways:
                for name, extra in self.grammar.detours_of(symbol.index).items():
                    if extra < found.get(name, extra + 1):
                        found[name] = extra
        if len(self._detours) >= _DETOURS:
            self._detours.clear()
        self._detours[state, stack, len(self.grammar.symbols)] = found
        return found

    def _make_demand(self, state: State, stack: Stack) -> StackDemand:
        if len(self._demands) > _CACHE:
            self._demands.clear()
            self._below_cache.clear()
        # Down the stack until everything is known, then up again: no recursion, stacks may be deep.
        levels: list[tuple[Stack, dict[State, list[tuple[FlowSymbol, State]]]]] = []
        states: list[State] = [state]
        node = stack
        while states:
            ways = {at: self.resolve(at, node.top, node.rest) for at in states}
            levels.append((node, ways))
            below = dict.fromkeys(target for group in ways.values() for _, target in group if target is not ACCEPTING)
            node = node.rest
            states = [at for at in below if (at, node) not in self._demands]
        for node, ways in reversed(levels):
            for at, group in ways.items():
                self._demands[at, node] = self._combine_ways(at, node, group)
        return self._demands[state, stack]

    def _combine_ways(self, state: State, stack: Stack, ways: list[tuple[FlowSymbol, State]]) -> StackDemand:
        whole = [
            demand
            for symbol, target in ways
            if (demand := self.demand_with_top(symbol, self._known_demand_below(target, stack))).least_steps < INFINITE
        ]
        if not whole:
            return DEAD
        if len(whole) == 1:
            return whole[0]
        return NOTHING._replace(
            unresolved=(state, stack),
            least_steps=min(demand.least_steps for demand in whole),
            least_length=min(demand.least_length for demand in whole),
        )

    def _known_demand_below(self, target: State, stack: Stack) -> StackDemand:
        return NOTHING if target is ACCEPTING else self._demands[target, stack.rest]

    def demand_with_top(self, symbol: FlowSymbol, below: StackDemand) -> StackDemand:
        """The demand of a stack when ``symbol`` has to be worked off before what is below."""
        if below.least_steps == INFINITE or symbol.least_steps == INFINITE:
            return DEAD
        steps, length = below.least_steps + symbol.least_steps, below.least_length + symbol.least_length
        name = self.flow.leaves.get(symbol.index)
        if name is not None:
            promised = below.promised + self.counters.need.get(name, 0)
            if (self.counters.remaining - promised) & self.counters.guard != self.counters.guard:
                return DEAD
            paid = self.counters.add_payment(name, below.paid)
            cost = below.free_cost + 1 + self.measure.per_terminal
            return StackDemand(below.pending, below.unresolved, promised, paid, cost, steps, length)
        if not symbol.due and self.can_drop(symbol):
            free = below.free_cost + self.free_cost(symbol)
            return below._replace(free_cost=free, least_steps=steps, least_length=length)
        pending = below.pending + self.multisets.unit_of(symbol.index)
        return below._replace(pending=pending, least_steps=steps, least_length=length)
