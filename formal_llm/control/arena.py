"""A graph of what can happen, explored as far as there is time, and what that already decides.

Two players move: the agent chooses among the controllable events, and everything else may come at any time. Nodes that
are not explored yet count once as good and once as bad, so what is found holds whatever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from formal_llm.automata.models.symbols import find_reachable

N = TypeVar("N", bound=Hashable)


class Edge(NamedTuple, Generic[N]):
    """An event, and where it leads.

    Attributes:
        target: the node after it; None if it breaks a rule.
        controllable: whether the agent decides if it comes.
        doubtful: whether it is unknown if such events exist.
    """

    target: N | None
    controllable: bool
    doubtful: bool = False


class Arena(Generic[N]):
    """An explored part of a graph.

    Args:
        expand: lists the events that can come at a node.
        is_end: returns whether a run may end at a node.
        get_known: returns whether a node is good or bad, as far as that is known otherwise.
    """

    def __init__(
        self,
        expand: Callable[[N], Iterable[Edge[N]]],
        is_end: Callable[[N], bool],
        get_known: Callable[[N], bool | None] = lambda _: None,
    ) -> None:
        self._expand, self._is_end, self._get_known = expand, is_end, get_known
        self.edges: dict[N, Sequence[Edge[N]]] = {}

    def explore(self, node: N) -> Sequence[Edge[N]]:
        """Return the edges of a node, which is explored from now on."""
        if node not in self.edges:
            self.edges[node] = tuple(self._expand(node))
        return self.edges[node]

    def decide(self, start: N) -> tuple[bool | None, set[N], set[N]]:
        """Decide whether a node is good; return None if that depends on what is not explored.

        Also return the nodes that are certainly good and those that are certainly bad.
        """
        good = self.find_controllable_set(hopeful=False)
        bad = self.edges.keys() - self.find_controllable_set(hopeful=True)
        return True if start in good else False if start in bad else None, good, bad

    def find_controllable_set(self, *, hopeful: bool) -> set[N]:
        """Find the explored nodes from which the agent can always reach an end, whatever comes.

        They are the largest set that no uncontrollable event leaves, and in which an end is reachable from everywhere:
        the supremal controllable and nonblocking sublanguage (Ramadge and Wonham 1987).

        Args:
            hopeful: whether unexplored nodes count as good, and doubtful events of the agent as possible. Otherwise
                they count as bad, and doubtful events from outside as possible.
        """
        before: dict[N, list[tuple[N, bool]]] = {}
        ends, lost = set(filter(self._is_end, self.edges)), list[N]()
        for node, edges in self.edges.items():
            for target, controllable, doubtful in edges:
                if doubtful and controllable is not hopeful:
                    continue
                if target is not None and target in self.edges:
                    before.setdefault(target, []).append((node, controllable))
                    continue
                known = False if target is None else self._get_known(target)
                if known or (known is None and hopeful):
                    ends.add(node)
                elif not controllable:
                    lost.append(node)
        inside = set(self.edges)
        while True:
            _remove_uncontrolled(inside, lost, before)
            reaching = find_reachable(
                ends & inside, lambda node: [source for source, _ in before.get(node, ()) if source in inside]
            )
            lost = [node for node in inside if node not in reaching]
            if not lost:
                return inside


def _remove_uncontrolled(inside: set[N], lost: list[N], before: Mapping[N, Sequence[tuple[N, bool]]]) -> None:
    """Take nodes out of a set, and with them all from which an event from outside leads to them."""
    while lost:
        node = lost.pop()
        if node in inside:
            inside.discard(node)
            lost += [source for source, controllable in before.get(node, ()) if not controllable]
