"""A chart: all the ways to read on at once, after Earley (1970).

A column for each position of the word holds the items that are under way there. The origins of an item are the bits of
one number, so that grammars as ambiguous as S -> S S | a are handled many origins at a time. Three refinements: items
are only begun where the next terminal can begin them; symbols that derive ε are stepped over at once (Aycock and
Horspool 2002); chains of items that only wait for their last symbol are passed in one step, so that right recursion is
linear (Leo 1991).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import compress
from operator import or_
from typing import Any, Protocol

#: In place of the next terminal: whatever terminal comes next.
ANY = "\0any"
#: How many items of a chart are followed back to make a stack of them.
_UNWIND = 32
#: From how many origins on an item is passed for all of them at once.
_MANY = 8
#: From the digits of a number to truth values.
_TRUTH = bytes.maketrans(b"01", b"\0\1")

#: Symbols from the top down: (row, the stack below); the lowest has None below it and stands for the empty stack.
#: Typed Any: it is unpacked once a terminal.
ChartStack = Any
#: The origins of an item: the bits of a number, or ``~origin`` for one origin alone (a bit far up is a long number).
Origins = int


class ChartSymbol(Protocol):
    """What a chart has to know of a symbol."""

    symbol: str
    terminal: bool
    nullable: bool

    def fitting_items(self, terminal: str | None) -> Sequence[ChartItem]:
        """The bodies that ``terminal`` can begin, as items; none at the end of the word (None)."""


class ChartItem:
    """What is left of a body: the next symbol, the item after it, and the symbol that is derived at its end.

    The ground items of a chart are the stack it began with: they have no head, and are made as they are needed.
    """

    __slots__ = ("_after", "below", "head", "row")

    def __init__(
        self,
        row: ChartSymbol | None,
        head: ChartSymbol | None,
        after: ChartItem | None = None,
        below: ChartStack = None,
    ) -> None:
        #: None at the end of the body (of the stack).
        self.row = row
        self.head = head
        self.below = below
        self._after = after

    @property
    def next_item(self) -> ChartItem:
        """The item when the next symbol is derived."""
        if self._after is None:
            self._after = make_ground_item(self.below)
        return self._after


def make_ground_item(stack: ChartStack) -> ChartItem:
    """The item that is ``stack``."""
    row, below = stack
    return ChartItem(None, None, None, stack) if below is None else ChartItem(row, None, None, below)


@dataclass(slots=True)
class ChartColumn:
    """A chart at one position of the word.

    Attributes:
        waiting: for each symbol that begins here, the items after it and their origins.
        ways: the same, with chains of items at their end passed; filled as it is asked for.
        next: for each terminal that is read here, the items after it and their origins.
        accepted: whether the whole stack that the chart began with can be derived up to here.
        gathered: of the first column: for each symbol what waits for it in all columns together, as far as asked for.
    """

    waiting: dict[str, dict[ChartItem, Origins]] = field(default_factory=dict)
    ways: dict[str, dict[ChartItem, Origins]] = field(default_factory=dict)
    next: dict[str, dict[ChartItem, Origins]] = field(default_factory=dict)
    accepted: bool = False
    gathered: dict[str, GatheredItems] = field(default_factory=dict)


@dataclass(slots=True)
class GatheredItems:
    """What waits for a symbol, in all columns together.

    Attributes:
        columns: those that are in it.
        own: for each item that waits the columns, as bits, in which the column itself is an origin of it.
        others: for each item its other origins in each column, up to the last column in which it has any.
    """

    columns: list[ChartColumn] = field(default_factory=list)
    own: dict[ChartItem, int] = field(default_factory=dict)
    others: dict[ChartItem, list[int]] = field(default_factory=dict)

    def update_up_to(self, end: int, columns: Sequence[ChartColumn], symbol: str) -> None:
        """Make it that of the first columns; a chart that is taken back and read on has others at its end."""
        mine = self.columns
        if mine and (len(mine) > end or mine[-1] is not columns[len(mine) - 1]):
            while mine and (len(mine) > end or mine[-1] is not columns[len(mine) - 1]):
                mine.pop()
            for item, others in self.others.items():
                del others[len(mine) :]
                self.own[item] &= (1 << len(mine)) - 1
        for at, column in enumerate(columns[len(mine) : end], len(mine)):
            for item, origins in column.waiting.get(symbol, {}).items():
                bits, bit = origins if origins >= 0 else 1 << ~origins, 1 << at
                self.own[item] = self.own.get(item, 0) | (bits & bit)
                others = self.others.setdefault(item, [])
                if bits & ~bit:
                    others += [0] * (at - len(others))
                    others.append(bits & ~bit)
            mine.append(column)


def append_column(columns: list[ChartColumn], items: Mapping[ChartItem, Origins], terminal: str | None) -> ChartColumn:
    """The next column of a chart, put at the end of ``columns``.

    Args:
        columns: those before.
        items: what is under way here, with the positions (numbers of columns) where it began.
        terminal: the one that comes next, None for the end of the word, :data:`ANY` for whatever may come.
    """
    here = len(columns)
    column = ChartColumn()
    columns.append(column)
    waiting, following = column.waiting, column.next
    seen = dict(items)
    todo = list(items.items())
    while todo:
        item, origins = todo.pop()
        row = item.row
        if row is None:
            if item.head is None:
                column.accepted = True
                continue
            # What begins and ends here derives ε, and whatever waits for it has stepped over it.
            for waiter, more in _waiting_items(columns, item.head.symbol, origins):
                _queue_item(todo, seen, waiter, more)
        elif row.terminal:
            if terminal in (row.symbol, ANY):
                _add_origins(following.setdefault(row.symbol, {}), item.next_item, origins)
        else:
            after = item.next_item
            fitting = row.fitting_items(terminal)
            if fitting:
                waiters = waiting.get(row.symbol)
                if waiters is None:
                    waiters = waiting[row.symbol] = {}
                    for begun in fitting:
                        seen[begun] = ~here
                        todo.append((begun, ~here))
                _add_origins(waiters, after, origins)
            if row.nullable:
                _queue_item(todo, seen, after, origins)
    return column


def _queue_item(
    todo: list[tuple[ChartItem, Origins]], seen: dict[ChartItem, Origins], item: ChartItem, origins: Origins
) -> None:
    """Add an item to what is still to be done, with those of its origins that are new."""
    new = _add_origins(seen, item, origins)
    if new is not None:
        todo.append((item, new))


def collapse_to_stack(columns: list[ChartColumn], items: Mapping[ChartItem, Origins]) -> ChartStack:
    """The stack that a chart comes down to when it holds one item with one way out; None where it does not."""
    parts: list[ChartItem] = []
    while len(items) == 1 and len(parts) < _UNWIND:
        ((item, origins),) = items.items()
        if item.head is None:
            stack = item.below if item.row is None else (item.row, item.below)
            for part in reversed(parts):
                rows = []
                while part.row is not None:
                    rows.append(part.row)
                    part = part.next_item
                for row in reversed(rows):
                    stack = (row, stack)
            return stack
        if origins >= 0:
            return None
        parts.append(item)
        items = _continuing_items(columns, item.head.symbol, ~origins)
    return None


def _waiting_items(
    columns: Sequence[ChartColumn], symbol: str, origins: Origins
) -> Iterator[tuple[ChartItem, Origins]]:
    """The items that go on when ``symbol`` is derived that began at any of ``origins``, all before the last column."""
    here = len(columns) - 1
    if origins < 0 or origins.bit_count() < _MANY:
        for origin in iterate_origins(origins):
            if origin != here:
                yield from _continuing_items(columns, symbol, origin).items()
        return
    gathered = columns[0].gathered.get(symbol)
    if gathered is None:
        gathered = columns[0].gathered[symbol] = GatheredItems()
    gathered.update_up_to(here, columns, symbol)
    origins &= ~(1 << here)
    chosen = bin(origins)[:1:-1].encode().translate(_TRUTH)
    for item, others in gathered.others.items():
        more = reduce(or_, compress(others, chosen), gathered.own[item] & origins)
        if more:
            yield item, more


def _continuing_items(columns: Sequence[ChartColumn], symbol: str, origin: int) -> dict[ChartItem, Origins]:
    """The items that go on when ``symbol``, begun at ``origin``, is derived."""
    passed: list[tuple[ChartColumn, str]] = []
    while True:
        column = columns[origin]
        found = column.ways.get(symbol)
        if found is not None:
            break
        found = column.waiting[symbol]
        passed.append((column, symbol))
        if len(found) != 1:
            break
        ((item, origins),) = found.items()
        if item.row is not None or item.head is None or origins >= 0:
            break
        symbol, origin = item.head.symbol, ~origins
    for column, name in passed:
        column.ways[name] = found
    return found


def _add_origins(table: dict[ChartItem, Origins], item: ChartItem, origins: Origins) -> Origins | None:
    """Add origins to an item; those that are new, None where none is."""
    old = table.get(item)
    if old is None:
        table[item] = origins
        return origins
    if old == origins:
        return None
    have = old if old >= 0 else 1 << ~old
    more = (origins if origins >= 0 else 1 << ~origins) & ~have
    if not more:
        return None
    table[item] = have | more
    return more


def iterate_origins(origins: Origins) -> Iterator[int]:
    """The origins one by one, the least first."""
    if origins < 0:
        yield ~origins
        return
    digits = bin(origins)[:1:-1]
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)
