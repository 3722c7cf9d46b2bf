"""The nearest word of a language: the one with the cheapest edits.

Inserting, deleting and substituting a symbol each have a weight; the distance of two words is the least weight of edits
that turn one into the other (Levenshtein 1966; the algorithm is that of Wagner and Fischer 1974).

The nearest word is found by A* (Hart, Nilsson and Raphael 1968) over pairs of a position in the given word and a
configuration: a move that reads nothing is free, one that reads the terminal at the position advances, another terminal
is put in its place or in front of it, and the position may advance without a move. That works for every automaton, with
its limits. In the presence of limits the problem is NP-hard (from the empty word it asks whether there is a word at
all), and where moves without input make the stack grow without end, the pairs are too many; so all is bounded.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count
from typing import Literal, NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.limited import LimitedAutomaton
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import Move, Word
from formal_llm.automata.models.symbols import Order

#: The seconds in which lookahead may find out, of all configurations together, which are dead ends.
_PRUNING_TIME = 2.0


@dataclass(frozen=True, slots=True)
class EditWeights:
    """The costs of edits.

    Args:
        insert: the cost of adding a missing terminal.
        delete: the cost of removing a terminal.
        substitute: the cost of replacing a terminal by another.

    Raises:
        ValueError: a weight is negative or not finite.
    """

    insert: int | float = 1
    delete: int | float = 1
    substitute: int | float = 1

    def __post_init__(self) -> None:
        for name in ("insert", "delete", "substitute"):
            weight = getattr(self, name)
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of {name} must be a number from 0, not {weight!r}")


#: Weights by which every edit costs the same.
UNIT_WEIGHTS = EditWeights()


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a word.

    Attributes:
        position: the index in the word before any edit; an insertion comes before that index.
        old: the removed terminal; None for an insertion.
        new: the added terminal; None for a deletion.
    """

    kind: Literal["insert", "delete", "substitute"]
    position: int
    old: str | None = None
    new: str | None = None

    def __str__(self) -> str:
        if self.kind == "insert":
            return f"insert {self.new} at place {self.position + 1}"
        if self.kind == "delete":
            return f"delete {self.old} at place {self.position + 1}"
        return f"replace {self.old} at place {self.position + 1} by {self.new}"


def find_edits(word: Word, other: Word, weights: EditWeights = UNIT_WEIGHTS) -> tuple[Edit, ...]:
    """Return the cheapest edits that turn ``word`` into ``other``, from left to right, and as late as possible."""
    # What it costs to turn the rest of the one, from a place on, into the rest of the other.
    rows = [[column * weights.insert for column in range(len(other), -1, -1)]]
    for old in reversed(word):
        below = rows[-1]
        row = [below[-1] + weights.delete]
        for to in range(len(other) - 1, -1, -1):
            kept = below[to + 1] + (0 if old == other[to] else weights.substitute)
            row.append(min(kept, below[to] + weights.delete, row[-1] + weights.insert))
        rows.append(row[::-1])
    rows.reverse()
    edits: list[Edit] = []
    at = to = 0
    while at < len(word) or to < len(other):
        cost = rows[at][to]
        both = at < len(word) and to < len(other)
        same = both and word[at] == other[to]
        if both and cost == rows[at + 1][to + 1] + (0 if same else weights.substitute):
            if not same:
                edits.append(Edit("substitute", at, word[at], other[to]))
            at, to = at + 1, to + 1
        elif at < len(word) and cost == rows[at + 1][to] + weights.delete:
            edits.append(Edit("delete", at, word[at]))
            at += 1
        else:
            edits.append(Edit("insert", at, None, other[to]))
            to += 1
    return tuple(edits)


def turn_edits(edits: Sequence[Edit], length: int, order: Order) -> Sequence[Edit]:
    """Return the edits of a word with so many symbols as edits of what :func:`turn_word` makes of it."""
    if order == "forward":
        return edits
    # What is inserted before a place in the word comes behind it when the word is turned.
    return [replace(edit, position=length - edit.position - (edit.kind != "insert")) for edit in reversed(edits)]


