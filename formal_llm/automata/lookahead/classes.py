"""What limits leave, as one packed number: interchangeable terminals together; and the ways of symbols as it sees them.

Terminals are interchangeable where they are read in the same places, weigh the same in all sums, and serve the same
lower bounds. Their uses are a *class* with one field of bits, which holds how many are left.

A symbol that can only read one terminal is a *leaf*: it is merged into the ways of the symbols that lead to it. So is a
*link*, a symbol with one way only that leaves at most one symbol, and a symbol that only one way leads to, as long as a
way reads no more than one terminal. Of the product of a grammar and a clock most symbols are of these kinds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import FlowGrammar, FlowSymbol, Way
from formal_llm.automata.models.symbols import find_reachable

#: (terminals read, symbols left, moves) of a way.
Parts = tuple[tuple[str, ...], tuple[int, ...], int]
#: The same with any value in the place of the moves that distinguishes places in which a terminal is read.
PlacedParts = tuple[tuple[str, ...], tuple[int, ...], Hashable]
#: The ways of each symbol, by its index.
Ways = Mapping[int, Sequence[Parts]]
#: The amounts that are kept in their packed form.
_CACHE = 20_000


class Classes:
    """What upper bounds leave, packed: a field for each sum and each class of terminals, behind them their total.

    The total comes last, so no sum of needs that is within it has run over any field.

    Args:
        counters: the bounds.
        ways: the ways of all symbols, leaves merged in.
        leaves: the symbols that only read a terminal.
        exchange: whether terminals may share a field. That is exact only where the terminals that wait on a stack can
            be determined before the search, not where the search itself finds out.
        counting: whether ways are counted: then only terminals that may be used once share a field, and they must be
            read in the same places equally often (b T and T b are two ways).

    Attributes:
        takes: what one use of each terminal takes, by field.
        uses: the field of each terminal whose uses are limited.
        total: the number of the field of the total; the other fields come before it.
        guard: the guard bits, one over each field.
    """

    def __init__(
        self,
        counters: Counters,
        ways: Mapping[int, Sequence[PlacedParts]],
        leaves: Collection[int] = (),
        *,
        exchange: bool = True,
        counting: bool = False,
    ) -> None:
        self.counters = counters
        #: For each field the counters' fields, as (shift, mask), whose sum it holds.
        self._parts: list[list[tuple[int, int]]] = []
        self.takes: dict[str, dict[int, int]] = {}
        self.uses: dict[str, int] = {}
        self._assign_fields(_find_places(ways, leaves) if exchange else {}, counting)
        self.total = len(self._parts)
        most = sum(mask for group in self._parts for _, mask in group)
        self._width = most.bit_length() + 1
        self._mask = (1 << self._width - 1) - 1
        self._top = self.total * self._width
        self.guard = sum(1 << (number + 1) * self._width - 1 for number in range(self.total + 1))
        #: By the length of a number of the counters that ends with one of its bits: each field, and its number here.
        self._field_of_bit = [(0, 0, 0)]
        places = {field: number for number, group in enumerate(self._parts) for field in group}
        for (shift, mask), number in sorted(places.items()):
            self._field_of_bit += [(shift, mask, number)] * (mask.bit_length() + 1)
        self._full = self.pack_need(counters.remaining & ~counters.guard) | self.guard
        self._known: dict[int, int] = {}
        self._dues: dict[int, int] = {}

    def _assign_fields(self, places: Mapping[str, Counter[object]], counting: bool) -> None:
        counters, parts = self.counters, self._parts
        once: dict[str, int] = {}  # the number of the bound on the uses of a terminal
        sums: dict[str, dict[int, int]] = {}
        for number, bound in enumerate(counters.bounds):
            if bound.most is None:
                continue
            if bound.terminal is not None:
                once[bound.terminal] = number
                continue
            for name, weight in bound.weights.items():
                sums.setdefault(name, {})[len(parts)] = weight
            parts.append([counters.fields[number]])
        fields: dict[object, int] = {}
        for name, number in once.items():
            shape: object = name
            if places and not (counting and (counters.bounds[number].most or 0) > 1):
                where = places.get(name, Counter([name]))
                where_else = tuple(sums.get(name, {}).items()), counters.dues.get(name, ())
                shape = (frozenset(where.items() if counting else where), *where_else)
            if shape not in fields:
                fields[shape] = len(parts)
                parts.append([])
            parts[fields[shape]].append(counters.fields[number])
            self.takes[name] = {fields[shape]: 1}
            self.uses[name] = fields[shape]
        for name, amounts in sums.items():
            self.takes[name] = {**self.takes.get(name, {}), **amounts}

    def amounts_taken(self, reads: Iterable[str]) -> dict[int, int]:
        """What reading terminals takes, by field, and in all."""
        amounts: dict[int, int] = {}
        for name in reads:
            for number, amount in self.takes.get(name, {}).items():
                amounts[number] = amounts.get(number, 0) + amount
        if amounts:
            amounts[self.total] = sum(amounts.values())
        return amounts

    def pack(self, amounts: Mapping[int, int]) -> int:
        """Amounts by field as one number, without guard bits; what is more than a field holds is cut."""
        return sum(min(amount, self._mask) << number * self._width for number, amount in amounts.items())

    def amount(self, packed: int, field: int) -> int:
        """What one field holds."""
        return packed >> field * self._width & self._mask

    def amounts(self, packed: int) -> list[int]:
        """What each field holds; without the total."""
        return [packed >> place & self._mask for place in range(0, self._top, self._width)]

    def pack_need(self, amounts: int) -> int:
        """Amounts packed as the counters do, packed as here (without guard bits)."""
        total = packed = 0
        while amounts:
            shift, mask, number = self._field_of_bit[(amounts & -amounts).bit_length()]
            amount = amounts >> shift & mask
            amounts &= ~(2 * mask + 1 << shift)
            total += amount
            packed += amount << number * self._width
        return packed + (total << self._top)

    def left_of(self, remaining: int) -> int:
        """What ``remaining``, a packed number of the counters, leaves of each field; guard bits set."""
        packed = self._known.get(remaining)
        if packed is None:
            # What has been used is looked at, and not what is left: plans are short where tools are many.
            if len(self._known) >= _CACHE:
                self._known.clear()
            packed = self._known[remaining] = self._full - self.pack_need(self.counters.remaining - remaining)
        return packed

    def some_remaining(self, left: int) -> int:
        """A number as the counters pack it that leaves this: of each class its first members are left."""
        remaining = self.counters.guard
        for amount, fields in zip(self.amounts(left), self._parts, strict=True):
            for shift, mask in fields:
                used = min(amount, 1 if len(fields) > 1 else mask)
                remaining |= used << shift
                amount -= used
        return remaining

    def covers(self, left: int, need: int) -> bool:
        """Whether what is left pays for a sum of needs; the total first, since only then no field has run over."""
        return need >> self._top <= left >> self._top & self._mask and (left - need) & self.guard == self.guard

    def covers_due(self, left: int, needed: int) -> bool:
        """Whether what is left pays for the terminals that lower bounds still require."""
        need = self._dues.get(needed)
        if need is None:
            if len(self._dues) >= _CACHE:
                self._dues.clear()
            need = 0
            for bound, _, due in self.counters.open_bounds(needed):
                if bound.terminal is not None:
                    need += self.pack(self.amounts_taken([bound.terminal])) * due
            self._dues[needed] = need
        return self.covers(left, need)


def _find_places(ways: Mapping[int, Sequence[PlacedParts]], leaves: Collection[int]) -> dict[str, Counter[object]]:
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


class PackedWay(NamedTuple):
    """A way with its cost: what it takes from the classes, the terminals it reads, the symbols it leaves."""

    need: int
    reads: tuple[str, ...]
    children: tuple[int, ...]
    steps: int


class FlowWays:
    """The ways of a flow grammar as it is known now.

    Args:
        grammar: the commutative grammar.
        exchange: as of :class:`Classes`.

    Attributes:
        classes: what limits leave, packed.
        leaves: the symbols that can only read one terminal, and that terminal.
        ways: for each symbol the ways that some completion takes, symbols that only read a terminal merged into them;
            one for all interchangeable terminals.
        least: for each symbol the least that any completion takes, packed.
    """

    def __init__(self, grammar: FlowGrammar, *, exchange: bool) -> None:
        self.counters = grammar.counters
        self.leaves = find_leaves(grammar)
        ways = find_ways(grammar, self.leaves)
        self.classes = classes = Classes(grammar.counters, ways, self.leaves, exchange=exchange)
        self.ways = {index: self._pack_ways(group) for index, group in ways.items()}
        least = find_least_taken(grammar.symbols, ways, classes.amounts_taken)
        self.least = {index: classes.pack(amounts) for index, amounts in least.items()}

    def _pack_ways(self, ways: Iterable[Parts]) -> tuple[PackedWay, ...]:
        """One of the ways that differ in nothing but in which of some interchangeable terminals they read."""
        found: dict[object, PackedWay] = {}
        for reads, children, steps in ways:
            need = self.classes.pack(self.classes.amounts_taken(reads))
            dues = [self.counters.dues.get(name) for name in reads]
            found.setdefault((need, children, steps, *dues), PackedWay(need, reads, children, steps))
        return tuple(found.values())

    @cached_property
    def most_paid(self) -> dict[int, dict[int, int]]:
        """The most that completions of each symbol pay to each lower bound, cut at what it needs; limits aside."""
        caps = {shift: bound.least for bound, shift, _ in self.counters.lower}
        most: dict[int, dict[int, int]] = {index: {} for index in self.ways}
        payments = {
            index: {(way.children, self.counters.list_payments(way.reads)) for way in group}
            for index, group in reversed(self.ways.items())  # what is left is mostly numbered after what leaves it
        }
        growing: set[tuple[int, int]] = set()
        for _ in range(_ROUNDS):
            growing.clear()
            for index, group in payments.items():
                for children, paid in group:
                    for shift, cap in caps.items():
                        amount = sum([amount for at, amount in paid if at == shift])
                        amount = min(amount + sum([most[child].get(shift, 0) for child in children]), cap)
                        if amount > most[index].get(shift, 0):
                            most[index][shift] = amount
                            growing.add((index, shift))
            if not growing:
                return most
        users: dict[int, set[int]] = {}
        for index, ways in self.ways.items():
            for child in {child for way in ways for child in way.children}:
                users.setdefault(child, set()).add(index)
        for index, shift in find_reachable(growing, lambda one: [(user, one[1]) for user in users.get(one[0], ())]):
            most[index][shift] = caps[shift]  # what still grows, and all that leads to it, is not bounded
        return most


#: How often payments are gone over; what still grows then may grow to whatever is needed.
_ROUNDS = 12


# -- ways --------------------------------------------------------------------------------------------------------------


def find_leaves(grammar: FlowGrammar) -> dict[int, str]:
    """The symbols that can only read one terminal, and that terminal."""
    only = ((symbol.index, symbol.ways[0]) for symbol in grammar.symbols if len(symbol.ways) == 1)
    return {index: way.read for index, way in only if not way.children and way.read is not None}


def find_ways(grammar: FlowGrammar, leaves: Mapping[int, str]) -> dict[int, list[Parts]]:
    """The ways of all symbols that some completion takes, with leaves and links merged in."""
    links = _find_links(grammar, leaves)
    ways = {
        symbol.index: [_merge_links(_merge_leaves(way, leaves), links) for way in grammar.live_ways(symbol)]
        for symbol in grammar.symbols
    }
    uses = Counter(child for group in ways.values() for _, children, _ in group for child in children)
    once = {
        index: ways[index]
        for index, count in uses.items()
        if count == 1 and all(len(reads) <= 1 and len(children) <= 1 for reads, children, _ in ways[index])
    }
    return {
        index: [made for parts in group for made in _merge_single_use(parts, once)] for index, group in ways.items()
    }


def _merge_single_use(parts: Parts, once: Mapping[int, Sequence[Parts]]) -> Sequence[Parts]:
    """A way that reads nothing, with the ways of a symbol that only it leads to in the place of that symbol."""
    reads, children, steps = parts
    place = -1 if reads else next((place for place, child in enumerate(children) if child in once), -1)
    if place < 0:
        return (parts,)
    others = [*children[:place], *children[place + 1 :]]
    return [(read, tuple(sorted((*others, *left))), steps + more) for read, left, more in once[children[place]]]


def _merge_leaves(way: Way, leaves: Mapping[int, str]) -> Parts:
    """A way with leaves merged in."""
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
    return tuple(reads), tuple(sorted(children)), steps


def _find_links(grammar: FlowGrammar, leaves: Mapping[int, str]) -> dict[int, Parts]:
    """The links, each with its way, in which those that it leads to are merged: they end sooner, so they come first."""
    links: dict[int, Parts] = {}
    for symbol in sorted(grammar.symbols, key=lambda symbol: symbol.least_steps):
        ways = grammar.live_ways(symbol) if symbol.index not in leaves else ()
        if len(ways) == 1:
            only = _merge_links(_merge_leaves(ways[0], leaves), links)
            if len(only[0]) <= 1 and len(only[1]) <= 1:
                links[symbol.index] = only
    return links


def _merge_links(parts: Parts, links: Mapping[int, Parts]) -> Parts:
    """A way with links merged in, where it then reads no more than one terminal, or no more than before."""
    reads, children, steps = parts
    left: list[int] = []
    for child in children:
        link = links.get(child)
        if link and (not link[0] or not reads):
            reads, steps = reads + link[0], steps + link[2]
            left += link[1]
        else:
            left.append(child)
    return reads, tuple(sorted(left)), steps


def find_least_taken(
    symbols: Sequence[FlowSymbol],
    ways: Mapping[int, Sequence[PlacedParts]],
    takes: Callable[[tuple[str, ...]], Mapping[int, int]],
) -> dict[int, dict[int, int]]:
    """The least that any completion of each symbol takes, by field: a decreasing fixpoint.

    It is started from the cheapest derivations, so that it is finite everywhere at once, and lowered until nothing
    changes. Each value is then at most what any way takes with its children, so by induction over derivations it is a
    lower bound.

    Args:
        symbols: the symbols of a flow grammar.
        ways: their ways; symbols without ways are passed over.
        takes: what reading terminals takes, by field.
    """
    users: dict[int, dict[int, None]] = {}
    costs: dict[int, list[tuple[Mapping[int, int], tuple[int, ...]]]] = {}
    known: dict[tuple[str, ...], Mapping[int, int]] = {}
    for index, group in ways.items():
        if symbols[index].is_free:
            continue
        costs[index] = priced = []
        for reads, children, _ in group:
            taken = known.get(reads)
            if taken is None:
                taken = known[reads] = takes(reads)
            # What free symbols take is nothing.
            paid = tuple([child for child in children if not symbols[child].is_free])
            priced.append((taken, paid))
            for child in paid:
                users.setdefault(child, {})[index] = None
    least: dict[int, dict[int, int]] = {}
    first: list[int] = []
    for symbol in sorted(symbols, key=lambda symbol: symbol.least_steps):
        if symbol.is_free:
            least[symbol.index] = {}  # no work: most symbols are free where few terminals are limited
        elif symbol.index in costs and symbol.least_steps < INFINITE:
            first.append(symbol.index)
    todo = deque(first)
    waiting = set(first)
    while todo:
        index = todo.popleft()
        waiting.discard(index)
        lowest = _least_of_ways(costs[index], least)
        if lowest is not None and lowest != least.get(index):
            least[index] = lowest
            # What takes nothing cannot take less.
            again = [user for user in users.get(index, ()) if user not in waiting and least.get(user, True)]
            todo += again
            waiting.update(again)
    return least


def _least_of_ways(
    costs: Iterable[tuple[Mapping[int, int], tuple[int, ...]]], least: Mapping[int, Mapping[int, int]]
) -> dict[int, int] | None:
    """The least that any way takes with its children, by field; None where none is known. What is 0 is left out."""
    lowest: dict[int, int] | None = None
    for taken, children in costs:
        found = [least.get(child) for child in children]
        if None in found:
            continue
        amounts = [taken, *[one for one in found if one]]
        if lowest is None:
            lowest = {}
            for one in amounts:
                for number, amount in one.items():
                    lowest[number] = lowest.get(number, 0) + amount
        elif not lowest:
            break
        else:
            # Only what every way takes counts, so only that is added up.
            sums = {number: sum([one.get(number, 0) for one in amounts]) for number in lowest}
            lowest = {number: min(lowest[number], amount) for number, amount in sums.items() if amount}
    return lowest
