"""Where a flow grammar has infinitely many derivations, and where their number does not depend on limits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import FlowSymbol
from formal_llm.automata.lookahead.ways import Ways
from formal_llm.automata.models.symbols import find_reachable


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
