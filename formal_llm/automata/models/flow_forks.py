"""Forks of a flowchart: which branches run side by side, and where they meet again.

From a fork all arrows are followed. Its branches meet at the nearest node that every way from each of them comes by
(the immediate postdominator of the fork; Cooper, Harvey and Kennedy 2001, "A simple, fast dominance algorithm").
Where some of the branches meet before that, they are a fork inside of the fork.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from formal_llm.automata.models.flowgraph import FlowGraph, leaving_order
from formal_llm.automata.models.symbols import find_reachable

#: The name of what comes after all ends; no node can have it.
END = "end"


class BranchSplit(NamedTuple):
    """Branches that run side by side.

    Attributes:
        join: the node at which all of them meet, :data:`END` where each runs to an end.
        branches: the nodes that they begin with; several that meet before the others do are a split of their own.
    """

    join: str
    branches: tuple[str | BranchSplit, ...]


def find_splits(graph: FlowGraph) -> Mapping[str, BranchSplit | None]:
    """What each fork means, by its name; None for one whose branches cannot be distinguished.

    From every node of the graph an end must be reached.
    """
    forks = [node.id for node in graph.nodes if graph.kind(node.id) == "fork"]
    if not forks:
        return {}
    after = {name: list(dict.fromkeys(edge.target for edge in edges)) or [END] for name, edges in graph.leaving.items()}
    after[END] = []
    later = _PostdominatorTree(after)
    return {name: _split_branches(after[name], later.meeting_node(after[name]), after, later) for name in forks}


def _split_branches(
    targets: Sequence[str], join: str, after: Mapping[str, Sequence[str]], later: _PostdominatorTree, depth: int = 0
) -> BranchSplit | None:
    """Branches that begin at ``targets`` and meet at ``join``; None where they cannot be distinguished."""
    apart: list[tuple[list[str], dict[str, None]]] = []
    for target in targets:
        region = {} if target == join else find_reachable([target], lambda name: [n for n in after[name] if n != join])
        shared = [one for one in apart if not one[1].keys().isdisjoint(region)]
        apart = [one for one in apart if one not in shared]
        begin = [name for one in shared for name in one[0]]
        apart.append(([*begin, target], {name: None for one in shared for name in one[1]} | region))
    branches: list[str | BranchSplit] = []
    for begin, _ in sorted(apart, key=lambda one: targets.index(one[0][0])):
        if len(begin) == 1:
            branches.append(begin[0])
            continue
        meeting = later.meeting_node(begin)
        inner = None if meeting == join or depth > 50 else _split_branches(begin, meeting, after, later, depth + 1)
        if inner is None:
            return None
        branches.append(inner)
    return BranchSplit(join, tuple(branches))


class _PostdominatorTree:
    """For each node the nearest one that every way from it to the end comes by."""

    def __init__(self, after: Mapping[str, Sequence[str]]) -> None:
        before: dict[str, list[str]] = {name: [] for name in after}
        for name, targets in after.items():
            for target in targets:
                before[target].append(name)
        order = leaving_order([END], before.__getitem__)
        self.number = {name: number for number, name in enumerate(order)}
        self.next = {END: END}
        changed = True
        while changed:
            changed = False
            for name in reversed(order[:-1]):
                nearest = self.meeting_node([target for target in after[name] if target in self.next])
                if self.next.get(name) != nearest:
                    self.next[name] = nearest
                    changed = True

    def meeting_node(self, names: Sequence[str]) -> str:
        """The nearest node that every way from each of these comes by; it may be one of them."""
        found, *others = names
        for other in others:
            while found != other:
                if self.number[found] < self.number[other]:
                    found = self.next[found]
                else:
                    other = self.next[other]
        return found