class Nearest(NamedTuple):
    """The nearest word and its distance.

    Attributes:
        word: a word with the least distance; None if there is none, or none was found.
        edits: the edits that turn the given word into it.
        distance: the cost of those edits; infinite if there is no word.
        decided: False if the budget of states ran out before a nearest word was known.
    """

    word: Word | None
    edits: tuple[Edit, ...] = ()
    distance: int | float = INFINITE
    decided: bool = True


def nearest(
    lookahead: Lookahead, word: Sequence[str], weights: EditWeights = UNIT_WEIGHTS, *, max_states: int = 50_000
) -> Nearest:
    """Find the nearest word of the automaton of ``lookahead``, within its limits.

    Args:
        lookahead: the lookahead of any automaton.
        word: any word.
        weights: the costs of edits.
        max_states: how many pairs of a position and a configuration the search may examine.
    """
    word = tuple(word)
    with lookahead.work.limit_seconds(_PRUNING_TIME):
        way, decided = _Search(lookahead, word, weights).find_way(max_states, lookahead.automaton.start())
    if way is None:
        return Nearest(None, decided=decided)
    found = tuple(move.read for move in way.moves if move.read is not None)
    edits = find_edits(word, found, weights)
    return Nearest(found, edits, sum(getattr(weights, edit.kind) for edit in edits))


class Continuation(NamedTuple):
    """The moves from a configuration to the end that are nearest to a word.

    Attributes:
        moves: the moves.
        kept: for each of them, whether it reads the next symbol of the word, with nothing left out before it.
        distance: the cost of the edits, those before the configuration included.
    """

    moves: tuple[Move, ...]
    kept: tuple[bool, ...]
    distance: float


def find_continuation(
    lookahead: Lookahead,
    start: Hashable,
    word: Word,
    begun: Word = (),
    free: Collection[str] = (),
    *,
    max_states: int = 50_000,
) -> Continuation | None:
    """Return the moves from a configuration on that end the word nearest to ``word``; None where none was found.

    Args:
        lookahead: the lookahead of any automaton.
        start: the configuration.
        word: any word.
        begun: what was read before the configuration.
        free: terminals that cost nothing where ``word`` does not have them.
        max_states: how many pairs of a position and a configuration the search may examine.
    """  # fmt: skip
    read = tuple(name for name in begun if name not in free)
    search = _Search(lookahead, word, UNIT_WEIGHTS, frozenset(free))
    with lookahead.work.limit_seconds(_PRUNING_TIME):
        return search.find_way(max_states, start, compare_beginnings(read, word))[0]


def compare_beginnings(begun: Word, word: Word) -> list[float]:
    """Return what it costs to turn each beginning of ``word`` into ``begun``."""
    row: list[float] = list(range(len(word) + 1))
    for name in begun:
        above, row = row, [row[0] + 1]
        for at, old in enumerate(word):
            row.append(min(above[at] + (old != name), above[at + 1] + 1, row[-1] + 1))
    return row


#: A position in the word and a configuration; the position after the end is that of an accepted word.
_State = tuple[int, Hashable]


