"""What can be done at a stack top, judged at once wherever that top lies.

Some moves in a row from a (state, stack top) do the same whatever lies below: they read the same terminals, lead to the
same state and put the same symbols in the place of the top. So what they ask for is worked out once. Which of them can
be finished at a configuration is then only a matter of what lies below the top and of what is left, and no stack is
built to find out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.stacks import Unresolved
from formal_llm.automata.lookahead.verdicts import FILTER, SEARCH, TALLY, TIME
from formal_llm.automata.models.automaton import Configuration, State

_BY_FILTER, _BY_SEARCH = TALLY[FILTER], TALLY[SEARCH]


class Branch(NamedTuple):
    """Moves in a row: how many (none: to stop here), what they read, where they lead when only the top is there."""

    moves: int
    reads: tuple[str, ...]
    after: Configuration


class BranchLeap(NamedTuple):
    """The moves of a branch in one: where they lead, what is put in the place of the top, what is read and taken."""

    target: State
    pushed: tuple[str, ...]
    reads: tuple[str, ...]
    need: int


class JudgedBranches(NamedTuple):
    """Branches, judged at a configuration; sets of branches are numbers with a bit for each.

    Attributes:
        able: those that a plan may be finished after.
        reach: the moves that finish a plan after any of them that is decided (its own included), but for what is sure
            to come below the top.
        unknown: those of which it is not known.
        open: those of these that were left because of the time: asked again, they may be decided.
        tally: what decided how many, as :data:`TALLY` counts them.
    """

    able: int
    reach: float
    unknown: int = 0
    open: int = 0
    tally: int = 0


class _BranchRow(NamedTuple):
    """A branch that may be finished somewhere, and what it asks for."""

    bit: int
    steps: float  # its own moves, and those that complete what it adds and what is free
    reads: tuple[str, ...]
    need: int  # as the counters pack it: exact for each terminal
    promised: int
    take: int  # as the resources pack it: interchangeable terminals together
    pending: int
    paid: int


class Branches:
    """The branches at a (state, stack top).

    Args:
        search: the search of the automaton; no stack symbol of it can be done with in more than one way.
        state: the state.
        top: the symbol on top, None for the empty stack.
        branches: what can be done there.

    Attributes:
        leaps: for each branch its moves in one; None where that is not possible, or the branch leads nowhere.
    """

    def __init__(self, search: CompletionSearch, state: State, top: str | None, branches: Iterable[Branch]) -> None:
        self._search = search
        self._state = state
        self._version = search.demands.version
        self._rows: list[_BranchRow] = []
        #: The branch that stops here, as a bit: what could be done instead does not count.
        self._stop = 0
        self.leaps: list[BranchLeap | None] = []
        demands, resources = search.demands, search.demands.resources
        for number, (moves, reads, after) in enumerate(branches):
            pushed = tuple(after.stack)
            # On an empty stack nothing lies below: what comes after the moves is all that is left to do.
            added = (
                demands.demand_of_pushed(after.state, pushed) if top is not None else demands.for_configuration(*after)
            )
            need = sum(search.counters.need.get(name, 0) for name in reads)
            alive = added.least_steps < INFINITE
            if alive and not moves:
                self._stop |= 1 << number
            elif alive:
                take = resources.pack_need(need) + (resources.pack_need(added.promised) if added.promised else 0)
                steps = moves + added.free_steps
                self._rows.append(
                    _BranchRow(1 << number, steps, reads, need, added.promised, take, added.pending, added.paid)
                )
            self.leaps.append(BranchLeap(after.state, pushed, reads, need) if alive and moves else None)

    @property
    def is_stale(self) -> bool:
        """Whether more is known of the automaton by now, so that they must be made anew."""
        return self._version != self._search.demands.version

    def judge_branches(self, configuration: Configuration, remaining: int, needed: int) -> JudgedBranches:
        """Which branches a plan may be finished after, with what is left of the bounds."""
        search = self._search
        below = search.demands.demand_below(self._state, configuration.stack)
        if below is None or below.least_steps == INFINITE:
            return JudgedBranches(0, 0.0, tally=len(self.leaps) * _BY_FILTER)
        counters, guard = search.counters, search.counters.guard
        pending, unresolved, reach = below.pending, below.unresolved, 0.0
        able = 0 if needed else self._stop
        always = pending or unresolved is not None
        remaining -= below.promised
        if needed and below.paid:
            needed = counters.subtract_paid(needed, below.paid)
        left = search.demands.resources.resources_left(remaining)
        search.work.share_among(len(self._rows))
        decide = search.decide_rest
        tally = searched = 0
        doubtful: list[tuple[_BranchRow, int]] = []
        for row in self._rows:
            bit, needs, reads, need, promised, take, more, paid = row
            rest = remaining - need
            if rest & guard != guard or (promised and (rest - promised) & guard != guard):
                continue
            due = counters.subtract_paid(counters.pay_all(reads, needed), paid) if needed else 0
            if always or more or due:
                steps, how = decide(pending + more, unresolved, left - take, due)
                if steps == UNKNOWN:
                    doubtful.append((row, due))
                    continue
                if how is not FILTER:  # what is left at the end was decided by filters
                    searched += 1
                    tally += TALLY.get(how, _BY_SEARCH)
                if steps == INFINITE:
                    continue
                needs += steps
            able |= bit
            if needs > reach:
                reach = needs
        tally += (len(self.leaps) - searched - len(doubtful)) * _BY_FILTER
        judged = JudgedBranches(able, reach, tally=tally)
        return self._judge_again(doubtful, judged, pending, unresolved, left) if doubtful else judged

    def _judge_again(
        self,
        doubtful: Sequence[tuple[_BranchRow, int]],
        judged: JudgedBranches,
        pending: int,
        unresolved: Unresolved,
        left: int,
    ) -> JudgedBranches:
        """Judge what was not decided once more, with what the other branches have left of the time."""
        able, reach, unknown, undecided, tally = judged
        search = self._search
        for place, (row, due) in enumerate(doubtful):
            if search.work.left <= 0:
                late = sum([row.bit for row, _ in doubtful[place:]])
                able, unknown, undecided = able | late, unknown | late, undecided | late
                return JudgedBranches(able, reach, unknown, undecided, tally + (len(doubtful) - place) * TALLY[TIME])
            search.work.share_among(len(doubtful) - place)
            steps, how = search.decide_rest(pending + row.pending, unresolved, left - row.take, due)
            tally += TALLY.get(how, _BY_SEARCH)
            if steps == INFINITE:
                continue
            able |= row.bit
            if steps == UNKNOWN:
                unknown |= row.bit
                undecided |= row.bit if how is TIME else 0
            else:
                reach = max(reach, row.steps + steps)
        return JudgedBranches(able, reach, unknown, undecided, tally)
