"""The commutative grammar of an automaton: what is left to do, without the order.

Whether a configuration can be completed within limits depends only on *which* symbols are pending and *how many* of
each, not on their order, since limits count and do not order. So the stack becomes a multiset, and a pushdown automaton
becomes a grammar over multisets: a symbol (p, X, q) stands for all the ways to get from state p to state q by popping
X, and each way consumes some terminals and leaves more symbols. (The Parikh image, Parikh 1966; the productions of a
context-free language as a flow, Verma, Seidl and Schwentick 2005.)

Here are those symbols, made on demand, and what is known of each before any search: how cheaply it can be completed
when no limited terminal is used, and what it costs at least of every limit.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE, least_costs
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.models.automaton import Stack, State
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import find_reachable
from formal_llm.automata.models.tabulation import Tabulation
from formal_llm.automata.models.transition import Transition

#: The least states of a product, and the most configurations of the factor with the stack, for symbols of whole stacks.
_MANY_STATES, _FEW_CONFIGURATIONS = 64, 1_000
#: One terminal, in the measure that counts terminals first and moves second. Costs are whole numbers of any size.
LENGTH = 1 << 64


class AcceptTarget:
    """The target of a symbol that needs not be popped: the run accepts before."""

    def __repr__(self) -> str:
        return "ACCEPTING"


ACCEPTING = AcceptTarget()


class WholeStack(NamedTuple):
    """The target of a symbol with all that lies below it: the run accepts, wherever (:attr:`has_whole_stacks`)."""

    below: tuple[str, ...]


#: (state, symbol on top or None for the empty stack, state afterwards, ACCEPTING or the whole stack)
Key = tuple[State, str | None, State]


class Way(NamedTuple):
    """One way to work off a symbol: the terminal it reads, the symbols it leaves, the moves it takes (0 or 1)."""

    read: str | None
    children: tuple[int, ...]
    moves: int = 1


@dataclass(slots=True, eq=False)
class FlowSymbol:
    """A symbol of the commutative grammar and what is known of it.

    Attributes:
        index: its number.
        ways: how it can be worked off.
        least_steps: moves of the completion with the fewest; terminals that may be used at least once count as free.
        least_length: terminals of the shortest completion, times ``LENGTH``, plus its moves (they break ties).
        free_steps, free_length: the same for completions that use no limited terminal; infinite where there is none.
        due: whether a terminal with a lower bound may occur in its completions.
    """

    index: int
    key: Key
    ways: tuple[Way, ...] = ()
    least_steps: float = INFINITE
    least_length: float = INFINITE
    free_steps: float = INFINITE
    free_length: float = INFINITE
    due: bool = False

    @property
    def is_free(self) -> bool:
        """Whether it can be completed without any limited terminal."""
        return self.free_steps < INFINITE


class FlowGrammar:
    """The commutative grammar of ``pda`` under the bounds of ``counters``, in one of two modes.

    Attributes:
        has_whole_stacks: whether each symbol represents a whole stack, as in a finite automaton: its ways are then as
            many as the transitions, not as the pairs of states. So it is where a grammar with few configurations (a
            right-linear one, or one without recursion) runs with a constraint of many states, such as a clock.
            Elsewhere a symbol is (p, X, q), where q may be :data:`ACCEPTING`.
    """

    def __init__(self, pda: PDA, counters: Counters) -> None:
        self.pda = pda
        self.counters = counters
        self.symbols: list[FlowSymbol] = []
        self._by_key: dict[Key, int] = {}
        self._known = 0
        #: The symbols without a completion, limits aside.
        self._dead: set[int] = set()
        self.table = Tabulation(pda.transitions_at, pda.accepting_states, lambda _, at: at)
        self._open, self._open_at = False, -1
        self._exits: dict[tuple[State, str | None], list[State]] = {}
        self._chains: dict[tuple[State, tuple[str | None, ...]], dict[State, list[tuple[Key, ...]]]] = {}
        self._detours: dict[int, dict[str, int]] = {}
        #: The terminals in upper bounds, and those of them that may not be used at all.
        self.limited = frozenset(counters.need)
        self._banned = {name for name in self.limited if not counters.can_afford(name, counters.remaining)}
        stacked = [factor for factor in pda.factors if factor.uses_stack] if len(pda.states) >= _MANY_STATES else []
        self.has_whole_stacks = bool(stacked) and _has_few_configurations(stacked[0])

    # -- symbols and their ways ---------------------------------------------------------------------------------

    def exit_states(self, state: State, symbol: str | None) -> list[State]:
        """The states in which ``symbol`` can be gone, limits aside."""
        found = self._exits.get((state, symbol))
        if found is None:
            found = self._exits[state, symbol] = [target for target, _ in self.table.find_exits(state, symbol)]
        return found

    def get_symbol(self, state: State, top: str | None, target: State) -> FlowSymbol:
        """The symbol (state, top, target), with everything known of it."""
        index = self._by_key.get((state, top, target))
        if index is None:
            index = self._index_of((state, top, target))
            self._explore_new_symbols()
        return self.symbols[index]

    def may_accept(self, state: State, top: str | None) -> bool:
        """Whether the run can accept before ``top`` is popped, limits aside."""
        return self.table.may_accept(state, top)

    @property
    def has_open_symbols(self) -> bool:
        """Whether some stack symbol can be done with in more than one way (states afterwards, accepting before)."""
        if self.has_whole_stacks:
            return True
        if self._open_at != len(self.symbols):
            self._open, self._open_at = self.table.has_open_calls, len(self.symbols)
        return self._open

    def target_states(self, state: State, top: str | None) -> list[State]:
        """How a run can be done with the top of a stack: accept before it is popped, or pop it in some state."""
        targets: list[State] = [ACCEPTING] if self.may_accept(state, top) else []
        return targets if top is None else targets + self.exit_states(state, top)

    def resolve_top(self, state: State, top: str | None, rest: Stack | None = None) -> list[tuple[FlowSymbol, State]]:
        """The ways to be done with the top of a stack, ``rest`` below it: accept before, or pop it in some state."""
        if self.has_whole_stacks and rest is not None:
            return [(self.get_symbol(state, top, WholeStack(tuple(rest))), ACCEPTING)]
        targets = self.target_states(state, top)
        return [(self.get_symbol(state, top, target), target) for target in targets]

    def walk_stack(self, state: State, stack: Stack) -> Iterator[list[tuple[FlowSymbol, State]]]:
        """From the top of a stack down: the ways to be done with each symbol, from any state that can be reached."""
        states: dict[State, None] = {state: None}
        while states:
            ways = [way for at in states for way in self.resolve_top(at, stack.top, stack.rest)]
            yield ways
            states = dict.fromkeys(target for _, target in ways if target is not ACCEPTING)
            stack = stack.rest

    def reachable_symbols(self, symbols: Iterable[int]) -> list[int]:
        """These symbols and all that completions of them may lead to."""
        return list(
            find_reachable(
                symbols, lambda index: (c for way in self.live_ways(self.symbols[index]) for c in way.children)
            )
        )

    def _index_of(self, key: Key) -> int:
        index = self._by_key.get(key)
        if index is None:
            index = self._by_key[key] = len(self.symbols)
            self.symbols.append(FlowSymbol(index, key))
        return index

    def _explore_new_symbols(self) -> None:
        """Find the ways of all new symbols and of the symbols they lead to; then learn what is known of each."""
        first = self._known
        while self._known < len(self.symbols):
            symbol = self.symbols[self._known]
            self._known += 1
            self.table.take_room()
            symbol.ways = tuple([way for _, way in self._find_ways(symbol.key)])
        self._chains.clear()
        new = self.symbols[first:]
        self._set_cheapest_costs(new)
        if self.counters.dues:
            self._find_due(new)

    def _find_ways(self, key: Key) -> Iterator[tuple[Transition | None, Way]]:
        state, top, target = key
        inside = target is ACCEPTING or isinstance(target, WholeStack)
        if inside and state in self.pda.accepting_states:
            yield None, Way(None, (), 0)
        for t in self.pda.transitions_at(state, top):
            if t.read in self._banned:
                continue
            pushed: tuple[str | None, ...] = t.push if t.pop is not None else (*t.push, top)
            if isinstance(target, WholeStack):
                stack: list[str | None] = [*[name for name in pushed if name is not None], *target.below, None]
                below = WholeStack(tuple([name for name in stack[1:] if name is not None]))
                yield t, Way(t.read, (self._index_of((t.target, stack[0], below)),))
                continue
            for end in range(1, len(pushed)) if inside else ():
                for children in self._chains_of_symbols(t.target, pushed[:end], ACCEPTING):
                    yield t, Way(t.read, children)
            for children in self._chains_of_symbols(t.target, pushed, target):
                yield t, Way(t.read, children)

    def _chains_of_symbols(self, state: State, pushed: tuple[str | None, ...], target: State) -> list[tuple[int, ...]]:
        """All ways through the states between: symbols (state, X1, p1) (p1, X2, p2) ... (.., Xn, target)."""
        if target is not ACCEPTING:
            found = self._find_chains(state, pushed).get(target, ())
        else:
            found = [
                (*chain, (before, pushed[-1], ACCEPTING))
                for before, chains in (self._find_chains(state, pushed[:-1]) if pushed else {}).items()
                if self.may_accept(before, pushed[-1])
                for chain in chains
            ]
        return [tuple([self._index_of(key) for key in chain]) for chain in found]

    def _find_chains(self, state: State, pushed: tuple[str | None, ...]) -> dict[State, list[tuple[Key, ...]]]:
        """For each state in which all these symbols can be gone, the chains of keys that lead there."""
        known = self._chains.get((state, pushed))
        if known is not None:
            return known
        found: dict[State, list[tuple[Key, ...]]] = {state: [()]}
        for top in pushed:
            longer: dict[State, list[tuple[Key, ...]]] = {}
            for before, chains in found.items():
                for after in self.exit_states(before, top):
                    longer.setdefault(after, []).extend([(*chain, (before, top, after)) for chain in chains])
            found = longer
        self._chains[state, pushed] = found
        return found

    # -- what is known before any search ------------------------------------------------------------------------

    def _set_cheapest_costs(self, new: list[FlowSymbol]) -> None:
        """The cheapest completions of each symbol, by each of the four measures."""
        first = len(self.symbols) - len(new)  # those before are known
        for name, free, by_length in (
            ("least_steps", False, False),
            ("least_length", False, True),
            ("free_steps", True, False),
            ("free_length", True, True),
        ):
            rules: list[tuple[int, float, Sequence[int]]] = []
            for symbol, way in ((one, way) for one in new for way in one.ways):
                if free and way.read in self.limited:
                    continue
                cost: float = way.moves + (LENGTH if by_length and way.read is not None else 0)
                unknown: Sequence[int] = way.children
                if first and min(unknown, default=first) < first:
                    costs = [getattr(self.symbols[child], name) for child in unknown if child < first]
                    if INFINITE in costs:
                        continue
                    cost += sum(costs)
                    unknown = [child for child in unknown if child >= first]
                rules.append((symbol.index, cost, unknown))
            found = least_costs(rules)
            for symbol in new:
                setattr(symbol, name, found.get(symbol.index, INFINITE))
        self._dead.update(symbol.index for symbol in new if symbol.least_steps == INFINITE)

    def live_ways(self, symbol: FlowSymbol) -> Sequence[Way]:
        """The ways that some completion takes, limits aside."""
        return [way for way in symbol.ways if self._dead.isdisjoint(way.children)] if self._dead else symbol.ways

    def live_moves(self, symbol: FlowSymbol) -> list[tuple[Transition | None, Way]]:
        """The :meth:`live_ways`, each with the transition that it begins with; a way that only ends has none."""
        return [(move, way) for move, way in self._find_ways(symbol.key) if self._dead.isdisjoint(way.children)]

    def _find_due(self, new: list[FlowSymbol]) -> None:
        """Mark the symbols in whose completions a terminal with a lower bound may occur."""
        users: dict[int, list[int]] = {}
        first: list[int] = []
        for symbol in new:
            for way in self.live_ways(symbol):
                for child in way.children:
                    users.setdefault(child, []).append(symbol.index)
                if way.read in self.counters.dues or any(self.symbols[child].due for child in way.children):
                    first.append(symbol.index)
        for index in find_reachable(first, lambda index: users.get(index, ())):
            self.symbols[index].due = True

    def detours_of(self, index: int) -> dict[str, int]:
        """For each terminal that completions of a symbol may use, by how many terminals that lengthens the shortest."""
        found = self._detours.get(index)
        if found is None:
            found = self._detours[index] = self._find_detours(index)
        return found

    def _find_detours(self, index: int) -> dict[str, int]:
        # Dijkstra's algorithm downwards, to all that a completion may hold; a way costs by how much it is no shortest.
        found: dict[str, int] = {}
        reached: set[int] = set()
        queue: list[tuple[float, int]] = [(0, index)]
        reads: list[tuple[float, str]] = []
        while queue:
            cost, index = heapq.heappop(queue)
            if index in reached:
                continue
            reached.add(index)
            symbol = self.symbols[index]
            for way in self.live_ways(symbol):
                length = sum(self.symbols[child].least_length for child in way.children) + way.moves
                length += LENGTH if way.read is not None else 0
                whole = cost + length - symbol.least_length
                if way.read is not None:
                    reads.append((whole, way.read))
                for child in way.children:
                    if child not in reached:
                        heapq.heappush(queue, (whole, child))
        for cost, name in sorted(reads):
            found.setdefault(name, int(cost // LENGTH))
        return found


def _has_few_configurations(pda: PDA) -> bool:
    """Whether an automaton can be in few configurations only, whatever it reads."""
    start = pda.start()
    found, todo = {start}, [start]
    while todo and len(found) <= _FEW_CONFIGURATIONS:
        now = todo.pop()
        after = {pda.step(now, move) for move in pda.moves(now)} - found
        found |= after
        todo += after
    return not todo
