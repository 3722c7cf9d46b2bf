"""Can a pushdown automaton under limits still accept, and how soon: the exact search over multisets.

A state of the search is (pending symbols, what is left of the resources, what lower bounds still need). Three facts
keep it small, and with enough budget finite:

- a symbol that can be completed without limited terminals is *free*: it cannot stand in the way and is left out. While
  lower bounds are open, free symbols that can serve them are kept, but never more copies than units are needed;
- every other symbol takes at least one unit of a resource, so no more can be pending than units are left;
- the order of symbols does not matter, and interchangeable terminals are one resource.

Deciding this is NP-complete in general (already for grammars of the form of OpenAGI's, by a reduction from exact
cover). So the search has a budget of states. Where a little of it did not do, linear programs come first
(:mod:`formal_llm.automata.lookahead.linear_program`): what they learn decides most of the states that follow. Then an
integer program decides (:mod:`formal_llm.automata.lookahead.integer_program`), where the optional solver is installed,
then the whole budget; when that is spent the answer is "unknown".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN
from formal_llm.automata.lookahead.exact_sums import ExactSums
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar, FlowSymbol
from formal_llm.automata.lookahead.integer_program import IntegerProgram, installed
from formal_llm.automata.lookahead.linear_program import NODES, LinearProgram
from formal_llm.automata.lookahead.resources import PackedWay
from formal_llm.automata.lookahead.stacks import NOTHING, Demand, Demands, SearchState, Unresolved
from formal_llm.automata.models.automaton import Stack, State


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something can be completed.

    Attributes:
        value: ``"yes"``, ``"no"`` or ``"unknown"``.
        how: what decided it: ``"filter"`` (no search was needed), ``"linear argument"`` (limits and what is pending
            add up to no, see :mod:`formal_llm.automata.lookahead.linear`), ``"search"``, ``"integer program"``, or the
            budget that ran out: ``"state budget"``, ``"step budget"``.
        steps: for yes, the moves of one completion (not the cheapest one in general).
    """

    value: Literal["yes", "no", "unknown"]
    how: str
    steps: int | None = None

    @property
    def possible(self) -> bool:
        """Not ruled out: yes or unknown."""
        return self.value != "no"

    def __bool__(self) -> bool:
        raise TypeError("a verdict has three values: ask for verdict.value or verdict.possible")

    def __str__(self) -> str:
        return f"{self.value} ({self.how})"


_CACHE = 200_000

#: The states that a search visits before linear programs are asked. Few searches that have not ended by then end soon;
#: a linear program takes about as long as so many states (benchmarks/strain_cases/sums.py).
PATIENCE = 10

#: The same where sums are bounded from both sides, and lead it to an end.
_PATIENCE = 200

#: A linear program counts as so many states.
_STATES = 100

#: What decided a question.
FILTER, LINEAR, SEARCH = "filter", "linear argument", "search"
PROGRAM, BUDGET = "integer program", "state budget"

#: A way of a symbol, the symbols it leaves pending as a multiset, and the moves of the free ones that are left out.
_Compiled = tuple[PackedWay, int, float]


