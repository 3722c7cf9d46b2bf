"""Prices for limits: what a repair within limits costs at least, by Lagrangian relaxation.

Each upper bound gets a price for what is used of it. With whatever prices, the cheapest repair of all, its uses paid
and the bounds' own amounts paid back, costs no more than the cheapest within the bounds; good prices make the two
nearly the same (Held and Karp 1971; Fisher 1981, "The Lagrangian relaxation method"). They are found by steps uphill:
what is used too much becomes dearer.
"""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.automata.languages.edits import EditWeights
from formal_llm.automata.languages.repairs import RepairEdge, RepairGraph
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.models.automaton import Word

#: The steps uphill, in parts of the dearest edit.
_STEPS = (0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625)
#: What rounding may be wrong by.
_SLACK = 1e-6


class DualPrices:
    """The prices of the upper bounds, for the repairs of one word.

    Attributes:
        around: for each entry the least that all around it costs in a repair, uses paid, the bounds' amounts paid back.
    """

    def __init__(self, counters: Counters, word: Word, weights: EditWeights) -> None:
        self._whole = all(isinstance(one, int) for one in (weights.insert, weights.delete, weights.substitute))
        self._dearest = max(weights.insert, weights.delete, weights.substitute)
        #: For each upper bound: (shift, mask, most, weights); and what a use of weight 1 costs.
        self._bounds = [
            (shift, mask, bound.most, bound.weights)
            for (shift, mask), bound in zip(counters.fields, counters.bounds, strict=True)
            if bound.most is not None and any(bound.weights.values())
        ]
        self._scales = [max(weighed.values()) for *_, weighed in self._bounds]
        self._prices = [
            weights.lost / scale if sum(weighed.get(name, 0) for name in word) > most else 0.0
            for (_, _, most, weighed), scale in zip(self._bounds, self._scales, strict=True)
        ]
        #: The bounds that cost something (price, shift, mask), seldom many of all; and what is known so far.
        self._priced: list[tuple[float, int, int]] = []
        self._paid: dict[int, float] = {}
        self.around: list[float] = []

    def improve_prices(self, repairs: RepairGraph) -> float:
        """Find better prices on what is explored by now; what a repair in it costs at least within the bounds."""
        spans, costs = repairs.spans, repairs.costs
        edges = sorted(repairs.edges, key=lambda edge: (spans[edge.head][1] - spans[edge.head][0], costs[edge.head]))
        best, best_prices = -INFINITE, self._prices
        prices = self._prices
        for step in (*_STEPS, 0.0):
            of_names = self._prices_by_terminal(prices)
            inside, made = _inside_costs(edges, len(spans), of_names)
            value = inside[repairs.goal] - self._price_of_bounds(prices)
            if value > best:
                best, best_prices = value, prices
            if inside[repairs.goal] == INFINITE:
                break
            used = _count_cheapest_reads(repairs.goal, edges, made, of_names)
            over = [
                (sum(weighed.get(name, 0) * often for name, often in used.items()) - most) / scale
                for (_, _, most, weighed), scale in zip(self._bounds, self._scales, strict=True)
            ]
            if all(more == 0 or (more < 0 and not price) for more, price in zip(over, prices, strict=True)):
                break
            prices = [
                max(0.0, price + step * self._dearest * max(-1, min(more, 1)) / scale)
                for price, more, scale in zip(prices, over, self._scales, strict=True)
            ]
        self._prices = best_prices
        self._priced = [(p, shift, mask) for p, (shift, mask, _, _) in zip(best_prices, self._bounds, strict=True) if p]
        self._paid.clear()
        of_names = self._prices_by_terminal(best_prices)
        inside, _ = _inside_costs(edges, len(spans), of_names)
        given = self._price_of_bounds(best_prices)
        self.around = [cost - given for cost in _outside_costs(repairs.goal, edges, inside, of_names)]
        return self._round_up(best)

    def lower_bound(self, entry: int, used: int, cost: float) -> float:
        """What a repair costs at least that has an entry in it which uses this much and costs this much itself."""
        paid = self._paid.get(used)
        if paid is None:
            paid = self._paid[used] = sum([price * (used >> shift & mask) for price, shift, mask in self._priced])
        return self._round_up(cost + paid + self.around[entry])

    def _round_up(self, cost: float) -> float:
        """A bound, rounded up where all edits cost whole numbers."""
        return -((_SLACK - cost) // 1) if self._whole and abs(cost) < INFINITE else cost - _SLACK

    def _price_of_bounds(self, prices: Sequence[float]) -> float:
        return sum(price * most for price, (_, _, most, _) in zip(prices, self._bounds, strict=True) if price)

    def _prices_by_terminal(self, prices: Sequence[float]) -> dict[str, float]:
        found: dict[str, float] = {}
        for price, (*_, weighed) in zip(prices, self._bounds, strict=True):
            if price:
                for name, weight in weighed.items():
                    found[name] = found.get(name, 0) + price * weight
        return found


def _cheapest_read(reads: Sequence[str], prices: dict[str, float]) -> float:
    return min([prices.get(name, 0) for name in reads]) if reads else 0


def _inside_costs(edges: Sequence[RepairEdge], count: int, prices: dict[str, float]) -> tuple[list[float], list[int]]:
    """The least cost of each entry, and the edge that makes it so."""
    inside, made = [INFINITE] * count, [-1] * count
    known = {reads: _cheapest_read(reads, prices) for reads in {edge.reads for edge in edges}}
    changed = True
    while changed:  # nearly all is done the first time: parts come before what is made of them, but for equal spans
        changed = False
        for number, (head, price, reads, left, right) in enumerate(edges):
            cost = price + known[reads]
            if left is not None:
                cost += inside[left]
                if right is not None:
                    cost += inside[right]
            if cost < inside[head]:
                inside[head], made[head] = cost, number
                changed = True
    return inside, made


def _outside_costs(
    goal: int, edges: Sequence[RepairEdge], inside: Sequence[float], prices: dict[str, float]
) -> list[float]:
    """The least cost of all around each entry."""
    around = [INFINITE] * len(inside)
    around[goal] = 0
    known = {reads: _cheapest_read(reads, prices) for reads in {edge.reads for edge in edges}}
    changed = True
    while changed:
        changed = False
        for head, price, reads, left, right in reversed(edges):
            if left is None or around[head] == INFINITE:
                continue
            cost = around[head] + price + known[reads]
            if right is not None:
                if cost + inside[left] < around[right]:
                    around[right], changed = cost + inside[left], True
                cost += inside[right]
            if cost < around[left]:
                around[left], changed = cost, True
    return around


def _count_cheapest_reads(
    goal: int, edges: Sequence[RepairEdge], made: Sequence[int], prices: dict[str, float]
) -> dict[str, int]:
    """How often the cheapest repair reads each terminal."""
    used: dict[str, int] = {}
    todo = [goal]
    for _ in range(len(made)):
        if not todo:
            break
        _, _, reads, left, right = edges[made[todo.pop()]]
        if reads:
            name = min(reads, key=lambda name: (prices.get(name, 0), used.get(name, 0)))
            used[name] = used.get(name, 0) + 1
        todo += [part for part in (left, right) if part is not None]
    return used
