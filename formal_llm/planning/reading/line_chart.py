"""Reading lines by a grammar of lines: Earley's algorithm (1970), which also tells how far some plan goes like this.

This is no membership test as :mod:`formal_llm.automata.models.earley` is. What is wanted are the derivations, since
most terminals of the word are in no line; that chart keeps none: it packs origins into numbers and skips chains of
items. And a body of a part is read only on a line of its own, so there is no alphabet that FIRST sets could be of.

All derivations together are kept as a forest, which is a grammar again: its words are all that the lines may stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from formal_llm.automata import PDA, Transition, Word
from formal_llm.errors import Undecided
from formal_llm.planning.reading.candidates import Candidates

#: How many states are come to, again or not, before the lines are given up as too ambiguous.
_BUDGET = 2_000_000


class Part(NamedTuple):
    """What is told on lines of its own: a symbol, and the way in which it is (see the grammar of the lines).

    A part that is ``bent`` holds a branching that begins with no tool, so that the plan is no nesting of calls.
    """

    symbol: str
    way: int
    bent: bool = False


class Body(NamedTuple):
    """What a part may become: terminals that are in the word and in no line (plain), and other parts.

    It is ``told`` where it begins with a line of its own.
    """

    items: tuple[str | Part, ...]
    parts: tuple[Part, ...]
    told: bool = False

    def between(self, passed: int) -> Word:
        """The terminals before the part with this index, and after the one before it."""
        found, at = [], 0
        for item in self.items:
            if isinstance(item, Part):
                at += 1
            elif at == passed:
                found.append(item)
        return tuple(found)


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


#: How a state came about: the position where its last part began, and the state there, one part before.
_Back = tuple[int, _State]


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
        self._columns: list[dict[_State, list[_Back]]] = []
        self._waiting: list[dict[Part, list[_State]]] = []
        #: For each position the states that end there, by the part and by where it began.
        self._ended: list[dict[tuple[Part, int], list[_State]]] = []
        self.could: dict[str, None] = {}
        following: dict[_State, list[_Back]] = {}
        while not self._columns or (following and len(self._columns) <= end):
            following = self._column(following)
        self.longest = len(self._columns) - 1

    def _column(self, column: dict[_State, list[_Back]]) -> dict[_State, list[_Back]]:
        """Fill in a column from what was read before it; what is read with the next line."""
        at = len(self._columns)
        waiting: dict[Part, list[_State]] = {}
        ended: dict[tuple[Part, int], list[_State]] = {}
        self._columns.append(column)
        self._waiting.append(waiting)
        self._ended.append(ended)
        self.could = {}
        todo = list(column)
        following: dict[_State, list[_Back]] = {}

        def begin(part: Part) -> None:
            ways = self._table[part]
            waiting[part] = []
            self.could.update(dict.fromkeys(ways.could))
            following.update((_State(part, body, 0, at), []) for body in ways.on.get(at, ()))
            todo.extend(_State(part, body, 0, at) for body in ways.free)
            column.update((_State(part, body, 0, at), []) for body in ways.free)

        def pass_on(state: _State, origin: int) -> None:
            self._work += 1
            after = _State(state.head, state.body, state.passed + 1, state.origin)
            if after not in column:
                column[after] = []
                todo.append(after)
            column[after].append((origin, state))

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
                    pass_on(state, at)
            else:
                known = ended.setdefault((state.head, state.origin), [])
                known.append(state)
                if len(known) == 1:
                    for waiter in tuple(self._waiting[state.origin].get(state.head, ())):
                        pass_on(waiter, state.origin)
            if self._work > _BUDGET:
                raise Undecided("there are too many ways to read the lines of the plan")
        return following

    def told(self) -> Candidates | None:
        """All that the lines may stand for; None where they stand for nothing."""
        if self.longest < self._end or (self._root, 0) not in self._ended[self._end]:
            return None
        return _Forest(self._columns, self._ended).told((self._root, 0, self._end))


#: What is derived in the forest: a part on the lines from one position to another, or a state up to a position.
_Key = tuple[Part, int, int] | tuple[_State, int]


class _Forest:
    """The derivations that a chart has, as a pushdown automaton that expands them."""

    def __init__(
        self,
        columns: Sequence[Mapping[_State, Sequence[_Back]]],
        ended: Sequence[Mapping[tuple[Part, int], Sequence[_State]]],
    ) -> None:
        self._columns, self._ended = columns, ended
        self._names: dict[_Key, str] = {}
        self._todo: list[_Key] = []
        #: For each terminal, and the line that tells it (-1 for none), what stands for both on the stack.
        self._leaves: dict[tuple[str, int], str] = {}

    def told(self, root: _Key) -> Candidates:
        """The automaton, and which line tells each terminal."""
        bottom = "\0"
        begin = (self._name(root), bottom)
        rules: list[tuple[str, Word]] = []
        while self._todo:
            key = self._todo.pop()
            bodies = self._of_part(*key) if len(key) == 3 else self._of_state(*key)
            rules += ((self._names[key], body) for body in bodies)
        made = [Transition("on", None, head, "on", body) for head, body in rules]
        made.append(Transition("on", None, bottom, "end"))
        reads = {
            Transition("on", terminal, leaf, "on"): None if line < 0 else line
            for (terminal, line), leaf in self._leaves.items()
        }
        pda = PDA([*made, *reads], start="on", accepting=["end"], stack=begin, check=False)
        leaves = {leaf: terminal for (terminal, _), leaf in self._leaves.items()}
        lines = {move: line for move, line in reads.items() if line is not None}
        return Candidates(pda, lines, some_word(rules, begin[0], leaves))

    def _name(self, key: _Key) -> str:
        if key not in self._names:
            self._names[key] = f"\0{len(self._names)}"
            self._todo.append(key)
        return self._names[key]

    def _plain(self, state: _State, passed: int) -> Word:
        line = state.origin if state.body.told else -1
        return tuple(self._leaves.setdefault((name, line), f"\0{name}\0{line}") for name in state.body.between(passed))

    def _of_part(self, part: Part, origin: int, at: int) -> Iterator[Word]:
        for state in self._ended[at][part, origin]:
            yield (self._name((state, at)), *self._plain(state, len(state.body.parts)))

    def _of_state(self, state: _State, at: int) -> Iterator[Word]:
        if not state.passed:
            yield ()
        for origin, previous in dict.fromkeys(self._columns[at][state]):
            part = previous.body.parts[previous.passed]
            plain = self._plain(state, previous.passed)
            yield (self._name((previous, origin)), *plain, self._name((part, origin, at)))


def some_word(rules: Sequence[tuple[str, Word]], start: str, leaves: Mapping[str, str]) -> Word:
    """A word that rules derive, found in linear time: each symbol by the first rule of which all parts derive one."""
    waiting: dict[str, list[int]] = {}
    missing = [len(body) for _, body in rules]
    for index, (_, body) in enumerate(rules):
        for name in body:
            waiting.setdefault(name, []).append(index)
    chosen: dict[str, Word] = {}
    ready = [*leaves]
    ready += _choose(rules, chosen, (index for index, count in enumerate(missing) if not count))
    while ready:
        done = []
        for index in waiting.get(ready.pop(), ()):
            missing[index] -= 1
            done += [] if missing[index] else [index]
        ready += _choose(rules, chosen, done)
    word: list[str] = []
    todo = [start]
    while todo:
        name = todo.pop()
        if name in leaves:
            word.append(leaves[name])
        else:
            todo += reversed(chosen[name])
    return tuple(word)


def _choose(rules: Sequence[tuple[str, Word]], chosen: dict[str, Word], done: Iterable[int]) -> Iterator[str]:
    """Note the rules by which symbols are derived for the first time; these symbols."""
    for index in done:
        head, body = rules[index]
        if head not in chosen:
            chosen[head] = body
            yield head


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