class CompletionSearch:
    """The search over one flow grammar.

    Args:
        grammar: the flow grammar.
        max_states: how many states one query may visit before it gives up.
        solver: whether an integer program may decide what the search does not decide soon.
    """

    def __init__(self, grammar: FlowGrammar, max_states: int, *, solver: bool = False) -> None:
        self.grammar = grammar
        self.counters = grammar.counters
        self.max_states = max_states
        self.solver = solver
        self.demands = Demands(grammar)
        self.multisets = self.demands.multisets
        self._version = 0
        self.linear = LinearProgram(self.demands)

    @cached_property
    def program(self) -> IntegerProgram | None:
        """The integer program; None where it is switched off or not installed."""
        return IntegerProgram(self.demands) if self.solver and installed() else None

    def _forget(self) -> None:
        """Drop what was concluded from an older version of the grammar."""
        if self._version != self.demands.version:
            self._version = self.demands.version
            self._sums = ExactSums(self.demands)
            self._memo: dict[SearchState, float] = {}
            self._how: dict[SearchState, str] = {}
            self._finished: dict[tuple[int, Unresolved, int, int], tuple[float, str]] = {}
            self._compiled: dict[int, tuple[_Compiled, ...]] = {}

    def steps(self, demand: Demand, remaining: int, needed: int) -> float:
        """Moves of *some* completion; infinite when there is none, ``UNKNOWN`` when the budget is spent."""
        return self.decide(demand, remaining, needed)[0]

    def decide(self, demand: Demand, remaining: int, needed: int) -> tuple[float, str]:
        """(as :meth:`steps`, what decided it)."""
        if demand.least_steps == INFINITE:
            return INFINITE, FILTER
        if needed and demand.paid:
            needed = self.counters.less(needed, demand.paid)
        remaining -= demand.promised
        if remaining & self.counters.guard != self.counters.guard:
            return INFINITE, FILTER
        found, how = self._decide(demand.pending, demand.unresolved, self.demands.resources.of(remaining), needed)
        return (found if found == UNKNOWN else found + demand.free_steps), how

    def finish(self, pending: int, unresolved: Unresolved, left: int, needed: int) -> float:
        """Moves that complete what is pending, when ``left`` is left of the resources; else as :meth:`steps`."""
        return self._decide(pending, unresolved, left, needed)[0]

    def _decide(self, pending: int, unresolved: Unresolved, left: int, needed: int) -> tuple[float, str]:
        if self._version != self.demands.version:
            self._forget()
        key = (pending, unresolved, left, needed)
        found = self._finished.get(key)
        if found is None:
            if len(self._finished) > _CACHE:
                self._finished.clear()
            found = self._finished[key] = self._finish(pending, unresolved, left, needed)
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
            return UNKNOWN, BUDGET
        return found + cost, self._how.get(state, SEARCH)

    def _solve(self, state: SearchState) -> float:
        """What is known, a little search, linear programs, the integer program, the search with the whole budget."""
        patience = min(_PATIENCE if self._sums else PATIENCE, self.max_states)
        linear = self.linear
        if linear.refuted(state):
            return self._settled(state, INFINITE, LINEAR)
        moves = linear.known(state)
        if moves is not None:
            return self._settled(state, moves, SEARCH)
        found = self._search(state, patience)
        if found != UNKNOWN:
            return found
        del self._memo[state]
        moves, at_once = linear.decide(state, min(NODES, self.max_states // _STATES))
        if moves is not None:
            return self._settled(state, moves, LINEAR if at_once and moves == INFINITE else SEARCH)
        if self.program is not None:
            moves = self.program.decide(state)
            if moves is not None:
                return self._settled(state, moves, PROGRAM)
        return self._search(state, self.max_states)

    def _settled(self, state: SearchState, moves: float, how: str) -> float:
        self._memo[state] = moves
        if how != SEARCH:
            self._how[state] = how
        return moves

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
        if needed and self._sums and unresolved is None and not self._sums.possible(pending, left, needed):
            return None
        return cost, SearchState(pending, unresolved, left, needed)

    def _search(self, root: SearchState, max_states: int) -> float:
        memo = self._memo
        if len(memo) > _CACHE:
            memo.clear()
            self._how.clear()
        visited = {root}
        frames: list[tuple[SearchState, float, Iterator[tuple[float, SearchState]]]] = [(root, 0, self._expand(root))]
        unsure = False
        while frames:
            for cost, state in frames[-1][2]:
                if not state.pending and state.unresolved is None and not state.needed:
                    return self._found(frames, cost)
                known = memo.get(state)
                if known == UNKNOWN:
                    unsure = True
                elif known is not None and known < INFINITE:
                    return self._found(frames, cost + known)
                elif known is None and state not in visited:
                    if len(visited) >= max_states:
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
            # Where sums are exact, of equals the last, which lies on top of the stack: its rest is asked for next.
            if best is None or len(ways) < len(best[1]) + bool(self._sums):
                best = (unit, ways)
                if len(ways) <= 1:
                    break
        assert best is not None
        return best

    def _expand(self, state: SearchState) -> Iterator[tuple[float, SearchState]]:
        for cost, following in self._successors(state):
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
        for symbol, target in self.demands.resolve(at, stack.top):
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
