"""How many completions a configuration has: exact counting, and uniform sampling, over multisets and class vectors.

Counting follows the same view as the search for a completion (:mod:`formal_llm.automata.lookahead.search`): how many
runs complete a stack under limits depends only on which symbols are pending and on what is left of the limits, since
the number of ways to share a budget among symbols does not depend on their order. Terminals that may be used once and
can replace each other form a *class*; of a class only the number of unused members matters, and reading one of them
counts that many times. So the states are multisets and short vectors, and plans by the million are counted in
milliseconds.

What is counted are runs, that is derivations. They are the words where the automaton is unambiguous, which is proved
by a look at one terminal ahead (:mod:`formal_llm.automata.lookahead.ll1`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar, FlowSymbol
from formal_llm.automata.lookahead.resources import ClassVectors
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.stacks import Multisets, Unresolved
from formal_llm.automata.lookahead.ways import Ways, find_ways, least_taken
from formal_llm.automata.models.automaton import Stack, State
from formal_llm.automata.models.limits import Bound
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import find_reachable
from formal_llm.errors import InfiniteLanguage, Undecided


def fixed_counts(ways: Ways, touching: Collection[str]) -> dict[int, float]:
    """For symbols that no limit touches: how many derivations they have (infinite, if they have a cycle).

    Args:
        ways: the ways of all flow symbols.
        touching: the terminals in limits, upper and lower.
    """
    users: dict[int, list[int]] = {}
    for index, group in ways.items():
        for _, children, _ in group:
            for child in children:
                users.setdefault(child, []).append(index)
    first = (index for index, group in ways.items() if any(name in touching for reads, *_ in group for name in reads))
    touched = find_reachable(first, lambda index: users.get(index, ()))
    found: dict[int, float] = {}
    rest = [index for index in ways if index not in touched]
    waiting = {index: {c for _, children, _ in ways[index] for c in children} for index in rest}
    ready = [index for index in rest if not waiting[index]]
    while ready:
        index = ready.pop()
        found[index] = sum(prod(int(found[child]) for child in children) for _, children, _ in ways[index])
        for user in set(users.get(index, ())):
            if user in waiting:
                waiting[user].discard(index)
                if not waiting[user]:
                    ready.append(user)
    for index in rest:
        found.setdefault(index, INFINITE)
    return found


def find_cycles(symbols: Sequence[FlowSymbol], ways: Ways, limited: Collection[str]) -> tuple[set[int], set[int]]:
    """Symbols from which a cycle leads back to themselves that takes nothing from any limit; those that grow words.

    With one of the first in a state that can be completed there are infinitely many derivations, with one of the
    second infinitely many words.

    Args:
        symbols: the symbols of a flow grammar.
        ways: their ways.
        limited: the terminals in upper limits.
    """
    growing = _find_growing(symbols, ways, limited)
    edges: dict[int, dict[int, bool]] = {}
    for index, group in ways.items():
        for reads, children, _ in group:
            if any(name in limited for name in reads):
                continue
            for place, child in enumerate(children):
                others = [*children[:place], *children[place + 1 :]]
                if all(symbols[other].is_free for other in others):
                    grows = bool(reads) or any(other in growing for other in others)
                    targets = edges.setdefault(index, {})
                    targets[child] = grows or targets.get(child, False)
    _drop_ends(edges)
    if not edges:
        return set(), set()
    import networkx  # only here: most finite languages have no cycle, and importing takes a while

    graph = networkx.DiGraph()
    graph.add_edges_from((one, other, {"grows": g}) for one, found in edges.items() for other, g in found.items())
    cyclic: set[int] = set()
    grow: set[int] = set()
    for component in networkx.strongly_connected_components(graph):
        inside = [grows for _, other, grows in graph.out_edges(component, data="grows") if other in component]
        if inside:
            cyclic |= component
            if any(inside):
                grow |= component
    return cyclic, grow


def _find_growing(symbols: Sequence[FlowSymbol], ways: Ways, limited: Collection[str]) -> set[int]:
    """Symbols with a completion of one terminal or more that takes nothing from any limit."""
    found: set[int] = set()
    users: dict[int, list[int]] = {}
    todo: list[int] = []
    for index, group in ways.items():
        for reads, children, _ in group:
            if not any(name in limited for name in reads) and all(symbols[child].is_free for child in children):
                if reads:
                    todo.append(index)
                for child in children:
                    users.setdefault(child, []).append(index)
    while todo:
        index = todo.pop()
        if index not in found:
            found.add(index)
            todo += users.get(index, ())
    return found


def _drop_ends(edges: dict[int, dict[int, bool]]) -> None:
    """Leave only symbols from which the edges lead on for ever."""
    users: dict[int, list[int]] = {}
    for index, targets in edges.items():
        for child in targets:
            users.setdefault(child, []).append(index)
    todo = [child for child in users if child not in edges]
    while todo:
        child = todo.pop()
        for index in users.get(child, ()):
            del edges[index][child]
            if not edges[index]:
                del edges[index]
                todo.append(index)


class WayGroup(NamedTuple):
    """Ways of a symbol that differ only in which terminal of a class, or which unlimited terminal, they read.

    Attributes:
        need: what one of them takes of the class vector.
        field: the field of the class whose unused members are the ways; -1 where their number is fixed.
        reads: the terminals that one of them reads.
        pending: the symbols left, as a multiset.
        factor: derivations of children that no limit touches, times the ways where their number is fixed.
    """

    need: int
    field: int
    reads: tuple[str, ...]
    pending: int
    factor: int


class CountingState(NamedTuple):
    """Pending symbols, the open part of the stack, the class vector, what lower bounds still need."""

    pending: int
    unresolved: Unresolved
    left: int
    needed: int


class DerivationCounter:
    """Counts and samples the completions of configurations of a PDA under bounds.

    Args:
        pda: the automaton.
        bounds: the bounds, in the order of the counters whose packed numbers are given.
        max_states: how many states one query may visit.
    """

    def __init__(self, pda: PDA, bounds: Sequence[Bound], max_states: int) -> None:
        self.pda = pda
        self.counters = Counters(bounds)
        self.grammar = FlowGrammar(pda, self.counters)
        self.completion = CompletionSearch(self.grammar, max_states)
        self.max_states = max_states
        self._version = 0

    # -- what is known of the grammar -----------------------------------------------------------------------------

    def _refresh_grammar(self) -> None:
        """Take in what the flow grammar knows now."""
        self._version = self.completion.demands.version
        symbols = self.grammar.symbols
        leaves = self.completion.demands.resources.leaves
        self._ways = find_ways(self.grammar, leaves)
        self._classes = ClassVectors(self.counters, self._ways, leaves, exchange=not self.grammar.has_open_symbols)
        touching = {*self._classes.takes, *self.counters.dues}
        self._fixed = fixed_counts(self._ways, touching)
        least = least_taken(symbols, self._ways, self._classes.with_total)
        #: For each symbol the least that a completion takes, packed, and the sum of that.
        self._least = {
            index: (self._classes.pack({n: a for n, a in amounts.items() if n != self._classes.total_field}),
                    amounts.get(self._classes.total_field, 0))
            for index, amounts in least.items()
        }  # fmt: skip
        self._cyclic, self._growing = find_cycles(symbols, self._ways, self._classes.takes)
        self._groups: dict[int, tuple[WayGroup, ...]] = {}
        self._memo: dict[CountingState, int] = {}
        self._multisets = Multisets(self.grammar)

    # -- states -------------------------------------------------------------------------------------------------

    def _ways_by_group(self, index: int) -> tuple[WayGroup, ...]:
        """The ways of a symbol, those alike together."""
        groups = self._groups.get(index)
        if groups is None:
            alike: dict[tuple[object, ...], list[tuple[str, ...]]] = {}
            made: dict[tuple[object, ...], tuple[int, int, tuple[int, ...]]] = {}
            for reads, children, _ in self._ways[index]:
                field = self._classes.class_of.get(reads[0], -1) if len(reads) == 1 else -1
                limited = field < 0 and any(name in self._classes.takes for name in reads)
                dues = tuple(self.counters.dues.get(name, ()) for name in reads)
                need = self._classes.pack_reads(reads)
                key = (field, need, dues, children, reads if limited else ())
                alike.setdefault(key, []).append(reads)
                made[key] = (field, need, children)
            found = (self._make_group(*made[key], ways) for key, ways in alike.items())
            groups = self._groups[index] = tuple(group for group in found if group.factor)
        return groups

    def _make_group(self, field: int, need: int, children: tuple[int, ...], ways: list[tuple[str, ...]]) -> WayGroup:
        # Of a class each member has as many ways alike as any other (b T and T b: two); its members count elsewhere.
        factor, pending = len(ways) // (len(set(ways)) if field >= 0 else 1), 0
        for child in children:
            fixed = self._fixed.get(child, INFINITE)
            if fixed == INFINITE:
                pending += self._multisets.unit_of(child)
            else:
                factor *= int(fixed)
        return WayGroup(need, field, ways[0], pending, factor)

    # -- counting -----------------------------------------------------------------------------------------------

    def count_derivations(self, state: State, stack: Stack, remaining: int, needed: int) -> int:
        """The number of accepting runs from (state, stack); raises as :meth:`check_words`."""
        begin = self._initial_state(state, stack, remaining, needed)
        if begin is None:
            return 0
        factor, root = begin
        return factor * self._count_state(root)

    def check_words(self, state: State, stack: Stack, remaining: int, needed: int) -> None:
        """Raise where (state, stack) has infinitely many words.

        Raises:
            InfiniteLanguage: it has.
            Undecided: the budget of states is spent.
        """
        begin = self._initial_state(state, stack, remaining, needed)
        if begin is None or not self._growing:
            return
        todo, seen = [begin[1]], {begin[1]}
        while todo:
            now = todo.pop()
            if not now.pending and now.unresolved is None:
                continue
            for _, following in self._successor_states(now, self._growing):
                after = following._replace(pending=self._without_spare(following.pending, following.left))
                if after not in seen:
                    if len(seen) >= self.max_states:
                        raise Undecided("whether there are finitely many words was not decided; raise max_states")
                    seen.add(after)
                    todo.append(after)

    def _without_spare(self, pending: int, left: int) -> int:
        """Fewer copies of free symbols: no more than one for each unit that is left can take something from a limit."""
        most = 1 + self._classes.total_left(left)
        for symbol, count, unit in self._multisets.list_items(pending):
            if count > most and symbol.is_free:
                pending -= (count - most) * unit
        return pending

    def _initial_state(
        self, state: State, stack: Stack, remaining: int, needed: int
    ) -> tuple[int, CountingState] | None:
        """The state of a configuration, and the derivations of what no limit touches."""
        demands = self.completion.demands
        if demands.for_configuration(state, stack).least_steps == INFINITE:
            return None
        if self._version != demands.version:
            self._refresh_grammar()
        pending, factor, unresolved = 0, 1, (state, stack)
        while True:
            at, node = unresolved
            ways = demands.resolve(at, node.top, node.rest)
            if len(ways) != 1:
                return factor, CountingState(pending, unresolved, self._classes.vector_of(remaining), needed)
            symbol, target = ways[0]
            name = demands.resources.leaves.get(symbol.index)
            if name is not None:
                remaining -= self.counters.need.get(name, 0)
                if remaining & self.counters.guard != self.counters.guard:
                    return None
                needed = self.counters.pay_for(name, needed)
            else:
                unit, times = self._unit_or_factor(symbol)
                pending, factor = pending + unit, factor * times
            if target is ACCEPTING:
                return factor, CountingState(pending, None, self._classes.vector_of(remaining), needed)
            unresolved = (target, node.rest)

    def _unit_or_factor(self, symbol: FlowSymbol) -> tuple[int, int]:
        """(a pending symbol as a unit, 1), or (0, its derivations) where no limit touches it."""
        fixed = self._fixed.get(symbol.index, INFINITE)
        return (self._multisets.unit_of(symbol.index), 1) if fixed == INFINITE else (0, int(fixed))

    def _count_state(self, root: CountingState) -> int:
        """The derivations of a state: depth first over its successors, each state once."""
        memo = self._memo
        if (known := self._known_count(root)) is not None:
            return known
        frames: list[tuple[CountingState, list[tuple[int, CountingState]]]] = []
        on_path: set[CountingState] = set()
        budget = len(memo) + self.max_states

        def enter_state(state: CountingState) -> None:
            if len(memo) + len(frames) > budget:
                raise Undecided("the plans were not counted within the budget of states; raise max_states")
            on_path.add(state)
            frames.append((state, list(self._successor_states(state, self._cyclic))))

        enter_state(root)
        while frames:
            state, following = frames[-1]
            for _, after in following:
                if self._known_count(after) is None:
                    # A state that leads back to itself is on a cycle; such symbols were found when states were entered.
                    if after in on_path:
                        raise Undecided("the derivations form a cycle")
                    enter_state(after)
                    break
            else:
                memo[state] = sum(weight * (self._known_count(after) or 0) for weight, after in following)
                on_path.discard(state)
                frames.pop()
        return memo[root]

    def _known_count(self, state: CountingState) -> int | None:
        if not state.pending and state.unresolved is None:
            return 0 if state.needed else 1
        return self._memo.get(state)

    def _successor_states(self, state: CountingState, cyclic: set[int]) -> Iterable[tuple[int, CountingState]]:
        """(number of ways, state after one of them), for the choices of one pending symbol.

        Raises:
            InfiniteLanguage: the symbol is one of ``cyclic``, and the state can be completed.
        """
        pending, unresolved, left, needed = state
        if unresolved is not None:
            yield from self._resolve_open_stack(state, unresolved)
            return
        if not self._is_affordable(pending, left):
            return
        symbol, _, unit = next(self._multisets.list_items(pending))
        if symbol.index in cyclic:
            if self._is_completable(state):
                if symbol.index in self._growing:
                    raise InfiniteLanguage("there are infinitely many; give a bound on their length (max_length)")
                raise InfiniteLanguage(
                    "there are infinitely many derivations: a cycle adds nothing; count words instead"
                )
            return
        for need, field, reads, children, factor in self._ways_by_group(symbol.index):
            after = left - need
            if after & self._classes.guard != self._classes.guard:
                continue
            due = self.counters.pay_all(reads, needed)
            if field >= 0:
                factor = factor * self._classes.left(left, field)
            yield factor, CountingState(pending - unit + children, None, after, due)

    def _resolve_open_stack(
        self, state: CountingState, unresolved: tuple[State, Stack]
    ) -> Iterable[tuple[int, CountingState]]:
        """The ways to be done with the top of the open part of a stack."""
        at, node = unresolved
        for symbol, target in self.completion.demands.resolve(at, node.top, node.rest):
            rest = None if target is ACCEPTING else (target, node.rest)
            left, needed, pending, factor = state.left, state.needed, state.pending, 1
            name = self.completion.demands.resources.leaves.get(symbol.index)
            if name is not None:
                left -= self._classes.pack_reads((name,))
                if left & self._classes.guard != self._classes.guard:
                    continue
                needed = self.counters.pay_for(name, needed)
            elif symbol.least_steps < INFINITE:
                unit, factor = self._unit_or_factor(symbol)
                pending += unit
            else:
                continue
            yield factor, CountingState(pending, rest, left, needed)

    def _is_affordable(self, pending: int, left: int) -> bool:
        """Whether what all pending symbols take at least is left: keeps states that can only fail from growing."""
        spent, least_sum = self._classes.total_left(left), 0
        for symbol, count, _ in self._multisets.list_items(pending):
            least, total = self._least[symbol.index]
            spent -= total * count
            if spent < 0:
                return False
            least_sum += least * count
        # The total is affordable, so no field of the sum has run over into the next.
        return (left - least_sum) & self._classes.guard == self._classes.guard

    def _is_completable(self, state: CountingState) -> bool:
        """Whether a state can be completed, as decided by the search for a completion."""
        unit = self.completion.multisets.unit_of
        pending = sum(unit(symbol.index) * count for symbol, count, _ in self._multisets.list_items(state.pending))
        remaining = self._classes.some_remaining(state.left)
        found = self.completion.finish_moves(
            pending, None, self.completion.demands.resources.resources_left(remaining), state.needed
        )
        if found < 0:
            raise Undecided("it was not decided within the budget of states whether there are infinitely many plans")
        return found < INFINITE
