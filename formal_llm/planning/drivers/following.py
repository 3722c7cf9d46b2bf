"""Following a draft: the moves of an automaton that agree with the steps of a text, as far as some do.

From where a walk stands, the configurations are looked at that the first steps of the draft lead to, those first that
are further on. A configuration from which no valid plan can be finished is none. So it is found whether the rest of the
draft is the rest of a valid plan, and else how far it goes; a bound on the configurations is all that could hide it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from formal_llm.automata import PDA, Lookahead
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.models.automaton import Configuration, Move
from formal_llm.automata.models.product import product
from formal_llm.automata.models.transition import Transition
from formal_llm.planning.reading.drafts import DraftStep, DraftSteps, is_silent
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.journal import ChoiceKey, JournalEntry
from formal_llm.planning.walks.walk import Walk

#: How many configurations are looked at, and how many more for each step of the draft.
_MOST, _EACH = 300, 20
#: A configuration, and how many steps of the draft are done with.
_Node = tuple[Hashable, int]


class DraftWay(NamedTuple):
    """Moves that agree with a draft.

    Attributes:
        moves: the moves.
        at: after each of them, and before the first, how many steps of the draft are done with.
        whole: whether they are the whole draft and end a valid plan.
    """

    moves: tuple[Move, ...]
    at: tuple[int, ...]
    whole: bool

    @property
    def reach(self) -> int:
        """How many steps of the draft are done with in the end."""
        return self.at[-1]


def find_way_along(
    table: ChoiceTable, configuration: Hashable, draft: DraftSteps, at: int = 0, *, whole: bool = False
) -> DraftWay | None:
    """The moves that agree with the steps of a draft from one of them on, furthest.

    Args:
        table: the choices of the automaton.
        configuration: where to begin.
        draft: the draft.
        at: how many of its steps are done with.
        whole: whether only moves are wanted that are all the rest of the draft and end a plan; else None.
    """
    with table.in_time():
        # To the letter first; then with decisions left out, and selections in another order.
        found = _DraftSearch(table, DraftSteps(draft.steps), at, whole=True, ordered=True).find_way(configuration)
        if found is None:
            found = _DraftSearch(table, draft, at, whole=True).find_way(configuration)
        if found is None and not whole:
            found = _DraftSearch(table, draft, at, whole=False).find_way(configuration)
    return found


class _DraftSearch:
    def __init__(self, table: ChoiceTable, draft: DraftSteps, at: int, *, whole: bool, ordered: bool = False) -> None:
        self._table, self._draft, self._at, self._whole, self._ordered = table, draft, at, whole, ordered
        self._end = len(draft.steps)
        self._most = _MOST + _EACH * (self._end - at)

    def find_way(self, configuration: Hashable) -> DraftWay | None:
        """The way from a configuration on."""
        way, sure = self._search_configurations(configuration, None)
        pda = self._table.lookahead.pda
        if way is not None or sure or pda is None or not self._ordered:
            return way
        return self._search_configurations(configuration, _RemainingWord(pda, self._draft.steps[self._at :]))[0]

    def _search_configurations(
        self, configuration: Hashable, rest: _RemainingWord | None
    ) -> tuple[DraftWay | None, bool]:
        """A way, and whether there is no better one for sure; with ``rest`` only words in the order of the draft."""
        ahead, number = self._table.lookahead, count()
        start = best = (configuration, self._at)
        back: dict[_Node, tuple[_Node, tuple[Move, ...]] | None] = {start: None}
        heap: list[tuple[float, int, int, _Node]] = [(0, 0, next(number), start)]
        looked = 0
        while heap and looked < self._most:
            _, since, _, node = heappop(heap)
            looked += 1
            if node[1] == self._end and self._table.automaton.accepting(node[0]):
                return _build_way(back, node, whole=True), True
            sets = len(ahead.selection(node[0]) or ()) > 1
            for moves, following in _expand_node(self._table, node, self._draft, ordered=self._ordered):
                if following in back or not self._is_open(following):
                    continue
                here, after = following
                left = -after if rest is None else rest.count_moves_left(ahead.uncounted(here), after - self._at)
                if left is None:
                    continue
                back[following] = (node, moves)
                # A set that nothing follows may have lost a member to a bad step: it is asked for.
                if after > best[1] and (not sets or after == self._end):
                    best = following
                heappush(heap, (left, 0 if after > node[1] else since + 1, next(number), following))
        return None if self._whole else _build_way(back, best, whole=False), not heap

    def _is_open(self, node: _Node) -> bool:
        """Whether a plan may be finished from there; a whole draft with the steps that are left of it."""
        here, done = node
        if self._table.look and not self._table.lookahead.completable(here).possible:
            return False
        short = not self._whole or self._draft.loose
        return short or self._table.lookahead.least_length(here, tries=0) <= self._end - done


class _RemainingWord:
    """Whether the rest of a word can be read from a configuration to the end, in how many moves at least.

    The automaton runs side by side with one that reads anything and then the rest of the word. This is exact also where
    there are more configurations than can be looked at (symbols that derive themselves); limits are about the word.
    """

    def __init__(self, pda: PDA, steps: Sequence[DraftStep]) -> None:
        moves = [Transition("before", name, None, "before") for name in pda.terminals]
        moves.append(Transition("before", None, None, 0))
        moves += [Transition(at, name, None, at + 1) for at, step in enumerate(steps) for name in step.names]
        chain = PDA(moves, start="before", accepting=[len(steps)], check=False)
        self._lookahead = Lookahead(product(pda.without_limits, chain))

    def count_moves_left(self, configuration: Configuration, done: int) -> float | None:
        """The moves that are left after this many steps of the rest; None where it cannot be read."""
        verdict = self._lookahead.completable(Configuration((configuration.state, done), configuration.stack))
        return None if not verdict.possible else verdict.steps or 0


def _expand_node(
    table: ChoiceTable, node: _Node, draft: DraftSteps, *, ordered: bool
) -> Iterator[tuple[tuple[Move, ...], _Node]]:
    """The moves from a configuration that agree with a draft, and what they lead to; of a selection, whole sets."""
    here, done = node
    chosen = table.lookahead.selection(here)
    if chosen is not None and len(chosen) > 1:
        for size, names in _list_prefix_sets(draft.steps[done:], chosen, ordered=ordered):
            subset = table.subset(here, names, INFINITE)
            if subset is not None:
                yield subset.moves, (table.after(here, subset), done + size)
        return
    step = draft.steps[done] if done < len(draft.steps) else None
    for move in table.automaton.moves(here):
        for after in _list_steps_done(move, step, done, loose=draft.loose):
            yield (move,), (table.automaton.step(here, move), after)


def _list_prefix_sets(
    steps: Sequence[DraftStep], members: Sequence[str], *, ordered: bool
) -> Iterator[tuple[int, frozenset[str]]]:
    """What the first steps choose of a selection, each set with how many steps these are; most first."""
    names: list[str] = []
    for step in steps:
        told = [name for name in members if name in step.names]
        before = names[-1:] if ordered else []
        if len(told) != 1 or told[0] in names or any(members.index(name) > members.index(told[0]) for name in before):
            break
        names.append(told[0])
    return ((size, frozenset(names[:size])) for size in range(len(names), 0, -1))


def _list_steps_done(move: Move, step: DraftStep | None, done: int, *, loose: bool) -> list[int]:
    """How many steps may be done with after a move."""
    after = [done + 1] if step is not None and step.is_made_by(move) and not _is_empty(move) else []
    return [*after, done] if is_silent(move, loose=loose) else after


def _is_empty(move: Move) -> bool:
    return move.read is None and not (isinstance(move, Transition) and move.text)


def _build_way(back: Mapping[_Node, tuple[_Node, tuple[Move, ...]] | None], node: _Node, *, whole: bool) -> DraftWay:
    moves: list[Move] = []
    at = [node[1]]
    while (before := back[node]) is not None:
        node, made = before
        moves += reversed(made)
        at += [node[1]] * len(made)
    return DraftWay(tuple(reversed(moves)), tuple(reversed(at)), whole)


def follow_way(walk: Walk, draft: DraftSteps, way: DraftWay) -> int:
    """Take a walk along a way as far as it goes; how many steps of the draft are done with then.

    It stops where the walk does not offer the choice of the way, where it went back from a dead end, and where the
    draft does not determine which of several decisions is meant.

    Raises:
        BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
    """
    base, backtracks = len(walk.moves), walk.backtracks
    made = 0
    while (entry := walk.choice) is not None and walk.backtracks == backtracks:
        fresh = walk.moves[base + made :]
        together = _count_common_moves(fresh, way.moves[made:])
        made += together
        if together < len(fresh):
            break
        key = _find_choice_key(walk, entry, way, made)
        if key is None or _is_undecided(walk, entry, draft, way, made, key) or not walk.take(key):
            break
    if walk.choice is None:
        return way.reach
    return way.at[min(made, len(way.moves))]


def _count_common_moves(made: Sequence[Move], way: Sequence[Move]) -> int:
    """How many moves both begin with."""
    return next(
        (n for n, (one, other) in enumerate(zip(made, way, strict=False)) if one != other), min(len(made), len(way))
    )


def _find_choice_key(walk: Walk, entry: JournalEntry, way: DraftWay, made: int) -> ChoiceKey | None:
    """The choice that a way makes after this many moves; None where it ends, or makes none that is offered."""
    rest = way.moves[made:]
    if entry.fork.several:
        members = entry.fork.scope.all_members
        reads: list[str] = []
        for name in (move.read for move in rest if move.read is not None):
            if name not in members or name in reads:
                break
            reads.append(name)
        for size in range(len(reads), 0, -1):
            names = frozenset(reads[:size])
            choice = walk.table.subset(entry.configuration, names, walk.left)
            if choice is not None and choice.moves == rest[: len(choice.moves)] and names >= entry.fork.scope.taken:
                return names
        return None
    for choice in entry.fork.iter_choices():
        if choice.index in entry.excluded:
            continue
        if choice.moves == rest[: len(choice.moves)] if choice.moves else way.whole and not rest:
            return choice.index
    return None


def _is_undecided(walk: Walk, entry: JournalEntry, draft: DraftSteps, way: DraftWay, made: int, key: ChoiceKey) -> bool:
    """Whether a way decides what the draft leaves open: another choice agrees with the whole draft, too."""
    if not draft.loose or entry.fork.several:
        return False
    at = way.at[made]
    chosen = next(choice for choice in entry.fork.iter_choices() if choice.index == key)
    if way.at[made + len(chosen.moves)] > at or not any(isinstance(m, Transition) and m.decision for m in chosen.moves):
        return False
    out = entry.excluded | {key}
    open_ = (one for one in entry.fork.iter_choices() if one.index not in out and one.moves)
    others = (walk.table.after(entry.configuration, one) for one in open_)
    return any(find_way_along(walk.table, other, draft, at, whole=True) is not None for other in others)
