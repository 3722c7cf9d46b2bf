"""Reading lines by a grammar of lines: Earley's algorithm (1970), which also tells how far some plan goes like this.

This is no membership test as :mod:`formal_llm.automata.models.earley` is. What is wanted is one derivation, since most
terminals of the word are in no line; that chart keeps none: it packs origins into numbers and skips chains of items.
And a body of a part is read only on a line of its own, so there is no alphabet that FIRST sets could be of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from formal_llm.automata import Word
from formal_llm.errors import Undecided

#: How many states are come to, again or not, before the lines are given up as too ambiguous.
_BUDGET = 2_000_000


class Part(NamedTuple):
    """What is told on lines of its own: a symbol, and the way in which it is (see the grammar of the lines)."""

    symbol: str
    way: int


class Body(NamedTuple):
    """What a part may become: terminals that are in the word and in no line (plain), and other parts."""

    items: tuple[str | Part, ...]
    parts: tuple[Part, ...]


@dataclass(slots=True)
class Ways:
    """What a part may become: on no line of its own, begun with a line (by its index), begun with a line like this."""

    free: list[Body] = field(default_factory=list)
    on: dict[int, list[Body]] = field(default_factory=dict)
    could: dict[str, list[Body]] = field(default_factory=dict)

    def every(self) -> Iterator[Body]:
        """All the bodies."""
        for bodies in (self.free, *self.on.values(), *self.could.values()):
            yield from bodies


class _State(NamedTuple):
    """A part under way: its body, how many parts of the body are passed, the position where it began."""

    head: Part
    body: Body
    passed: int
    origin: int


#: How a state came about: the state one part before, and the state that ended the part, each with its position.
_Back = tuple[tuple[int, _State], tuple[int, _State]] | None


class LineChart:
    """All the ways to read the lines from the first on.

    Args:
        table: for each part what it may become.
        root: the part that all lines are.
        end: the number of lines.

    Attributes:
        longest: how many of the lines some plan begins with.
        could: what the next line could be.

    Raises:
        Undecided: there are too many ways to read the lines.
    """

    def __init__(self, table: Mapping[Part, Ways], root: Part, end: int) -> None:
        self._table, self._root, self._end = table, root, end
        self._work = 0
        #: For each position its states, and how they came about; and which of them wait for a part that begins there.
        self._columns: list[dict[_State, _Back]] = []
        self._waiting: list[dict[Part, list[_State]]] = []
        self.could: dict[str, None] = {}
        following: dict[_State, _Back] = {}
        while not self._columns or (following and len(self._columns) <= end):
            following = self._column(following)
        self.longest = len(self._columns) - 1

    def _column(self, column: dict[_State, _Back]) -> dict[_State, _Back]:
        """Fill in a column from what was read before it; what is read with the next line."""
        at = len(self._columns)
        waiting: dict[Part, list[_State]] = {}
        self._columns.append(column)
        self._waiting.append(waiting)
        self.could = {}
        todo = list(column)
        following: dict[_State, _Back] = {}
        #: The parts that end here, by where they began, with the state that ended them.
        ended: dict[tuple[Part, int], _State] = {}

        def begin(part: Part) -> None:
            ways = self._table[part]
            waiting[part] = []
            self.could.update(dict.fromkeys(ways.could))
            following.update((_State(part, body, 0, at), None) for body in ways.on.get(at, ()))
            todo.extend(_State(part, body, 0, at) for body in ways.free)
            column.update((_State(part, body, 0, at), None) for body in ways.free)

        def pass_on(state: _State, last: _State) -> None:
            self._work += 1
            after = state._replace(passed=state.passed + 1)
            if after not in column:
                column[after] = ((last.origin, state), (at, last))
                todo.append(after)

        if not at:
            begin(self._root)
        while todo:
            state = todo.pop()
            if state.passed < len(state.body.parts):
                part = state.body.parts[state.passed]
                if part not in waiting:
                    begin(part)
                waiting[part].append(state)
                if (part, at) in ended:  # it may be told in no line at all
                    pass_on(state, ended[part, at])
            elif (state.head, state.origin) not in ended:
                ended[state.head, state.origin] = state
                for waiter in tuple(self._waiting[state.origin].get(state.head, ())):
                    pass_on(waiter, state)
            if self._work > _BUDGET:
                raise Undecided("there are too many ways to read the lines of the plan")
        return following

    def word(self) -> Word | None:
        """The word of one reading of all the lines; None where there is none."""
        column = self._columns[-1] if self.longest == self._end else {}
        whole = (s for s in column if s.head == self._root and not s.origin and s.passed == len(s.body.parts))
        root = next(whole, None)
        if root is None:
            return None
        word: list[str] = []
        todo: list[str | tuple[int, _State]] = [(self._end, root)]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                word.append(item)
                continue
            # From the last part to the first, so that the first comes to lie on top.
            at, state = item
            for one in reversed(state.body.items):
                if isinstance(one, str):
                    todo.append(one)
                    continue
                back = self._columns[at][state]
                assert back is not None  # it has a part before it
                (at, state), ended = back
                todo.append(ended)
        return tuple(word)


def alive(table: dict[Part, Ways]) -> dict[Part, Ways]:
    """The table less the bodies that no lines at all can tell, so that whatever is begun can be ended."""
    living: set[Part] = set()

    def kept(bodies: Iterable[Body]) -> list[Body]:
        return [body for body in bodies if living.issuperset(body.parts)]

    while fresh := {part for part, ways in table.items() if part not in living and kept(ways.every())}:
        living |= fresh

    return {
        part: Ways(
            kept(ways.free),
            {at: kept(bodies) for at, bodies in ways.on.items()},
            {text: bodies for text, bodies in ways.could.items() if kept(bodies)},
        )
        for part, ways in table.items()
    }
