"""Whether the rules can still be kept, under either guarantee.

*Some*: there is a continuation after which all rules are kept (nonblocking). Nodes are searched, those first that seem
nearest; where only counts and sums differ, a node with less left than one seen before is left out, since it can do
nothing more.

*Whatever*: the agent can go on so that, whatever tools return and users say, there always is a continuation
(controllable and nonblocking). The nodes from which it can are the largest set out of which nothing leads that the
agent does not decide, and in which an end can be reached from everywhere: the supremal controllable sublanguage (Wonham
and Ramadge 1987). Of rules with too many nodes only those near are looked at, once as if the others were all good and
once as if they were all bad; what both agree on is certain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import combinations, count
from typing import Literal, NamedTuple

from formal_llm.agents.guard.component import Component, Node
from formal_llm.agents.guard.machines import State
from formal_llm.agents.guard.plant import Plant, Symbol

Guarantee = Literal["some", "whatever"]
#: How many nodes are searched before pairs of rules are looked at alone.
_FIRST = 300
#: How many answers are kept.
_KEPT = 100_000


class _Edge(NamedTuple):
    symbol: Symbol
    target: Node | None


class Lookout:
    """Looks ahead for rules that look at the same tools.

    Args:
        component: the rules.
        plant: what can happen.
        guarantee: which answer is asked for.
        max_states: how many nodes one question may visit.
    """

    def __init__(self, component: Component, plant: Plant, guarantee: Guarantee, max_states: int) -> None:
        self.component = component
        self.plant = plant
        self.guarantee: Guarantee = guarantee if component.outside else "some"
        self.max_states = max_states
        #: How many nodes were looked at so far, of all questions.
        self.visited = 0
        self._some: dict[Node, bool | None] = {}
        self._whatever: dict[Node, bool | None] = {}
        self._hints: dict[Node, tuple[Symbol, Node]] = {}
        self._pairs: list[Lookout] | None = None
        self._doubtful = any(step.symbol.doubtful for step in component.steps)

    def viable(self, node: Node) -> bool | None:
        """Whether the rules can still be kept from here; None where the bound was hit before that was known."""
        if self.guarantee == "some":
            return self.some(node)
        found = self._whatever.get(node, self)
        if found is self:
            self._trim(self._whatever)
            found = self._controlled(node) if self.some(node) is not False else False
            self._whatever[node] = found
        return found  # type: ignore[return-value]  # what is kept is a verdict

    def some(self, node: Node) -> bool | None:
        """Whether some continuation keeps the rules."""
        if node in self._some:
            return self._some[node]
        if self.component.accepting(node):
            return True
        self._trim(self._some)
        found = self._decide(node)
        self._some[node] = found
        return found

    def _trim(self, kept: dict[Node, bool | None]) -> None:
        if len(kept) > _KEPT:
            kept.clear()
            self._hints.clear()

    def _decide(self, node: Node) -> bool | None:
        first = self._search(node, doubtful=False, most=min(_FIRST, self.max_states))
        if first is None:
            if any(pair.some(pair.part_of(node, self.component)) is False for pair in self._in_pairs()):
                return False
            first = self._search(node, doubtful=False, most=self.max_states)
        if first is not False or not self._doubtful:
            return first
        return False if self._search(node, doubtful=True, most=self.max_states) is False else None

    # -- some ---------------------------------------------------------------------------------------------------

    def _search(self, start: Node, *, doubtful: bool, most: int) -> bool | None:
        """Whether an end can be reached; what leads there is kept as a hint."""
        component = self.component
        left = component.distance(start)
        if left is None:
            return False
        tie = count()
        heap = [(left, next(tie), start)]
        came: dict[Node, tuple[Node, Symbol] | None] = {start: None}
        seen: dict[tuple[object, ...], list[tuple[State, ...]]] = {}
        done = 0
        while heap:
            _, _, node = heappop(heap)
            if component.accepting(node) or (not doubtful and self._some.get(node)):
                if not doubtful:
                    self._remember(node, came)
                return True
            if self._some.get(node) is False or self._dominated(node, seen):
                continue
            done += 1
            self.visited += 1
            if done > most:
                return None
            for step in component.steps:
                if step.symbol.doubtful and not doubtful:
                    continue
                for after in component.after(node, step):
                    if after is None or after in came:
                        continue
                    left = component.distance(after)
                    if left is not None:
                        came[after] = (node, step.symbol)
                        heappush(heap, (left, next(tie), after))
        if not self._doubtful or doubtful:
            self._some.update(dict.fromkeys(came, False))
        return False

    def _dominated(self, node: Node, seen: dict[tuple[object, ...], list[tuple[State, ...]]]) -> bool:
        """Whether a node was seen that differs only in having more left; else it is noted."""
        places = self.component.resources
        if not places:
            return False
        rest = tuple(None if place in places else state for place, state in enumerate(node.plain))
        mine = tuple(node.plain[place] for place in places)
        others = seen.setdefault((rest, node.copies, node.pending), [])
        if any(all(a <= b for a, b in zip(mine, other, strict=True)) for other in others):  # type: ignore[operator]
            return True
        others.append(mine)
        return False

    def _remember(self, node: Node, came: dict[Node, tuple[Node, Symbol] | None]) -> None:
        while (before := came[node]) is not None:
            self._hints[before[0]] = (before[1], node)
            self._some[before[0]] = True
            node = before[0]

    def way(self, node: Node) -> tuple[Symbol, ...] | None:
        """The symbols of a way to an end: a shortest one where few nodes have to be looked at for it."""
        if self.viable(node) is not True:
            return None
        todo: deque[tuple[Node, tuple[Symbol, ...]]] = deque([(node, ())])
        seen = {node}
        while todo and len(seen) < self.max_states // 4:
            now, way = todo.popleft()
            if self.component.accepting(now):
                return way
            for edge in self._edges(now, doubtful=False):
                after = edge.target
                if after is None or after in seen or self.component.distance(after) is None:
                    continue
                if self.guarantee == "whatever" and self._whatever.get(after) is False:
                    continue
                seen.add(after)
                todo.append((after, (*way, edge.symbol)))
        found: list[Symbol] = []
        while not self.component.accepting(node):
            if node not in self._hints:
                return None
            symbol, node = self._hints[node]
            found.append(symbol)
        return tuple(found)

    def _in_pairs(self) -> Sequence[Lookout]:
        """Each two of the rules by themselves: what two cannot keep, all cannot."""
        if self._pairs is None:
            self._pairs = []
            parts = self.component.parts
            if len(parts) > 2:
                for pair in combinations(parts, 2):
                    both = Component({number: parts[number] for number in pair}, self.plant)
                    self._pairs.append(Lookout(both, self.plant, "some", self.max_states))
        return self._pairs

    def part_of(self, node: Node, whole: Component) -> Node:
        """What these rules see of a node of more rules."""
        mine = self.component
        plain = tuple(node.plain[whole.plain.index(number)] for number in mine.plain)
        copies = []
        for keys, group in zip(mine.keys, mine.groups, strict=True):
            at = whole.keys.index(keys)
            places = [whole.groups[at].index(number) for number in group]
            base, live = node.copies[at]
            vectors = [tuple(vector[place] for place in places) for vector, number in live for _ in range(number)]
            copies.append(mine.copies(group, None if base is None else tuple(base[place] for place in places), vectors))
        calls = [(tool, letters) for (tool, letters), number in node.pending for _ in range(number)]
        from_calls: dict[tuple[str, frozenset[str]], int] = {}
        for tool, letters in calls:
            if tool in mine.answering:
                kept = (tool, letters & mine.letters)
                from_calls[kept] = from_calls.get(kept, 0) + 1
        pending = tuple(sorted(from_calls.items(), key=lambda item: (item[0][0], sorted(item[0][1]))))
        return Node(plain, tuple(copies), pending)

    # -- whatever -----------------------------------------------------------------------------------------------

    def _edges(self, node: Node, *, doubtful: bool = True) -> list[_Edge]:
        self.visited += 1
        return [
            _Edge(step.symbol, after)
            for step in self.component.steps
            if doubtful or not step.symbol.doubtful
            for after in self.component.after(node, step)
        ]

    def _controlled(self, start: Node) -> bool | None:
        edges: dict[Node, list[_Edge]] = {}
        todo = deque([start])
        while todo and len(edges) < self.max_states:
            node = todo.popleft()
            if node in edges:
                continue
            found = self._edges(node)
            edges[node] = found
            todo += [edge.target for edge in found if edge.target is not None and edge.target not in edges]
        sure = self._largest(edges, hopeful=False)
        if start in sure:
            self._whatever.update(dict.fromkeys(sure, True))
            return True
        hoped = self._largest(edges, hopeful=True)
        for node in edges:
            if node not in hoped:
                self._whatever[node] = False
        return None if start in hoped else False

    def _largest(self, edges: dict[Node, list[_Edge]], *, hopeful: bool) -> set[Node]:
        """The largest set of nodes that nothing outside leads out of and in which an end is always reached.

        Args:
            edges: where the symbols lead, of the nodes that were looked at.
            hopeful: what is not known is taken for good: other nodes, and what the agent may perhaps do. Else for bad,
                and for what perhaps comes from outside.
        """

        def counts(symbol: Symbol) -> bool:
            return not symbol.doubtful or symbol.controllable is hopeful

        before: dict[Node, list[tuple[Node, bool]]] = {}
        inside = set(edges)
        out: list[Node] = []
        edge_of_known: set[Node] = set()  # nodes from which one that was not looked at can be reached
        for node, found in edges.items():
            for edge in found:
                if not counts(edge.symbol):
                    continue
                target = edge.target
                beyond = target is not None and target not in edges
                good = target is not None and (not beyond or (hopeful and self._some.get(target) is not False))
                if not good and not edge.symbol.controllable:
                    out.append(node)
                elif good and beyond:
                    edge_of_known.add(node)
                elif good:
                    assert target is not None
                    before.setdefault(target, []).append((node, edge.symbol.controllable))
        accepting = {node for node in edges if self.component.accepting(node)} | edge_of_known
        while True:
            while out:
                node = out.pop()
                if node in inside:
                    inside.discard(node)
                    out += [source for source, controlled in before.get(node, ()) if not controlled]
            reached = accepting & inside
            todo = list(reached)
            while todo:
                for source, _ in before.get(todo.pop(), ()):
                    if source in inside and source not in reached:
                        reached.add(source)
                        todo.append(source)
            out = [node for node in inside if node not in reached]
            if not out:
                return inside
