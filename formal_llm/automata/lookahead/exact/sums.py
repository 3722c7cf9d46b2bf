"""Which sums a quantity that is bounded from both sides can still have, as sets of integers."""

from __future__ import annotations

from formal_llm.automata.lookahead.stacks import PendingSymbols
from formal_llm.automata.lookahead.verdicts import WorkBudget

#: The largest bound, the most bits that are handled for one set, and what is kept of all.
_LARGEST, _WORK, _KEPT = 30_000_000, 1_500_000_000, 400_000_000
#: How many handled bits count as one try (:class:`WorkBudget`).
_BITS = 150_000
#: The most symbols: they are gone through by recursion.
_SYMBOLS = 150


class ExactSum:
    """One quantity that is bounded from both sides.

    Args:
        demands: the demands that states are made with.
        weights: what each terminal weighs.
        most: the upper bound.
        work: what it may cost; when that is over, nothing is ruled out.
    """

    def __init__(self, demands: PendingSymbols, weights: dict[str, int], most: int, work: WorkBudget) -> None:
        self._demands = demands
        self._work = work
        self._weights = weights
        self._mask = (1 << most + 1) - 1
        self._size = most + 1
        self._of: dict[int, int | None] = {}
        self._all: dict[int, int | None] = {0: 1}
        self._bytes: dict[int, bytes] = {}
        self._kept = 0

    def is_possible(self, pending: int, least: int, most: int) -> bool:
        """Whether what is pending may come to a total between two bounds (these included)."""
        if least > most:
            return False
        found = self._bytes.get(pending)
        if found is None:
            totals = self._totals_of(pending)
            if totals is None:
                return True
            # The bits between two bounds are cut out of bytes at once; a shift would copy all that lies above.
            found = self._bytes[pending] = totals.to_bytes((totals.bit_length() + 7) // 8, "little")
            self._kept += 8 * len(found)
        part = found[least >> 3 : (most >> 3) + 1]
        self._work.left -= len(part) * 8 / _BITS
        return int.from_bytes(part, "little") >> (least & 7) & (1 << most - least + 1) - 1 != 0

    def _totals_of(self, pending: int) -> int | None:
        """The totals that a multiset can come to; None where that is too much work."""
        if pending in self._all:
            return self._all[pending]
        # From the symbols that lie deepest on a stack to its top: the next questions ask for a part of the same.
        made: int | None = 1
        part = 0
        for symbol, count, unit in self._demands.multisets.list_items(pending):
            for _ in range(count):
                part += unit
                if part in self._all:
                    made = self._all[part]
                elif self._work.is_over:
                    return None
                elif made is not None:
                    made = self._keep_totals(part, self._add_totals(made, self._totals_of_symbol(symbol.index)))
        return self._keep_totals(pending, made)

    def _keep_totals(self, pending: int, totals: int | None) -> int | None:
        if pending not in self._all:
            size = 64 + (totals or 0).bit_length()
            if self._kept + size > _KEPT:
                self._all, self._bytes, self._kept = {0: 1}, {}, 0
            self._all[pending], self._kept = totals, self._kept + size
        return totals

    def _add_totals(self, some: int, others: int | None) -> int | None:
        """The totals of two things together."""
        if others is None:
            return None
        if some.bit_count() < others.bit_count():
            some, others = others, some
        bits = others.bit_count() * some.bit_length()
        if bits > _WORK:
            return None
        self._work.left -= bits / _BITS
        made = 0
        while others:
            place = (others & -others).bit_length() - 1
            made |= some << place
            others &= others - 1
        return made & self._mask

    def _totals_of_symbol(self, index: int) -> int | None:
        """The totals of a symbol; None where its completions have cycles, or it is too much work."""
        if index not in self._of:
            self._of[index] = None  # met again before it is known: a cycle
            self._of[index] = self._totals_of_ways(index)
        return self._of[index]

    def _totals_of_ways(self, index: int) -> int | None:
        symbols = self._demands.grammar.symbols
        made = 1 if symbols[index].is_free else 0  # what is free may be left out
        for way in self._demands.resources.ways[index]:
            weight = sum(self._weights.get(name, 0) for name in way.reads)
            totals: int | None = 1 << weight if weight < self._size else 0
            for child in way.children:
                if totals and not (symbols[child].is_free and not symbols[child].due):
                    totals = self._add_totals(totals, self._totals_of_symbol(child))
            if totals is None:
                return None
            made |= totals
        return made


class ExactSums:
    """All quantities of a grammar that are bounded from both sides, for :class:`Successors`."""

    def __init__(self, demands: PendingSymbols, work: WorkBudget) -> None:
        counters = demands.counters
        lower = {
            tuple(sorted(bound.weights.items())): field
            for field, bound in zip(counters.fields, counters.bounds, strict=True)
            if bound.most is None and bound.terminal is None
        }
        self._sums: list[tuple[ExactSum, int, int, int]] = []
        deep = len(demands.resources.ways) - len(demands.resources.leaves) > _SYMBOLS
        for number, bound in enumerate(() if deep else counters.bounds):
            same = lower.get(tuple(sorted(bound.weights.items())))
            if same is not None and bound.most is not None and bound.terminal is None and bound.most <= _LARGEST:
                resource = demands.resources.resource_of_bound(number)
                self._sums.append((ExactSum(demands, dict(bound.weights), bound.most, work), resource, *same))
        self._amount = demands.resources.unpack_amount

    def __bool__(self) -> bool:
        return bool(self._sums)

    def are_possible(self, pending: int, left: int, needed: int) -> bool:
        """Whether each quantity may come out between what is needed and what is left."""
        return all(
            one.is_possible(pending, needed >> shift & mask, self._amount(left, resource))
            for one, resource, shift, mask in self._sums
        )
