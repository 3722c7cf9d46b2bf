"""Can a pushdown automaton under limits still accept, and how soon: the exact search over multisets.

A state of the search is (pending symbols, what is left of the resources, what lower bounds still need). Three facts
keep it small, and with enough budget finite:

- a symbol that can be completed without limited terminals is *free*: it cannot stand in the way and is left out. While
  lower bounds are open, free symbols that can serve them are kept, but never more copies than units are needed;
- every other symbol takes at least one unit of a resource, so no more can be pending than units are left;
- the order of symbols does not matter, and interchangeable terminals are one resource.

Deciding this is NP-complete in general (already for grammars of the form of OpenAGI's, by a reduction from exact
cover). So the search has a budget of states. When that is spent an integer program decides
(:mod:`formal_llm.automata.lookahead.integer_program`), where the optional solver is installed; else the answer is
"unknown". It is "unknown" for now where the work that a question may cost is spent first; then the search stands still
where it is, and goes on from there when it is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar, FlowSymbol
from formal_llm.automata.lookahead.integer_program import IntegerProgram, installed
from formal_llm.automata.lookahead.resources import PackedWay
from formal_llm.automata.lookahead.stacks import NOTHING, Demand, Demands, SearchState, Unresolved
from formal_llm.automata.lookahead.verdicts import BUDGET, FILTER, PROGRAM, SEARCH, TIME
from formal_llm.automata.lookahead.work import Work
from formal_llm.automata.models.automaton import Stack, State

_CACHE = 200_000

#: The states that a search visits before it asks the integer program, where there is one. Few searches that have not
#: ended by then end soon, and the program takes about as long as so many states (benchmarks/lookahead_tools.py).
PATIENCE = 100
#: The searches that stand still at once.
_STANDING = 32
#: The least seconds that are worth an integer program.
_LEAST_EFFORT = 0.01

#: A way of a symbol, the symbols it leaves pending as a multiset, and the moves of the free ones that are left out.
_Compiled = tuple[PackedWay, int, float]


class _Standing:
    """A search that stands still: what it has visited, where it stands, whether something unknown was left out."""

    __slots__ = ("frames", "unsure", "visited")

    def __init__(self, root: SearchState, after: Iterator[tuple[float, SearchState]]) -> None:
        self.visited = {root}
        self.frames: list[tuple[SearchState, float, Iterator[tuple[float, SearchState]]]] = [(root, 0, after)]
        self.unsure = False


class CompletionSearch:
    """The search over one flow grammar.

    Args:
        grammar: the flow grammar.
        max_states: how many states one query may visit before it gives up.
        solver: whether an integer program may decide what the search does not decide soon.
        demands: the demands of the grammar, where another search has them.

    Attributes:
        work: what queries may still cost.
        guide: where lower bounds are open, a search that tries first what pays best: as :meth:`steps`, from
            a state.
        missed: whether an integer program was wanted that is not installed.
    """

    def __init__(
        self, grammar: FlowGrammar, max_states: int, *, solver: bool = False, demands: Demands | None = None
    ) -> None:
        self.grammar = grammar
        self.counters = grammar.counters
        self.max_states = max_states
        self.solver = solver
        self.demands = demands or Demands(grammar)
        self.multisets = self.demands.multisets
        self.work, self.missed = Work(), False
        self.guide: Callable[[SearchState], float] | None = None
        self._version = 0

    def anew(self) -> CompletionSearch:
        """The same search, with nothing remembered: what it finds depends on what it is asked alone."""
        return CompletionSearch(self.grammar, self.max_states, solver=self.solver, demands=self.demands)

    def note(self, demand: Demand, remaining: int, needed: int, decided: tuple[float, str]) -> None:
        """Remember what :meth:`decide` of a search like this one has said."""
        key = self._key(demand, remaining, needed)
        if key is not None:
            self._finished[key] = decided

    @cached_property
    def program(self) -> IntegerProgram | None:
        """The integer program; None where it is switched off or not installed."""
        return IntegerProgram(self.demands) if self.solver and installed() else None

    def _forget(self) -> None:
        """Drop what was concluded from an older version of the grammar."""
        if self._version != self.demands.version:
            self._version = self.demands.version
            self._memo: dict[SearchState, float] = {}
            self._by_program: set[SearchState] = set()
            self._standing: dict[SearchState, _Standing] = {}
            self._tried: dict[SearchState, float] = {}
            self._finished: dict[tuple[int, Unresolved, int, int], tuple[float, str]] = {}
            self._compiled: dict[int, tuple[_Compiled, ...]] = {}

    def steps(self, demand: Demand, remaining: int, needed: int) -> float:
        """Moves of *some* completion; infinite when there is none, ``UNKNOWN`` when the budget is spent."""
        return self.decide(demand, remaining, needed)[0]

    def decide(self, demand: Demand, remaining: int, needed: int) -> tuple[float, str]:
        """(as :meth:`steps`, what decided it)."""
        key = self._key(demand, remaining, needed)
        if key is None:
            return INFINITE, FILTER
        found, how = self.decide_rest(*key)
        return (found if found == UNKNOWN else found + demand.free_steps), how

    def _key(self, demand: Demand, remaining: int, needed: int) -> tuple[int, Unresolved, int, int] | None:
        """What there is to finish; None where that is impossible."""
        if demand.least_steps == INFINITE:
            return None
        if needed and demand.paid:
            needed = self.counters.less(needed, demand.paid)
        remaining -= demand.promised
        if remaining & self.counters.guard != self.counters.guard:
            return None
        return demand.pending, demand.unresolved, self.demands.resources.of(remaining), needed

    def finish(self, pending: int, unresolved: Unresolved, left: int, needed: int) -> float:
        """Moves that complete what is pending, when ``left`` is left of the resources; else as :meth:`steps`."""
        return self.decide_rest(pending, unresolved, left, needed)[0]

    def decide_rest(self, pending: int, unresolved: Unresolved, left: int, needed: int) -> tuple[float, str]:
        """(as :meth:`finish`, what decided it)."""
        if self._version != self.demands.version:
            self._forget()
        key = (pending, unresolved, left, needed)
        found = self._finished.get(key)
        if found is None:
            if len(self._finished) > _CACHE:
                self._finished.clear()
            found = self._finish(pending, unresolved, left, needed)
            if found[1] is not TIME:
                self._finished[key] = found
        return found

    def _finish(self, pending: int, unresolved: Unresolved, left: int, needed: int) -> tuple[float, str]:
        begin = self._normal(pending, unresolved, left, needed)
        if begin is None:
            return INFINITE, FILTER
        cost, state = begin
        if not state.pending and state.unresolved is None and not state.needed:
            return cost, FILTER
        found = self._memo.get(state)
        if found is None:
            found = self._solve(state)
        if found == UNKNOWN:
            return UNKNOWN, BUDGET if state in self._memo else TIME
        return found + cost, PROGRAM if state in self._by_program else SEARCH

    def _solve(self, state: SearchState) -> float:
        """The search by prices, the search with a little patience, the integer program, the whole search.

        What is certain is noted, also that the budget of states is spent; not what only the end of the work left open.
        """
        self.work.begin()
        if self.work.over:
            return UNKNOWN
        found = UNKNOWN
        if state.needed and self.guide is not None and state not in self._standing:
            found = self.guide(state)
            if found != UNKNOWN:
                self._memo[state] = found
        if found == UNKNOWN:
            found = self._search(state, min(PATIENCE, self.max_states))
        if found == UNKNOWN:
            found = self._by_solver(state)
        if found == UNKNOWN and not self.work.over:
            self._memo.pop(state, None)
            found = self._search(state, self.max_states)
        return found

    def _by_solver(self, state: SearchState) -> float:
        """The integer program, where there is one that has not been tried with as much effort before."""
        effort = min(1.0, self.work.seconds)
        self.missed = self.missed or (self.solver and self.program is None)
        if self.program is None or effort < max(_LEAST_EFFORT, 2 * self._tried.get(state, 0.0)):
            return UNKNOWN
        self._tried[state] = effort
        decided = self.program.decide(state, effort)
        self.work.left -= self.program.tries
        if decided is None:
            return UNKNOWN
        self._memo[state] = decided
        self._by_program.add(state)
        return decided

    def _normal(self, pending: int, unresolved: Unresolved, left: int, needed: int) -> tuple[float, SearchState] | None:
        """Leave out what is free; None where some resource cannot pay what all pending symbols take at least."""
        cost: float = 0
        if not needed:
            free = pending & self.multisets.free
            if free:
                for symbol, count, _ in self.multisets.items(free):
                    cost += symbol.free_steps * count
                pending -= free
        least = total = 0
        useful = False
        for symbol, count, unit in self.multisets.items(pending):
            if symbol.free:
                useful = True
                spare = count - self.counters.units(needed)
                if spare > 0:
                    pending -= spare * unit
                    cost += symbol.free_steps * spare
            else:
                useful = useful or symbol.due
                least += self.demands.resources.least[symbol.index] * count
                total += self.demands.resources.least_total[symbol.index] * count
        if needed and not useful and unresolved is None:
            return None
        if total and not self.demands.resources.cover(left, least, total):
            return None
        if needed and not self.demands.resources.covers_due(left, needed):
            return None
        return cost, SearchState(pending, unresolved, left, needed)

    def _search(self, root: SearchState, max_states: int) -> float:
        memo, work = self._memo, self.work
        if len(memo) > _CACHE:
            memo.clear()
            self._by_program.clear()
        standing = self._standing.pop(root, None) or _Standing(root, self._expand(root))
        visited, frames = standing.visited, standing.frames
        while frames and work.left > work.floor:
            for cost, state in frames[-1][2]:
                if not state.pending and state.unresolved is None and not state.needed:
                    return self._found(frames, cost)
                known = memo.get(state)
                if known == UNKNOWN:
                    standing.unsure = True
                elif known is not None and known < INFINITE:
                    return self._found(frames, cost + known)
                elif known is None and state not in visited:
                    if len(visited) >= max_states:
                        here, arrival, after = frames[-1]
                        frames[-1] = here, arrival, chain(((cost, state),), after)
                        return self._stand(root, standing)
                    visited.add(state)
                    frames.append((state, cost, self._expand(state)))
                    break
            else:
                frames.pop()
        if frames:
            return self._stand(root, standing)
        if standing.unsure:
            memo[root] = UNKNOWN
            return UNKNOWN
        memo.update(dict.fromkeys(visited, INFINITE))
        return INFINITE

    def _stand(self, root: SearchState, standing: _Standing) -> float:
        """Let a search stand still, to go on later; where it has visited all states that it may, it is given up."""
        if len(standing.visited) >= self.max_states:
            self._memo[root] = UNKNOWN
        else:
            if len(self._standing) >= _STANDING:
                del self._standing[next(iter(self._standing))]
            self._standing[root] = standing
        return UNKNOWN

    def _found(
        self, frames: list[tuple[SearchState, float, Iterator[tuple[float, SearchState]]]], cost: float
    ) -> float:
        for state, arrival, _ in reversed(frames):
            self._memo[state] = cost
            cost += arrival
        return cost

    def _compile(self, symbol: FlowSymbol) -> tuple[_Compiled, ...]:
        """The ways of a symbol with their children as a packed multiset, and the moves of those left out."""
        compiled = self._compiled.get(symbol.index)
        if compiled is None:
            made: list[_Compiled] = []
            for way in self.demands.resources.ways[symbol.index]:
                pending = 0
                cost: float = way.steps
                for child in way.children:
                    one = self.grammar.symbols[child]
                    if one.free and not one.due:
                        cost += one.free_steps
                    else:
                        pending += self.multisets.unit(child)
                made.append((way, pending, cost))
            made.sort(key=lambda entry: (entry[1].bit_count(), entry[2]))
            compiled = self._compiled[symbol.index] = tuple(made)
        return compiled

    def _choose(self, state: SearchState) -> tuple[int, list[_Compiled]]:
        """The pending symbol with the fewest ways left: its unit and those ways."""
        guard, left = self.demands.resources.guard, state.left
        best: tuple[int, list[_Compiled]] | None = None
        for symbol, _, unit in self.multisets.items(state.pending):
            ways = [entry for entry in self._compile(symbol) if (left - entry[0].need) & guard == guard]
            if best is None or len(ways) < len(best[1]):
                best = (unit, ways)
                if len(ways) <= 1:
                    break
        assert best is not None
        return best

    def _expand(self, state: SearchState) -> Iterator[tuple[float, SearchState]]:
        work = self.work
        for cost, following in self._successors(state):
            work.left -= 0.5  # it is done with sooner than a state of the search by prices
            normal = self._normal(*following)
            if normal is not None:
                yield cost + normal[0], normal[1]

    def _successors(self, state: SearchState) -> Iterator[tuple[float, SearchState]]:
        pending, unresolved, left, needed = state
        if unresolved is not None:
            yield from self._resolve(state, *unresolved)
        elif pending:
            unit, ways = self._choose(state)
            for way, children, cost in ways:
                due = self.counters.pay_all(way.reads, needed)
                yield cost, SearchState(pending - unit + children, None, left - way.need, due)

    def _resolve(self, state: SearchState, at: State, stack: Stack) -> Iterator[tuple[float, SearchState]]:
        """The ways to work off the top of the open part: accept before it is popped, or pop it in some state."""
        for symbol, target in self.demands.resolve(at, stack.top, stack.rest):
            whole = self.demands.on_top(symbol, NOTHING if target is ACCEPTING else self.demands.of(target, stack.rest))
            if whole.least_steps == INFINITE:
                continue
            left, needed = state.left, state.needed
            if whole.promised:
                left -= self.demands.resources.need(whole.promised)
                if left & self.demands.resources.guard != self.demands.resources.guard:
                    continue
            if needed and whole.paid:
                needed = self.counters.less(needed, whole.paid)
            yield whole.free_steps, SearchState(state.pending + whole.pending, whole.unresolved, left, needed)
