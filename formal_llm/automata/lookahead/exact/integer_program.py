"""The last resort of the lookahead: an integer program (the optional extra ``solver``, OR-Tools CP-SAT).

What is left to do is a flow: choose how often each way of each pending symbol is taken, so that every symbol is worked
off exactly as often as it turns up (Parikh 1966, On context-free languages; as linear equations over the grammar itself
Verma, Seidl and Schwentick 2005, On the complexity of equational Horn clauses). With a count x(w) for each way w:

- balance: for each symbol X, pending(X) + the sum of x(w) times the occurrences of X among the children of w = the sum
  of x(w) over the ways w of X. A *free* symbol, which can be completed without limited terminals, may also be dropped;
- upper bounds: for each resource, what the ways take in all is at most what is left of it;
- lower bounds: for each, what the ways read adds up to at least what it still needs.

**Connectivity.** A solution may contain cycles that nothing pending leads to. Without open lower bounds they do no
harm: apply ways to what is pending, each at most x(w) times, until nothing is pending. By balance there always is one
left to apply, so this ends in a completion that takes no more than the solution does. An open lower bound such a cycle
could pay by fraud. So there, each symbol on a cycle of the grammar that is worked off must be reached from what is
pending: from a symbol of another strongly connected component, or from one of its own that comes earlier in some order.
Then there is a completion that uses each way exactly x(w) times (Esparza 1997, Petri nets, commutative context-free
grammars, and basic parallel processes, theorem 3.1).

**Bounds of the counts.** Let K be the most ways that can take a resource plus the most that lower bounds can have use
for; no x(w) needs to exceed 4 K. Take a completion with the fewest ways, as trees. Mark for each lower bound no more
reads than it needs, and call the ways that are marked or take a resource *events*: at most K. Keep only the paths from
the roots to events. All that hangs off them takes nothing and is of no use, so the symbol there is free and is dropped
instead. Each path ends in an event, so there are at most K ends and fewer than K forks. Cut at events and forks, and
the rest falls into at most 2 K chains. No chain meets a symbol twice: what lies between could be cut out, with what
hangs off it, and what remains would take no more, pay the marked reads as before, and have fewer ways. So a way occurs
at most 2 K times in chains, once in each, and at most 2 K times as an event or a fork. This is why ε-cycles, unit
cycles and left recursion are harmless: they are what is cut out. The open part of a stack has no cycles; each of its
ways is taken at most once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import ACCEPTING
from formal_llm.automata.lookahead.stacks import NOTHING, PendingSymbols, SearchState
from formal_llm.automata.lookahead.verdicts import TRIES
from formal_llm.automata.models.automaton import Stack, State

#: The solver counts in 64 bits; sums that could come near that are left undecided.
_MOST = 1 << 60
#: The seconds that it takes to look at one way; to write down one variable, with what the solver does before it counts.
_LOOKED, _BUILT = 2.5e-5, 2.5e-4

#: A symbol by its index, or a place in the open part of a stack: a state, and the stack to work off from there.
_Node = int | tuple[State, Stack]


class _ProgramWay(NamedTuple):
    """A way as the program sees it: (resource, amount) taken, (lower bound, amount) paid, symbols left, moves."""

    takes: tuple[tuple[int, int], ...]
    pays: tuple[tuple[int, int], ...]
    children: Mapping[_Node, int]
    moves: float


class _ProgramColumn(NamedTuple):
    """A variable of the program: how often ``node`` is worked off by ``way``, at most ``most`` times."""

    node: _Node
    way: _ProgramWay
    most: int


def is_solver_installed() -> bool:
    """Whether OR-Tools is there (it is not loaded to find out)."""
    return find_spec("ortools") is not None


class IntegerProgram:
    """The integer program over the states of the completion search.

    Args:
        demands: the demands that the states were made with.
        effort: the most deterministic time of CP-SAT for one state (about as many seconds), so that the same question
            gets the same answer on every machine.

    Attributes:
        tries: what the last question cost, in the unit of :class:`Work`.
    """

    def __init__(self, demands: PendingSymbols, *, effort: float = 1.0) -> None:
        self.demands = demands
        self.effort = effort
        self.tries = 0.0
        self._version = -1
        self._ways: dict[tuple[int, bool], tuple[_ProgramWay, ...]] = {}

    @cached_property
    def _solver_library(self) -> ModuleType | None:
        # Loading it takes about half a second, so it waits for the first question that needs it.
        try:
            from ortools.sat.python import cp_model
        except ImportError:
            return None
        return cp_model

    def decide_state(self, state: SearchState, effort: float = INFINITE) -> float | None:
        """Whether a state of the search can be completed.

        Args:
            state: as :class:`CompletionSearch` makes them, its open stack included.
            effort: the most deterministic time, where that is less than the program's own.

        Returns:
            The moves of some completion (not the cheapest one in general), infinite where there is none, and None for
            unknown: the effort was spent, the numbers are too large, or the solver is not installed.
        """
        self.tries = 0.0
        if self._solver_library is None:
            return None
        if self._version != self.demands.version:
            self._version = self.demands.version
            self._ways.clear()
        left = self.demands.resources.unpack_amounts(state.left)
        needed = {shift: amount for _, shift, amount in self.demands.counters.open_bounds(state.needed)}
        pending, moves = self._kept_symbols(state.pending, bool(needed))
        if state.unresolved is not None:
            pending[state.unresolved] = 1
        ways = self._reachable_ways(pending, bool(needed), effort)
        if ways is None:
            return None
        columns = _make_columns(pending, ways, left, needed)
        if columns is None:
            return INFINITE
        building = _BUILT * len(columns)
        if building >= effort:
            return None
        program = _Program(self._solver_library, pending, columns, left, needed)
        found, seconds = program.solve_model(min(effort - building, self.effort))
        self.tries = TRIES * (seconds + building)
        return found if found is None else found + moves

    # -- what there is to choose from ---------------------------------------------------------------------------

    def _kept_symbols(self, multiset: int, needed: bool) -> tuple[Counter[_Node], float]:
        """The symbols of a multiset that matter, and the moves that complete the others."""
        kept: Counter[_Node] = Counter()
        moves: float = 0
        for symbol, count, _ in self.demands.multisets.list_items(multiset):
            if symbol.is_free and not (needed and symbol.due):
                moves += symbol.free_steps * count
            else:
                kept[symbol.index] = count
        return kept, moves

    def _reachable_ways(
        self, pending: Iterable[_Node], needed: bool, effort: float
    ) -> dict[_Node, tuple[_ProgramWay, ...]] | None:
        """The ways of all symbols that what is pending may lead to; None for more than half the effort allows."""
        found: dict[_Node, tuple[_ProgramWay, ...]] = {}
        todo = list(pending)
        while todo:
            if self.tries >= TRIES * effort / 2:
                return None
            node = todo.pop()
            if node not in found:
                found[node] = (
                    self._ways_of_symbol(node, needed) if isinstance(node, int) else self._ways_of_stack(node, needed)
                )
                self.tries += TRIES * _LOOKED * len(found[node])
                todo += (child for way in found[node] for child in way.children)
        return found

    def _ways_of_symbol(self, index: int, needed: bool) -> tuple[_ProgramWay, ...]:
        ways = self._ways.get((index, needed))
        if ways is None:
            symbols, unit = self.demands.grammar.symbols, self.demands.multisets.unit_of
            made = []
            for way in self.demands.resources.ways[index]:
                children, moves = self._kept_symbols(sum(unit(child) for child in way.children), needed)
                paid: Counter[int] = Counter()
                for name in way.reads:
                    for shift, _, weight in self.demands.counters.dues.get(name, ()):
                        paid[shift] += weight
                made.append(
                    _ProgramWay(self._amounts_taken(way.need), tuple(paid.items()), children, way.steps + moves)
                )
            if symbols[index].is_free:
                made.append(_ProgramWay((), (), {}, symbols[index].free_steps))
            ways = self._ways[index, needed] = tuple(made)
        return ways

    def _ways_of_stack(self, node: tuple[State, Stack], needed: bool) -> tuple[_ProgramWay, ...]:
        """The ways to work off the top of an open stack, each with all below it that is sure then."""
        state, stack = node
        made = []
        for symbol, target in self.demands.resolve(state, stack.top, stack.rest):
            below = NOTHING if target is ACCEPTING else self.demands.for_configuration(target, stack.rest)
            whole = self.demands.demand_with_top(symbol, below)
            if whole.least_steps == INFINITE:
                continue
            children, moves = self._kept_symbols(whole.pending, needed)
            if whole.unresolved is not None:
                children[whole.unresolved] = 1
            paid = tuple((shift, amount) for _, shift, amount in self.demands.counters.open_bounds(whole.paid))
            takes = self._amounts_taken(self.demands.resources.pack_need(whole.promised))
            made.append(_ProgramWay(takes, paid, children, whole.free_steps + moves))
        return tuple(made)

    def _amounts_taken(self, need: int) -> tuple[tuple[int, int], ...]:
        return tuple((n, amount) for n, amount in enumerate(self.demands.resources.unpack_amounts(need)) if amount)


def _make_columns(
    pending: Mapping[_Node, int],
    ways: Mapping[_Node, tuple[_ProgramWay, ...]],
    left: tuple[int, ...],
    needed: Mapping[int, int],
) -> list[_ProgramColumn] | None:
    """The variables with their bounds; None where a lower bound is open that nothing can pay."""
    afforded: list[tuple[_Node, _ProgramWay]] = []
    drops: dict[_Node, _ProgramWay] = {}
    least_taken: dict[int, int] = {}
    least_paid: dict[int, int] = {}
    for node, group in ways.items():
        for way in group:
            if any(amount > left[number] for number, amount in way.takes):
                continue
            # More than is needed is worth no more than that; so numbers stay small.
            pays = tuple((shift, min(amount, needed[shift])) for shift, amount in way.pays if shift in needed)
            for number, amount in way.takes:
                least_taken[number] = min(amount, least_taken.get(number, amount))
            for shift, amount in pays:
                least_paid[shift] = min(amount, least_paid.get(shift, amount))
            if way.takes or pays or way.children or not isinstance(node, int):
                afforded.append((node, way._replace(pays=pays)))
            elif node not in drops or way.moves < drops[node].moves:
                drops[node] = way._replace(pays=())
    if not needed.keys() <= least_paid.keys():
        return None
    events = sum(left[number] // amount for number, amount in least_taken.items())
    events += sum(-(-amount // least_paid[shift]) for shift, amount in needed.items())
    columns = []
    turn_up = Counter(pending)
    for node, way in afforded:
        most = 4 * events if isinstance(node, int) else 1
        most = min([most, *(left[number] // amount for number, amount in way.takes)])
        columns.append(_ProgramColumn(node, way, most))
        for child, count in way.children.items():
            turn_up[child] += count * most
    return columns + [_ProgramColumn(node, way, turn_up[node]) for node, way in drops.items()]


@dataclass(frozen=True, slots=True)
class _Program:
    """The model of one question, in the terms of the module's docstring."""

    library: Any
    pending: Mapping[_Node, int]
    columns: list[_ProgramColumn]
    left: tuple[int, ...]
    needed: Mapping[int, int]

    def solve_model(self, effort: float) -> tuple[float | None, float]:
        """The moves of a completion, infinite for none, None for unknown; the deterministic time that took."""
        rows = self._make_rows()
        if any(not row and least > 0 for row, least, _ in rows):
            return INFINITE, 0.0  # something is pending, or due, that no way is left for
        if any(sum(abs(f) * self.columns[c].most for c, f in row.items()) > _MOST for row, _, _ in rows):
            return None, 0.0
        model = self.library.CpModel()
        counts = [model.new_int_var(0, column.most, "") for column in self.columns]
        weighted = self.library.LinearExpr.weighted_sum
        for row, least, most in rows:
            if row:
                model.add_linear_constraint(weighted([counts[c] for c in row], list(row.values())), least, most)
        if self.needed:
            self._require_connectivity(model, counts)
        solver = self.library.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        # The linear relaxation decides most of these programs; what these two look for takes longer than it saves.
        solver.parameters.symmetry_level = 0
        solver.parameters.cp_model_probing_level = 0
        solver.parameters.max_deterministic_time = effort
        status = solver.solve(model)
        taken = float(solver.response_proto.deterministic_time)
        if status == self.library.INFEASIBLE:
            return INFINITE, taken
        if status not in (self.library.OPTIMAL, self.library.FEASIBLE):
            return None, taken
        return self._count_moves([solver.value(count) for count in counts]), taken

    def _make_rows(self) -> list[tuple[dict[int, int], int, int]]:
        """The linear constraints: a factor for each column that is in them, and the least and most of the sum."""
        balance: dict[_Node, dict[int, int]] = {node: {} for node in self.pending}
        taken: dict[int, dict[int, int]] = {}
        paid: dict[int, dict[int, int]] = {shift: {} for shift in self.needed}
        for number, (node, way, _) in enumerate(self.columns):
            for child, count in ((node, 1), *((child, -count) for child, count in way.children.items())):
                row = balance.setdefault(child, {})
                row[number] = row.get(number, 0) + count
            for resource, amount in way.takes:
                taken.setdefault(resource, {})[number] = amount
            for shift, amount in way.pays:
                paid[shift][number] = amount
        rows = [(row, self.pending.get(node, 0), self.pending.get(node, 0)) for node, row in balance.items()]
        rows += [(row, 0, self.left[resource]) for resource, row in taken.items()]
        return rows + [(row, self.needed[shift], _MOST) for shift, row in paid.items()]

    def _require_connectivity(self, model: Any, counts: list[Any]) -> None:
        """Require that symbols on cycles are reached from what is pending."""
        import networkx

        graph = networkx.DiGraph((node, child) for node, way, _ in self.columns for child in way.children)
        component: dict[_Node, int] = {}
        sizes: list[int] = []
        for number, members in enumerate(networkx.strongly_connected_components(graph)):
            component.update(dict.fromkeys(members, number))
            sizes.append(len(members))
        cyclic = {
            node
            for node, number in component.items()
            if not self.pending.get(node) and (sizes[number] > 1 or graph.has_edge(node, node))
        }
        place = {node: model.new_int_var(0, sizes[number] - 1, "") for node, number in component.items()}
        arcs: dict[_Node, list[Any]] = {node: [] for node in cyclic}
        for (node, way, _), count in zip(self.columns, counts, strict=True):
            for child in way.children:
                if child in cyclic and child != node:
                    arc = model.new_bool_var("")
                    model.add(count >= 1).only_enforce_if(arc)
                    if component[node] == component[child]:
                        model.add(place[child] >= place[node] + 1).only_enforce_if(arc)
                    arcs[child].append(arc)
        for (node, _, _), count in zip(self.columns, counts, strict=True):
            if node in cyclic:
                used = model.new_bool_var("")
                model.add(count == 0).only_enforce_if(~used)
                model.add_bool_or([*arcs[node], ~used])

    def _count_moves(self, counts: list[int]) -> float:
        """The moves of a completion that takes each way at most so often (just so often with open lower bounds)."""
        if self.needed:
            return sum(count * column.way.moves for count, column in zip(counts, self.columns, strict=True))
        choices: dict[_Node, list[int]] = {}
        for number, column in enumerate(self.columns):
            choices.setdefault(column.node, []).append(number)
        moves: float = 0
        pending = Counter(self.pending)
        while pending:
            node, due = pending.popitem()
            for number in choices[node]:
                times = min(due, counts[number])
                counts[number] -= times
                due -= times
                moves += times * self.columns[number].way.moves
                for child, count in self.columns[number].way.children.items():
                    if times:
                        pending[child] += count * times
            assert not due, "the flow is balanced"
        return moves
