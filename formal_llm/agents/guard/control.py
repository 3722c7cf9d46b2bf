"""The largest set of places out of which nothing leads that the agent does not decide (Ramadge and Wonham 1987)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from formal_llm.agents.guard.component import Component, ComponentNode
from formal_llm.agents.guard.plant import PlantSymbol


class Edge(NamedTuple):
    """A symbol, and where it leads; None where it breaks a rule."""

    symbol: PlantSymbol
    target: ComponentNode | None


def find_controllable_set(
    component: Component,
    edges: dict[ComponentNode, list[Edge]],
    some: Mapping[ComponentNode, bool | None],
    *,
    hopeful: bool,
) -> set[ComponentNode]:
    """The largest set of nodes that nothing outside leads out of and in which an end is always reached.

    Args:
        component: the rules.
        edges: where the symbols lead, of the nodes that were looked at.
        some: what is known of whether some continuation keeps the rules.
        hopeful: what is not known is taken for good: other nodes, and what the agent may perhaps do. Else for bad,
            and for what perhaps comes from outside.
    """

    def is_considered(symbol: PlantSymbol) -> bool:
        return not symbol.doubtful or symbol.is_controllable is hopeful

    before: dict[ComponentNode, list[tuple[ComponentNode, bool]]] = {}
    inside = set(edges)
    out: list[ComponentNode] = []
    edge_of_known: set[ComponentNode] = set()  # nodes from which one that was not looked at can be reached
    for node, found in edges.items():
        for edge in found:
            if not is_considered(edge.symbol):
                continue
            target = edge.target
            beyond = target is not None and target not in edges
            good = target is not None and (not beyond or (hopeful and some.get(target) is not False))
            if not good and not edge.symbol.is_controllable:
                out.append(node)
            elif good and beyond:
                edge_of_known.add(node)
            elif good:
                assert target is not None
                before.setdefault(target, []).append((node, edge.symbol.is_controllable))
    accepting = {node for node in edges if component.is_accepting(node)} | edge_of_known
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
