"""Membership: whether a grammar derives a word, fast where the grammar allows it and exact for every grammar.

While only one production fits the next terminal, the word is read with a stack alone, as an LL(1) parser does (Aho,
Lam, Sethi and Ullman, section 4.4). What a symbol on top does with a terminal is worked out once, down to the terminal
itself, and kept in a :class:`PredictRow`; so a terminal costs about one look into a table, however large the grammar.

Where several productions fit, the symbol on top is read from the bottom up, as an LR(1) parser does
(:mod:`formal_llm.automata.models.bottom_up`). Where several fit there too, the stack becomes the first item of a chart
(:mod:`formal_llm.automata.models.earley`), and as soon as one item is left, and one way out of it, it is a stack again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from formal_llm.automata.models.bottom_up import LRTables
from formal_llm.automata.models.earley import (
    ANY,
    ChartColumn,
    ChartItem,
    ChartStack,
    Origins,
    append_column,
    collapse_to_stack,
    make_ground_item,
)
from formal_llm.automata.models.first_follow import first_sets, follow_sets
from formal_llm.automata.models.symbols import Production, find_derivable_heads

#: The symbol of the empty stack; no word holds it.
_BOTTOM = "\0bottom"


class PredictBody(NamedTuple):
    """A production's body: what can begin it (a bit for each terminal), whether it derives ε, its symbols, its item."""

    first: int
    nullable: bool
    rows: tuple[PredictRow, ...]
    item: ChartItem


class _Reject(Exception):
    """The terminal cannot come next."""


class _Conflict(Exception):
    """Several productions fit."""


class PredictRow(dict[str, "tuple[PredictRow, ...] | None"]):
    """A symbol, and what it does with the next terminal when it is on top of the stack.

    The value for a terminal is what stands in its place once the terminal is read (the top last), None where the
    symbol derives ε and the terminal is left to the one below. Values are worked out when they are first asked for.
    """

    __slots__ = ("_bodies", "_fitting", "_stuck", "follow", "grammar", "nullable", "symbol", "terminal")

    def __init__(self, grammar: Recognizer, symbol: str) -> None:
        super().__init__()
        self.grammar = grammar
        self.symbol = symbol
        self.terminal = symbol not in grammar.by_head
        self.nullable = symbol in grammar.nullable
        self.follow = grammar.follow.get(symbol, 0)
        self._bodies: tuple[PredictBody, ...] | None = None
        self._fitting: dict[str | None, tuple[ChartItem, ...]] = {None: ()}
        self._stuck: set[str] = set()

    @property
    def predict_bodies(self) -> tuple[PredictBody, ...]:
        """The bodies of the symbol's productions."""
        if self._bodies is None:
            self._bodies = tuple(self.grammar.make_body(self, names) for names in self.grammar.by_head[self.symbol])
        return self._bodies

    def fitting_items(self, terminal: str | None) -> tuple[ChartItem, ...]:
        """The bodies that ``terminal`` can begin, as items; none at the end of the word (None)."""
        found = self._fitting.get(terminal)
        if found is None:
            assert terminal is not None
            bit = -1 if terminal == ANY else self.grammar.bits.get(terminal, 0)
            found = self._fitting[terminal] = tuple(body.item for body in self.predict_bodies if body.first & bit)
        return found

    def __missing__(self, terminal: str) -> tuple[PredictRow, ...] | None:
        bit = self.grammar.bits.get(terminal, 0)
        if terminal in self._stuck:
            raise _Conflict
        # This ends: as long as one production fits, it is the one of every derivation, and the shortest derivation has
        # no symbol twice before its first terminal.
        stack = [self]
        while stack:
            row = stack.pop()
            if row.terminal:
                if row.symbol != terminal:
                    raise _Reject
                self[terminal] = tuple(stack)
                return self[terminal]
            fits = [b for b in row.predict_bodies if b.first & bit or (b.nullable and row.follow & bit)]
            if not fits:
                raise _Reject
            if len(fits) > 1:
                self._stuck.add(terminal)
                raise _Conflict
            stack += reversed(fits[0].rows)
        self[terminal] = None
        return None


