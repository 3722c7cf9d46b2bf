"""Can a pushdown automaton under limits still accept, and how soon: the exact search over multisets.

A state of the search is (pending symbols, what is left of the resources, what lower bounds still need). Three facts
keep it small, and with enough budget finite:

- a symbol that can be completed without limited terminals is *free*: it cannot prevent a completion and is left out.
  While lower bounds are open, free symbols that can serve them are kept, but never more copies than units are needed;
- every other symbol takes at least one unit of a resource, so no more can be pending than units are left;
- the order of symbols does not matter, and interchangeable terminals are one resource.

Deciding this is NP-complete in general (already for grammars of the form of OpenAGI's, by a reduction from exact
cover). So there are tiers: a filter, a few states of the search, a program over HiGHS
(:mod:`formal_llm.automata.lookahead.program`), the same by CP-SAT where the extra ``solver`` is installed, then the
search up to its budget of states; when that is spent the answer is "unknown". It is "unknown" for now where the work
that a question may cost is spent first; then the search pauses, and continues from there when it is asked again.

A bound on the moves is one more resource of the same search: ``moves`` of a state is what may still be spent.
:class:`States` says what follows a state, by any measure of what completions cost; the search for the cheapest
(:mod:`formal_llm.automata.lookahead.shortest`) walks through the same states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN
from formal_llm.automata.lookahead.classes import PackedWay
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowSymbol
from formal_llm.automata.lookahead.program import FlowProgram, FlowRows, is_solver_installed
from formal_llm.automata.lookahead.stacks import NOTHING, PendingSymbols, Rest, SearchState, StackDemand, Unresolved
from formal_llm.automata.lookahead.verdicts import BUDGET, FILTER, SEARCH, TIME, WorkBudget
from formal_llm.automata.models.automaton import Stack, State

#: A way of a symbol, the symbols it leaves pending as a multiset, and its cost with that of what is left out.
_Compiled = tuple[PackedWay, int, float]


#: Where a symbol has more ways, they are not counted, and looked at one after the other as they are tried.
_MANY = 64


class States:
    """What follows the states of a search, for the grammar as it is known now.

    Args:
        demands: the demands that the states are made with, and the measure of what completions cost.
        work: what this is charged to.
    """

    def __init__(self, demands: PendingSymbols, work: WorkBudget) -> None:
        self.demands, self.work = demands, work
        self.counters, self.multisets = demands.counters, demands.multisets
        self.classes, self.flow, self.version = demands.classes, demands.flow, demands.version
        self._compiled: dict[int, tuple[_Compiled, ...]] = {}
        #: What looking at a way costs: the longer the numbers, the more.
        self._effort = 0.01 + self.classes.guard.bit_length() / 800_000
        #: What comparing open lower bounds costs.
        self._due_effort = 0.2 * len(demands.counters.lower)

    def normalize(
        self, pending: int, unresolved: Unresolved, left: int, needed: int, moves: float = INFINITE
    ) -> tuple[float, SearchState] | None:
        """(the cost of what is free and left out, the state without it); None where some bound cannot be kept."""
        cost: float = 0
        if not needed:
            free = pending & self.multisets.free
            if free:
                for symbol, count, _ in self.multisets.list_items(free):
                    cost += self.demands.free_cost(symbol) * count
                pending -= free
        least = 0
        useful = False
        units = self.counters.sum_of_needs(needed) if needed else 0
        for symbol, count, unit in self.multisets.list_items(pending):
            if self.demands.can_drop(symbol):
                useful = True
                spare = count - units
                if spare > 0:  # no more copies can help a lower bound than units are needed
                    pending -= spare * unit
                    cost += self.demands.free_cost(symbol) * spare
            else:
                useful = useful or symbol.due
                least += self.flow.least[symbol.index] * count
        if needed and unresolved is None and not (useful and self._can_pay(pending, needed)):
            return None
        if least and not self.classes.covers(left, least):
            return None
        if needed and not self.classes.covers_due(left, needed):
            return None
        state = SearchState(pending, unresolved, left, needed, moves - cost)
        return None if moves < INFINITE and self.least_cost(state) > state.moves else (cost, state)

    def _can_pay(self, pending: int, needed: int) -> bool:
        """Whether what is pending can pay what lower bounds need, upper bounds aside."""
        most = self.flow.most_paid
        items = [(most.get(symbol.index, {}), count) for symbol, count, _ in self.multisets.list_items(pending)]
        return all(
            sum([paid.get(shift, 0) * count for paid, count in items]) >= amount
            for _, shift, amount in self.counters.open_bounds(needed)
        )

    def least_cost(self, state: SearchState) -> float:
        """A lower bound of what it costs to complete a state."""
        demands = self.demands
        least = sum([demands.least_cost(symbol) * n for symbol, n, _ in self.multisets.list_items(state.pending)])
        if state.unresolved is not None:
            least += getattr(demands.for_configuration(*state.unresolved), demands.measure.least)
        if state.needed:
            price = demands.measure.per_terminal or 1
            least = max(least, price * self.counters.least_reads(state.needed))
        return least

    def _compile_ways(self, symbol: FlowSymbol) -> tuple[_Compiled, ...]:
        """The ways of a symbol with their children as a packed multiset, and their costs."""
        compiled = self._compiled.get(symbol.index)
        if compiled is None:
            made: list[_Compiled] = []
            for way in self.flow.ways[symbol.index]:
                pending = 0
                cost: float = way.steps + self.demands.measure.per_terminal * len(way.reads)
                for child in way.children:
                    one = self.demands.grammar.symbols[child]
                    if not one.due and self.demands.can_drop(one):
                        cost += self.demands.free_cost(one)
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
            if best is None or len(ways) < len(best[1]):
                best = (unit, ways)
                if len(ways) <= 1:
                    break
        assert best is not None
        unit, ways = best
        return unit, ways if len(ways) <= _MANY else self._affordable_ways(ways, state.left)

    def _affordable_ways(self, ways: Iterable[_Compiled], left: int) -> Iterator[_Compiled]:
        """The ways that what is left can pay."""
        guard, work, effort = self.classes.guard, self.work, self._effort
        for entry in ways:
            work.left -= effort
            if (left - entry[0].need) & guard == guard:
                yield entry

    def list_successors(self, state: SearchState) -> Iterator[tuple[float, SearchState]]:
        """(cost, the state after it) for one pending symbol that has to be worked off, or the open part."""
        effort = 0.5 + state.pending.bit_count() / 16 + self._due_effort * bool(state.needed)
        for cost, pending, unresolved, left, needed in self._raw_successors(state):
            self.work.left -= effort
            normal = self.normalize(pending, unresolved, left, needed, state.moves - cost)
            if normal is not None:
                yield cost + normal[0], normal[1]

    def _raw_successors(self, state: SearchState) -> Iterator[tuple[float, int, Unresolved, int, int]]:
        """(cost, pending, unresolved, left, needed) of what follows."""
        pending, unresolved, left, needed, _ = state
        if unresolved is not None:
            yield from self._resolve_top(state, *unresolved)
        elif pending:
            unit, ways = self._choose_symbol(state)
            for way, children, cost in ways:
                due = self.counters.pay_all(way.reads, needed)
                yield cost, pending - unit + children, None, left - way.need, due

    def _resolve_top(
        self, state: SearchState, at: State, stack: Stack
    ) -> Iterator[tuple[float, int, Unresolved, int, int]]:
        """The ways to work off the top of the open part: accept before it is popped, or pop it in some state."""
        for symbol, target in self.demands.resolve(at, stack.top, stack.rest):
            whole = self.demands.demand_with_top(
                symbol, NOTHING if target is ACCEPTING else self.demands.for_configuration(target, stack.rest)
            )
            if whole.least_steps == INFINITE:
                continue
            left, needed = state.left, state.needed
            if whole.promised:
                left -= self.classes.pack_need(whole.promised)
                if left & self.classes.guard != self.classes.guard:
                    continue
            if needed and whole.paid:
                needed = self.counters.subtract_paid(needed, whole.paid)
            yield whole.free_cost, state.pending + whole.pending, whole.unresolved, left, needed


_CACHE = 200_000

#: The states that a search visits before the program is asked. Few searches that have not ended by then end soon; a day
#: by the clock needs 25, and the program seconds (``python benchmarks/strain.py --only clock --only tools``).
PATIENCE = 30
#: The tries that writing down the rows of the program takes for each way.
_ROWS_EFFORT = 0.5
#: The most tries that the program may take for one state, where more is allowed: a fifth of a second.
_PROGRAM_EFFORT = 16_000
#: The same for HiGHS where CP-SAT follows and a sum has to be hit exactly: of that HiGHS learns nothing.
_EXACT_EFFORT = 250
#: The most paused searches.
_MOST_PAUSED = 32
#: The least tries that are worth the solver.
_LEAST_EFFORT = 800

#: The open states of a search: (state, the cost of getting there from the one before, what follows it).
_Frames = list[tuple[SearchState, float, Iterator[tuple[float, SearchState]]]]


class _PausedSearch:
    """A paused search: what it has visited, its open states, whether something unknown was left out."""

    __slots__ = ("frames", "unsure", "visited")

    def __init__(self, root: SearchState, after: Iterator[tuple[float, SearchState]]) -> None:
        self.visited = {root}
        self.frames: _Frames = [(root, 0, after)]
        self.unsure = False


class CompletionSearch:
    """The search over one flow grammar.

    Args:
        demands: the demands of the grammar.
        max_states: how many states one query may visit before it gives up.
        solver: whether CP-SAT may decide what the search and the program do not decide soon.
        work: what queries may still cost, where another search has it.

    Attributes:
        work: what queries may still cost.
        missed: whether the solver was wanted and is not installed.
    """

    def __init__(
        self, demands: PendingSymbols, max_states: int, *, solver: bool = False, work: WorkBudget | None = None
    ) -> None:
        self.demands = demands
        self.counters = demands.counters
        self.max_states = max_states
        self.solver = solver
        self.work, self.missed = work or WorkBudget(), False
        self._rows: FlowRows | None = None
        self._forget()

    def fresh_copy(self) -> CompletionSearch:
        """The same search, with nothing remembered: what it finds depends on what it is asked alone."""
        copy = CompletionSearch(self.demands, self.max_states, solver=self.solver)
        copy._rows = self.rows
        return copy

    @property
    def rows(self) -> FlowRows:
        """The rows of the program over the grammar as it is known now."""
        self._refresh()
        if self._rows is None:
            self._rows = FlowRows(self.demands)
            self.work.left -= _ROWS_EFFORT * len(self._rows.ways)
        return self._rows

    def _refresh(self) -> None:
        """Drop what was concluded from an older version of the grammar."""
        if self._states.version != self.demands.version:
            self._forget()

    def _forget(self) -> None:
        self._states = States(self.demands, self.work)
        self._rows = None
        self._program: FlowProgram | None = None
        self._solver_program: FlowProgram | None = None
        #: What is known: (moves of some completion, or infinite, or ``UNKNOWN`` as the budget is spent; what decided).
        self._memo: dict[SearchState, tuple[float, str]] = {}
        self._paused: dict[SearchState, _PausedSearch] = {}
        self._tried: dict[tuple[SearchState, bool], float] = {}
        self._finished: dict[Rest, tuple[float, str]] = {}

    def decide(
        self, demand: StackDemand, remaining: int, needed: int, most_moves: float = INFINITE
    ) -> tuple[float, str]:
        """(moves of *some* completion of a stack, infinite for none, ``UNKNOWN``; what decided it or ended it).

        Args:
            demand: what the stack asks for.
            remaining: what the upper bounds leave, as the counters pack it.
            needed: what the lower bounds need.
            most_moves: the most moves of the completion.
        """
        rest = self.demands.rest_of(demand, remaining, needed, most_moves)
        if rest is None:
            return INFINITE, FILTER
        found, how = self.finish(rest)
        return (found if found == UNKNOWN else found + demand.free_cost), how

    def finish(self, rest: Rest) -> tuple[float, str]:
        """As :meth:`decide`, for what there is to finish."""
        if self._states.version != self.demands.version:
            self._forget()
        found = self._finished.get(rest)
        if found is None:
            found = self._finish_unseen(rest)
            if found[1] is not TIME:
                self.remember(rest, found)
        return found

    def remember(self, rest: Rest, found: tuple[float, str]) -> None:
        """Remember what :meth:`finish` of a search like this one has found."""
        self._refresh()
        if len(self._finished) > _CACHE:
            self._finished.clear()
        self._finished[rest] = found

    def _finish_unseen(self, rest: Rest) -> tuple[float, str]:
        begin = self._states.normalize(*rest)
        if begin is None:
            return INFINITE, FILTER
        cost, state = begin
        if state.is_complete:
            return cost, FILTER
        found, how = self._memo.get(state) or self._solve_state(state)
        return (found, how) if found == UNKNOWN else (found + cost, how)

    def _solve_state(self, state: SearchState) -> tuple[float, str]:
        """What is known, a little search, the program, the solver, then all the search.

        What is certain is noted, also that the budget of states is spent; not what only the end of the work left open.
        """
        self.work.begin_query()
        found: tuple[float, str] | None = None
        if state.unresolved is None and self._program is not None:
            found = self._program.decide_known(state)
        if found is not None:
            self._memo[state] = found
            return found
        if not self.work.is_over:
            found = self._search_depth_first(state, min(PATIENCE, self.max_states))
            if found[0] == UNKNOWN:
                found = self._decide_resolved(state) if state.unresolved is None else self._decide_unresolved(state)
            if found[0] == UNKNOWN and not self.work.is_over:
                self._memo.pop(state, None)
                found = self._search_depth_first(state, self.max_states)
        if found is None or found[0] == UNKNOWN:
            return UNKNOWN, BUDGET if state in self._memo else TIME
        return found

    def _decide_unresolved(self, root: SearchState) -> tuple[float, str]:
        """Decide each state that the open part of a stack may leave behind."""
        found: float = INFINITE
        seen, todo = {root}, [(0.0, root)]
        while todo:
            cost, now = todo.pop()
            if now.unresolved is None:
                rest, _ = (0, FILTER) if now.is_complete else self._memo.get(now, (UNKNOWN, TIME))
                if rest == UNKNOWN:
                    rest, _ = self._decide_resolved(now)
                if rest == UNKNOWN:
                    found = UNKNOWN
                elif rest < INFINITE:
                    found = cost + rest
                    break
                continue
            if self.work.is_over or len(seen) >= self.max_states:
                return UNKNOWN, TIME
            for price, after in self._states.list_successors(now):
                if after not in seen:
                    seen.add(after)
                    todo.append((cost + price, after))
        if found != UNKNOWN:
            self._memo[root] = found, SEARCH
        return found, SEARCH

    def _decide_resolved(self, state: SearchState) -> tuple[float, str]:
        """The program over HiGHS, then over CP-SAT, as far as their effort goes."""
        rows = self.rows
        if not rows.is_small:
            return UNKNOWN, TIME
        self._program = self._program or FlowProgram(rows)
        for solver in (False, True):
            most = _EXACT_EFFORT if not solver and self._has_solver and rows.exact else _PROGRAM_EFFORT
            effort = min(most, self.work.left - self.work.floor)
            program = self._program if not solver else self._get_solver_program()
            if program is None or effort < _LEAST_EFFORT * solver or not self._is_worth_trying(state, solver, effort):
                continue
            decided = program.decide_state(state, effort)
            self.work.left -= program.tries
            if decided is not None:
                self._memo[state] = decided
                return decided
        return UNKNOWN, TIME

    @cached_property
    def _has_solver(self) -> bool:
        """Whether CP-SAT is wanted and installed."""
        return self.solver and is_solver_installed()

    def _get_solver_program(self) -> FlowProgram | None:
        """The program over CP-SAT; None where it is switched off or not installed."""
        if self._has_solver and self._solver_program is None:
            from formal_llm.automata.lookahead.cp_sat import SolverProgram  # half a second to import

            self._solver_program = SolverProgram(self.rows)
        self.missed = self.missed or (self.solver and not self._has_solver)
        return self._solver_program

    def _is_worth_trying(self, state: SearchState, solver: bool, effort: float) -> bool:
        """Whether to try something that was tried before: only with twice the effort."""
        if effort <= 0 or effort < 2 * self._tried.get((state, solver), 0.0):
            return False
        if len(self._tried) > _CACHE:
            self._tried.clear()
        self._tried[state, solver] = effort
        return True

    def _search_depth_first(self, root: SearchState, max_states: int) -> tuple[float, str]:
        memo, work = self._memo, self.work
        if len(memo) > _CACHE:
            memo.clear()
        paused = self._paused.pop(root, None) or _PausedSearch(root, self._states.list_successors(root))
        visited, frames = paused.visited, paused.frames
        while frames and work.left > work.floor:
            for cost, state in frames[-1][2]:
                known, _ = (0, FILTER) if state.is_complete else memo.get(state, (None, TIME))
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
                    frames.append((state, cost, self._states.list_successors(state)))
                    break
            else:
                frames.pop()
        if frames:
            return self._pause_search(root, paused)
        if paused.unsure:
            memo[root] = UNKNOWN, BUDGET
            return UNKNOWN, BUDGET
        memo.update(dict.fromkeys(visited, (INFINITE, SEARCH)))
        return INFINITE, SEARCH

    def _pause_search(self, root: SearchState, paused: _PausedSearch) -> tuple[float, str]:
        """Pause a search, to continue it later; where it has visited all states that it may, it is given up."""
        if len(paused.visited) >= self.max_states:
            self._memo[root] = UNKNOWN, BUDGET
            return UNKNOWN, BUDGET
        if len(self._paused) >= _MOST_PAUSED:
            del self._paused[next(iter(self._paused))]
        self._paused[root] = paused
        return UNKNOWN, TIME

    def _record_path(self, frames: _Frames, cost: float) -> tuple[float, str]:
        for state, arrival, _ in reversed(frames):
            self._memo[state] = cost, SEARCH
            cost += arrival
        return self._memo[frames[0][0]]
