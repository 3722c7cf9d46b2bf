"""Reading bottom up, after Knuth (1965, "On the translation of languages from left to right"): LR(1).

What is read stands on a stack of states; a state knows which productions are under way, and what may follow each of
them. With the next terminal it decides whether to read on or which production ends here, and where that is always one
answer a word is read in linear time: left recursion too, on which reading from the top down fails. The states are made
as words lead to them, so a large grammar costs only what its words use. Where there are two answers, reading gives up.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

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
    """For each nonterminal that ends where a state stands, the state behind it."""

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
        bits: for each terminal its bit.
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