class _Search:
    """The search for the cheapest way through the word and the automaton."""

    def __init__(
        self, lookahead: Lookahead, word: Word, weights: EditWeights, free: frozenset[str] = frozenset()
    ) -> None:
        self._lookahead, self._automaton = lookahead, lookahead.automaton
        self._word, self._weights, self._free = word, weights, free
        known = set(self._automaton.terminals)
        #: How many symbols from each position on the automaton does not know.
        self._unknown = list(accumulate((name not in known for name in reversed(word)), initial=0))[::-1]
        self._least_loss = min(weights.delete, weights.substitute)
        #: The upper limits that the word breaks, of which no two count the same terminal: where their counters are,
        #: what one terminal takes at most, and what the word takes from each position on.
        self._broken: list[tuple[int, int, int, list[int]]] = []
        self._lengths: dict[Hashable, float] = {}
        if isinstance(self._automaton, LimitedAutomaton):
            counted: set[str] = set()
            counters = self._automaton.counters
            for (shift, mask), bound in zip(counters.fields, counters.bounds, strict=True):
                takes = [bound.weights.get(name, 0) for name in reversed(word)]
                names = {name for name, weight in bound.weights.items() if weight}
                if bound.most is not None and sum(takes) > bound.most and counted.isdisjoint(names):
                    counted |= names
                    sums = list(accumulate(takes, initial=0))[::-1]
                    self._broken.append((shift, mask, max(bound.weights.values()), sums))

    def find_way(
        self, max_states: int, configuration: Hashable, begun: Sequence[float] = (0,)
    ) -> tuple[Continuation | None, bool]:
        """Return the nearest way, None if there is none or the budget ran out; and whether that is certain.

        Args:
            max_states: how many pairs may be examined.
            configuration: where the way begins.
            begun: what was paid before it, by how much of the word is done with.
        """
        length = len(self._word)
        end, examined, offered = length + 1, 0, count()
        # What a way costs, and where it edits: of ways that cost the same, the one that keeps more of the beginning.
        costs: dict[_State, tuple[float, int]] = {}
        came: dict[_State, tuple[_State, Move | None]] = {}
        # Ties: the pair furthest in the word comes first, of these the one that edits late, then the one found first.
        queue: list[tuple[float, int, int, int, float, _State]] = []
        for at, paid in enumerate(begun):
            state = (at, configuration)
            costs[state] = (paid, 0)
            heapq.heappush(queue, (paid + self._estimate_rest(state), -at, 0, next(offered), paid, state))
        while queue:
            _, _, early, _, paid, state = heapq.heappop(queue)
            if (paid, early) > costs[state]:  # it was reached in a better way since
                continue
            at = state[0]
            if at == end:
                return self._trace_way(state, came, paid), True
            examined += 1
            if examined > max_states:
                return None, False
            for price, following, move in self._list_steps(*state):
                new = paid + price, early + (length - at + 1 if price else 0)
                if new < costs.get(following, (INFINITE, 0)):
                    rest = self._estimate_rest(following)
                    if rest < INFINITE:
                        costs[following], came[following] = new, (state, move)
                        entry = new[0] + rest, -following[0], new[1], next(offered), new[0], following
                        heapq.heappush(queue, entry)
        return None, True

    def _list_steps(self, at: int, now: Hashable) -> Iterator[tuple[float, _State, Move | None]]:
        """Yield the cost of each step from a pair, the pair after it, and the move that it makes."""
        weights, symbol = self._weights, self._word[at] if at < len(self._word) else None
        if symbol is not None:
            yield weights.delete, (at + 1, now), None
        elif self._automaton.accepting(now):
            yield 0, (at + 1, None), None
        for move in self._automaton.moves(now):
            after = self._automaton.step(now, move)
            if move.read is None:
                yield 0, (at, after), move
                continue
            yield 0 if move.read in self._free else weights.insert, (at, after), move
            if symbol is not None:
                yield 0 if move.read == symbol else weights.substitute, (at + 1, after), move

    def _estimate_rest(self, state: _State) -> float:
        """Return a lower bound on the cost from a pair on; infinite at a dead end."""
        at, now = state
        if at > len(self._word):
            return 0
        least = self._lengths.get(now)
        if least is None:
            least = INFINITE
            if self._lookahead.completable(now).possible:
                least = self._lookahead.least_length(now, tries=0)
            self._lengths[now] = least
        # Each symbol that the automaton does not know, or that a limit leaves no room for, is deleted or substituted;
        # beyond what the rest of the word has, terminals are inserted.
        lost = self._unknown[at]
        for shift, mask, most, takes in self._broken:
            lost += max(0, -((now.remaining >> shift & mask) - takes[at]) // most)  # type: ignore[attr-defined]
        inserted = 0 if self._free else max(0, least - (len(self._word) - at))
        return lost * self._least_loss + inserted * self._weights.insert

    def _trace_way(self, state: _State, came: dict[_State, tuple[_State, Move | None]], cost: float) -> Continuation:
        way: list[tuple[_State, Move | None, int]] = []
        while state in came:
            before, move = came[state]
            way.append((before, move, state[0]))
            state = before
        moves: list[Move] = []
        kept: list[bool] = []
        whole = True  # whether no symbol was left out since the last one that was read
        for (at, _), move, after in reversed(way):
            if move is None:
                whole = False
                continue
            moves.append(move)
            kept.append(whole and after > at and self._word[at] == move.read)
            whole = whole or move.read is not None
        return Continuation(tuple(moves), tuple(kept), cost)
