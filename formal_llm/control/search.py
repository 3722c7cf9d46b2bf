"""The search that decides whether the rules can still be kept, under either guarantee.

*Some*: there is a continuation after which all rules are kept (nonblocking). The search visits the apparently nearest
nodes first; a node that differs from a visited one only in smaller remaining counts and sums is pruned, since it allows
nothing more.

*Whatever*: the agent can act so that, whatever tools return and users write, there always is a continuation
(controllable and nonblocking), see :class:`~formal_llm.control.arena.Arena`. Explored first is what events from outside
lead to, and one way on from there: if the agent can stay within that, nothing else has to be explored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import chain, count
from typing import TYPE_CHECKING

from formal_llm.automata.lookahead.verdicts import Guarantee
from formal_llm.control.arena import Arena, Edge
from formal_llm.control.component import Component, ComponentNode, ComponentStep
from formal_llm.control.machines import State, measure_effort
from formal_llm.control.plant import Plant, PlantSymbol
from formal_llm.control.relaxation import Relaxation

if TYPE_CHECKING:  # rules in words need none of it, and a hook of a guard starts often
    from formal_llm.control.words import WordTable

#: What one query may spend for each node that it may visit, in edges of nodes without copies.
_EFFORT = 4
#: The number of nodes of an arena to explore before it is first decided, and how many more each time.
_FIRST, _GROWTH = 16, 4
#: How many events a choice of the agent that is not on the way counts for in the order of exploration.
_APART = 100
#: The part of what a query may spend that is tried before proofs that nothing leads on.
_PART = 8
#: The maximum number of cached answers.
_KEPT = 100_000


class ViabilitySearch:
    """A search that looks ahead for rules that depend on the same tools.

    Args:
        component: the rules.
        plant: the possible events.
        guarantee: the guarantee to decide.
        max_states: the maximum number of nodes that one query may visit.
    """

    def __init__(self, component: Component, plant: Plant, guarantee: Guarantee, max_states: int) -> None:
        self.component = component
        self.guarantee: Guarantee = guarantee if component.has_events_outside else "some"
        self.max_states = max_states
        self._left = 0
        self._some: dict[ComponentNode, bool | None] = {}
        self._whatever: dict[ComponentNode, bool | None] = {}
        #: The next event on a way to an end, and where it leads.
        self._ahead: dict[ComponentNode, tuple[PlantSymbol, ComponentNode]] = {}
        self._ways: dict[ComponentNode, tuple[PlantSymbol, ...] | None] = {}
        self._closed: dict[tuple[ComponentNode, bool], frozenset[str]] = {}
        self._doubtful = any(step.symbol.doubtful for step in component.steps)
        self._tables = _build_word_tables(component, (False, True) if self._doubtful else (False,))
        #: The tools with calls that change nothing here.
        self._free = frozenset(
            one.tool for one in plant.symbols
            if one.kind == "call" and component.letters.isdisjoint(one.letters) and one.tool not in component.answering
        )  # fmt: skip

    def is_viable(self, node: ComponentNode) -> bool | None:
        """Return whether the rules can still be kept from a node; None if the bound was hit before."""
        found = self.has_continuation(node)
        if self.guarantee == "some" or found is False:
            return found
        if node not in self._whatever:
            self._trim_caches()
            self._whatever[node] = self._can_control(node)
        return self._whatever[node]

    def has_continuation(self, node: ComponentNode) -> bool | None:
        """Return whether some continuation keeps the rules; None if the bound was hit before."""
        self._left = _EFFORT * self.max_states
        return self._find_continuation(node)

    def find_way(self, node: ComponentNode) -> tuple[PlantSymbol, ...] | None:
        """Return the symbols of a way to an end, by viable nodes: a shortest one if few nodes have to be examined."""
        if node not in self._ways:
            self._trim_caches()
            self._ways[node] = self._search_way(node)
        return self._ways[node]

    def find_closed_tools(self, node: ComponentNode, *, unsure: bool = False) -> frozenset[str]:
        """Find the tools of which no call is allowed at a node; with ``unsure`` also if that is not known."""
        closed = self._closed.get((node, unsure))
        if closed is None:
            self._trim_caches()
            open_ = set(self._free)
            tools = set()
            for step in self.component.steps:
                if step.symbol.kind == "call" and step.symbol.tool not in open_:
                    tools.add(step.symbol.tool)
                    nodes = self.component.find_successors(node, step, again=True)
                    verdicts = (self.is_viable(after) for after in nodes if after is not None)
                    if any(verdict or (verdict is None and not unsure) for verdict in verdicts):
                        open_.add(step.symbol.tool)
            closed = self._closed[node, unsure] = frozenset(tools - open_)
        return closed

    def _trim_caches(self) -> None:
        """Forget all answers when there are too many; a way ahead is never kept without what it leads to."""
        caches = (self._some, self._whatever, self._ahead, self._ways, self._closed)
        if sum(len(kept) for kept in caches) > _KEPT:
            for kept in caches:
                kept.clear()

    def _spend(self, node: ComponentNode) -> bool:
        """Spend what the successors of a node cost, in edges of a node without copies; return whether it was left."""
        copies = [vector for _, live in node.copies for vector, _ in live]  # each copy is moved
        self._left -= len(self.component.steps) * (1 + len(copies)) * measure_effort(*node.plain, *chain(*copies))
        return self._left >= 0

    # -- some ---------------------------------------------------------------------------------------------------

    def _find_continuation(self, node: ComponentNode) -> bool | None:
        if node in self._some:
            return self._some[node]
        if self.component.is_accepting(node):
            return True
        self._trim_caches()
        verdict = self._decide_continuation(node)
        if verdict is not None or self._left >= 0:  # otherwise another query may have more left for it
            self._some[node] = verdict
        return verdict

    def _decide_continuation(self, node: ComponentNode) -> bool | None:
        found = [table.can_complete(node.plain) for table in self._tables]
        if found and found[-1] is False:
            return False
        if found and None not in found and not self.component.keys and not self.component.answering:
            if found[0] and self.guarantee == "whatever":
                self._search_continuation(node, doubtful=False)  # for the way ahead
            return found[0] if found[0] is found[-1] else None  # only events that may not exist could lead on
        verdict = self._search_continuation(node, doubtful=False, part=_PART)
        if verdict or (verdict is False and not self._doubtful):
            return verdict
        if not self.component.can_meet_needs(node) or not Relaxation(self.component, node).can_keep(doubtful=True):
            return False
        if not self.component.can_keep_each_copy(node):
            return False
        if verdict is None and (not self._doubtful or Relaxation(self.component, node).can_keep(doubtful=False)):
            verdict = self._search_continuation(node, doubtful=False)
            if verdict is not False or not self._doubtful:
                return verdict
        # Only events that may not exist could lead on.
        return False if self._search_continuation(node, doubtful=True) is False else None

    def _search_continuation(self, start: ComponentNode, *, doubtful: bool, part: int = 1) -> bool | None:
        """Return whether an end can be reached, and remember the way there; None if the bound was hit before.

        Spend at most one ``part`` of what a query may spend.
        """
        component = self.component
        distance = component.estimate_distance(start)
        if distance is None or not component.can_meet_needs(start):
            return False
        kept, tie = self._left - self._left // part, count()
        steps = [step for step in component.steps if doubtful or not step.symbol.doubtful]
        heap = [(distance, next(tie), start)]
        before: dict[ComponentNode, tuple[PlantSymbol, ComponentNode] | None] = {start: None}
        seen: dict[tuple[object, ...], list[tuple[State, ...]]] = {}
        while heap:
            _, _, node = heappop(heap)
            if component.is_accepting(node) or (not doubtful and self._some.get(node)):
                while not doubtful and (last := before[node]) is not None:
                    symbol, source = last
                    self._ahead[source], self._some[source] = (symbol, node), True
                    node = source
                return True
            if self._some.get(node) is False or self._is_dominated(node, seen):
                continue
            if not self._spend(node) or self._left < kept:
                return None
            for step in steps:
                for after in component.find_successors(node, step):
                    if after is None or after in before:
                        continue
                    before[after] = (step.symbol, node)
                    distance = component.estimate_distance(after)
                    if distance is not None and component.can_meet_needs(after):
                        heappush(heap, (distance, next(tie), after))
        if not self._doubtful or doubtful:
            self._some.update(dict.fromkeys(before, False))
        return False

    def _is_dominated(self, node: ComponentNode, seen: dict[tuple[object, ...], list[tuple[State, ...]]]) -> bool:
        """Return whether a visited node differs only in larger remainders; otherwise record the node."""
        places = self.component.resources
        if not places:
            return False
        rest = tuple(None if place in places else state for place, state in enumerate(node.plain))
        amounts = tuple(node.plain[place] for place in places)
        others = seen.setdefault((rest, node.copies, node.pending), [])
        if any(all(a <= b for a, b in zip(amounts, other, strict=True)) for other in others):  # type: ignore[operator]
            return True
        others.append(amounts)
        return False

    # -- ways ---------------------------------------------------------------------------------------------------

    def _search_way(self, start: ComponentNode) -> tuple[PlantSymbol, ...] | None:
        if self.component.is_accepting(start):
            return ()
        if self.is_viable(start) is not True:
            return None
        todo: deque[tuple[ComponentNode, tuple[PlantSymbol, ...]]] = deque([(start, ())])
        seen, left = {start}, self.max_states
        while todo and left > 0:
            node, way = todo.popleft()
            if not self._may_pass(node):
                continue
            if self.component.is_accepting(node):
                return way
            left -= len(self.component.steps)
            for step, after in self._list_successors(node):
                if after is None or after in seen or step.symbol.doubtful:
                    continue
                seen.add(after)
                if self.component.estimate_distance(after) is not None:
                    todo.append((after, (*way, step.symbol)))
        return self._follow_way_ahead(start)

    def _follow_way_ahead(self, node: ComponentNode) -> tuple[PlantSymbol, ...] | None:
        """Return the way that a search has found, if all its nodes are viable."""
        self._left = _EFFORT * self.max_states
        if self._tables and node not in self._ahead:
            self._search_continuation(node, doubtful=False)
        symbols: list[PlantSymbol] = []
        while not self.component.is_accepting(node):
            if node not in self._ahead or not self._may_pass(self._ahead[node][1]):
                return None
            symbol, node = self._ahead[node]
            symbols.append(symbol)
        return tuple(symbols)

    def _may_pass(self, node: ComponentNode) -> bool:
        """Return whether the guarantee allows a way to lead through a node; true as well if that is unknown."""
        return self.guarantee == "some" or self.is_viable(node) is not False

    def _list_successors(self, node: ComponentNode) -> Iterable[tuple[ComponentStep, ComponentNode | None]]:
        return ((step, after) for step in self.component.steps for after in self.component.find_successors(node, step))

    # -- whatever -----------------------------------------------------------------------------------------------

    def _can_control(self, start: ComponentNode) -> bool | None:
        """Return whether the agent can keep the rules whatever happens; None if the bound was hit before."""
        arena = Arena(self._list_edges, self.component.is_accepting, self._get_known)
        tie, heap, examined = count(), [(0, 0, start)], _FIRST
        while heap:
            distance, _, node = heappop(heap)
            if distance < _APART:
                self._find_continuation(node)
            if node in arena.edges or self._get_known(node) is not None:
                continue
            ahead = self._ahead.get(node)
            for edge in arena.explore(node):
                if edge.target is not None:
                    apart = edge.controllable and (ahead is None or edge.target != ahead[1])
                    heappush(heap, (distance + 1 + _APART * apart, next(tie), edge.target))
            if self._left < 0:
                break
            if len(arena.edges) >= examined:
                if (verdict := self._decide(arena, start)) is not None:
                    return verdict
                examined *= _GROWTH
        return self._decide(arena, start)

    def _decide(self, arena: Arena[ComponentNode], start: ComponentNode) -> bool | None:
        verdict, good, bad = arena.decide(start)
        self._whatever.update(dict.fromkeys(good, True))
        self._whatever.update(dict.fromkeys(bad, False))
        return verdict

    def _get_known(self, node: ComponentNode) -> bool | None:
        """Return what is known of a node under the stronger guarantee."""
        return False if self._some.get(node) is False else self._whatever.get(node)

    def _list_edges(self, node: ComponentNode) -> Iterable[Edge[ComponentNode]]:
        self._spend(node)
        return (
            Edge(after, step.symbol.is_controllable, step.symbol.doubtful)
            for step, after in self._list_successors(node)
        )


def _build_word_tables(component: Component, kinds: Iterable[bool]) -> list[WordTable]:
    """Build the tables of the first rule about words that nest, without and with doubtful events."""
    places = [place for place, one in enumerate(component.plain_machines) if getattr(one, "pda", None) is not None]
    if not places:
        return []
    from formal_llm.control.words import WordTable

    return [WordTable(component, places[0], doubtful=kind) for kind in kinds]
