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
from typing import NamedTuple

from formal_llm.automata.languages.edits import EditWeights
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import ACCEPTING
from formal_llm.automata.models.automaton import State, Word
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.tabulation import StackCall
from formal_llm.automata.models.transition import Transition

#: The work below which all that is left on the stack is left there.
_ROOT: StackCall = (ACCEPTING, "", -1)


class RepairEdge(NamedTuple):
    """One way to get an entry: its price, the terminal read, and the entries it is made of (None: fewer than two)."""

    head: int
    price: float
    read: str | None = None
    left: int | None = None
    right: int | None = None


class RepairItem(NamedTuple):
    """Part of the work on a stack symbol: ``rest`` is left of what was pushed for it, at a state and position."""

    call: StackCall
    rest: tuple[str | None, ...]
    state: State
    position: int


class Repairs:
    """The and-or graph of the repairs of a word.

    Args:
        pda: the automaton.
        word: the word; symbols that the automaton does not know can only be deleted or substituted.
        weights: what edits cost.
        keep: whether to keep all edges, not only the cheapest one of each entry.

    Attributes:
        entries: the entries, by number.
        costs: the least cost of each.
        done: whether that is certain.
        edges: all edges found, where they are kept.
        goal: the number of the entry for the whole word.
    """

    def __init__(self, pda: PDA, word: Word, weights: EditWeights, *, keep: bool = False) -> None:
        self._pda = pda
        self._word = word
        self._weights = weights
        self._keep = keep
        self.entries: list[RepairItem] = []
        self.costs: list[float] = []
        self.done: list[bool] = []
        self.edges: list[RepairEdge] = []
        self._best: list[RepairEdge | None] = []
        self._numbers: dict[RepairItem, int] = {}
        self._exits: dict[StackCall, list[int]] = {}
        self._waiting: dict[StackCall, list[int]] = {}
        self._base: dict[StackCall, float] = {_ROOT: 0}
        self._queue: list[tuple[float, int, int, int | tuple[StackCall, Transition, int]]] = []
        self._tie = 0
        #: What is sure to be paid from each position on: symbols that no transition reads.
        self._sure: list[float] = [0]
        for name in reversed(word):
            self._sure.append(self._sure[-1] + (0 if name in pda.terminals else weights.lost))
        self._sure.reverse()
        self._exits[_ROOT] = []
        self._waiting[_ROOT] = []
        self.goal = self._number(RepairItem(_ROOT, (), ACCEPTING, len(word) + 1))
        self._relax(RepairItem(_ROOT, (*pda.start_stack, None), pda.start_state, 0), 0, 0)

    @property
    def next(self) -> float:
        """The priority of what would be looked at next; infinite when everything was."""
        return self._queue[0][0] if self._queue else INFINITE

    def word(self) -> Word | None:
        """The word of the cheapest repair; None where there is none."""
        while self._queue and not self.done[self.goal]:
            self._work()
        if not self.done[self.goal]:
            return None
        read: list[str] = []
        todo = [self.goal]
        while todo:
            edge = self._best[todo.pop()]
            assert edge is not None
            if edge.read is not None:
                read.append(edge.read)
            todo += (part for part in (edge.right, edge.left) if part is not None)
        return tuple(read)

    def explore(self, bound: float, max_entries: float) -> bool:
        """Look at everything whose priority is at most ``bound``; False where there are too many entries for that."""
        while self._queue and self._queue[0][0] <= bound:
            if len(self.entries) > max_entries:
                return False
            self._work()
        return True

    # -- the work -----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Take the first of the queue and draw the conclusions."""
        _, _, _, item = heapq.heappop(self._queue)
        if isinstance(item, tuple):
            self._read(*item)
            return
        if self.done[item]:
            return
        self.done[item] = True
        if item == self.goal:
            return
        entry, cost = self.entries[item], self.costs[item]
        call, rest, state, position = entry
        if not rest:
            if call == _ROOT:
                left = len(self._word) - position
                last = RepairItem(_ROOT, (), ACCEPTING, len(self._word) + 1)
                price = left * self._weights.delete
                self._relax(last, cost + price, price, left=item)
                return
            self._exits[call].append(item)
            for waiting in self._waiting[call]:
                self._combine(waiting, item)
            return
        inner: StackCall = (state, rest[0], position)
        if inner not in self._base:
            self._base[inner] = self._base[call] + cost
            self._begin(inner)
        self._waiting[inner].append(item)
        for found in self._exits[inner]:
            self._combine(item, found)

    def _begin(self, call: StackCall) -> None:
        self._exits[call] = []
        self._waiting[call] = []
        state, top, position = call
        if state is ACCEPTING or state in self._pda.accepting_states:
            self._relax(RepairItem(call, (), ACCEPTING, position), 0, 0)
        for transition in self._pda.transitions_at(state, top):
            if transition.read is None:
                self._relax(_after(call, transition, position), 0, 0)
            else:
                price = self._weights.insert
                self._relax(_after(call, transition, position), price, price, read=transition.read)
                self._read(call, transition, position)

    def _read(self, call: StackCall, transition: Transition, position: int) -> None:
        """Read at ``position``, all symbols from the call's own position to there deleted; or delete that one too."""
        if position == len(self._word):
            return
        deleted = (position - call[2]) * self._weights.delete
        price = deleted + (0 if self._word[position] == transition.read else self._weights.substitute)
        self._relax(_after(call, transition, position + 1), price, price, read=transition.read)
        priority = self._base[call] + deleted + self._weights.delete + self._sure[position + 1]
        self._push(priority, position + 1, (call, transition, position + 1))

    def _combine(self, left: int, right: int) -> None:
        call, rest, _, _ = self.entries[left]
        _, _, state, position = self.entries[right]
        self._relax(
            RepairItem(call, rest[1:], state, position), self.costs[left] + self.costs[right], 0, left=left, right=right
        )

    def _relax(
        self, entry: RepairItem, cost: float, price: float, *, read: str | None = None, left: int | None = None,
        right: int | None = None,
    ) -> None:  # fmt: skip
        number = self._number(entry)
        edge = RepairEdge(number, price, read, left, right)
        if self._keep:
            self.edges.append(edge)
        if cost < self.costs[number]:
            self.costs[number] = cost
            self._best[number] = edge
            sure = 0 if number == self.goal else self._sure[entry.position]
            self._push(self._base[entry.call] + cost + sure, entry.position, number)

    def _push(self, priority: float, position: int, item: int | tuple[StackCall, Transition, int]) -> None:
        # Among equals the one that is furthest in the word comes first: it is nearest to the goal.
        self._tie += 1
        heapq.heappush(self._queue, (priority, -position, self._tie, item))

    def _number(self, entry: RepairItem) -> int:
        number = self._numbers.get(entry)
        if number is None:
            number = self._numbers[entry] = len(self.entries)
            self.entries.append(entry)
            self.costs.append(INFINITE)
            self.done.append(False)
            self._best.append(None)
        return number


def _after(call: StackCall, transition: Transition, position: int) -> RepairItem:
    rest: tuple[str | None, ...] = transition.push
    if transition.pop is None:
        rest = (*rest, call[1])
    return RepairItem(call, rest, transition.target, position)