class Recognizer:
    """Decides membership for one grammar. Productions that derive no word are left out from the start.

    Args:
        productions: of a plain grammar (selections spelled out).
        start: the start symbol.
        terminals: the alphabet.
    """

    def __init__(self, productions: Sequence[Production], start: str, terminals: Collection[str]) -> None:
        rules = [(production.head, production.body) for production in productions]
        productive = find_derivable_heads(rules, terminals)
        self.start = start
        self.empty = start not in productive
        self.nullable = find_derivable_heads(rules, ())
        rules = [(head, body) for head, body in rules if all(name in productive or name in terminals for name in body)]
        self.by_head: dict[str, list[tuple[str, ...]]] = {}
        for head, body in rules:
            self.by_head.setdefault(head, []).append(body)
        #: For each terminal its bit.
        self.bits = {name: 1 << number for number, name in enumerate(terminals)}
        self.first = first_sets(rules, self.bits, self.nullable)
        self.follow = follow_sets(rules, self.bits, self.nullable, self.first)
        self._rows: dict[str, PredictRow] = {}
        self._tables: LRTables | None = None

    def get_row(self, symbol: str) -> PredictRow:
        """The row of a symbol."""
        row = self._rows.get(symbol)
        if row is None:
            row = self._rows[symbol] = PredictRow(self, symbol)
        return row

    def make_body(self, head: PredictRow, names: Sequence[str]) -> PredictBody:
        """A production's body; at its end ``head`` is derived."""
        rows = tuple(map(self.get_row, names))
        item = ChartItem(None, head)
        first, nullable = 0, True
        for row in reversed(rows):
            item = ChartItem(row, head, item)
            first = self.first.get(row.symbol, 0) | (first if row.nullable else 0)
            nullable = nullable and row.nullable
        return PredictBody(first, nullable, rows, item)

    def initial_stack(self) -> ChartStack:
        """The stack before anything is read: the start symbol."""
        return (self.get_row(self.start), (PredictRow(self, _BOTTOM), None))

    def accepts(self, word: Sequence[str]) -> bool:
        """Whether the start symbol derives ``word``."""
        if self.empty:
            return False
        stack, at, end = self.initial_stack(), 0, len(word)
        while True:
            row = None
            try:
                for at in range(at, end):  # noqa: B020 - goes on where the chart left off
                    terminal = word[at]
                    row, stack = stack
                    pushed = row[terminal]
                    while pushed is None:
                        row, stack = stack
                        pushed = row[terminal]
                    for new in pushed:
                        stack = (new, stack)
                row, stack = stack
                while row.nullable:
                    row, stack = stack
                return bool(row.symbol == _BOTTOM)
            except _Reject:
                return False
            except _Conflict:
                found = self._bottom_up(word, at, row, stack)
                if found is None:
                    at, stack = self._by_chart(word, at, (row, stack))
                    if stack is None:
                        return at == end
                elif found < 0:
                    return False
                else:
                    at = found

    def _bottom_up(self, word: Sequence[str], at: int, row: Any, stack: ChartStack) -> int | None:
        """Where the symbol of ``row``, which stands on ``stack``, ends; as :meth:`BottomUp.read` reports it."""
        if self._tables is None:
            self._tables = LRTables(self.by_head, self.bits, self.first, self.nullable)
        symbol, follow = row.symbol, 0
        while True:
            row, stack = stack
            follow |= self._tables.end if row.symbol == _BOTTOM else self.first.get(row.symbol, 0)
            if not row.nullable:
                return self._tables.get_reader(symbol, follow).read_symbol(word, at)

    def _by_chart(self, word: Sequence[str], at: int, stack: ChartStack) -> tuple[int, ChartStack]:
        """Read on from ``at`` until one stack is left: (position, stack).

        (len(word), None) where the word is accepted before that, (-1, None) where it is rejected.
        """
        columns: list[ChartColumn] = []
        items: dict[ChartItem, Origins] = {make_ground_item(stack): ~0}
        while items:
            terminal = word[at] if at < len(word) else None
            column = append_column(columns, items, terminal)
            if terminal is None:
                return (at, None) if column.accepted else (-1, None)
            items = column.next.get(terminal, {})
            at += 1
            left = collapse_to_stack(columns, items)
            if left is not None:
                return at, left
        return -1, None
