"""The nearest word of a language, within limits: the one that the cheapest edits lead to.

Without limits it is read off the cheapest repair (:mod:`formal_llm.automata.repair`), in polynomial time. Under limits
an entry of that graph also has to say what it uses of each limit, and the problem is NP-hard (with nothing but
insertions from the empty word it asks whether there is a word at all). What the cheapest repair without limits costs
around an entry never overrates what a repair within limits costs there, so the entries are taken in the order of A*
(A* parsing: Klein and Manning 2003), and only those within a bound that rises until a word is found.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from formal_llm.automata.edits import UNIT_WEIGHTS, Edit, EditWeights, Word, edits, weigh
from formal_llm.automata.flow import INFINITE
from formal_llm.automata.limited import Counters, LimitedAutomaton, split
from formal_llm.automata.lookahead import Lookahead
from formal_llm.automata.pda import PDA
from formal_llm.automata.repair import Edge, Repairs
from formal_llm.errors import AutomatonError


class Nearest(NamedTuple):
    """The nearest word.

    Attributes:
        word: a word with the least distance; None where there is none, or none was found.
        edits: what turns the given word into it.
        distance: what those edits cost; infinite where there is no word.
        decided: False where the budget of states ran out before a nearest word was known.
    """

    word: Word | None
    edits: tuple[Edit, ...] = ()
    distance: int | float = INFINITE
    decided: bool = True


def nearest(
    lookahead: Lookahead, word: Sequence[str], weights: EditWeights = UNIT_WEIGHTS, *, max_states: int = 50_000
) -> Nearest:
    """The nearest word of the automaton that ``lookahead`` knows, within its limits.

    Args:
        lookahead: of a pushdown automaton.
        word: any word.
        weights: what edits cost.
        max_states: how many entries the search under limits may look at. Without limits nothing is bounded.

    Raises:
        AutomatonError: the automaton is no pushdown automaton.
    """
    word = tuple(word)
    automaton = lookahead.automaton
    pda, _ = split(automaton)
    if not isinstance(pda, PDA):
        raise AutomatonError("a nearest word is found for grammars and pushdown automata, not for other automata")
    free = Repairs(pda, word, weights).word()
    if free is None or not isinstance(automaton, LimitedAutomaton) or not any(automaton.broken(free)):
        return _nearest(word, free, weights)
    if lookahead.completable().value == "no":
        return Nearest(None)
    found, decided = _Search(automaton, pda, word, weights, max_states).find()
    return _nearest(word, found, weights) if decided else Nearest(None, decided=False)


def _nearest(word: Word, found: Word | None, weights: EditWeights) -> Nearest:
    if found is None:
        return Nearest(None)
    made = edits(word, found, weights)
    return Nearest(found, made, weigh(made, weights))


class _Item(NamedTuple):
    """An entry and what it uses: of the upper bounds, and for the lower bounds, as :class:`Counters` packs it."""

    entry: int
    used: int
    paid: int


class _Search:
    """The search for the cheapest repair within limits."""

    def __init__(
        self, automaton: LimitedAutomaton, pda: PDA, word: Word, weights: EditWeights, max_states: int
    ) -> None:
        self._counters = automaton.counters
        self._repairs = Repairs(pda, word, weights, keep=True)
        self._weights = weights
        self._length = len(word)
        self._budget = max_states
        self._left = max_states
        self._tolls = _Tolls(self._counters, word, weights)

    def find(self) -> tuple[Word | None, bool]:
        """(the word, whether that is certain); None and True where there is none."""
        bound: float = 0
        step = max(self._weights.insert, self._weights.delete, self._weights.substitute)
        while True:
            if not self._repairs.explore(bound, self._budget):
                return None, False
            found, following = self._within(bound)
            if found is not None or self._left <= 0:
                return found, found is not None
            following = min(following, self._repairs.next)
            if following == INFINITE:
                return None, True
            bound = max(following, bound + step)

    def _within(self, bound: float) -> tuple[Word | None, float]:
        """(the word of the cheapest repair that costs at most ``bound``, the least that was seen beyond it)."""
        repairs, counters = self._repairs, self._counters
        around = self._around()
        by_left: dict[int, list[Edge]] = {}
        by_right: dict[int, list[Edge]] = {}
        queue: list[tuple[float, int, float, _Item, Edge, _Item | None, _Item | None]] = []
        chart: dict[int, list[_Item]] = {}
        costs: dict[_Item, float] = {}
        backs: dict[_Item, tuple[Edge, _Item | None, _Item | None]] = {}
        beyond = INFINITE
        tie = 0

        def offer(edge: Edge, used: int, paid: int, cost: float, left: _Item | None, right: _Item | None) -> None:
            nonlocal tie, beyond
            if around[edge.head] == INFINITE or (counters.remaining - used) & counters.guard != counters.guard:
                return
            item = _Item(edge.head, used, paid)
            if costs.get(item, INFINITE) <= cost or (edge.head == repairs.goal and paid != counters.needed):
                return
            priority = cost + max(around[edge.head], self._toll(item))
            if priority > bound:
                beyond = min(beyond, priority)
                return
            costs[item] = cost
            tie -= 1  # among equals the newest first: it is furthest
            heapq.heappush(queue, (priority, tie, cost, item, edge, left, right))

        for edge in repairs.edges:
            if edge.left is None:
                read = edge.read
                used = counters.need.get(read, 0) if read is not None else 0
                paid = counters.earn(read, 0) if read is not None else 0
                offer(edge, used, paid, edge.price, None, None)
            else:
                by_left.setdefault(edge.left, []).append(edge)
                if edge.right is not None:
                    by_right.setdefault(edge.right, []).append(edge)
        while queue:
            _, _, cost, item, edge, left, right = heapq.heappop(queue)
            if item in backs:
                continue
            backs[item] = edge, left, right
            if item.entry == repairs.goal:
                return _read_off(item, backs), beyond
            self._left -= 1
            if self._left <= 0:
                return None, beyond
            chart.setdefault(item.entry, []).append(item)
            for edge in by_left.get(item.entry, ()):
                if edge.right is None:
                    offer(edge, item.used, item.paid, cost + edge.price, item, None)
                    continue
                for other in chart.get(edge.right, ()):
                    paid = self._joined(item.paid, other.paid)
                    offer(edge, item.used + other.used, paid, cost + costs[other], item, other)
            for edge in by_right.get(item.entry, ()):
                assert edge.left is not None
                for other in chart.get(edge.left, ()):
                    paid = self._joined(other.paid, item.paid)
                    offer(edge, item.used + other.used, paid, cost + costs[other], other, item)
        return None, beyond

    def _around(self) -> list[float]:
        """For each entry the least cost of all that is around it in a repair of the word, limits aside."""
        repairs = self._repairs
        parts: dict[int, list[tuple[int, float]]] = {}
        for edge in repairs.edges:
            if edge.left is not None:
                beside = 0 if edge.right is None else repairs.costs[edge.right]
                parts.setdefault(edge.head, []).append((edge.left, edge.price + beside))
                if edge.right is not None:
                    parts[edge.head].append((edge.right, repairs.costs[edge.left]))
        around = [INFINITE] * len(repairs.entries)
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

    def _joined(self, one: int, other: int) -> int:
        """What two parts pay to the lower bounds together: each bound no more than it asks for."""
        if not one or not other:
            return one or other
        needed = self._counters.needed
        return needed - self._counters.less(self._counters.less(needed, one), other)

    def _toll(self, item: _Item) -> float:
        entry = self._repairs.entries[item.entry]
        if item.entry == self._repairs.goal:
            return 0
        return self._tolls.around(max(entry.call[2], 0), entry.position, item.used, item.paid)


class _Tolls:
    """What limits make sure to cost outside a part of the word: symbols too many go, symbols too few come."""

    def __init__(self, counters: Counters, word: Word, weights: EditWeights) -> None:
        self._weights = weights
        #: For each bound that the word breaks: (shift, mask, edge, is upper, greatest weight, sums up to each place).
        self._broken: list[tuple[int, int, int, bool, int, list[int]]] = []
        for (shift, mask), bound in zip(counters.fields, counters.bounds, strict=True):
            sums = [0]
            for name in word:
                sums.append(sums[-1] + bound.weights.get(name, 0))
            upper = bound.most is not None
            edge = bound.most if bound.most is not None else bound.least
            if sums[-1] > edge if upper else sums[-1] < edge:
                self._broken.append((shift, mask, edge, upper, max(bound.weights.values(), default=1), sums))

    def around(self, begin: int, end: int, used: int, paid: int) -> float:
        """The least that edits outside ``begin`` to ``end`` cost when the part between uses and pays this."""
        total: float = 0
        for shift, mask, edge, upper, greatest, sums in self._broken:
            outside = sums[-1] - sums[end] + sums[begin]
            if upper:
                excess = outside + (used >> shift & mask) - edge
                price = self._weights.lost
            else:
                excess = edge - outside - (paid >> shift & mask)
                price = self._weights.gained
            if excess > 0:
                total = max(total, -(-excess // greatest) * price)
        return total


def _read_off(root: _Item, backs: dict[_Item, tuple[Edge, _Item | None, _Item | None]]) -> Word:
    read: list[str] = []
    todo = [root]
    while todo:
        edge, left, right = backs[todo.pop()]
        if edge.read is not None:
            read.append(edge.read)
        todo += (part for part in (right, left) if part is not None)
    return tuple(read)
