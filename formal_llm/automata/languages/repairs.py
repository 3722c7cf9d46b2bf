"""All cheap ways to read a word with errors: a tabulation whose entries have costs.

The automaton runs side by side with the edit automaton of the word, which at each position may read the terminal that
stands there for nothing, another one (substitution), any terminal without moving on (insertion), or move on without
reading (deletion). The cheapest run through both is the cheapest repair (Aho and Peterson 1972, "A minimum distance
error-correcting parser for context-free languages").

As in :mod:`formal_llm.automata.models.tabulation`, the work on a stack symbol is tabulated once for each state and
position it begins at, so all runs together are an and-or graph of polynomial size. It is explored from the top and
cheapest first: an entry's priority is the least cost of getting to where its work begins plus its own cost, so that
nothing dearer than the cheapest repair is ever looked at (Knuth 1977, "A generalization of Dijkstra's algorithm"; in
the order of Nederhof 2003, "Weighted deductive parsing and Knuth's algorithm").
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import NamedTuple

from formal_llm.automata.languages.edits import EditWeights
from formal_llm.automata.languages.points import WorkPoint, WorkPoints, WorkShape
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import ACCEPTING
from formal_llm.automata.models.automaton import State, Word
from formal_llm.automata.models.pda import PDA


class RepairEdge(NamedTuple):
    """One way to get an entry: its price, the terminals one of which is read (none: nothing is), what it is made of."""

    head: int
    price: float
    reads: tuple[str, ...] = ()
    left: int | None = None
    right: int | None = None


class RepairGraph:
    """The and-or graph of the repairs of a word.

    Args:
        pda: the automaton.
        word: the word; symbols that the automaton does not know can only be deleted or substituted.
        weights: what edits cost.
        keep: whether to keep all edges, not only the cheapest one of each entry.

    Attributes:
        spans: for each entry, by number, the positions where it begins and ends.
        costs: the least cost of each.
        done: whether that is certain.
        edges: all edges found, where they are kept.
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
        #: For each call (a shape at a position): its exits, the entries that wait for it, what it takes to get there,
        #: and whether the same call one position earlier leaves out the symbol between.
        self._exits: dict[int, list[int]] = {0: []}
        self._waiting: dict[int, list[int]] = {0: []}
        self._base: dict[int, float] = {0: 0}
        self._skipping: set[int] = set()
        #: What is to be looked at, by priority: entries, and (as complements) calls that leave out a symbol.
        self._buckets: dict[tuple[float, int], deque[int]] = {}
        self._queue: list[tuple[float, int]] = []
        #: What is sure to be paid from each position on: symbols that no transition reads.
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
        """The priority of what would be looked at next; infinite when everything was."""
        while self._queue and not self._buckets[self._queue[0]]:
            del self._buckets[heapq.heappop(self._queue)]
        return self._queue[0][0] if self._queue else INFINITE

    def cheapest_word(self) -> Word | None:
        """The word of the cheapest repair; None where there is none."""
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
            read += names[:1]  # without limits one terminal is as good as another
            todo += [part for part in parts if part is not None]
        return tuple(reversed(read))

    def explore_up_to(self, bound: float, max_entries: float) -> bool:
        """Look at everything whose priority is at most ``bound``; False where there are too many entries for that."""
        while (first := self.next_priority) <= bound and first < INFINITE:
            if len(self.spans) > max_entries:
                return False
            self._take_next()
        return True

    # -- the work -----------------------------------------------------------------------------------------------

    def _take_next(self) -> None:
        """Take the first of the queue and draw the conclusions."""
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
        """Leave out the symbol at which a call begins."""
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
        """Read a terminal: the one that stands there, another one in its place, or one that is missing there."""
        weights = self._weights
        here = self._word[at] if at < self._end else None
        for state, names in leaves.items():
            after = self._plan.point_after_symbol(point, state)
            self._relax_entry(after, begin, at, cost + weights.insert, weights.insert, names, number)
            if here is None:
                continue
            if here in names:
                self._relax_entry(after, begin, at + 1, cost, 0, (here,), number)
            if here not in names or self._keep:  # under limits it may be better to replace what could stay
                others = tuple([name for name in names if name != here])
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
        # Among equals the one that is furthest in the word comes first: it is nearest to the goal.
        key = (priority, -position)
        bucket = self._buckets.get(key)
        if bucket is None:
            self._buckets[key] = deque([item])
            heapq.heappush(self._queue, key)
        else:
            bucket.append(item)
