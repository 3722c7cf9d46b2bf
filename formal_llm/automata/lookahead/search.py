"""Can a pushdown automaton under limits still accept, and how soon: the exact search over multisets.

A state of the search is (pending symbols, what is left of the resources, what lower bounds still need). Three facts
keep it small, and with enough budget finite:

- a symbol that can be completed without limited terminals is *free*: it cannot prevent a completion and is left out.
  While lower bounds are open, free symbols that can serve them are kept, but never more copies than units are needed;
- every other symbol takes at least one unit of a resource, so no more can be pending than units are left;
- the order of symbols does not matter, and interchangeable terminals are one resource.

Deciding this is NP-complete in general (already for grammars of the form of OpenAGI's, by a reduction from exact
cover). So the search has a budget of states. Where a little of it did not do, linear programs come first
(:mod:`formal_llm.automata.lookahead.exact.linear_program`): what they learn decides most of the states that follow.
Grammars that are too large for them have a search by prices (:mod:`formal_llm.automata.lookahead.exact.prices`). Then
an integer program decides (:mod:`formal_llm.automata.lookahead.exact.integer_program`), where the optional solver is
installed, then the whole budget; when that is spent the answer is "unknown". It is "unknown" for now where the work
that a question may cost is spent first; then the search pauses, and continues from there when it is asked
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar, FlowSymbol
from formal_llm.automata.lookahead.resources import PackedWay
from formal_llm.automata.lookahead.stacks import NOTHING, PendingSymbols, SearchState, StackDemand, Unresolved
from formal_llm.automata.lookahead.verdicts import BUDGET, FILTER, LINEAR, PROGRAM, SEARCH, TIME, WorkBudget
from formal_llm.automata.models.automaton import Stack, State

if TYPE_CHECKING:
    from formal_llm.automata.lookahead.exact.integer_program import IntegerProgram
    from formal_llm.automata.lookahead.exact.linear_program import LinearProgram
    from formal_llm.automata.lookahead.exact.sums import ExactSums

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
        sums: the sums that are bounded from both sides; None where there are none.
    """

    def __init__(self, demands: PendingSymbols, work: WorkBudget) -> None:
        self.demands = demands
        self.counters = demands.counters
        self.multisets = demands.multisets
        self.work = work
        self.sums: ExactSums | None = None
        if demands.counters.pair_bounds():
            from formal_llm.automata.lookahead.exact.sums import ExactSums  # with numpy, which most rules do not need

            self.sums = ExactSums(demands, work)
        self._compiled: dict[int, tuple[_Compiled, ...]] = {}
        #: What looking at a way costs: the longer the numbers, the more.
        self._effort = 0.01 + demands.resources.guard.bit_length() / 800_000
        #: What comparing open lower bounds costs.
        self._due_effort = 0.2 * len(demands.counters.lower)

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
        # It is done with sooner than a state of the search by prices.
        effort = 0.5 + state.pending.bit_count() / 16 + self._due_effort * bool(state.needed)
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


_CACHE = 200_000

#: The states that a search visits before linear programs are asked. Few searches that have not ended by then end soon;
#: the states that take as long as a linear program.
PATIENCE = 10
#: The same before the integer program, where there are no linear programs: few searches that have not ended by then end
#: soon, and the states that take as long as it.
_LONGER = 100
#: The same where sums are bounded from both sides, and lead it to an end.
_PATIENCE = 200
#: The most paused searches.
_MOST_PAUSED = 32
#: The least seconds that are worth an integer program.
_LEAST_EFFORT = 0.01


