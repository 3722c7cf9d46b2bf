"""What limits leave, in the form that the search compares: one packed number, interchangeable terminals together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.lookahead.ways import PlacedParts, Ways, find_leaves, find_ways, least_taken
from formal_llm.automata.models.symbols import find_reachable


class BoundFields(NamedTuple):
    """The upper bounds, those of interchangeable terminals in one field together.

    Attributes:
        parts: for each field the counters' fields, as (shift, mask), whose sum it holds.
        takes: what one use of each terminal takes, by field.
        uses: the field of each terminal whose uses are limited.
    """

    parts: list[list[tuple[int, int]]]
    takes: dict[str, dict[int, int]]
    uses: dict[str, int]

    def amounts_taken(self, reads: Iterable[str]) -> dict[int, int]:
        """What reading terminals takes, by field."""
        total: dict[int, int] = {}
        for name in reads:
            for number, amount in self.takes.get(name, {}).items():
                total[number] = total.get(number, 0) + amount
        return total


def assign_fields(
    counters: Counters,
    ways: Mapping[int, Sequence[PlacedParts]],
    leaves: Collection[int],
    *,
    exchange: bool,
    counting: bool = False,
) -> BoundFields:
    """Give each upper bound a field, and one field to the uses of all terminals that are interchangeable.

    Args:
        counters: the bounds.
        ways: the ways of all symbols, leaves merged in.
        leaves: the symbols that only read a terminal.
        exchange: whether terminals may share a field at all.
        counting: whether ways are counted: then only terminals that may be used once share a field, and they must be
            read in the same places equally often (b T and T b are two ways).
    """
    places = _reading_places(ways, leaves)
    uses: dict[str, int] = {}  # the number of the bound
    sums: dict[str, dict[int, int]] = {}
    parts: list[list[tuple[int, int]]] = []
    for number, bound in enumerate(counters.bounds):
        if bound.most is None:
            continue
        if bound.terminal is not None:
            uses[bound.terminal] = number
            continue
        for name, weight in bound.weights.items():
            sums.setdefault(name, {})[len(parts)] = weight
        parts.append([counters.fields[number]])
    fields: dict[object, int] = {}
    takes: dict[str, dict[int, int]] = {}
    of_uses: dict[str, int] = {}
    for name, number in uses.items():
        shape: object = name
        if exchange and not (counting and (counters.bounds[number].most or 0) > 1):
            where = places.get(name, Counter([name]))
            where_else = tuple(sums.get(name, {}).items()), counters.dues.get(name, ())
            shape = (frozenset(where.items() if counting else where), *where_else)
        if shape not in fields:
            fields[shape] = len(parts)
            parts.append([])
        parts[fields[shape]].append(counters.fields[number])
        takes[name] = {fields[shape]: 1}
        of_uses[name] = fields[shape]
    for name, amounts in sums.items():
        takes[name] = {**takes.get(name, {}), **amounts}
    return BoundFields(parts, takes, of_uses)


def _reading_places(ways: Mapping[int, Sequence[PlacedParts]], leaves: Collection[int]) -> dict[str, Counter[object]]:
    """Where each terminal is read, and how often there."""
    places: dict[str, Counter[object]] = {}
    for index, group in ways.items():
        if index in leaves:
            continue  # merged into the ways of others; on a stack it is promised to be read, not exchanged
        for reads, children, steps in group:
            for name in reads:
                # A terminal that is read with others has a place of its own: it cannot be exchanged alone.
                alone = len(reads) == 1
                places.setdefault(name, Counter())[(index, children, steps) if alone else name] += 1
    return places


class FieldPacking:
    """Numbers packed into one, each in a field of the same width under a guard bit.

    Args:
        count: how many fields.
        most: the most that a field has to hold; more is cut.

    Attributes:
        guard: the guard bits.
        width: the bits of a field, its guard bit included.
        most: the most that a field can hold.
    """

    def __init__(self, count: int, most: int) -> None:
        self.count = count
        self.width = most.bit_length() + 1
        self.most = (1 << self.width - 1) - 1
        self.guard = sum(1 << (number + 1) * self.width - 1 for number in range(count))

    def pack_amounts(self, amounts: Mapping[int, int]) -> int:
        """Amounts by field as one number, without guard bits."""
        return sum(min(amount, self.most) << number * self.width for number, amount in amounts.items())

    def unpack_amount(self, packed: int, field: int) -> int:
        """What one field holds."""
        return packed >> field * self.width & self.most

    def unpack_amounts(self, packed: int) -> list[int]:
        """What each field holds."""
        return [packed >> place & self.most for place in range(0, self.count * self.width, self.width)]


class ClassVectors:
    """The fields of class vectors, and how they are packed into one number.

    Args:
        counters: the bounds.
        ways: the ways of all flow symbols, symbols that only read a terminal merged into them.
        leaves: the symbols that only read a terminal.
        exchange: whether terminals may be joined into classes at all.

    Attributes:
        takes: what each terminal takes, by field.
        class_of: the field of each terminal that may be used once; what is left there is the number of ways to read it.
        total_field: the number behind those of the fields, for the sum of amounts.
        guard: the guard bits.
    """

    def __init__(
        self,
        counters: Counters,
        ways: Mapping[int, Sequence[PlacedParts]],
        leaves: Collection[int],
        exchange: bool,
    ) -> None:
        self._counters = counters
        self._fields = assign_fields(counters, ways, leaves, exchange=exchange, counting=True)
        self.takes = self._fields.takes
        once = {bound.terminal for bound in counters.bounds if bound.most is not None and bound.most <= 1}
        self.class_of = {name: field for name, field in self._fields.uses.items() if name in once}
        self.total_field = len(self._fields.parts)
        # Room for the sum of all that is left, and for more than is left: a mask holds one more than its bound.
        most = sum(mask for group in self._fields.parts for _, mask in group)
        self._packing = FieldPacking(self.total_field, most)
        self.pack = self._packing.pack_amounts
        self.left = self._packing.unpack_amount
        self.guard = self._packing.guard

    def vector_of(self, remaining: int) -> int:
        """What ``remaining``, as the counters pack it, leaves of each field; guard bits set."""
        left = {n: sum(remaining >> s & mask for s, mask in group) for n, group in enumerate(self._fields.parts)}
        return self.pack(left) | self.guard

    def with_total(self, reads: tuple[str, ...]) -> dict[int, int]:
        """What reading terminals takes, by field, and the sum of that in a field behind the others."""
        amounts = self._fields.amounts_taken(reads)
        return {**amounts, self.total_field: sum(amounts.values())}

    def pack_reads(self, reads: Iterable[str]) -> int:
        """What reading terminals takes, packed."""
        return self.pack(self._fields.amounts_taken(reads))

    def total_left(self, vector: int) -> int:
        """The sum of what is left of all fields."""
        return sum(self._packing.unpack_amounts(vector))

    def some_remaining(self, vector: int) -> int:
        """A number as the counters pack it whose vector this is: of each class the first members are left."""
        remaining = self._counters.guard
        for amount, fields in zip(self._packing.unpack_amounts(vector), self._fields.parts, strict=True):
            for shift, mask in fields:
                used = min(amount, 1 if len(fields) > 1 else mask)
                remaining |= used << shift
                amount -= used
        return remaining


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
        ways: for each symbol the ways that some completion takes, symbols that only read a terminal merged into them;
            one for all interchangeable terminals.
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
        #: By the length of a number of the counters that ends with one of its bits: each field, and its number here.
        self._field_of_bit = [(0, 0, 0)]
        for (shift, mask), number in sorted(self._places.items()):
            self._field_of_bit += [(shift, mask, number)] * (mask.bit_length() + 1)
        self._full = self._pack_all_limits() | self._packing.guard
        self.guard = self._packing.guard
        self.ways: dict[int, tuple[PackedWay, ...]] = {
            index: self._join_equal_ways(self._pack_way(*parts) for parts in group) for index, group in ways.items()
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

    def _join_equal_ways(self, ways: Iterable[PackedWay]) -> tuple[PackedWay, ...]:
        """Keep one of the ways that differ in nothing but in which of some interchangeable terminals they read."""
        found: dict[object, PackedWay] = {}
        for way in ways:
            dues = [self._counters.dues.get(name) for name in way.reads]
            found.setdefault((way.need, way.children, way.steps, *dues), way)
        return tuple(found.values())

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
            shift, mask, number = self._field_of_bit[(amounts & -amounts).bit_length()]
            amount = amounts >> shift & mask
            amounts &= ~(2 * mask + 1 << shift)
            total += amount
            if number in self._ends:
                ends += amount
            packed += amount << number * self._width
        return packed + (ends << self._top - self._width) + (total << self._top)

    def unpack_amounts(self, packed: int) -> tuple[int, ...]:
        """A packed number of this class as one amount for each resource (without the sums behind them)."""
        return tuple(self._packing.unpack_amounts(packed)[: self._count])

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


#: How often payments are gone over; what still grows then may grow to whatever is needed.
_ROUNDS = 12


def find_most_paid(ways: Mapping[int, Sequence[PackedWay]], counters: Counters) -> dict[int, dict[int, int]]:
    """The most that completions of each symbol pay to each lower bound, cut at what it needs, upper bounds aside."""
    caps = {shift: bound.least for bound, shift, _ in counters.lower}
    most: dict[int, dict[int, int]] = {index: {} for index in ways}
    growing: set[tuple[int, int]] = set()
    for _ in range(_ROUNDS):
        growing.clear()
        for index, group in ways.items():
            for way in group:
                for shift, amount in _add_payments(way, most, counters).items():
                    amount = min(amount, caps[shift])
                    if amount > most[index].get(shift, 0):
                        most[index][shift] = amount
                        growing.add((index, shift))
        if not growing:
            return most
    users: dict[int, set[int]] = {}
    for index, group in ways.items():
        for child in {child for way in group for child in way.children}:
            users.setdefault(child, set()).add(index)
    reached = find_reachable(growing, lambda one: [(user, one[1]) for user in users.get(one[0], ())])
    for index, shift in reached:  # what still grows, and all that leads to it, is not bounded
        most[index][shift] = caps[shift]
    return most


def _add_payments(way: PackedWay, most: Mapping[int, Mapping[int, int]], counters: Counters) -> Counter[int]:
    """What a way pays at most to each lower bound, with its children."""
    paid: Counter[int] = Counter()
    for child in way.children:
        paid.update(most[child])
    for name in way.reads:
        for shift, _, weight in counters.dues.get(name, ()):
            paid[shift] += weight
    return paid
