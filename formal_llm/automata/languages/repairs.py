"""All cheap ways to read a word with errors: a tabulation whose entries have costs.

The automaton runs in parallel with the edit automaton of the word, which at each position may read the terminal
there at no cost, another one (substitution), any terminal without advancing (insertion), or advance without
reading (deletion). The cheapest run through both is the cheapest repair (Aho and Peterson 1972, "A minimum distance
error-correcting parser for context-free languages").

As in :mod:`formal_llm.automata.models.tabulation`, the work on a stack symbol is tabulated once for each state and
position where it begins, so all runs together are an and-or graph of polynomial size. It is explored top-down and
cheapest first: the priority of an entry is the least cost of reaching the beginning of its work plus its own cost, so
nothing more expensive than the cheapest repair is ever examined (Knuth 1977, "A generalization of Dijkstra's
algorithm"; in the order of Nederhof 2003, "Weighted deductive parsing and Knuth's algorithm").
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from formal_llm.automata.languages.edits import EditWeights
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import ACCEPTING
from formal_llm.automata.models.automaton import State, Word
from formal_llm.automata.models.pda import PDA


class WorkShape:
    """A stack symbol in a state, at any position of the word where it is processed.

    Attributes:
        moves: for each transition, what it reads and the point after it.
        leaves: if it can only read one terminal: the terminals for each state afterwards.
        accepts: whether the run may accept there.
    """

    __slots__ = ("accepts", "ends", "leaves", "moves", "number", "state", "top")

    def __init__(self, number: int, state: State, top: str | None) -> None:
        self.number = number
        self.state = state
        self.top = top
        self.moves: list[tuple[str | None, WorkPoint]] = []
        self.leaves: dict[State, tuple[str, ...]] | None = None
        self.accepts = False
        #: The points where nothing is left to pop, by state.
        self.ends: dict[State, WorkPoint] = {}


class WorkPoint:
    """The progress of the work on a stack symbol: the rest of what was pushed for it, in a state."""

    __slots__ = ("after", "inner", "number", "rest", "shape", "state")

    def __init__(self, number: int, shape: WorkShape, rest: tuple[str | None, ...], state: State) -> None:
        self.number = number
        self.shape = shape
        self.rest = rest
        self.state = state
        #: The shape to process next; None if nothing is left.
        self.inner: WorkShape | None = None
        #: The point after that, by the state in which it is reached.
        self.after: dict[State, WorkPoint] = {}


class WorkPoints:
    """The shapes and points of an automaton, created on demand."""

    def __init__(self, pda: PDA) -> None:
        self._pda = pda
        self._shapes: dict[tuple[State, str | None], WorkShape] = {}
        self._points: dict[tuple[int, tuple[str | None, ...], State], WorkPoint] = {}
        self.root = WorkShape(0, ACCEPTING, None)
        self.shapes = [self.root]

    def get_point(self, shape: WorkShape, rest: tuple[str | None, ...], state: State) -> WorkPoint:
        """Return the point of a shape with this rest, in a state."""
        key = (shape.number, rest, state)
        found = self._points.get(key)
        if found is None:
            found = self._points[key] = WorkPoint(len(self._points), shape, rest, state)
            if rest:
                found.inner = self.get_shape(state, rest[0])
        return found

    def point_after_symbol(self, point: WorkPoint, state: State) -> WorkPoint:
        """Return the point after the next symbol, if that was popped in ``state``."""
        found = point.after.get(state)
        if found is None:
            found = point.after[state] = self.get_point(point.shape, point.rest[1:], state)
        return found

    def get_shape(self, state: State, top: str | None) -> WorkShape:
        """Return the shape of a symbol on top in a state; None denotes the empty stack."""
        found = self._shapes.get((state, top))
        if found is None:
            found = self._shapes[state, top] = WorkShape(len(self.shapes), state, top)
            self.shapes.append(found)
            found.accepts = state is ACCEPTING or state in self._pda.accepting_states
            found.leaves = None if found.accepts else self._find_leaf_terminals(state, top)
        return found

    def _find_leaf_terminals(self, state: State, top: str | None) -> dict[State, tuple[str, ...]] | None:
        """Return the terminals if a symbol can only read one, or is a choice of such symbols; otherwise None."""
        found: dict[State, dict[str, None]] = {}
        for t in self._pda.transitions_at(state, top):
            if t.pop is None:
                return None
            if t.read is not None and not t.push:
                found.setdefault(t.target, {})[t.read] = None
            elif t.read is None and len(t.push) == 1 and t.target not in self._pda.accepting_states:
                for one in self._pda.transitions_at(t.target, t.push[0]):
                    if one.read is None or one.pop is None or one.push:
                        return None
                    found.setdefault(one.target, {})[one.read] = None
            else:
                return None
        return {target: tuple(names) for target, names in found.items()}

    def list_moves(self, shape: WorkShape) -> list[tuple[str | None, WorkPoint]]:
        """Return for each transition of a shape what it reads, and the point after it."""
        if not shape.moves:
            for t in self._pda.transitions_at(shape.state, shape.top):
                rest: tuple[str | None, ...] = t.push if t.pop is not None else (*t.push, shape.top)
                shape.moves.append((t.read, self.get_point(shape, rest, t.target)))
        return shape.moves

    def may_delete(self, shape: WorkShape) -> bool:
        """Return whether a symbol of the word is deleted where the work on a shape begins.

        Each deletion occurs at one place: before a terminal that is not the first thing read on behalf of a symbol, at
        the terminal, otherwise where the outermost symbol begins that reads nothing before. Only if that always
        begins with the work on another symbol, the deletion is left to that symbol.
        """
        moves = self.list_moves(shape)
        if _reads_nothing(moves):
            return False
        return any(
            read is not None
            or point.inner is None
            or point.inner.leaves is not None
            or _reads_nothing(self.list_moves(point.inner))
            for read, point in moves
        )


def _reads_nothing(moves: Sequence[tuple[str | None, WorkPoint]]) -> bool:
    """Return whether a symbol can only be popped without reading anything."""
    return all(read is None and point.inner is None for read, point in moves)


class RepairEdge(NamedTuple):
    """One way to derive an entry: its price, the terminals of which one is read (empty if none), and its parts."""

    head: int
    price: float
    reads: tuple[str, ...] = ()
    left: int | None = None
    right: int | None = None


class RepairGraph:
    """The and-or graph of the repairs of a word.

    Args:
        word: the word; symbols that are unknown to the automaton can only be deleted or substituted.
        keep: whether to keep all edges instead of only the cheapest one of each entry.

    Attributes:
        spans: for each entry, by number, the positions where it begins and ends.
        costs: the least known cost of each.
        done: whether that cost is final.
        edges: all edges found, if they are kept.
        goal: the number of the entry for the whole word.
    """

    def __init__(self, pda: PDA, word: Word, weights: EditWeights, *, keep: bool = False) -> None:
        self._plan = plan = WorkPoints(pda)
        self._word = word
        self._end = len(word)
        self._width = len(word) + 3
        self._weights = weights
        self._keep = keep
        self.spans: list[tuple[int, int]] = []
        self.costs: list[float] = []
        self.done: list[bool] = []
        self.edges: list[RepairEdge] = []
        self._points: list[WorkPoint] = []
        self._best: list[tuple[tuple[str, ...], int | None, int | None] | None] = []
        self._numbers: dict[int, int] = {}
        #: For each call (a shape at a position): its exits, the entries that wait for it, the cost of reaching it,
        #: and whether the same call one position earlier deletes the symbol between.
        self._exits: dict[int, list[int]] = {0: []}
        self._waiting: dict[int, list[int]] = {0: []}
        self._base: dict[int, float] = {0: 0}
        self._skipping: set[int] = set()
        #: The agenda, by priority: entries, and (as complements) calls that delete a symbol.
        self._buckets: dict[tuple[float, int], deque[int]] = {}
        self._queue: list[tuple[float, int]] = []
        #: The unavoidable cost from each position on: symbols that no transition reads.
        self._sure: list[float] = [0]
        for name in reversed(word):
            self._sure.append(self._sure[-1] + (0 if name in pda.terminals else weights.lost))
        self._sure.reverse()
        self._sure.append(0)
        last = plan.get_point(plan.root, (), ACCEPTING)
        self.goal = self._number_of_entry(last, -1, self._end + 1)
        self._relax_entry(plan.get_point(plan.root, (*pda.start_stack, None), pda.start_state), -1, 0, 0, 0)

    @property
    def next_priority(self) -> float:
        """The priority of the next item of the agenda; infinite if it is empty."""
        while self._queue and not self._buckets[self._queue[0]]:
            del self._buckets[heapq.heappop(self._queue)]
        return self._queue[0][0] if self._queue else INFINITE

    def cheapest_word(self) -> Word | None:
        """Return the word of the cheapest repair; None if there is none."""
        while not self.done[self.goal] and self.next_priority < INFINITE:
            self._take_next()
        if not self.done[self.goal]:
            return None
        read: list[str] = []
        todo = [self.goal]
        while todo:
            edge = self._best[todo.pop()]
            assert edge is not None
            names, *parts = edge
            read += names[:1]  # without limits all terminals are equivalent
            todo += [part for part in parts if part is not None]
        return tuple(reversed(read))

    def explore_up_to(self, bound: float, max_entries: float) -> bool:
        """Process everything with a priority of at most ``bound``; return False if there are too many entries."""
        while (first := self.next_priority) <= bound and first < INFINITE:
            if len(self.spans) > max_entries:
                return False
            self._take_next()
        return True

    # -- processing ---------------------------------------------------------------------------------------------

    def _take_next(self) -> None:
        """Take the first item of the queue and process its consequences."""
        bucket = self._buckets[self._queue[0]]
        item = bucket.popleft()
        if item < 0:
            self._begin_after_deletion(~item)
        elif not self.done[item]:
            self.done[item] = True
            if item != self.goal:
                self._conclude_entry(item)

    def _conclude_entry(self, number: int) -> None:
        point, (begin, at), cost = self._points[number], self.spans[number], self.costs[number]
        inner = point.inner
        call = point.shape.number * self._width + begin + 1
        if inner is None:
            if point.shape is self._plan.root:
                price = (self._end - at) * self._weights.delete
                self._relax_entry(point, -1, self._end + 1, cost + price, price, left=number)
                return
            self._exits[call].append(number)
            for waiting in self._waiting[call]:
                self._combine_entries(waiting, number)
            if call in self._skipping:
                price = self._weights.delete
                self._relax_entry(point, begin - 1, at, cost + price, price, left=number)
            return
        if inner.leaves is not None:
            self._read_terminal(number, point, inner.leaves, begin, at, cost)
            return
        key = inner.number * self._width + at + 1
        if key not in self._base:
            self._base[key] = self._base[call] + cost
            self._begin_call(inner, key, at)
        self._waiting[key].append(number)
        for found in self._exits[key]:
            self._combine_entries(number, found)

    def _begin_call(self, shape: WorkShape, call: int, at: int) -> None:
        self._exits[call] = []
        self._waiting[call] = []
        if shape.accepts:
            self._relax_entry(self._plan.get_point(shape, (), ACCEPTING), at, at, 0, 0)
        for read, point in self._plan.list_moves(shape):
            if read is None:
                self._relax_entry(point, at, at, 0, 0)
                continue
            self._relax_entry(point, at, at, self._weights.insert, self._weights.insert, (read,))
            if at < self._end:
                price = 0 if self._word[at] == read else self._weights.substitute
                self._relax_entry(point, at, at + 1, price, price, (read,))
        if at < self._end and self._plan.may_delete(shape):
            self._push_item(self._base[call] + self._weights.delete + self._sure[at + 1], at + 1, ~call)

    def _begin_after_deletion(self, call: int) -> None:
        """Delete the symbol at which a call begins."""
        number, at = divmod(call, self._width)
        later, price = call + 1, self._weights.delete
        if later not in self._base:
            self._base[later] = self._base[call] + price
            self._begin_call(self._plan.shapes[number], later, at)
        self._skipping.add(later)
        for found in self._exits[later]:
            end = self.spans[found][1]
            self._relax_entry(self._points[found], at - 1, end, self.costs[found] + price, price, left=found)

    def _read_terminal(
        self, number: int, point: WorkPoint, leaves: dict[State, tuple[str, ...]], begin: int, at: int, cost: float
    ) -> None:
        """Read a terminal: the one at this position, another one in its place, or one that is missing there."""
        weights = self._weights
        symbol = self._word[at] if at < self._end else None
        for state, names in leaves.items():
            after = self._plan.point_after_symbol(point, state)
            self._relax_entry(after, begin, at, cost + weights.insert, weights.insert, names, number)
            if symbol is None:
                continue
            if symbol in names:
                self._relax_entry(after, begin, at + 1, cost, 0, (symbol,), number)
            if symbol not in names or self._keep:  # under limits it may be better to replace a terminal that could stay
                others = tuple([name for name in names if name != symbol])
                if others:
                    self._relax_entry(
                        after, begin, at + 1, cost + weights.substitute, weights.substitute, others, number
                    )
        if begin < at < self._end:
            self._relax_entry(point, begin, at + 1, cost + weights.delete, weights.delete, left=number)

    def _combine_entries(self, left: int, right: int) -> None:
        after = self._plan.point_after_symbol(self._points[left], self._points[right].state)
        begin, end = self.spans[left][0], self.spans[right][1]
        self._relax_entry(after, begin, end, self.costs[left] + self.costs[right], 0, left=left, right=right)

    def _relax_entry(
        self, point: WorkPoint, begin: int, end: int, cost: float, price: float, reads: tuple[str, ...] = (),
        left: int | None = None, right: int | None = None,
    ) -> None:  # fmt: skip
        number = self._number_of_entry(point, begin, end)
        if self._keep:
            self.edges.append(RepairEdge(number, price, reads, left, right))
        if cost < self.costs[number]:
            self.costs[number] = cost
            self._best[number] = (reads, left, right)
            base = self._base[point.shape.number * self._width + begin + 1]
            self._push_item(base + cost + self._sure[end], end, number)

    def _number_of_entry(self, point: WorkPoint, begin: int, end: int) -> int:
        key = (point.number * self._width + begin + 1) * self._width + end
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.spans)
            self.spans.append((begin, end))
            self.costs.append(INFINITE)
            self.done.append(False)
            self._points.append(point)
            self._best.append(None)
        return number

    def _push_item(self, priority: float, position: int, item: int) -> None:
        # Ties: the item furthest in the word comes first, since it is nearest to the goal.
        key = (priority, -position)
        bucket = self._buckets.get(key)
        if bucket is None:
            self._buckets[key] = deque([item])
            heapq.heappush(self._queue, key)
        else:
            bucket.append(item)
