"""What limits leave, in the form that the search compares: one packed number, interchangeable terminals counted once.

Two terminals are interchangeable when they can always replace each other: every symbol that can read one can read the
other, and they weigh the same in every other limit. What is left for them is then one number, the sum (the class
``A -> colorization | denoising | ...`` with each tool at most once has four uses left, whichever are gone). That makes
many configurations the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from formal_llm.automata.lookahead.flow import FlowGrammar, FlowSymbol, Way
from formal_llm.automata.lookahead.tolls import least_tolls


class PackedWay(NamedTuple):
    """A way with its cost: what it takes from the resources, the terminals it reads, the symbols it leaves."""

    need: int
    reads: tuple[str, ...]
    children: tuple[int, ...]
    steps: int


class Resources:
    """The resources of a flow grammar as it is known now.

    Args:
        grammar: the commutative grammar.
        exchange: whether interchangeable terminals may share a resource. That is exact only where the terminals that
            wait on a stack can be told before the search, not where the search itself finds out.

    Attributes:
        guard: the guard bits of a packed amount.
        leaves: the symbols that can only read one terminal, and that terminal.
        ways: for each symbol the ways that some completion takes, symbols that only read a terminal merged into them.
        toll: for each symbol the least that any completion takes, packed; tollsum the sum of its amounts.
    """

    def __init__(self, grammar: FlowGrammar, exchange: bool) -> None:
        self._counters = grammar.counters
        self._known: dict[int, int] = {}
        self._dues: dict[int, tuple[int, int]] = {}
        self._amounts: dict[str, Mapping[int, int]] = {}
        self._fields: list[list[tuple[int, int]]] = []
        self.leaves: dict[int, str] = {}
        for symbol in grammar.symbols:
            name = _leaf(grammar, symbol.index)
            if name is not None:
                self.leaves[symbol.index] = name
        ways = {symbol.index: list(read_through(grammar, symbol, self.leaves)) for symbol in grammar.symbols}
        self._exchange = exchange
        self._divide(ways)
        capacity = sum(bound.most for bound in self._counters.bounds if bound.most is not None)
        # Two more fields. One holds what is left for the ends of derivations: each pending symbol that is not free has
        # an end of its own, and few terminals may be fit for that (tools whose inputs are all given). The last holds
        # the total, so that no sum of tolls that passes the check of the total can overflow.
        self._ends = self._find_ends(grammar, ways)
        self._width = (capacity + 1).bit_length() + 1
        self._top = (len(self._fields) + 1) * self._width
        self._groups = [self._group(number, group) for number, group in enumerate(self._fields)]
        self.guard = sum(1 << (number + 1) * self._width - 1 for number in range(len(self._fields) + 2))
        self.ways: dict[int, tuple[PackedWay, ...]] = {
            index: tuple(dict.fromkeys(self._pack_way(*parts) for parts in group)) for index, group in ways.items()
        }
        self.toll: dict[int, int] = {}
        self.tollsum: dict[int, int] = {}
        for index, toll in least_tolls(grammar.symbols, ways, self._takes).items():
            self.toll[index] = self._pack(toll)
            self.tollsum[index] = toll.get(len(self._fields) + 1, 0)

    def _divide(self, ways: Mapping[int, list[tuple[tuple[str, ...], tuple[int, ...], int]]]) -> None:
        """Give each upper bound a field, and one field to the uses of all terminals of a class."""
        contexts: dict[str, set[object]] = {}
        for index, group in ways.items():
            if index in self.leaves:
                continue  # merged into the ways of others; on a stack it is promised to be read, not exchanged
            for reads, children, steps in group:
                for name in reads:
                    # A terminal read beside others stands in a context of its own: it cannot be exchanged alone.
                    alone = self._exchange and len(reads) == 1
                    contexts.setdefault(name, set()).add((index, children, steps) if alone else name)
        uses: dict[str, tuple[int, int]] = {}
        sums: dict[str, list[tuple[int, int]]] = {}
        for number, bound in enumerate(self._counters.bounds):
            if bound.most is None:
                continue
            if bound.terminal is not None:
                uses[bound.terminal] = self._counters.fields[number]
            else:
                for name, weight in bound.weights.items():
                    sums.setdefault(name, []).append((len(self._fields), weight))
                self._fields.append([self._counters.fields[number]])
        classes: dict[object, int] = {}
        for name, field in uses.items():
            shape = (
                frozenset(contexts.get(name, {name})), tuple(sums.get(name, ())), self._counters.dues.get(name, ()),
            )  # fmt: skip
            if shape not in classes:
                classes[shape] = len(self._fields)
                self._fields.append([])
            self._fields[classes[shape]].append(field)
            self._amounts[name] = {classes[shape]: 1}
        for name, amounts in sums.items():
            self._amounts[name] = {**self._amounts.get(name, {}), **dict(amounts)}

    def _find_ends(
        self, grammar: FlowGrammar, ways: Mapping[int, list[tuple[tuple[str, ...], tuple[int, ...], int]]]
    ) -> frozenset[int]:
        """Fields of which every way that leaves only free symbols takes, where it does not belong to a free one.

        A symbol that is not free takes of them at least once, since on some path down its derivation the symbols that
        are not free come to an end.
        """
        ends: set[int] = set()
        for index, group in ways.items():
            if grammar.symbols[index].free or index in self.leaves:
                continue
            for reads, children, _ in group:
                if all(grammar.symbols[child].free for child in children):
                    taken = [number for name in reads for number in self._amounts.get(name, {})]
                    if ends.isdisjoint(taken):
                        ends.add(taken[0])
        return frozenset(ends)

    def _group(self, number: int, group: list[tuple[int, int]]) -> tuple[int, int, list[tuple[int, int]], bool]:
        """(place, the bits of fields that hold at most 1, the other fields, whether it is for ends) of a resource."""
        bounds = zip(self._counters.fields, self._counters.bounds, strict=True)
        upper = {field: bound.most for field, bound in bounds if bound.most is not None}
        bits = sum(1 << shift for shift, mask in group if upper[shift, mask] == 1)
        return number * self._width, bits, [field for field in group if upper[field] != 1], number in self._ends

    def _with_total(self, amounts: dict[int, int]) -> dict[int, int]:
        """Amounts by field, and behind them in fields of their own those for ends and the total."""
        ends, total = sum(amounts.get(number, 0) for number in self._ends), sum(amounts.values())
        return {**amounts, len(self._fields): ends, len(self._fields) + 1: total}

    def _pack(self, amounts: Mapping[int, int]) -> int:
        most = (1 << self._width - 1) - 1
        return sum(min(amount, most) << number * self._width for number, amount in amounts.items())

    def _pack_way(self, reads: tuple[str, ...], children: tuple[int, ...], steps: int) -> PackedWay:
        return PackedWay(self._pack(self._takes(reads)), reads, children, steps)

    def _takes(self, reads: tuple[str, ...]) -> dict[int, int]:
        total: dict[int, int] = {}
        for name in reads:
            for number, amount in self._amounts.get(name, {}).items():
                total[number] = total.get(number, 0) + amount
        return self._with_total(total)

    def of(self, remaining: int) -> int:
        """What ``remaining``, a packed number of the limited automaton, leaves of each resource; guard bits set."""
        packed = self._known.get(remaining)
        if packed is None:
            packed = self._known[remaining] = self.need(remaining) | self.guard
        return packed

    def need(self, amounts: int) -> int:
        """Amounts packed as the counters do, packed as here (without guard bits)."""
        total = packed = ends = 0
        for place, bits, fields, end in self._groups:
            # Fields that hold 0 or 1 are counted all at once.
            amount = (amounts & bits).bit_count() + sum([amounts >> shift & mask for shift, mask in fields])
            total += amount
            if end:
                ends += amount
            packed += amount << place
        return packed + (ends << self._top - self._width) + (total << self._top)

    def amounts(self, packed: int) -> tuple[int, ...]:
        """A packed number of this class as one amount for each resource (without the sums behind them)."""
        most = (1 << self._width - 1) - 1
        return tuple(packed >> number * self._width & most for number in range(len(self._fields)))

    def cover(self, left: int, toll: int, tollsum: int) -> bool:
        """Whether what is left pays for tolls; the sum first, since only then no field of ``toll`` has overflowed."""
        return tollsum <= self._total(left) and (left - toll) & self.guard == self.guard

    def covers_due(self, left: int, needed: int) -> bool:
        """Whether what is left pays for the terminals that lower bounds still require."""
        toll = self._dues.get(needed)
        if toll is None:
            total: dict[int, int] = {}
            for bound, (shift, mask) in zip(self._counters.bounds, self._counters.fields, strict=True):
                if bound.most is None and bound.terminal is not None:
                    for number, amount in self._amounts.get(bound.terminal, {}).items():
                        total[number] = total.get(number, 0) + amount * (needed >> shift & mask)
            toll = self._dues[needed] = (self._pack(total), sum(total.values()))
        return self.cover(left, *toll)

    def _total(self, left: int) -> int:
        return left >> self._top & ((1 << self._width - 1) - 1)


def read_through(
    grammar: FlowGrammar, symbol: FlowSymbol, leaves: Mapping[int, str]
) -> Iterator[tuple[tuple[str, ...], tuple[int, ...], int]]:
    """The live ways of a symbol as (reads, children, steps), with children that only read a terminal merged in."""
    for way in grammar.alive(symbol):
        reads = [way.read] if way.read is not None else []
        children = []
        steps = way.moves
        for child in way.children:
            leaf = leaves.get(child)
            if leaf is None:
                children.append(child)
            else:
                reads.append(leaf)
                steps += 1
        yield tuple(reads), tuple(sorted(children)), steps


def _leaf(grammar: FlowGrammar, index: int) -> str | None:
    """The terminal that the symbol reads, if reading it is all it can do."""
    ways: tuple[Way, ...] = grammar.symbols[index].ways
    return ways[0].read if len(ways) == 1 and not ways[0].children else None
