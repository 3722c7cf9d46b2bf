"""The nearest word of a language within limits: the one with the cheapest edits.

Without limits it follows from the cheapest repair (:mod:`formal_llm.automata.languages.repairs`), in polynomial time.
Under limits, an entry of that graph must also record its use of each limit, and the problem is NP-hard (with only
insertions, from the empty word, it asks whether there is a word at all). The cost of the cheapest repair without limits
around an entry never overestimates the cost of a repair within limits there, so the entries are taken in the order of
A* (A* parsing: Klein and Manning 2003), and only those within a bound that rises until a word is found.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from formal_llm.automata.languages.edits import UNIT_WEIGHTS, Edit, EditWeights, find_edits, weigh_edits
from formal_llm.automata.languages.repairs import RepairEdge, RepairGraph
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import Word
from formal_llm.errors import AutomatonError

#: The step sizes of the ascent, as fractions of the most expensive edit.
_STEPS = (0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625)
#: The tolerance for rounding errors.
_SLACK = 1e-6


class DualPrices:
    """The prices of the upper bounds, for the repairs of one word.

    Attributes:
        around: for each entry, the least cost of all around it in a repair, plus uses, minus the bounds' amounts.
    """

    def __init__(self, counters: Counters, word: Word, weights: EditWeights) -> None:
        self._whole = all(isinstance(one, int) for one in (weights.insert, weights.delete, weights.substitute))
        self._dearest = max(weights.insert, weights.delete, weights.substitute)
        #: For each upper bound: (shift, mask, most, weights); and the price of a use of weight 1.
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
        #: The bounds with a positive price (price, shift, mask), rarely many; and the results known so far.
        self._priced: list[tuple[float, int, int]] = []
        self._paid: dict[int, float] = {}
        self.around: list[float] = []

    def improve_prices(self, repairs: RepairGraph) -> float:
        """Improve the prices on the explored part; return a lower bound on the cost of its repairs in the bounds."""
        spans, costs = repairs.spans, repairs.costs
        edges = sorted(repairs.edges, key=lambda edge: (spans[edge.head][1] - spans[edge.head][0], costs[edge.head]))
        best, best_prices = -INFINITE, self._prices
        prices = self._prices
        for step in (*_STEPS, 0.0):
            of_names = self._prices_by_terminal(prices)
            inside, best_edges = _inside_costs(edges, len(spans), of_names)
            value = inside[repairs.goal] - self._price_of_bounds(prices)
            if value > best:
                best, best_prices = value, prices
            if inside[repairs.goal] == INFINITE:
                break
            used = _count_cheapest_reads(repairs.goal, edges, best_edges, of_names)
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
        """Return a lower bound on the cost of a repair with an entry of this use and cost."""
        paid = self._paid.get(used)
        if paid is None:
            paid = self._paid[used] = sum([price * (used >> shift & mask) for price, shift, mask in self._priced])
        return self._round_up(cost + paid + self.around[entry])

    def _round_up(self, cost: float) -> float:
        """Return a bound, rounded up if all edits have integer costs."""
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
    """Return the least cost of each entry, and the edge that achieves it."""
    inside, best_edges = [INFINITE] * count, [-1] * count
    known = {reads: _cheapest_read(reads, prices) for reads in {edge.reads for edge in edges}}
    changed = True
    while changed:  # nearly all is done in the first pass: parts precede their combinations, except for equal spans
        changed = False
        for number, (head, price, reads, left, right) in enumerate(edges):
            cost = price + known[reads]
            if left is not None:
                cost += inside[left]
                if right is not None:
                    cost += inside[right]
            if cost < inside[head]:
                inside[head], best_edges[head] = cost, number
                changed = True
    return inside, best_edges


def _outside_costs(
    goal: int, edges: Sequence[RepairEdge], inside: Sequence[float], prices: dict[str, float]
) -> list[float]:
    """Return the least cost of everything around each entry."""
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
    """Return how often the cheapest repair reads each terminal."""
    counts: dict[str, int] = {}
    todo = [goal]
    for _ in range(len(made)):
        if not todo:
            break
        _, _, reads, left, right = edges[made[todo.pop()]]
        if reads:
            name = min(reads, key=lambda name: (prices.get(name, 0), counts.get(name, 0)))
            counts[name] = counts.get(name, 0) + 1
        todo += [part for part in (left, right) if part is not None]
    return counts


#: The number of other items of its entry with which an item is compared to find one that beats it.
_BESIDE = 50
#: The cost of an item that may never be taken from the queue; if there are many options, most are not.
_PER_OFFER = 0.1


class Nearest(NamedTuple):
    """The nearest word and its distance.

    Attributes:
        word: a word with the least distance; None if there is none, or none was found.
        edits: the edits that turn the given word into it.
        distance: the cost of those edits; infinite if there is no word.
        decided: False if the budget of states ran out before a nearest word was known.
    """

    word: Word | None
    edits: tuple[Edit, ...] = ()
    distance: int | float = INFINITE
    decided: bool = True


def nearest(
    lookahead: Lookahead, word: Sequence[str], weights: EditWeights = UNIT_WEIGHTS, *, max_states: int = 50_000
) -> Nearest:
    """Find the nearest word of the automaton of ``lookahead``, within its limits.

    Args:
        lookahead: the lookahead of a pushdown automaton.
        word: any word.
        weights: the costs of edits.
        max_states: how many entries the search under limits may examine. Without limits there is no bound.

    Raises:
        AutomatonError: the automaton is not a pushdown automaton.
    """
    word = tuple(word)
    if lookahead.pda is None:
        raise AutomatonError("a nearest word is found for grammars and pushdown automata, not for other automata")
    free = RepairGraph(lookahead.pda, word, weights).cheapest_word()
    if free is None or all(bound.holds(free) for bound in lookahead.bounds):
        return _make_nearest(word, free, weights)
    if lookahead.completable().value == "no":
        return Nearest(None)
    counters, repairs = Counters(lookahead.bounds), RepairGraph(lookahead.pda, word, weights, keep=True)
    found, decided = _search_within_limits(
        counters, repairs, word, weights, _make_nearest(word, free, weights).distance, max_states
    )
    return _make_nearest(word, found, weights) if decided else Nearest(None, decided=False)


def _make_nearest(word: Word, found: Word | None, weights: EditWeights) -> Nearest:
    if found is None:
        return Nearest(None)
    edits = find_edits(word, found, weights)
    return Nearest(found, edits, weigh_edits(edits, weights))


class _RepairItem(NamedTuple):
    """An entry, its use of the upper bounds and its share of the lower bounds, packed as in :class:`Counters`."""

    entry: int
    used: int
    paid: int


#: The edge that created an item, what was read, and the items from which it was combined.
_Back = tuple[RepairEdge, str | None, _RepairItem | None, _RepairItem | None]


def _search_within_limits(
    counters: Counters, repairs: RepairGraph, word: Word, weights: EditWeights, free: float, max_states: int
) -> tuple[Word | None, bool]:
    """Return the cheapest repair within limits and whether it is certain, searching in rounds with a rising bound.

    The result is None and True if there is none.
    """
    prices, duals = _LimitPrices(counters, word, weights), DualPrices(counters, word, weights)
    step = max(weights.insert, weights.delete, weights.substitute)
    bound = free
    budget: float = max_states
    while True:
        if not repairs.explore_up_to(bound, max_states):
            return None, False
        least = duals.improve_prices(repairs)
        if least <= bound:
            round_ = _SearchRound(repairs, counters, prices, duals, bound, budget)
            found, budget = round_.find_word(), round_.budget
            if found is not None or budget <= 0:
                return found, found is not None
            least = round_.beyond
        if least == INFINITE and repairs.next_priority == INFINITE:
            return None, True
        # Everything unexplored costs more than the bound; everything explored costs at least ``least``.
        bound = least if bound < least < INFINITE else max(min(least, repairs.next_priority), bound + step)


#: A bound that the word violates.
_Broken = tuple[int, int, int, int, list[int]]


class _SearchRound:
    """One round of the search: the cheapest repair within limits among those that cost at most a bound.

    Attributes:
        beyond: the least cost seen beyond the bound.
        budget: how many more items may be examined.
    """

    def __init__(
        self,
        repairs: RepairGraph,
        counters: Counters,
        prices: _LimitPrices,
        duals: DualPrices,
        bound: float,
        budget: float,
    ) -> None:
        self._repairs = repairs
        self._counters = counters
        self._prices = prices
        self._duals = duals
        self._bound = bound
        self.beyond: float = INFINITE
        self.budget = budget
        self._around = _costs_around_entries(repairs)
        self._width = max(end for _, end in repairs.spans) + 2
        self._by_left: dict[int, list[RepairEdge]] = {}
        self._by_right: dict[int, list[RepairEdge]] = {}
        #: The items with their priorities and a tie-breaker, the most promising first.
        self._queue: list[tuple[float, int, int, _RepairItem, _Back]] = []
        self._tie = 0
        #: The least cost at which each item was offered.
        self._costs: dict[_RepairItem, float] = {}
        #: How each item taken from the queue was created; and these items by their entries.
        self._backs: dict[_RepairItem, _Back] = {}
        self._chart: dict[int, list[_RepairItem]] = {}

    def find_word(self) -> Word | None:
        """Return the word of the cheapest repair; None if there is none within the bound and the budget."""
        self._offer_leaf_items()
        while self._queue:
            *_, item, back = heapq.heappop(self._queue)
            if item in self._backs:
                continue
            self._backs[item] = back
            if item.entry == self._repairs.goal:
                return _word_of_repair(item, self._backs)
            others = self._chart.setdefault(item.entry, [])
            if any(self._is_no_worse(other, item) for other in others[-_BESIDE:]):
                continue
            self.budget -= 1
            if self.budget <= 0:
                return None
            others.append(item)
            self._combine_item(item)
        return None

    def _is_no_worse(self, one: _RepairItem, other: _RepairItem) -> bool:
        """Return whether an item achieves what another one does, at no greater cost and with no greater use."""
        guard = self._counters.guard
        return (
            self._costs[one] <= self._costs[other]
            and ((other.used | guard) - one.used) & guard == guard
            and (one.paid == other.paid or not self._counters.subtract_paid(other.paid, one.paid))
        )

    def _offer_leaf_items(self) -> None:
        """Offer the entries that consist only of what they read; index the other edges by their parts."""
        counters = self._counters
        for edge in self._repairs.edges:
            if edge.left is None:
                for read in edge.reads or (None,):
                    used = counters.need.get(read, 0) if read is not None else 0
                    paid = counters.add_payment(read, 0) if read is not None else 0
                    self._offer_item(_RepairItem(edge.head, used, paid), edge.price, (edge, read, None, None))
                continue
            self._by_left.setdefault(edge.left, []).append(edge)
            if edge.right is not None:
                self._by_right.setdefault(edge.right, []).append(edge)

    def _combine_item(self, item: _RepairItem) -> None:
        """Offer the combinations of an item alone, and with the adjacent items that were taken before."""
        for edge in self._by_left.get(item.entry, ()):
            if edge.right is None:
                cost = self._costs[item] + edge.price
                for read in edge.reads or (None,):
                    used, paid = item.used, item.paid
                    if read is not None:
                        used += self._counters.need.get(read, 0)
                        paid = self._add_payments(paid, self._counters.add_payment(read, 0))
                    self._offer_item(_RepairItem(edge.head, used, paid), cost, (edge, read, item, None))
                continue
            for other in self._chart.get(edge.right, ()):
                self._join_items(edge, item, other)
        for edge in self._by_right.get(item.entry, ()):
            assert edge.left is not None
            for other in self._chart.get(edge.left, ()):
                self._join_items(edge, other, item)

    def _join_items(self, edge: RepairEdge, left: _RepairItem, right: _RepairItem) -> None:
        joined = _RepairItem(edge.head, left.used + right.used, self._add_payments(left.paid, right.paid))
        self._offer_item(joined, self._costs[left] + self._costs[right], (edge, None, left, right))

    def _add_payments(self, one: int, other: int) -> int:
        """Return what two parts pay to the lower bounds together, each bound at most what it requires."""
        if not one or not other:
            return one or other
        needed = self._counters.needed
        return needed - self._counters.subtract_paid(self._counters.subtract_paid(needed, one), other)

    def _offer_item(self, item: _RepairItem, cost: float, back: _Back) -> None:
        """Queue an item unless it breaks a limit, leads nowhere, is known at that cost, or is beyond the bound."""
        self.budget -= _PER_OFFER
        counters = self._counters
        around = self._around[item.entry]
        if around == INFINITE or (counters.remaining - item.used) & counters.guard != counters.guard:
            return
        if self._costs.get(item, INFINITE) <= cost:
            return
        if item.entry == self._repairs.goal and item.paid != counters.needed:
            return
        priority = cost
        if item.entry != self._repairs.goal:
            priority = max(
                cost + max(around, self._price_outside(item)), self._duals.lower_bound(item.entry, item.used, cost)
            )
        if priority > self._bound:
            self.beyond = min(self.beyond, priority)
            return
        self._costs[item] = cost
        # Ties: first items that cover next to nothing, since others wait for them; then those that cover most.
        self._tie += 1
        begin, end = self._repairs.spans[item.entry]
        covers = end - begin if end - begin > 1 else self._width
        heapq.heappush(self._queue, (priority, -covers, self._tie, item, back))

    def _price_outside(self, item: _RepairItem) -> float:
        """Return the cost outside an item that the limits guarantee."""
        if item.entry == self._repairs.goal:
            return 0
        begin, end = self._repairs.spans[item.entry]
        return self._prices.price_outside(max(begin, 0), end, item.used, item.paid)


def _costs_around_entries(repairs: RepairGraph) -> list[float]:
    """Return for each entry the least cost of everything around it in a repair of the word, without limits."""
    parts: dict[int, list[tuple[int, float]]] = {}
    for edge in repairs.edges:
        if edge.left is not None:
            other_cost = 0 if edge.right is None else repairs.costs[edge.right]
            parts.setdefault(edge.head, []).append((edge.left, edge.price + other_cost))
            if edge.right is not None:
                parts[edge.head].append((edge.right, repairs.costs[edge.left]))
    around = [INFINITE] * len(repairs.spans)
    around[repairs.goal] = 0
    queue: list[tuple[float, int]] = [(0, repairs.goal)]
    while queue:
        cost, entry = heapq.heappop(queue)
        if cost > around[entry]:
            continue
        for part, price in parts.get(entry, ()):
            if cost + price < around[part]:
                around[part] = cost + price
                heapq.heappush(queue, (cost + price, part))
    return around


class _LimitPrices:
    """The cost that limits guarantee outside a part of the word: excess symbols are lost, missing symbols gained.

    One edit loses at most one symbol and gains at most one. So the costs of bounds that share no symbol are added up,
    separately for upper and lower bounds.
    """

    def __init__(self, counters: Counters, word: Word, weights: EditWeights) -> None:
        self._weights = weights
        #: For each bound that the word violates: (shift, mask, edge, greatest weight, sums up to each position); those
        #: that share no symbol are grouped.
        self._upper: list[list[_Broken]] = []
        self._lower: list[list[_Broken]] = []
        names: dict[int, set[str]] = {}
        for (shift, mask), bound in zip(counters.fields, counters.bounds, strict=True):
            sums = [0]
            for name in word:
                sums.append(sums[-1] + bound.weights.get(name, 0))
            upper = bound.most is not None
            edge = bound.most if bound.most is not None else bound.least
            if sums[-1] > edge if upper else sums[-1] < edge:
                groups = self._upper if upper else self._lower
                weighed = {name for name, weight in bound.weights.items() if weight}
                group = next((one for one in groups if names[id(one)].isdisjoint(weighed)), None)
                if group is None:
                    group = []
                    groups.append(group)
                group.append((shift, mask, edge, max(bound.weights.values(), default=1), sums))
                names.setdefault(id(group), set()).update(weighed)

    def price_outside(self, begin: int, end: int, used: int, paid: int) -> float:
        """Return a lower bound on the cost of edits outside ``begin`` to ``end``, given the use and share between."""
        total: float = 0
        for group in self._upper:
            excess = 0
            for shift, mask, edge, greatest, sums in group:
                more = sums[-1] - sums[end] + sums[begin] + (used >> shift & mask) - edge
                if more > 0:
                    excess += -(-more // greatest)
            total = max(total, excess * self._weights.lost)
        for group in self._lower:
            lack = 0
            for shift, mask, edge, greatest, sums in group:
                less = edge - (sums[-1] - sums[end] + sums[begin]) - (paid >> shift & mask)
                if less > 0:
                    lack += -(-less // greatest)
            total = max(total, lack * self._weights.gained)
        return total


def _word_of_repair(root: _RepairItem, backs: dict[_RepairItem, _Back]) -> Word:
    """Return the word of a repair."""
    read: list[str] = []
    todo = [root]
    while todo:
        _, name, left, right = backs[todo.pop()]
        if name is not None:
            read.append(name)
        todo += (part for part in (left, right) if part is not None)
    return tuple(reversed(read))  # an edge reads after the items from which it is combined
