"""What limits leave, in the form that the search compares: one packed number, interchangeable terminals together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.lookahead.interchangeable import FieldPacking, assign_fields
from formal_llm.automata.lookahead.ways import Ways, find_leaves, find_ways, least_taken


class PackedWay(NamedTuple):
    """A way with its cost: what it takes from the resources, the terminals it reads, the symbols it leaves."""

    need: int
    reads: tuple[str, ...]
    children: tuple[int, ...]
    steps: int


#: The amounts that are kept in their packed form.
_CACHE = 20_000


class Resources:
    """The resources of a flow grammar as it is known now.

    Args:
        grammar: the commutative grammar.
        exchange: whether interchangeable terminals may share a resource. That is exact only where the terminals that
            wait on a stack can be determined before the search, not where the search itself finds out.

    Attributes:
        guard: the guard bits of a packed amount.
        leaves: the symbols that can only read one terminal, and that terminal.
        ways: for each symbol the ways that some completion takes, symbols that only read a terminal merged into them.
        least: for each symbol the least that any completion takes, packed; least_total the sum of its amounts.
    """

    def __init__(self, grammar: FlowGrammar, exchange: bool) -> None:
        self._counters = grammar.counters
        self._known: dict[int, int] = {}
        self._dues: dict[int, tuple[int, int]] = {}
        self.leaves = find_leaves(grammar)
        ways = find_ways(grammar, self.leaves)
        self._fields = assign_fields(self._counters, ways, self.leaves, exchange=exchange)
        self._count = len(self._fields.parts)
        capacity = sum(bound.most for bound in self._counters.bounds if bound.most is not None)
        # Two more fields. One holds what is left for the ends of derivations: each pending symbol that is not free has
        # an end of its own, and few terminals may be fit for that (tools whose inputs are all given). The last holds
        # the total, so that no sum of least amounts that passes the check of the total can overflow.
        self._ends = self._find_ends(grammar, ways)
        self._packing = FieldPacking(self._count + 2, capacity + 1)
        self._width = self._packing.width
        self._top = (self._count + 1) * self._width
        self._most = self._packing.most
        self._places = {field: number for number, group in enumerate(self._fields.parts) for field in group}
        self._upper = sorted(self._places)
        self._shifts = [shift for shift, _ in self._upper]
        self._full = self._pack_all_limits() | self._packing.guard
        self.guard = self._packing.guard
        self.ways: dict[int, tuple[PackedWay, ...]] = {
            index: tuple(dict.fromkeys(self._pack_way(*parts) for parts in group)) for index, group in ways.items()
        }
        self.least: dict[int, int] = {}
        self.least_total: dict[int, int] = {}
        for index, amounts in least_taken(grammar.symbols, ways, self._amounts_with_totals).items():
            self.least[index] = self._packing.pack_amounts(amounts)
            self.least_total[index] = amounts.get(self._count + 1, 0)

    def _find_ends(self, grammar: FlowGrammar, ways: Ways) -> frozenset[int]:
        """Fields of which every way that leaves only free symbols takes, where it does not belong to a free one.

        A symbol that is not free takes of them at least once, since on some path down its derivation the symbols that
        are not free come to an end.
        """
        ends: set[int] = set()
        for index, group in ways.items():
            if grammar.symbols[index].is_free or index in self.leaves:
                continue
            for reads, children, _ in group:
                if all(grammar.symbols[child].is_free for child in children):
                    taken = [number for name in reads for number in self._fields.takes.get(name, {})]
                    if ends.isdisjoint(taken):
                        ends.add(taken[0])
        return frozenset(ends)

    def _amounts_with_totals(self, reads: Iterable[str]) -> Mapping[int, int]:
        """What reading terminals takes by field, and behind that in fields of their own for ends and in all."""
        amounts = self._fields.amounts_taken(reads)
        if not amounts:
            return amounts
        ends = sum([amount for number, amount in amounts.items() if number in self._ends])
        total = sum(amounts.values())
        return {**amounts, self._count: ends, self._count + 1: total}

    def _pack_way(self, reads: tuple[str, ...], children: tuple[int, ...], steps: int) -> PackedWay:
        return PackedWay(self._packing.pack_amounts(self._amounts_with_totals(reads)), reads, children, steps)

    def resources_left(self, remaining: int) -> int:
        """What ``remaining``, a packed number of the counters, leaves of each resource; guard bits set."""
        packed = self._known.get(remaining)
        if packed is None:
            # What has been used is looked at, and not what is left: plans are short where tools are many.
            if len(self._known) >= _CACHE:
                self._known.clear()
            packed = self._known[remaining] = self._full - self.pack_need(self._counters.remaining - remaining)
        return packed

    def _pack_all_limits(self) -> int:
        """All that the limits allow, packed (without guard bits)."""
        amounts: dict[int, int] = {}
        for (shift, mask), number in self._places.items():
            amounts[number] = amounts.get(number, 0) + (self._counters.remaining >> shift & mask)
        ends = sum([amount for number, amount in amounts.items() if number in self._ends])
        return self._packing.pack_amounts({**amounts, self._count: ends, self._count + 1: sum(amounts.values())})

    def pack_need(self, amounts: int) -> int:
        """Amounts packed as the counters do, packed as here (without guard bits)."""
        total = packed = ends = 0
        while amounts:
            field = self._upper[bisect_right(self._shifts, (amounts & -amounts).bit_length() - 1) - 1]
            shift, mask = field
            amount = amounts >> shift & mask
            amounts &= ~(2 * mask + 1 << shift)
            number = self._places[field]
            total += amount
            if number in self._ends:
                ends += amount
            packed += amount << number * self._width
        return packed + (ends << self._top - self._width) + (total << self._top)

    def unpack_amounts(self, packed: int) -> tuple[int, ...]:
        """A packed number of this class as one amount for each resource (without the sums behind them)."""
        return tuple(self._packing.unpack_amounts(packed)[: self._count])

    def resource_of_bound(self, bound: int) -> int:
        """The resource of an upper bound, by the number of the bound."""
        field = self._counters.fields[bound]
        return next(
            number
            for number, group in enumerate(self._fields.parts)
            if field in group and self._counters.bounds[bound].most is not None
        )

    def unpack_amount(self, packed: int, number: int) -> int:
        """What a packed number of this class holds of one resource."""
        return self._packing.unpack_amount(packed, number)

    def list_taken(self, need: int) -> Iterator[tuple[int, int]]:
        """(resource, amount) of all that a packed need takes."""
        while need:
            number = ((need & -need).bit_length() - 1) // self._width
            amount = need >> number * self._width & self._most
            need -= amount << number * self._width
            if number < self._count:
                yield number, amount

    def covers_least(self, left: int, least: int, least_total: int) -> bool:
        """Whether what is left pays for least amounts; the total first, since only then no field has overflowed."""
        return least_total <= left >> self._top & self._most and (left - least) & self.guard == self.guard

    def covers_due(self, left: int, needed: int) -> bool:
        """Whether what is left pays for the terminals that lower bounds still require."""
        least = self._dues.get(needed)
        if least is None:
            if len(self._dues) >= _CACHE:
                self._dues.clear()
            total: dict[int, int] = {}
            for bound, _, due in self._counters.open_bounds(needed):
                if bound.terminal is not None:
                    for number, amount in self._fields.takes.get(bound.terminal, {}).items():
                        total[number] = total.get(number, 0) + amount * due
            least = self._dues[needed] = (self._packing.pack_amounts(total), sum(total.values()))
        return self.covers_least(left, *least)
