"""Reachability games on AND-OR graphs: can an end be reached, whatever the world answers?

A node is one of the agent's, who chooses one of its successors, or of the world's, which may choose any of them. The
nodes from which the agent can reach an end are the attractor of the ends: the smallest set with the ends, each node of
the agent's with a successor in it, and each node of the world's with all its successors in it (Zermelo 1913; McNaughton
1993, section 4). So a play that the world can keep going forever is lost.

The graph is not built beforehand: nodes are expanded as they are met, those of the agent's in the order that
``expand`` gives, and verdicts are spread backward as soon as they are certain (Liu and Smolka 1998). What is certain is
remembered. The guard's search (:mod:`formal_llm.control.search`) asks for another set: the largest in which an end stays
reachable, as the world may also stay silent there, and nothing has to end in a bounded time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

#: Whether the rules can be kept for some answers of the world, or whatever it answers.
Guarantee = Literal["some", "whatever"]
N = TypeVar("N", bound=Hashable)
#: The moves to the end of what the world can keep from ending.
LOST = float("inf")


class Position(NamedTuple, Generic[N]):
    """A node of a game.

    Attributes:
        is_world: whether the world chooses.
        successors: what can be chosen; None is a dead end.
        may_end: whether the play may end here. The agent then has an end; at the world's nodes it is one of its choices.
    """

    is_world: bool
    successors: Sequence[N | None]
    may_end: bool = False


class GameSearch(Generic[N]):
    """The search for nodes from which an end can be reached, whatever the world chooses.

    Args:
        expand: returns the position of a node, the agent's most promising successors first.
        max_nodes: the most nodes that one query may expand.
    """

    def __init__(self, expand: Callable[[N], Position[N]], max_nodes: int) -> None:
        self._expand = expand
        self.max_nodes = max_nodes
        #: For each node that is decided, the most moves to an end of one strategy; :data:`LOST` where there is none.
        self._most_moves: dict[N | None, float] = {None: LOST}

    def can_reach_end(self, node: N) -> bool | None:
        """Whether an end can be reached whatever the world chooses; None where the bound was hit before."""
        most = self.most_moves(node)
        return None if most is None else most < LOST

    def most_moves(self, node: N) -> float | None:
        """The most moves to an end that the world can force against one strategy, which need not be the shortest.

        :data:`LOST` where there is no strategy; None where the bound was hit before. From a node of the agent's, some
        successor has fewer; from one of the world's, all have.
        """
        if node not in self._most_moves:
            _Exploration(self._expand, self._most_moves).explore_from(node, self.max_nodes)
        return self._most_moves.get(node)


class _Exploration(Generic[N]):
    """The nodes that one query has expanded, and for each those that wait for its verdict."""

    def __init__(self, expand: Callable[[N], Position[N]], most_moves: dict[N | None, float]) -> None:
        self._expand = expand
        self._most_moves = most_moves
        self._positions: dict[N, Position[N]] = {}
        self._undecided: dict[N, int] = {}  # how many successors of a node are
        self._waiting: dict[N | None, list[N]] = {}

    def explore_from(self, start: N, max_nodes: int) -> None:
        """Decide a node, if that takes no more nodes than this."""
        decided, todo = self._most_moves, [start]
        while todo and start not in decided:
            node = todo.pop()
            waiting = self._waiting.get(node)
            if node in decided or node in self._positions or (waiting and all(one in decided for one in waiting)):
                continue  # who waited for it is decided without it
            if len(self._positions) >= max_nodes:
                return
            position = self._positions[node] = self._expand(node)
            open_ = [one for one in dict.fromkeys(position.successors) if one is not None and one not in decided]
            self._undecided[node] = len(open_)
            for one in open_:
                self._waiting.setdefault(one, []).append(node)
            todo += reversed(open_)
            self._spread_verdict(node)
        if start not in decided:  # all that it could lead to was seen, and what is not won by now goes in circles
            decided.update((node, LOST) for node in self._positions if node not in decided)

    def _spread_verdict(self, node: N) -> None:
        """Decide a node if that is possible, and then those that waited for it."""
        todo = [node]
        while todo:
            node = todo.pop()
            if node in self._most_moves:
                continue
            most = self._decide_node(node)
            if most is not None:
                self._most_moves[node] = most
                for waiting in self._waiting.get(node, ()):
                    self._undecided[waiting] -= 1
                    todo.append(waiting)

    def _decide_node(self, node: N) -> float | None:
        is_world, successors, may_end = self._positions[node]
        if may_end and not (is_world and successors):
            return 0
        after = [self._most_moves[one] for one in successors if one in self._most_moves]
        if is_world:
            if LOST in after or not successors:
                return LOST
            return 1 + max(after) if not self._undecided[node] else None
        least = min(after, default=LOST)
        return 1 + least if least < LOST or not self._undecided[node] else None
