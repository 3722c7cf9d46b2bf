"""Membership: whether a grammar derives a word, fast where the grammar allows it and exact for every grammar.

While only one production fits the next terminal, the word is read with a stack alone, as an LL(1) parser does (Aho,
Lam, Sethi and Ullman, section 4.4). What a symbol on top does with a terminal is worked out once, down to the terminal
itself, and kept in a :class:`PredictRow`; so a terminal costs about one look into a table, however large the grammar.

Where several productions fit, the symbol on top is read from the bottom up, as an LR(1) parser does
(:mod:`formal_llm.automata.models.membership`). Where several fit there too, the stack becomes the first item of a chart
(:mod:`formal_llm.automata.models.earley`), and as soon as one item is left, and one way out of it, it is a stack again.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
from formal_llm.automata.models.symbols import Production, find_derivable_heads, first_sets, follow_sets

#: How many states are made for a grammar; canonical LR(1) automata can be very large.
_STATES = 2_000
#: How many terminals may have been read for nothing, beyond those that were read with success.
_IN_VAIN = 100
#: What comes behind the last terminal; no word holds it.
_END = object()


class LRRule:
    """A production: its head, its body, and for each place in it what may begin the rest behind the next symbol."""

    __slots__ = ("body", "head", "length", "nullable", "rest")

    def __init__(self, head: str, body: Sequence[str], first: Mapping[str, int], nullable: Container[str]) -> None:
        self.head = head
        self.body = body
        self.length = len(body)
        self.rest: list[int] = []
        self.nullable: list[bool] = []
        begins, empty = 0, True
        for name in reversed(body):
            self.rest.append(begins)
            self.nullable.append(empty)
            begins = first.get(name, 0) | (begins if name in nullable else 0)
            empty = empty and name in nullable
        self.rest.reverse()
        self.nullable.reverse()


class _LRItem(NamedTuple):
    """A production that is under way: how much of it is read, and what may follow it (a bit for each terminal)."""

    rule: LRRule
    at: int
    follow: int


class LRConflict(Exception):
    """Several productions fit, or there are too many states."""


class LRState(dict[object, "LRState | LRRule | None"]):
    """What to do with the next terminal: go to a state, end a production, or (None) nothing."""

    __slots__ = ("_begun", "_items", "goto", "tables")

    def __init__(self, tables: LRTables, items: Iterable[_LRItem]) -> None:
        super().__init__()
        self.tables = tables
        self._items = tuple(items)
        self.goto = _GotoTable(self)
        #: The nonterminals that may begin here, and what may follow them.
        self._begun: dict[str, int] = {}
        todo: list[tuple[LRRule, int, int]] = [item for item in self._items if item.at < item.rule.length]
        while todo:
            rule, at, follow = todo.pop()
            name = rule.body[at]
            if name in tables.rules:
                follow = rule.rest[at] | (follow if rule.nullable[at] else 0)
                known = self._begun.get(name, 0)
                if follow & ~known:
                    self._begun[name] = follow | known
                    todo += ((begun, 0, follow | known) for begun in tables.left_corners(name))

    def __missing__(self, terminal: object) -> LRState | LRRule | None:
        bit = self.tables.bit_of(terminal)
        ends = [item.rule for item in self._items if item.at == item.rule.length and item.follow & bit]
        for name, follow in self._begun.items():
            if follow & bit:
                ends += self.tables.rules_beginning_with(name, "")
        read = self.items_after(terminal) if bit and isinstance(terminal, str) else ()
        if len(ends) + bool(read) > 1:
            raise LRConflict
        self[terminal] = ends[0] if ends else self.tables.get_state(read) if read else None
        return self[terminal]

    def items_after(self, symbol: str) -> tuple[_LRItem, ...]:
        """What is under way when a symbol is read here."""
        found: dict[tuple[LRRule, int], int] = {}
        for rule, at, follow in self._items:
            if at < rule.length and rule.body[at] == symbol:
                found[rule, at + 1] = found.get((rule, at + 1), 0) | follow
        for name, follow in self._begun.items():
            for rule in self.tables.rules_beginning_with(name, symbol):
                found[rule, 1] = found.get((rule, 1), 0) | follow
        return tuple(_LRItem(rule, at, follow) for (rule, at), follow in found.items())


class _GotoTable(dict[str, LRState]):
    """For each nonterminal that ends at a state, the state behind it."""

    __slots__ = ("_state",)

    def __init__(self, state: LRState) -> None:
        super().__init__()
        self._state = state

    def __missing__(self, symbol: str) -> LRState:
        self[symbol] = self._state.tables.get_state(self._state.items_after(symbol))
        return self[symbol]


class LRTables:
    """The states of a grammar, made on demand.

    Args:
        productions: for each nonterminal the bodies of its productions; each of them derives some word.
        first: for each symbol the terminals that can begin what it derives.
        nullable: the symbols that derive ε.
    """

    def __init__(
        self,
        productions: Mapping[str, Sequence[Sequence[str]]],
        bits: Mapping[str, int],
        first: Mapping[str, int],
        nullable: Container[str],
    ) -> None:
        self.rules = {
            head: [LRRule(head, body, first, nullable) for body in found] for head, found in productions.items()
        }
        self._bits = bits
        #: The bit of the end of the word.
        self.end = 1 << len(bits)
        self._beginning: dict[str, dict[str, list[LRRule]]] = {}
        self._states: dict[frozenset[_LRItem], LRState] = {}
        self._readers: dict[tuple[str, int], BottomUpReader] = {}

    def bit_of(self, terminal: object) -> int:
        """The bit of a terminal, or of the end of the word; 0 for what is no terminal."""
        return self.end if terminal is _END else self._bits.get(terminal, 0)  # type: ignore[call-overload]

    def rules_beginning_with(self, head: str, symbol: str) -> Sequence[LRRule]:
        """The productions of a nonterminal that begin with a symbol; the empty ones for ``""``."""
        found = self._beginning.get(head)
        if found is None:
            found = self._beginning[head] = {}
            for rule in self.rules[head]:
                found.setdefault(rule.body[0] if rule.body else "", []).append(rule)
        return found.get(symbol, ())

    def left_corners(self, head: str) -> list[LRRule]:
        """The productions of a nonterminal that begin with a nonterminal."""
        self.rules_beginning_with(head, "")
        return [rule for name, group in self._beginning[head].items() if name in self.rules for rule in group]

    def get_state(self, items: Iterable[_LRItem]) -> LRState:
        """The state in which these productions are under way.

        Raises:
            TwoWays: there are too many states.
        """
        key = frozenset(items)
        found = self._states.get(key)
        if found is None:
            if len(self._states) >= _STATES:
                raise LRConflict
            found = self._states[key] = LRState(self, key)
        return found

    def get_reader(self, symbol: str, follow: int) -> BottomUpReader:
        """What reads ``symbol`` where one of the terminals in ``follow`` comes behind it."""
        found = self._readers.get((symbol, follow))
        if found is None:
            found = self._readers[symbol, follow] = BottomUpReader(self, symbol, follow)
        return found


class BottomUpReader:
    """Reads a symbol from the bottom up, as long as there is only one way to do that."""

    def __init__(self, tables: LRTables, symbol: str, follow: int) -> None:
        self._whole = LRRule("", (symbol,), {}, ())
        self._start = LRState(tables, [_LRItem(self._whole, 0, follow)])
        #: How many terminals were read with success, less those that were read in vain.
        self._gained = _IN_VAIN

    def read_symbol(self, word: Sequence[str], at: int) -> int | None:
        """Where the symbol that begins at ``at`` ends: -1 where it cannot be there, None where that was not found out.

        What was not found out is not tried again before enough others were.
        """
        if self._gained < 0:
            return None
        end = len(word)
        state, begun = self._start, at
        states = [state]
        terminal: object = word[at] if at < end else _END
        try:
            while True:
                does = state[terminal]
                if type(does) is LRState:
                    state = does
                    at += 1
                    terminal = word[at] if at < end else _END
                elif does is None:
                    return -1
                elif does is self._whole:
                    self._gained += at - begun
                    return at
                else:
                    if does.length:  # type: ignore[union-attr]
                        del states[-does.length :]  # type: ignore[union-attr]
                    state = states[-1].goto[does.head]  # type: ignore[union-attr]
                states.append(state)
        except LRConflict:
            self._gained -= at - begun + 1
            return None


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

    The value for a terminal is what replaces the symbol once the terminal is read (the top last), None where the
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
        """Where the symbol of ``row``, which is on top of ``stack``, ends; as :meth:`BottomUp.read` reports it."""
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
