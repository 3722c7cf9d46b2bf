"""A chart of derivations in arrays, and its sums in any semiring: counts, logarithms of weights, the best.

A node is the sum over its edges of the product over the children of each: Goodman 1999, Semiring parsing; Huang and
Chiang 2005, Better k-best parsing; Li and Eisner 2009, First- and second-order expectation semirings.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, count, permutations, product
from math import inf, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formal_llm.automata.models.automaton import Word

Floats = NDArray[np.float64]


class Slot(NamedTuple):
    """A place where any unused member of a class is read, the class by its field."""

    field: int


#: A terminal, a slot, or a symbol: that of the flow grammar by its index, or what is left of a stack by -1 and below.
Item = str | Slot | int
#: The symbol for the whole stack at the start.
ROOT = -1


class Step(NamedTuple):
    """A way to rewrite a symbol; ways that differ only in the member of a class are one.

    Attributes:
        symbol: the symbol that is rewritten; None where it is decided which members fill slots.
        items: what takes its place, in order; of a member its terminal, behind the slot that it fills.
        features: the moves that it takes and the terminals that it reads outside of slots, by their numbers.
        times: how many ways are alike.
    """

    symbol: int | None
    items: tuple[Item, ...]
    features: tuple[int, ...]
    times: int = 1


def list_members(path: Sequence[Step]) -> dict[int, list[str]]:
    """The members of classes that a derivation reads, by the fields of the classes."""
    members: dict[int, list[str]] = {}
    for step in reversed(path):  # the last member is decided first
        if step.symbol is None and step.items:
            slot, name = step.items
            members.setdefault(slot.field, []).append(name)  # type: ignore[union-attr, arg-type]
    return members


def build_word(path: Sequence[Step], members: Mapping[int, Sequence[str]]) -> Word:
    """The word of a derivation.

    Each step belongs to some occurrence of its symbol. Which one does not matter as long as those of one symbol are
    used up in their order: by the abelian property of such rewriting every order uses up all of them, so that
    derivations and lists of steps correspond one to one.

    Args:
        path: its steps, in the order in which they were chosen.
        members: for each class the members that fill its slots, from left to right.
    """
    of_symbol: dict[int, list[tuple[Item, ...]]] = {}
    for step in reversed(path):
        if step.symbol is not None:
            of_symbol.setdefault(step.symbol, []).append(step.items)
    fillers = {field: iter(names) for field, names in members.items()}
    word: list[str] = []
    todo: list[Item] = [ROOT]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            word.append(item)
        elif isinstance(item, Slot):
            word.append(next(fillers[item.field]))
        else:
            todo.extend(reversed(of_symbol[item].pop()))
    return tuple(word)


def list_words(path: Sequence[Step]) -> Iterator[Word]:
    """The words of a derivation, the members of classes in any order."""
    members = list_members(path)
    for orders in product(*map(permutations, members.values())):
        yield build_word(path, dict(zip(members, orders, strict=True)))


class Semiring(NamedTuple):
    """What adds up the edges of a node, what joins an edge with its children, and what is worth nothing in a join."""

    plus: np.ufunc
    times: np.ufunc
    one: Any


#: Whole numbers of any size (arrays of objects); logarithms of weights; the greatest sum of scores.
COUNTS = Semiring(np.add, np.multiply, 1)
LOGS = Semiring(np.logaddexp, np.add, 0.0)
BEST = Semiring(np.maximum, np.add, 0.0)


class Chart:
    """Nodes and edges in arrays, those of a level behind all to which they lead.

    Args:
        root: the node of all derivations; None where there are none. Node 0 is the end of every path.
        heights: for each node the level that it is in.
        edges: (node, step, children).

    Attributes:
        root: as given, by its place here.
        steps: for each edge its step.
        parents: for each edge its node.
        children: for each edge its children, filled up with node 0.
        begins: for each node its first edge, and the number of edges.
        levels: the nodes of each level, and their edges.
        log_times: for each edge the logarithm of how many ways are alike.
        features: for each edge its features, filled up with -1.
    """

    def __init__(
        self, root: int | None, heights: Sequence[int], edges: Sequence[tuple[int, Step, tuple[int, ...]]]
    ) -> None:
        order = sorted(range(len(heights)), key=heights.__getitem__)
        place = {node: number for number, node in enumerate(order)}
        edges = sorted(edges, key=lambda edge: place[edge[0]])
        self.root = None if root is None else place[root]
        self.size = len(heights)
        self.steps = [step for _, step, _ in edges]
        self.parents = np.array([place[node] for node, *_ in edges], dtype=np.int64)
        self.children = as_table([[place[child] for child in children] for *_, children in edges], 0)
        self.begins = np.searchsorted(self.parents, np.arange(self.size + 1))
        tops = np.searchsorted([heights[node] for node in order], np.arange(1, heights[order[-1]] + 2))
        self.levels = [
            (slice(low, high), slice(self.begins[low], self.begins[high]))
            for low, high in zip(tops.tolist(), tops.tolist()[1:], strict=False)
        ]

        self.log_times: Floats = np.array([log(step.times) for step in self.steps])
        self.features = as_table([step.features for step in self.steps], -1)

    @cached_property
    def first_edges(self) -> list[int]:
        """``begins`` as a list, which single look-ups are faster in."""
        return self.begins.tolist()  # type: ignore[no-any-return]

    @cached_property
    def child_lists(self) -> list[list[int]]:
        """For each edge its children, without node 0."""
        return [[child for child in row if child] for row in self.children.tolist()]

    def weigh_edges(self, scores: Floats) -> Floats:
        """The sum of the scores of the features of each edge."""
        weights: Floats = np.append(scores, 0.0)[self.features].sum(axis=1)
        return weights

    def count_features(self, taken: Floats, size: int) -> Floats:
        """How often each feature occurs, from how often each edge is taken."""
        counts = np.zeros(size + 1)
        for column in self.features.T:
            np.add.at(counts, column, taken)
        return counts[:-1]

    def evaluate(self, weights: NDArray[Any], ring: Semiring) -> Inside:
        """The sum over all derivations, from the weight of each edge alone."""
        values = np.full(self.size, ring.one, dtype=weights.dtype)
        totals = weights.copy()
        for nodes, edges in self.levels:
            totals[edges] = ring.times(totals[edges], ring.times.reduce(values[self.children[edges]], axis=1))
            values[nodes] = ring.plus.reduceat(totals[edges], self.begins[nodes] - edges.start)
        return Inside(self, values, totals)


class Inside:
    """The values of all nodes and edges of a chart in a semiring."""

    def __init__(self, chart: Chart, values: NDArray[Any], totals: NDArray[Any]) -> None:
        self.chart, self.values, self.totals = chart, values, totals

    @property
    def total(self) -> Any:
        """The sum over all derivations; False where there are none."""
        return self.chart.root is not None and self.values[self.chart.root]

    @cached_property
    def shares(self) -> Floats:
        """For each edge its share of its node, where values are logarithms."""
        with np.errstate(invalid="ignore"):
            shares: Floats = np.exp(self.totals - self.values[self.chart.parents])
        shares[self.totals == -inf] = 0.0
        return shares

    def reach(self, rewards: Floats) -> tuple[Floats, Floats]:
        """For each edge how often it is taken, in the mean, and the derivative of that along a change of weights.

        The derivative of a node's value is the mean of what the derivations below add up to (Li and Eisner 2009).

        Args:
            rewards: for each edge the change of its weight.
        """
        chart, shares = self.chart, self.shares
        means, gains = np.zeros(chart.size), np.zeros(len(chart.steps))
        for nodes, edges in chart.levels:
            gains[edges] = rewards[edges] + means[chart.children[edges]].sum(axis=1)
            means[nodes] = np.add.reduceat(shares[edges] * gains[edges], chart.begins[nodes] - edges.start)
        reached, taken = np.zeros(chart.size), np.zeros(len(chart.steps))
        slopes, changes = np.zeros(chart.size), np.zeros(len(chart.steps))
        reached[chart.root] = 1.0
        for _, edges in reversed(chart.levels):
            parents = chart.parents[edges]
            taken[edges] = reached[parents] * shares[edges]
            changes[edges] = slopes[parents] * shares[edges] + taken[edges] * (gains[edges] - means[parents])
            for column in chart.children[edges].T:
                np.add.at(reached, column, taken[edges])
                np.add.at(slopes, column, changes[edges])
        return taken, changes

    @cached_property
    def _sums(self) -> dict[int, list[Any]]:
        return {}

    def draw(self, rng: random.Random) -> Word:
        """The word of a derivation in proportion to its weight: exactly, where values are whole numbers."""
        whole = self.totals.dtype == object
        begins, children = self.chart.first_edges, self.chart.child_lists
        path: list[Step] = []
        todo = [self.chart.root]
        while todo:
            node = todo.pop()
            assert node is not None
            sums = self._sums.get(node)
            if sums is None:
                edges = slice(begins[node], begins[node + 1])
                sums = self._sums[node] = list(accumulate((self.totals if whole else self.shares)[edges].tolist()))
            drawn = rng.randrange(sums[-1]) if whole else rng.random() * sums[-1]
            edge = begins[node] + min(bisect_right(sums, drawn), len(sums) - 1)
            path.append(self.chart.steps[edge])
            todo += children[edge]
        members = list_members(path)
        for names in members.values():
            rng.shuffle(names)
        return build_word(path, members)

    def iter_best(self) -> Iterator[tuple[float, list[Step]]]:
        """The derivations, those with the highest sums first, where values are the best: A* with the exact rest."""
        chart, begins, children_of = self.chart, self.chart.first_edges, self.chart.child_lists
        values, totals = self.values.tolist(), self.totals.tolist()

        def edges_of(node: int) -> Iterator[tuple[float, Step, list[int]]]:
            for edge in range(begins[node], begins[node + 1]):
                children = children_of[edge]
                yield sum([values[child] for child in children]) - totals[edge], chart.steps[edge], children

        if chart.root is not None:
            for cost, path in list_cheapest(chart.root, lambda node: -values[node], edges_of):
                yield -cost, path


def list_cheapest(
    root: int, least: Callable[[int], float], edges_of: Callable[[int], Iterable[tuple[float, Any, Sequence[int]]]]
) -> Iterator[tuple[float, list[Any]]]:
    """The derivations of a hypergraph, the cheapest first: (cost, edges, from left to right).

    Args:
        root: the node that is derived.
        least: what the cheapest derivation of a node costs.
        edges_of: the edges of a node: (its own cost, the edge, the nodes that it leads to).
    """
    turn = count(0, -1)  # of equal ones the last: straight ahead, and the first edge of a node first
    queue: list[tuple[float, int, float, Any, Any]] = [(0.0, 0, least(root), (root, None), None)]
    while queue:
        _, _, cost, todo, path = heapq.heappop(queue)
        if todo is None:
            edges = []
            while path is not None:
                edge, path = path
                edges.append(edge)
            yield cost, edges[::-1]
            continue
        node, below = todo
        for price, edge, children in reversed([*edges_of(node)]):
            total, rest = cost - least(node) + price, below
            for child in reversed(children):
                total, rest = total + least(child), (child, rest)
            if total < inf:
                # Rounded: what is equal but for rounding is equal.
                heapq.heappush(queue, (round(total, 10), next(turn), total, rest, (edge, path)))


def as_table(rows: Sequence[Sequence[int]], fill: int) -> NDArray[np.int64]:
    """Rows of different lengths as an array, filled up at their ends; at least one column."""
    table = np.full((len(rows), max(map(len, rows), default=1) or 1), fill, dtype=np.int64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table