class _PausedSearch:
    """A paused search: what it has visited, its open states, whether something unknown was left out."""

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
        guide: where lower bounds are open, a search that tries first what pays best, from a state; see
            :meth:`completion_moves`.
        missed: whether an integer program was wanted that is not installed.
    """

    def __init__(
        self, grammar: FlowGrammar, max_states: int, *, solver: bool = False, demands: PendingSymbols | None = None
    ) -> None:
        self.grammar = grammar
        self.counters = grammar.counters
        self.max_states = max_states
        self.solver = solver
        self.demands = demands or PendingSymbols(grammar)
        self.multisets = self.demands.multisets
        self.work, self.missed = WorkBudget(), False
        self.guide: Callable[[SearchState], float] | None = None
        self._version = 0

    def fresh_copy(self) -> CompletionSearch:
        """The same search, with nothing remembered: what it finds depends on what it is asked alone."""
        return CompletionSearch(self.grammar, self.max_states, solver=self.solver, demands=self.demands)

    def remember_decision(self, demand: StackDemand, remaining: int, needed: int, decided: tuple[float, str]) -> None:
        """Remember what :meth:`decide_demand` of a search like this one has found."""
        key = self._key_of_demand(demand, remaining, needed)
        if key is not None:
            self._finished[key] = decided

    @cached_property
    def linear(self) -> LinearProgram:
        """The linear programs."""
        from formal_llm.automata.lookahead.exact.linear_program import LinearProgram

        return LinearProgram(self.demands)

    @cached_property
    def integer_program(self) -> IntegerProgram | None:
        """The integer program; None where it is switched off or not installed."""
        from formal_llm.automata.lookahead.exact.integer_program import IntegerProgram, is_solver_installed

        return IntegerProgram(self.demands) if self.solver and is_solver_installed() else None

    def _forget_old_version(self) -> None:
        """Drop what was concluded from an older version of the grammar."""
        if self._version != self.demands.version:
            self._version = self.demands.version
            self._after = SuccessorStates(self.demands, self.work)
            self._memo: dict[SearchState, float] = {}
            self._how: dict[SearchState, str] = {}
            self._paused: dict[SearchState, _PausedSearch] = {}
            self._tried: dict[tuple[SearchState, str], float] = {}
            self._finished: dict[tuple[int, Unresolved, int, int], tuple[float, str]] = {}

    def completion_moves(self, demand: StackDemand, remaining: int, needed: int) -> float:
        """Moves of *some* completion; infinite when there is none, ``UNKNOWN`` when the budget is spent."""
        return self.decide_demand(demand, remaining, needed)[0]

    def decide_demand(self, demand: StackDemand, remaining: int, needed: int) -> tuple[float, str]:
        """(as :meth:`completion_moves`, what decided it)."""
        key = self._key_of_demand(demand, remaining, needed)
        if key is None:
            return INFINITE, FILTER
        found, how = self.decide_rest(*key)
        return (found if found == UNKNOWN else found + demand.free_steps), how

    def _key_of_demand(
        self, demand: StackDemand, remaining: int, needed: int
    ) -> tuple[int, Unresolved, int, int] | None:
        """What there is to finish; None where that is impossible."""
        if demand.least_steps == INFINITE:
            return None
        if needed and demand.paid:
            needed = self.counters.subtract_paid(needed, demand.paid)
        remaining -= demand.promised
        if remaining & self.counters.guard != self.counters.guard:
            return None
        return demand.pending, demand.unresolved, self.demands.resources.resources_left(remaining), needed

    def finish_moves(self, pending: int, unresolved: Unresolved, left: int, needed: int) -> float:
        """Moves that complete what is pending with the resources ``left``; otherwise as :meth:`completion_moves`."""
        return self.decide_rest(pending, unresolved, left, needed)[0]

    def decide_rest(self, pending: int, unresolved: Unresolved, left: int, needed: int) -> tuple[float, str]:
        """(as :meth:`finish_moves`, what decided it)."""
        if self._version != self.demands.version:
            self._forget_old_version()
        key = (pending, unresolved, left, needed)
        found = self._finished.get(key)
        if found is None:
            if len(self._finished) > _CACHE:
                self._finished.clear()
            found = self._decide_unseen(pending, unresolved, left, needed)
            if found[1] is not TIME:
                self._finished[key] = found
        return found

    def _decide_unseen(self, pending: int, unresolved: Unresolved, left: int, needed: int) -> tuple[float, str]:
        begin = self._after.normalize_state(pending, unresolved, left, needed)
        if begin is None:
            return INFINITE, FILTER
        cost, state = begin
        if not state.pending and state.unresolved is None and not state.needed:
            return cost, FILTER
        found = self._memo.get(state)
        if found is None:
            found = self._solve_state(state)
        if found == UNKNOWN:
            return UNKNOWN, BUDGET if state in self._memo else TIME
        return found + cost, self._how.get(state, SEARCH)

    def _solve_state(self, state: SearchState) -> float:
        """What is known, a little search, linear programs or else more search and prices, the solver, all the search.

        What is certain is noted, also that the budget of states is spent; not what only the end of the work left open.
        """
        self.work.begin_query()
        if self.linear.is_refuted(state):
            return self._record_moves(state, INFINITE, LINEAR)
        moves = self.linear.known_moves(state)
        if moves is not None:
            return self._record_moves(state, moves, SEARCH)
        if self.work.is_over:
            return UNKNOWN
        if self._after.sums and (moves := self._after.sums.decide_state(state)) is not None:
            return self._record_moves(state, moves, SEARCH)
        guided = state.needed and self.guide is not None and state not in self._paused
        found = self._depth_first_search(state, min(_PATIENCE if self._after.sums else PATIENCE, self.max_states))
        if found == UNKNOWN:
            found = self._by_linear_programs(state)
        if found == UNKNOWN and (state.unresolved is not None or not self.linear.is_ready()):
            found = self._depth_first_search(state, min(_LONGER, self.max_states))
        if found == UNKNOWN and self.guide is not None and guided and not self.linear.is_ready():
            found = self.guide(state)
            if found != UNKNOWN:
                self._memo[state] = found
        if found == UNKNOWN:
            found = self._by_solver(state)
        if found == UNKNOWN and not self.work.is_over:
            self._memo.pop(state, None)
            found = self._depth_first_search(state, self.max_states)
        return found

    def _record_moves(self, state: SearchState, moves: float, how: str) -> float:
        self._memo[state] = moves
        if how != SEARCH:
            self._how[state] = how
        return moves

    def _is_worth_trying(self, state: SearchState, how: str, effort: float) -> bool:
        """Whether to try something that was tried before: only with twice the effort."""
        if effort <= 0 or effort < 2 * self._tried.get((state, how), 0.0):
            return False
        if len(self._tried) > _CACHE:
            self._tried.clear()
        self._tried[state, how] = effort
        return True

    def _by_linear_programs(self, state: SearchState) -> float:
        """Linear programs, as far as their effort goes."""
        effort = min(self.linear.most_effort, self.max_states, self.work.left - self.work.floor)
        if not self._is_worth_trying(state, LINEAR, effort):
            return UNKNOWN
        moves, at_once = self.linear.decide_state(state, effort)
        self.work.left -= self.linear.tries
        if moves is None:
            return UNKNOWN
        return self._record_moves(state, moves, LINEAR if at_once and moves == INFINITE else SEARCH)

    def _by_solver(self, state: SearchState) -> float:
        """The integer program, where there is one."""
        effort = min(1.0, self.work.seconds_left)
        self.missed = self.missed or (self.solver and self.integer_program is None)
        if self.integer_program is None or effort < _LEAST_EFFORT or not self._is_worth_trying(state, PROGRAM, effort):
            return UNKNOWN
        moves = self.integer_program.decide_state(state, effort)
        self.work.left -= self.integer_program.tries
        return UNKNOWN if moves is None else self._record_moves(state, moves, PROGRAM)

    def _depth_first_search(self, root: SearchState, max_states: int) -> float:
        memo, work = self._memo, self.work
        if len(memo) > _CACHE:
            memo.clear()
            self._how.clear()
        paused = self._paused.pop(root, None) or _PausedSearch(root, self._after.list_successors(root))
        visited, frames = paused.visited, paused.frames
        while frames and work.left > work.floor:
            for cost, state in frames[-1][2]:
                if not state.pending and state.unresolved is None and not state.needed:
                    return self._record_path(frames, cost)
                known = memo.get(state)
                if known == UNKNOWN:
                    paused.unsure = True
                elif known is not None and known < INFINITE:
                    return self._record_path(frames, cost + known)
                elif known is None and state not in visited:
                    if len(visited) >= max_states:
                        here, arrival, after = frames[-1]
                        frames[-1] = here, arrival, chain(((cost, state),), after)
                        return self._pause_search(root, paused)
                    visited.add(state)
                    frames.append((state, cost, self._after.list_successors(state)))
                    break
            else:
                frames.pop()
        if frames:
            return self._pause_search(root, paused)
        if paused.unsure:
            memo[root] = UNKNOWN
            return UNKNOWN
        memo.update(dict.fromkeys(visited, INFINITE))
        return INFINITE

    def _pause_search(self, root: SearchState, paused: _PausedSearch) -> float:
        """Pause a search, to continue it later; where it has visited all states that it may, it is given up."""
        if len(paused.visited) >= self.max_states:
            self._memo[root] = UNKNOWN
        else:
            if len(self._paused) >= _MOST_PAUSED:
                del self._paused[next(iter(self._paused))]
            self._paused[root] = paused
        return UNKNOWN

    def _record_path(
        self, frames: list[tuple[SearchState, float, Iterator[tuple[float, SearchState]]]], cost: float
    ) -> float:
        for state, arrival, _ in reversed(frames):
            self._memo[state] = cost
            cost += arrival
        return cost
