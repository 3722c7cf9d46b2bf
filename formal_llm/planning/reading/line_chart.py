"""Reading lines by a grammar of lines: Earley's algorithm (1970), which also finds how far some plan agrees.

This is no membership test: what is wanted are the derivations, since most terminals of the word are in no line.

All derivations together are kept as a forest, which is a grammar again: its words are all that the lines may stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from formal_llm.automata import PDA, Transition, Word
from formal_llm.errors import Undecided
from formal_llm.planning.reading.candidates import CandidateWords

#: How many states are come to, again or not, before the lines are given up as too ambiguous.
_BUDGET = 2_000_000


class LinePart(NamedTuple):
    """What has lines of its own: a symbol, and the way in which it is (see the grammar of the lines).

    A part that is ``bent`` holds a branching that begins with no tool, so that the plan is no nesting of calls.
    """

    symbol: str
    way: int
    bent: bool = False


class PartBody(NamedTuple):
    """What a part may become: terminals that are in the word and in no line (plain), and other parts.

    It ``starts_line`` where it begins on a line of its own.
    """

    items: tuple[str | LinePart, ...]
    parts: tuple[LinePart, ...]
    starts_line: bool = False

    def list_terminals_before(self, passed: int) -> Word:
        """The terminals before the part with this index, and after the one before it."""
        found, at = [], 0
        for item in self.items:
            if isinstance(item, LinePart):
                at += 1
            elif at == passed:
                found.append(item)
        return tuple(found)


@dataclass(slots=True)
class PartWays:
    """What a part may become: on no line of its own, begun with a line (by its index), begun with a line like this."""

    free: list[PartBody] = field(default_factory=list)
    on: dict[int, list[PartBody]] = field(default_factory=dict)
    could: dict[str, list[PartBody]] = field(default_factory=dict)

    def iter_bodies(self) -> Iterator[PartBody]:
        """All the bodies."""
        for bodies in (self.free, *self.on.values(), *self.could.values()):
            yield from bodies


class _ChartState(NamedTuple):
    """A part under way: its body, how many parts of the body are passed, the position where it began."""

    head: LinePart
    body: PartBody
    passed: int
    origin: int


#: How a state came about: the position where its last part began, and the state there, one part before.
_Back = tuple[int, _ChartState]


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

    def __init__(self, table: Mapping[LinePart, PartWays], root: LinePart, end: int) -> None:
        self._table, self._root, self._end = table, root, end
        self._work = 0
        #: For each position its states, and how they came about; and which of them wait for a part that begins there.
        self._columns: list[dict[_ChartState, list[_Back]]] = []
        self._waiting: list[dict[LinePart, list[_ChartState]]] = []
        #: For each position the states that end there, by the part and by where it began.
        self._ended: list[dict[tuple[LinePart, int], list[_ChartState]]] = []
        self.could: dict[str, None] = {}
        following: dict[_ChartState, list[_Back]] = {}
        while not self._columns or (following and len(self._columns) <= end):
            following = self._fill_column(following)
        self.longest = len(self._columns) - 1

    def _fill_column(self, column: dict[_ChartState, list[_Back]]) -> dict[_ChartState, list[_Back]]:
        """Fill in a column from what was read before it; what is read with the next line."""
        at = len(self._columns)
        waiting: dict[LinePart, list[_ChartState]] = {}
        ended: dict[tuple[LinePart, int], list[_ChartState]] = {}
        self._columns.append(column)
        self._waiting.append(waiting)
        self._ended.append(ended)
        self.could = {}
        todo = list(column)
        following: dict[_ChartState, list[_Back]] = {}

        def begin_part(part: LinePart) -> None:
            ways = self._table[part]
            waiting[part] = []
            self.could.update(dict.fromkeys(ways.could))
            following.update((_ChartState(part, body, 0, at), []) for body in ways.on.get(at, ()))
            todo.extend(_ChartState(part, body, 0, at) for body in ways.free)
            column.update((_ChartState(part, body, 0, at), []) for body in ways.free)

        def advance_state(state: _ChartState, origin: int) -> None:
            self._work += 1
            after = _ChartState(state.head, state.body, state.passed + 1, state.origin)
            if after not in column:
                column[after] = []
                todo.append(after)
            column[after].append((origin, state))

        if not at:
            begin_part(self._root)
        while todo:
            state = todo.pop()
            if state.passed < len(state.body.parts):
                part = state.body.parts[state.passed]
                if part not in waiting:
                    begin_part(part)
                waiting[part].append(state)
                if (part, at) in ended:  # it may have no line at all
                    advance_state(state, at)
            else:
                known = ended.setdefault((state.head, state.origin), [])
                known.append(state)
                if len(known) == 1:
                    for waiter in tuple(self._waiting[state.origin].get(state.head, ())):
                        advance_state(waiter, state.origin)
            if self._work > _BUDGET:
                raise Undecided("there are too many ways to read the lines of the plan")
        return following

    def build_candidates(self) -> CandidateWords | None:
        """All that the lines may stand for; None where they stand for nothing."""
        if self.longest < self._end or (self._root, 0) not in self._ended[self._end]:
            return None
        return _Forest(self._columns, self._ended).build_candidates((self._root, 0, self._end))


#: What is derived in the forest: a part on the lines from one position to another, or a state up to a position.
_Key = tuple[LinePart, int, int] | tuple[_ChartState, int]


class _Forest:
    """The derivations that a chart has, as a pushdown automaton that expands them."""

    def __init__(
        self,
        columns: Sequence[Mapping[_ChartState, Sequence[_Back]]],
        ended: Sequence[Mapping[tuple[LinePart, int], Sequence[_ChartState]]],
    ) -> None:
        self._columns, self._ended = columns, ended
        self._names: dict[_Key, str] = {}
        self._todo: list[_Key] = []
        #: For each terminal and its line (-1 for none) the stack symbol that represents the pair.
        self._leaves: dict[tuple[str, int], str] = {}

    def build_candidates(self, root: _Key) -> CandidateWords:
        """The automaton, and the line of each terminal."""
        bottom = "\0"
        begin = (self._name_key(root), bottom)
        rules: list[tuple[str, Word]] = []
        while self._todo:
            key = self._todo.pop()
            bodies = self._expand_part(*key) if len(key) == 3 else self._expand_state(*key)
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
        return CandidateWords(pda, lines, find_some_word(rules, begin[0], leaves))

    def _name_key(self, key: _Key) -> str:
        if key not in self._names:
            self._names[key] = f"\0{len(self._names)}"
            self._todo.append(key)
        return self._names[key]

    def _name_leaves(self, state: _ChartState, passed: int) -> Word:
        line = state.origin if state.body.starts_line else -1
        return tuple(
            self._leaves.setdefault((name, line), f"\0{name}\0{line}")
            for name in state.body.list_terminals_before(passed)
        )

    def _expand_part(self, part: LinePart, origin: int, at: int) -> Iterator[Word]:
        for state in self._ended[at][part, origin]:
            yield (self._name_key((state, at)), *self._name_leaves(state, len(state.body.parts)))

    def _expand_state(self, state: _ChartState, at: int) -> Iterator[Word]:
        if not state.passed:
            yield ()
        for origin, previous in dict.fromkeys(self._columns[at][state]):
            part = previous.body.parts[previous.passed]
            plain = self._name_leaves(state, previous.passed)
            yield (self._name_key((previous, origin)), *plain, self._name_key((part, origin, at)))


def find_some_word(rules: Sequence[tuple[str, Word]], start: str, leaves: Mapping[str, str]) -> Word:
    """A word that rules derive, found in linear time: each symbol by the first rule of which all parts derive one."""
    waiting: dict[str, list[int]] = {}
    missing = [len(body) for _, body in rules]
    for index, (_, body) in enumerate(rules):
        for name in body:
            waiting.setdefault(name, []).append(index)
    chosen: dict[str, Word] = {}
    ready = [*leaves]
    ready += _choose_rules(rules, chosen, (index for index, count in enumerate(missing) if not count))
    while ready:
        done = []
        for index in waiting.get(ready.pop(), ()):
            missing[index] -= 1
            done += [] if missing[index] else [index]
        ready += _choose_rules(rules, chosen, done)
    word: list[str] = []
    todo = [start]
    while todo:
        name = todo.pop()
        if name in leaves:
            word.append(leaves[name])
        else:
            todo += reversed(chosen[name])
    return tuple(word)


def _choose_rules(rules: Sequence[tuple[str, Word]], chosen: dict[str, Word], done: Iterable[int]) -> Iterator[str]:
    """Note the rules by which symbols are derived for the first time; these symbols."""
    for index in done:
        head, body = rules[index]
        if head not in chosen:
            chosen[head] = body
            yield head


def drop_dead_bodies(table: dict[LinePart, PartWays]) -> dict[LinePart, PartWays]:
    """The table less the bodies that no lines at all can have, so that whatever is begun can be ended."""
    living: set[LinePart] = set()

    def select_living(bodies: Iterable[PartBody]) -> list[PartBody]:
        return [body for body in bodies if living.issuperset(body.parts)]

    while fresh := {part for part, ways in table.items() if part not in living and select_living(ways.iter_bodies())}:
        living |= fresh

    return {
        part: PartWays(
            select_living(ways.free),
            {at: select_living(bodies) for at, bodies in ways.on.items()},
            {text: bodies for text, bodies in ways.could.items() if select_living(bodies)},
        )
        for part, ways in table.items()
    }
