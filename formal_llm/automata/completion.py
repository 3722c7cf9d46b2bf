"""Can a pushdown automaton under limits still accept, and how soon: the exact search over multisets.

A state of the search is (pending symbols, what is left of the resources, what lower bounds still need). Three facts keep
it small, and with enough budget finite:

- a symbol that can be completed without limited terminals is *free*: it cannot stand in the way and is left out. While
  lower bounds are open, free symbols that can serve them are kept, but never more copies than units are needed;
- every other symbol takes at least one unit of a resource, so no more can be pending than units are left;
- the order of symbols does not matter, and interchangeable terminals are one resource.

Deciding this is NP-complete in general (already for grammars of the form of OpenAGI's, by a reduction from exact
cover); the search has a budget of states, and says "unknown" when that is spent.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from formal_llm.automata.automaton import Stack, State
from formal_llm.automata.flow import ACCEPTING, INFINITE, LENGTH, FlowGrammar, FlowSymbol
from formal_llm.automata.limited import Counters
from formal_llm.automata.pda import PDA
from formal_llm.automata.resources import PackedWay, Resources

_BITS = 32
_COUNT = (1 << _BITS) - 1
_CACHE = 200_000

#: What a search may find beside a number of moves.
UNKNOWN = -1.0

Spine = tuple[State, Stack] | None


class Profile(NamedTuple):
    """What a stack asks for, whatever is read before.

    Attributes:
        pending: the symbols that are not free, packed with their counts.
        spine: the part of the stack where it is open in which state a symbol will be popped.
        promised: what terminals waiting on the stack will take from the upper bounds (as the counters pack it).
        paid: what they will pay to the lower bounds, packed.
        free_steps: moves that complete all that is not in ``pending`` or ``spine``.
        least_steps: moves that any completion needs at least; infinite where there is none.
        least_length: the same for terminals, in the unit of :data:`flow.LENGTH`.
    """

    pending: int
    spine: Spine
    promised: int
    paid: int
    free_steps: float
    least_steps: float
    least_length: float


class _State(NamedTuple):
    pending: int
    spine: Spine
    left: int
    needed: int


class _Measure(NamedTuple):
    """What a search for the cheapest completion counts: attributes of a symbol, and the price of a terminal."""

    least: str
    free: str
    per_terminal: int = 0


_NOTHING = Profile(0, None, 0, 0, 0, 0, 0)
_DEAD = Profile(0, None, 0, 0, INFINITE, INFINITE, INFINITE)


class Completion:
    """The search for one PDA under the bounds of ``counters``.

    Args:
        pda: the automaton.
        counters: the packed bounds.
        max_states: how many states one query may visit before it gives up.
    """

    def __init__(self, pda: PDA, counters: Counters, max_states: int) -> None:
        self.grammar = FlowGrammar(pda, counters)
        self.counters = counters
        self.max_states = max_states
        self._profiles: dict[tuple[State, Stack], Profile] = {}
        self._fields: list[FlowSymbol] = []
        self._units: dict[int, int] = {}
        self._free_fields = 0
        self._memo: dict[_State, float] = {}
        #: Changes whenever new symbols make earlier deltas and profiles stale.
        self.version = 0
        start = pda.start()
        self._resolve(start.state, start.stack.top)
        self._refresh()

    def _refresh(self) -> None:
        """Take in the symbols that the grammar has learnt since; what was concluded without them is forgotten."""
        self.resources = Resources(self.grammar, exchange=not self.grammar.open)
        self._symbols = len(self.grammar.symbols)
        self.version += 1
        self._memo.clear()
        self._finished: dict[tuple[int, Spine, int, int], float] = {}
        self._profiles.clear()
        self._below_cache: dict[tuple[State, Stack], Profile] = {}
        self._compiled: dict[int, tuple[tuple[PackedWay, int, float], ...]] = {}

    # -- from stacks to multisets -------------------------------------------------------------------------------

    def profile(self, state: State, stack: Stack) -> Profile:
        """The profile of a stack worked off from ``state``."""
        found = self._profiles.get((state, stack))
        if found is None:
            found = self._make_profile(state, stack)
            if len(self.grammar.symbols) != self._symbols:
                self._refresh()
                found = self._make_profile(state, stack)
        return found

    def below(self, state: State, stack: Stack) -> Profile | None:
        """The profile of what lies under the top, where it is sure in which state it will be reached."""
        found = self._below_cache.get((state, stack))
        if found is None:
            ways = self._resolve(state, stack.top)
            if len(ways) != 1:
                return None
            target = ways[0][1]
            found = _NOTHING if target is ACCEPTING else self.profile(target, stack.rest)
            self._below_cache[state, stack] = found
        return found

    def detours(self, state: State, stack: Stack) -> dict[str, int]:
        """For each terminal that a completion may use, limits aside, by how many terminals that lengthens it at least."""
        found: dict[str, int] = {}
        states: dict[State, None] = {state: None}
        while states:
            ways = [way for at in states for way in self._resolve(at, stack.top)]
            for symbol, _ in ways:
                for name, extra in self.grammar.detours(symbol.index).items():
                    if extra < found.get(name, extra + 1):
                        found[name] = extra
            states = dict.fromkeys(target for _, target in ways if target is not ACCEPTING)
            stack = stack.rest
        return found

    def _resolve(self, state: State, top: str | None) -> list[tuple[FlowSymbol, State]]:
        """The ways to be done with the top of a stack: accept before it is popped, or pop it in some state."""
        targets: list[State] = [ACCEPTING] if self.grammar.may_accept(state, top) else []
        if top is not None:
            targets += self.grammar.exits(state, top)
        return [(self.grammar.symbol(state, top, target), target) for target in targets]

    def _make_profile(self, state: State, stack: Stack) -> Profile:
        if len(self._profiles) > _CACHE:
            self._profiles.clear()
            self._below_cache.clear()
        # Down the stack until everything is known, then up again: no recursion, stacks may be deep.
        levels: list[tuple[Stack, dict[State, list[tuple[FlowSymbol, State]]]]] = []
        states: list[State] = [state]
        node = stack
        while states:
            ways = {at: self._resolve(at, node.top) for at in states}
            levels.append((node, ways))
            below = dict.fromkeys(target for group in ways.values() for _, target in group if target is not ACCEPTING)
            node = node.rest
            states = [at for at in below if (at, node) not in self._profiles]
        for node, ways in reversed(levels):
            for at, group in ways.items():
                self._profiles[at, node] = self._combine(at, node, group)
        return self._profiles[state, stack]

    def _combine(self, state: State, stack: Stack, ways: list[tuple[FlowSymbol, State]]) -> Profile:
        whole = [
            profile
            for symbol, target in ways
            if (profile := self._on_top(symbol, self._below(target, stack))).least_steps < INFINITE
        ]
        if not whole:
            return _DEAD
        if len(whole) == 1:
            return whole[0]
        return _NOTHING._replace(
            spine=(state, stack),
            least_steps=min(profile.least_steps for profile in whole),
            least_length=min(profile.least_length for profile in whole),
        )

    def _below(self, target: State, stack: Stack) -> Profile:
        return _NOTHING if target is ACCEPTING else self._profiles[target, stack.rest]

    def _on_top(self, symbol: FlowSymbol, below: Profile) -> Profile:
        if below.least_steps == INFINITE or symbol.least_steps == INFINITE:
            return _DEAD
        steps, length = below.least_steps + symbol.least_steps, below.least_length + symbol.least_length
        name = self.resources.leaves.get(symbol.index)
        if name is not None:
            promised = below.promised + self.counters.need.get(name, 0)
            if (self.counters.remaining - promised) & self.counters.guard != self.counters.guard:
                return _DEAD
            paid = self.counters.earn(name, below.paid)
            return Profile(below.pending, below.spine, promised, paid, below.free_steps + 1, steps, length)
        if symbol.free and not symbol.due:
            free = below.free_steps + symbol.free_steps
            return below._replace(free_steps=free, least_steps=steps, least_length=length)
        pending = below.pending + self._unit(symbol.index)
        return below._replace(pending=pending, least_steps=steps, least_length=length)

    def _unit(self, index: int) -> int:
        """One of a symbol, in the packed multiset; fields are handed out as symbols turn up."""
        unit = self._units.get(index)
        if unit is None:
            shift = len(self._fields) * _BITS
            unit = self._units[index] = 1 << shift
            symbol = self.grammar.symbols[index]
            self._fields.append(symbol)
            if symbol.free:
                self._free_fields |= _COUNT << shift
        return unit

    def _items(self, pending: int) -> Iterator[tuple[FlowSymbol, int, int]]:
        """(symbol, count, unit) of a packed multiset."""
        while pending:
            place = ((pending & -pending).bit_length() - 1) // _BITS
            shift = place * _BITS
            count = pending >> shift & _COUNT
            yield self._fields[place], count, 1 << shift
            pending -= count << shift

    # -- the search ---------------------------------------------------------------------------------------------

    def steps(self, profile: Profile, remaining: int, needed: int) -> float:
        """Moves of *some* completion; infinite when there is none, ``UNKNOWN`` when the budget is spent."""
        if profile.least_steps == INFINITE:
            return INFINITE
        if needed and profile.paid:
            needed = self.counters.less(needed, profile.paid)
        remaining -= profile.promised
        if remaining & self.counters.guard != self.counters.guard:
            return INFINITE
        found = self.finish(profile.pending, profile.spine, self.resources.of(remaining), needed)
        return found if found == UNKNOWN else found + profile.free_steps

    def finish(self, pending: int, spine: Spine, left: int, needed: int) -> float:
        """Moves that complete what is pending, when ``left`` is left of the resources; else as :meth:`steps`."""
        key = (pending, spine, left, needed)
        found = self._finished.get(key)
        if found is None:
            if len(self._finished) > _CACHE:
                self._finished.clear()
            found = self._finished[key] = self._finish(pending, spine, left, needed)
        return found

    def _finish(self, pending: int, spine: Spine, left: int, needed: int) -> float:
        begin = self._normal(pending, spine, left, needed)
        if begin is None:
            return INFINITE
        cost, state = begin
        if not state.pending and state.spine is None and not state.needed:
            return cost
        found = self._memo.get(state)
        if found is None:
            found = self._search(state)
        return found if found == UNKNOWN else found + cost

    def delta(self, state: State, pushed: tuple[str, ...]) -> Profile:
        """What symbols on top add to the profile of the stack below, where each can be done with in one way only."""
        chain = []
        for top in pushed:
            ways = self._resolve(state, top)
            if not ways:
                return _DEAD
            symbol, state = ways[0]
            chain.append(symbol)
            if state is ACCEPTING:
                break
        added = _NOTHING
        for symbol in reversed(chain):
            added = self._on_top(symbol, added)
        return added

    def _normal(self, pending: int, spine: Spine, left: int, needed: int) -> tuple[float, _State] | None:
        """Leave out what is free; None where some resource cannot pay what all pending symbols take at least."""
        cost: float = 0
        if not needed:
            free = pending & self._free_fields
            if free:
                for symbol, count, _ in self._items(free):
                    cost += symbol.free_steps * count
                pending -= free
        toll = total = 0
        useful = False
        for symbol, count, unit in self._items(pending):
            if symbol.free:
                useful = True
                spare = count - self.counters.units(needed)
                if spare > 0:
                    pending -= spare * unit
                    cost += symbol.free_steps * spare
            else:
                useful = useful or symbol.due
                toll += self.resources.toll[symbol.index] * count
                total += self.resources.tollsum[symbol.index] * count
        if needed and not useful and spine is None:
            return None
        if total:
            if total > self.resources.total(left) or (left - toll) & self.resources.guard != self.resources.guard:
                return None
        return cost, _State(pending, spine, left, needed)

    def _search(self, root: _State) -> float:
        memo = self._memo
        if len(memo) > _CACHE:
            memo.clear()
        visited = {root}
        frames = [(root, 0.0, self._expand(root))]
        unsure = False
        while frames:
            for cost, state in frames[-1][2]:
                if not state.pending and state.spine is None and not state.needed:
                    return self._found(frames, cost)
                known = memo.get(state)
                if known == UNKNOWN:
                    unsure = True
                elif known is not None and known < INFINITE:
                    return self._found(frames, cost + known)
                elif known is None and state not in visited:
                    if len(visited) >= self.max_states:
                        memo[root] = UNKNOWN
                        return UNKNOWN
                    visited.add(state)
                    frames.append((state, cost, self._expand(state)))
                    break
            else:
                frames.pop()
        if unsure:
            memo[root] = UNKNOWN
            return UNKNOWN
        memo.update(dict.fromkeys(visited, INFINITE))
        return INFINITE

    def _found(self, frames: list[tuple[_State, float, Iterator[tuple[float, _State]]]], cost: float) -> float:
        for state, arrival, _ in reversed(frames):
            self._memo[state] = cost
            cost += arrival
        return cost

    def _compile(self, symbol: FlowSymbol) -> tuple[tuple[PackedWay, int, float], ...]:
        """The ways of a symbol with their children as a packed multiset, and the moves of those left out."""
        compiled = self._compiled.get(symbol.index)
        if compiled is None:
            made = []
            for way in self.resources.ways[symbol.index]:
                pending, cost = 0, float(way.steps)
                for child in way.children:
                    one = self.grammar.symbols[child]
                    if one.free and not one.due:
                        cost += one.free_steps
                    else:
                        pending += self._unit(child)
                made.append((way, pending, cost))
            made.sort(key=lambda entry: (entry[1].bit_count(), entry[2]))
            compiled = self._compiled[symbol.index] = tuple(made)
        return compiled

    def _choose(self, state: _State) -> tuple[int, list[tuple[PackedWay, int, float]]]:
        """The pending symbol with the fewest ways left: its unit and those ways."""
        guard, left = self.resources.guard, state.left
        best: tuple[int, list[tuple[PackedWay, int, float]]] | None = None
        for symbol, _, unit in self._items(state.pending):
            ways = [entry for entry in self._compile(symbol) if (left - entry[0].need) & guard == guard]
            if best is None or len(ways) < len(best[1]):
                best = (unit, ways)
                if len(ways) <= 1:
                    break
        assert best is not None
        return best

    def _expand(self, state: _State) -> Iterator[tuple[float, _State]]:
        for cost, following in self._successors(state):
            normal = self._normal(*following)
            if normal is not None:
                yield cost + normal[0], normal[1]

    def _successors(self, state: _State) -> Iterator[tuple[float, _State]]:
        pending, spine, left, needed = state
        if spine is not None:
            yield from self._open_spine(state, *spine)
        elif pending:
            unit, ways = self._choose(state)
            for way, children, cost in ways:
                due = needed
                if due:
                    for name in way.reads:
                        due = self.counters.pay(name, due)
                yield cost, _State(pending - unit + children, None, left - way.need, due)

    def _open_spine(self, state: _State, at: State, stack: Stack) -> Iterator[tuple[float, _State]]:
        """The ways to work off the top of the open part: accept before it is popped, or pop it in some state."""
        for symbol, target in self._resolve(at, stack.top):
            whole = self._on_top(symbol, _NOTHING if target is ACCEPTING else self.profile(target, stack.rest))
            if whole.least_steps == INFINITE:
                continue
            left, needed = state.left, state.needed
            if whole.promised:
                left -= self.resources.need(whole.promised)
                if left & self.resources.guard != self.resources.guard:
                    continue
            if needed and whole.paid:
                needed = self.counters.less(needed, whole.paid)
            yield whole.free_steps, _State(state.pending + whole.pending, whole.spine, left, needed)

    # -- the cheapest completion --------------------------------------------------------------------------------

    def cheapest(self, state: State, stack: Stack, remaining: int, needed: int, *, by_length: bool) -> float:
        """The least moves, or the least length (in the unit of :data:`flow.LENGTH`), of a completion.

        Infinite when there is none, ``UNKNOWN`` when the budget is spent. A* over the same states; what remains is
        estimated by the cheapest completions without limits, which never overrate.
        """
        found = self.steps(self.profile(state, stack), remaining, needed)
        if found == INFINITE:
            return INFINITE
        measure = _Measure("least_length", "free_length", LENGTH) if by_length else _Measure("least_steps", "free_steps")
        begin = self._weigh(measure, [], (state, stack), self.resources.of(remaining), needed)
        if begin is None:
            return INFINITE
        best: dict[_State, float] = {begin[1]: begin[0]}
        queue = [(begin[0] + begin[2], 0, begin[1])]
        tie = 0
        done: set[_State] = set()
        while queue:
            _, _, now = heapq.heappop(queue)
            if now in done:
                continue
            cost = best[now]
            if not now.pending and now.spine is None and not now.needed:
                return cost
            if len(done) >= self.max_states:
                return UNKNOWN
            done.add(now)
            for extra, following, estimate in self._weighed_successors(measure, now):
                total = cost + extra
                if total < best.get(following, INFINITE):
                    best[following] = total
                    tie += 1
                    heapq.heappush(queue, (total + estimate, tie, following))
        return INFINITE

    def _weigh(
        self, measure: _Measure, symbols: list[FlowSymbol], spine: Spine, left: int, needed: int, pending: int = 0
    ) -> tuple[float, _State, float] | None:
        """A state with its certain costs taken out: (those costs, the state, an estimate of the rest)."""
        cost = estimate = 0.0
        symbols = list(symbols)
        while spine is not None:
            state, stack = spine
            ways = [
                (symbol, target)
                for symbol, target in self._resolve(state, stack.top)
                if target is ACCEPTING or self.profile(target, stack.rest).least_steps < INFINITE
            ]
            if len(ways) > 1:
                break
            if not ways:
                return None
            symbols.append(ways[0][0])
            spine = None if ways[0][1] is ACCEPTING else (ways[0][1], stack.rest)
        for symbol in symbols:
            name = self.resources.leaves.get(symbol.index)
            if name is not None:
                left -= self.resources.need(self.counters.need.get(name, 0))
                if left & self.resources.guard != self.resources.guard:
                    return None
                needed = self.counters.pay(name, needed)
                cost += 1 + measure.per_terminal
            else:
                pending += self._unit(symbol.index)
        toll = total = 0
        for symbol, count, unit in self._items(pending):
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
                toll += self.resources.toll[symbol.index] * count
                total += self.resources.tollsum[symbol.index] * count
        if total and (
            total > self.resources.total(left) or (left - toll) & self.resources.guard != self.resources.guard
        ):
            return None
        if needed:
            estimate = max(estimate, measure.per_terminal * self.counters.reads(needed))
        return cost, _State(pending, spine, left, needed), estimate

    def _weighed_successors(self, measure: _Measure, state: _State) -> Iterator[tuple[float, _State, float]]:
        pending, spine, left, needed = state
        following: list[tuple[float, tuple[float, _State, float] | None]] = []
        if spine is not None:
            for symbol, target in self._resolve(spine[0], spine[1].top):
                rest = None if target is ACCEPTING else (target, spine[1].rest)
                following.append((0, self._weigh(measure, [symbol], rest, left, needed, pending)))
        elif pending:
            symbol, _, unit = next(self._items(pending))
            for way in self.resources.ways[symbol.index]:
                if (left - way.need) & self.resources.guard == self.resources.guard:
                    due = needed
                    for name in way.reads:
                        due = self.counters.pay(name, due)
                    children = [self.grammar.symbols[child] for child in way.children]
                    cost = way.steps + measure.per_terminal * len(way.reads)
                    following.append((cost, self._weigh(measure, children, None, left - way.need, due, pending - unit)))
        for cost, weighed in following:
            if weighed is not None:
                yield cost + weighed[0], weighed[1], weighed[2]
