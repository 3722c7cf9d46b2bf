"""Interchangeable terminals: those that can always replace each other, so that only the sum of what is left counts.

Every symbol that can read one of them can read the other, and they weigh the same in every other limit. What is left
for them is then one number (the class ``A -> colorization | denoising | ...`` with each tool at most once has four uses
left, whichever are gone). That makes many configurations the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.ways import Ways


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
    counters: Counters, ways: Ways, leaves: Collection[int], *, exchange: bool, counting: bool = False
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


def _reading_places(ways: Ways, leaves: Collection[int]) -> dict[str, Counter[object]]:
    """Where each terminal is read, and how often there."""
    places: dict[str, Counter[object]] = {}
    for index, group in ways.items():
        if index in leaves:
            continue  # merged into the ways of others; on a stack it is promised to be read, not exchanged
        for reads, children, steps in group:
            for name in reads:
                # A terminal read beside others stands in a place of its own: it cannot be exchanged alone.
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

    def __init__(self, counters: Counters, ways: Ways, leaves: Collection[int], exchange: bool) -> None:
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
