"""Sums that are bounded from both sides: which totals are left, as sets of integers, and how one of them comes about.

Two sets of integers that a total lies in are added bit by bit. That rules out much, whatever is left of other bounds.

What is left decides exactly where it falls into choices that do not depend on each other: each terminal in any number
that its limit leaves, a group of terminals of which one is taken, the steps of a cycle. All that one half of them can
come to is put beside all that the other half can come to, and two that make up the totals together are a completion
(Horowitz and Sahni 1974, Computing partitions with applications to the knapsack problem). Several totals that must be
hit exactly are matched as one number, the others are looked at where these match. If all matches are found, they also
decide what follows: a completion that contains what was read since. Where there are too many choices for that, chance
fixes most of them near the totals, and the others are put together, where several totals must be hit exactly in four
parts (Wagner 2002, A generalized birthday problem). That finds completions, and rules nothing out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.stacks import PendingSymbols, SearchState
from formal_llm.automata.lookahead.verdicts import WorkBudget

#: The largest bound, the most bits that are handled for one set, and what is kept of all.
_LARGEST, _WORK, _KEPT = 30_000_000, 1_500_000_000, 400_000_000
#: How many handled bits count as one try (:class:`WorkBudget`).
_BITS = 150_000
#: The most symbols: they are gone through by recursion.
_SYMBOLS = 150


class ExactSum:
    """One quantity that is bounded from both sides.

    Args:
        demands: the demands that states are made with.
        weights: what each terminal weighs.
        most: the upper bound.
        work: what it may cost; when that is over, nothing is ruled out.
    """

    def __init__(self, demands: PendingSymbols, weights: dict[str, int], most: int, work: WorkBudget) -> None:
        self._demands = demands
        self._work = work
        self._unit = gcd(*weights.values()) or 1
        self._weights = {name: weight // self._unit for name, weight in weights.items()}
        self._size = most // self._unit + 1
        self._mask = (1 << self._size) - 1
        self._of: dict[int, int | None] = {}
        self._all: dict[int, int | None] = {0: 1}
        self._bytes: dict[int, bytes] = {}
        self._kept = 0

    def is_possible(self, pending: int, least: int, most: int) -> bool:
        """Whether what is pending may come to a total between two bounds (these included)."""
        least, most = -(-least // self._unit), most // self._unit
        if least > most:
            return False
        found = self._bytes.get(pending)
        if found is None:
            totals = self._totals_of(pending)
            if totals is None:
                return True
            # The bits between two bounds are cut out of bytes at once; a shift would copy all that lies above.
            found = self._bytes[pending] = totals.to_bytes((totals.bit_length() + 7) // 8, "little")
            self._kept += 8 * len(found)
        part = found[least >> 3 : (most >> 3) + 1]
        self._work.left -= len(part) * 8 / _BITS
        return int.from_bytes(part, "little") >> (least & 7) & (1 << most - least + 1) - 1 != 0

    def _totals_of(self, pending: int) -> int | None:
        """The totals that a multiset can come to; None where that is too much work."""
        if pending in self._all:
            return self._all[pending]
        # From the symbols that lie deepest on a stack to its top: the next questions ask for a part of the same.
        made: int | None = 1
        part = 0
        for symbol, count, unit in self._demands.multisets.list_items(pending):
            for _ in range(count):
                part += unit
                if part in self._all:
                    made = self._all[part]
                elif self._work.is_over:
                    return None
                elif made is not None:
                    made = self._keep_totals(part, self._add_totals(made, self._totals_of_symbol(symbol.index)))
        return self._keep_totals(pending, made)

    def _keep_totals(self, pending: int, totals: int | None) -> int | None:
        if pending not in self._all:
            size = 64 + (totals or 0).bit_length()
            if self._kept + size > _KEPT:
                self._all, self._bytes, self._kept = {0: 1}, {}, 0
            self._all[pending], self._kept = totals, self._kept + size
        return totals

    def _add_totals(self, some: int, others: int | None) -> int | None:
        """The totals of two things together."""
        if others is None:
            return None
        if some.bit_count() < others.bit_count():
            some, others = others, some
        bits = others.bit_count() * some.bit_length()
        if bits > _WORK:
            return None
        self._work.left -= bits / _BITS
        made = 0
        while others:
            place = (others & -others).bit_length() - 1
            made |= some << place
            others &= others - 1
        return made & self._mask

    def _totals_of_symbol(self, index: int) -> int | None:
        """The totals of a symbol; None where its completions have cycles, or it is too much work."""
        if index not in self._of:
            self._of[index] = None  # met again before it is known: a cycle
            self._of[index] = self._totals_of_ways(index)
        return self._of[index]

    def _totals_of_ways(self, index: int) -> int | None:
        symbols = self._demands.grammar.symbols
        made = 1 if symbols[index].is_free else 0  # what is free may be left out
        for way in self._demands.resources.ways[index]:
            weight = sum(self._weights.get(name, 0) for name in way.reads)
            totals: int | None = 1 << weight if weight < self._size else 0
            for child in way.children:
                if totals and not (symbols[child].is_free and not symbols[child].due):
                    totals = self._add_totals(totals, self._totals_of_symbol(child))
            if totals is None:
                return None
            made |= totals
        return made


# -- what is left, as choices ---------------------------------------------------------------------------------------

#: A completion as sums see it: (row, amount) in order. A row is a resource, by its number, or ~ the place of the field
#: of a lower bound.
_Vector = tuple[tuple[int, int], ...]
_Numbers = NDArray[np.int64]
#: (the alternatives of each choice of some solutions, by column; whether these are all)
_Solutions = tuple[_Numbers, bool]
#: The most completions of a symbol that are listed, and of its copies that are pending.
_LISTED, _COPIES = 400, 50
#: The most tables that are kept, and what looking at one costs.
_TABLES, _GLANCE = 200, 10
#: What is larger is left to others, so that sums stay within 64 bits: amounts, and how often one thing is taken.
_LARGE, _OFTEN, _ENDLESS = 1 << 36, 1 << 12, 1 << 62
#: What a choice costs, and how many rows of a half one try; the most rows of a half, and bits of its choices.
_EACH, _ROWS, _MOST_ROWS, _HALF_BITS = 4, 25, 1 << 19, 60
#: The most matches that are looked at together, that are kept of a question, and the most kept groups of these.
_MATCHES, _FOUND, _GROUPS = 1 << 14, 4096, 16
#: How often chance fixes choices, the most bits left to a half or a quarter then, how often one choice is changed.
_TRIALS, _PART_BITS, _CHANGES = 6, {2: 15, 4: 13}, 60
#: How many times more rows than there is room for are made before bounds shorten them.
_GROWTH = 4
#: The numbers that trying all changes looks at in one try.
_CHANGED = 600
#: By how many bits bounds may shorten a half, and the fewest rows that are worth a trial.
_PRUNED, _LITTLE_ROOM = 8, 1 << 8


class _Choices(NamedTuple):
    """What completes something, as choices that do not depend on each other; each vector with its moves.

    Attributes:
        once: of each of these, one is taken.
        often: each of these may be taken any number of times.
    """

    once: list[dict[_Vector, float]]
    often: dict[_Vector, float]

    def take_in(self, other: _Choices, count: int = 1) -> None:
        """Add the choices of something else that is there so often."""
        self.once.extend(other.once * count)
        for vector, moves in other.often.items():
            self.often[vector] = min(moves, self.often.get(vector, moves))


class _ChoiceFinder:
    """Finds the choices that completing a symbol comes to.

    A symbol whose cycles lead back to it, to one copy, takes any number of cycles and one way out, in whatever order.
    What all its ways out leave is completed for itself. All else must be finite.
    """

    def __init__(self, demands: PendingSymbols) -> None:
        self._demands = demands
        self._choices: dict[int, _Choices | None] = {}
        self._expanded: dict[tuple[int, int], dict[tuple[_Vector, int], float] | None] = {}
        self._ways: dict[int, list[tuple[_Vector, tuple[int, ...], float]]] = {}

    def choices_of(self, pending: int) -> _Choices | None:
        """The choices of a multiset; None where it does not fall into such."""
        whole = _Choices([], {})
        for symbol, count, _ in self._demands.multisets.list_items(pending):
            found = self._choices_of_symbol(symbol.index)
            if found is None or count > _COPIES:
                return None
            whole.take_in(found, count)
        return whole

    def _choices_of_symbol(self, index: int) -> _Choices | None:
        if index not in self._choices:
            self._choices[index] = self._split_symbol(index)
        return self._choices[index]

    def _split_symbol(self, index: int) -> _Choices | None:
        made, exits = _Choices([], {}), dict[_Vector, float]()
        ways = self._ways_of(index)
        back = [way for way in ways if self._leads_to(way[1], index)]
        ahead = [way for way in ways if way not in back]
        apart = len({children for _, children, _ in ahead}) == 1
        for way in back if apart else ways:
            expanded = self._expand_way(way, index)
            if expanded is None or any(heads > 1 or (apart and not heads) for _, heads in expanded):
                return None
            for (vector, heads), moves in expanded.items():
                kept = made.often if heads else exits
                kept[vector] = min(moves, kept.get(vector, moves))
        if apart:
            exits = {vector: moves for vector, _, moves in sorted(ahead, key=lambda way: -way[2])}
            for child in ahead[0][1]:
                found = self._choices_of_symbol(child)
                if found is None:
                    return None
                made.take_in(found)
        made.once.append(exits)
        return made if exits else None

    def _ways_of(self, index: int) -> list[tuple[_Vector, tuple[int, ...], float]]:
        """(vector, symbols that matter, moves) of each way."""
        if index not in self._ways:
            demands, made = self._demands, []
            for way in demands.resources.ways[index]:
                total = Counter(dict(demands.resources.list_taken(way.need)))
                for name in way.reads:
                    for shift, _, weight in demands.counters.dues.get(name, ()):
                        total[~shift] += weight
                children = [demands.grammar.symbols[child] for child in way.children]
                kept = tuple(child.index for child in children if not child.is_free or child.due)
                moves = way.steps + sum(child.free_steps for child in children if child.is_free and not child.due)
                made.append((tuple(sorted((+total).items())), kept, moves))
            self._ways[index] = made
        return self._ways[index]

    def _leads_to(self, symbols: Iterable[int], goal: int) -> bool:
        seen = set(symbols)
        todo = list(seen)
        while todo:
            fresh = {child for _, children, _ in self._ways_of(todo.pop()) for child in children} - seen
            seen |= fresh
            todo += fresh
        return goal in seen

    def _expand_symbol(self, index: int, head: int) -> dict[tuple[_Vector, int], float] | None:
        """All that completing a symbol comes to, with how often ``head`` is left; None where that has no end."""
        if index == head:
            return {((), 1): 0}
        if (index, head) not in self._expanded:
            self._expanded[index, head] = None  # met again before it is known: a cycle
            total: dict[tuple[_Vector, int], float] = {}
            for way in self._ways_of(index):
                found = self._expand_way(way, head)
                if found is None or len(total) + len(found) > _LISTED:
                    return None
                for key, moves in found.items():
                    total[key] = min(moves, total.get(key, moves))
            self._expanded[index, head] = total
        return self._expanded[index, head]

    def _expand_way(
        self, way: tuple[_Vector, tuple[int, ...], float], head: int
    ) -> dict[tuple[_Vector, int], float] | None:
        made: dict[tuple[_Vector, int], float] = {(way[0], 0): way[2]}
        for child in way[1]:
            others = self._expand_symbol(child, head)
            if others is None or len(made) * len(others) > _LISTED:
                return None
            joined: dict[tuple[_Vector, int], float] = {}
            for (some, heads), moves in made.items():
                for (other, more), further in others.items():
                    key = tuple(sorted((Counter(dict(some)) + Counter(dict(other))).items())), heads + more
                    joined[key] = min(moves + further, joined.get(key, INFINITE))
            made = joined
        return made


class _Problem(NamedTuple):
    """Choices of which one alternative each is taken, and what their totals have to come to.

    Attributes:
        values: for each choice the totals of each of its alternatives.
        tops: for each choice the most of each total.
        low, high: what the totals are at least, and at most.
    """

    values: list[_Numbers]
    tops: list[_Numbers]
    low: _Numbers
    high: _Numbers


class _Half(NamedTuple):
    """All that some choices can come to: their numbers, the totals by dimension, which alternatives make them up."""

    choices: list[int]
    totals: _Numbers
    codes: _Numbers


def _list_totals(problem: _Problem, choices: list[int], others: Iterable[int], most: int) -> _Half | None:
    """A half, without what cannot come within the bounds with the ``others``; None for more than ``most`` of them."""
    values = problem.values
    rest = sum([problem.tops[n] for n in chain(choices, others)], np.zeros(len(problem.low), np.int64))
    totals, codes = np.zeros((len(problem.low), 1), np.int64), np.zeros(1, np.int64)
    for n in choices:
        if len(codes) * len(values[n]) > _GROWTH * most:
            return None
        rest = rest - problem.tops[n]
        totals = (totals[:, :, None] + values[n].T[:, None, :]).reshape(len(totals), -1)
        codes = (codes[:, None] * len(values[n]) + np.arange(len(values[n]))).ravel()
        able = ((totals <= problem.high[:, None]) & (totals >= (problem.low - rest)[:, None])).all(0)
        if not able.all():
            totals, codes = totals[:, able], codes[able]
        if len(codes) > most:
            return None
    return _Half(choices, totals, codes)


def _list_pairs(
    one: NDArray[Any], other: NDArray[Any], least: Any, most: Any, room: int, rng: np.random.Generator
) -> tuple[_Numbers, _Numbers]:
    """The places of numbers that come to between two bounds together; more than ``room`` of them by chance, of more."""
    order = other.argsort()
    ordered = other[order]
    begin = ordered.searchsorted(least - one)
    counts = ordered.searchsorted(most - one, "right") - begin
    some = counts.nonzero()[0]
    if counts.sum() > room:
        some = rng.permutation(some)
        some = some[: int(counts[some].cumsum().searchsorted(room, "right")) + 1]
    counts, begin = counts[some], begin[some]
    offsets = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    return np.repeat(some, counts), order[np.repeat(begin, counts) + offsets]


def _match_halves(problem: _Problem, one: _Half, other: _Half, rng: np.random.Generator) -> _Solutions:
    low, high = problem.low, problem.high
    digits = np.zeros((len(problem.values), 0), np.int64)
    if not len(one.codes) or not len(other.codes):
        return digits, True
    exact = low == high
    if exact.any():
        factors = np.where(exact, rng.integers(1 << 61, size=len(low)) * 2 + 1, 0).astype(np.uint64)
    else:
        spans = np.ptp(one.totals, 1) + np.ptp(other.totals, 1)
        factors = (np.arange(len(low)) == ((high - low) / (spans + 1)).argmin()).astype(np.int64)
    some, others, least, most = (factors @ part.astype(factors.dtype) for part in (one.totals, other.totals, low, high))
    places, partners = _list_pairs(some, others, least, most, _MATCHES, rng)
    complete = len(places) <= _MATCHES
    totals = one.totals[:, places] + other.totals[:, partners]
    good = np.flatnonzero(((totals >= low[:, None]) & (totals <= high[:, None])).all(0))
    complete = complete and len(good) <= _FOUND
    good = rng.permutation(good)[:_FOUND]
    digits = np.zeros((len(problem.values), len(good)), np.int64)
    for half, code in ((one, one.codes[places[good]]), (other, other.codes[partners[good]])):
        for n in reversed(half.choices):
            code, digits[n] = np.divmod(code, len(problem.values[n]))
    return digits, complete


def _split_choices(problem: _Problem, choices: Iterable[int]) -> tuple[list[int], list[int]]:
    """Choices in two parts: the largest first, in turn, so that parts are alike and too much is seen early."""
    parts: tuple[list[int], list[int]] = ([], [])
    sizes = [0.0, 0.0]
    for n in sorted(choices, key=lambda n: -float(problem.values[n].sum())):
        part = sizes.index(min(sizes))
        parts[part].append(n)
        sizes[part] += np.log2(len(problem.values[n]))
    return parts


class _Found(NamedTuple):
    """Completions that were found together.

    Attributes:
        used: what was used of each repeated choice before, since the first question.
        counts: how often each of these is taken, from that question on, by completion; the moves of the other choices.
        moves: what those moves are, by completion.
        complete: whether every completion of that state is one of these.
    """

    used: _Numbers
    counts: _Numbers
    moves: NDArray[np.float64]
    complete: bool


class _SumTable:
    """The choices of one multiset, and what was found of them.

    Args:
        once, often: the choices, as of :class:`_Choices`, without those that take and pay nothing.
        pairs: the resource and the place of the lower bound of each sum that is bounded from both sides.
    """

    def __init__(
        self, once: list[dict[_Vector, float]], often: Mapping[_Vector, float], pairs: Iterable[tuple[int, int]]
    ) -> None:
        often = {vector: moves for vector, moves in often.items() if vector}
        rows = sorted({row for vector in chain(often, *once) for row, _ in vector})
        self.resources = [row for row in rows if row >= 0]
        self.dues = [~row for row in rows if row < 0]
        self._rows = self.resources + [~shift for shift in self.dues]
        places = {row: place for place, row in enumerate(self._rows)}
        # The first of each group takes least.
        once = [dict(sorted(group.items(), key=lambda one: sum([amount for _, amount in one[0]]))) for group in once]
        self._often, *self._once = (self._matrix(vectors, places) for vectors in (often, *once))
        self._often_moves, *self._once_moves = (np.array(list(group.values())) for group in (often, *once))
        self._takes = np.arange(len(rows)) < len(self.resources)
        users = (self._often > 0).sum(0) + sum([group.any(0) for group in self._once], np.zeros(len(rows), np.int64))
        self._shared = users > 1
        self._pairs = [(places[some], places[~other]) for some, other in pairs if some in places and ~other in places]
        #: Of each repeated choice a resource that it alone takes, by which it is known how often it was taken.
        alone = np.where(self._takes & ~self._shared, self._often, 0)
        self._alone = alone.argmax(1) if len(rows) else np.zeros(0, np.int64)
        self._each = np.take_along_axis(alone, self._alone[:, None], 1)[:, 0]
        self._traced = bool(self._each.all())
        self._matters = (self._often * self._shared).any(1)
        self._rng = np.random.default_rng(0)
        self._first: _Numbers | None = None
        self._found: list[_Found] = []

    @staticmethod
    def _matrix(vectors: Iterable[_Vector], places: Mapping[int, int]) -> _Numbers:
        lines = list(vectors)
        made = np.zeros((len(lines), len(places)), np.int64)
        for line, vector in zip(made, lines, strict=True):
            for row, amount in vector:
                line[places[row]] = amount
        return made

    def decide_amounts(self, amounts: _Numbers, work: WorkBudget) -> float | None:
        """The moves of a completion with what is left and needed; infinite for none, None for unknown."""
        if not any(amounts[due] for _, due in self._pairs):
            return None
        work.left -= _GLANCE + len(self._found)
        used = self._used_since(amounts)
        if used is None:
            self._first, self._found, used = amounts, [], np.zeros(len(self._often), np.int64)
        known = self._known_moves(used)
        return self._search(amounts, used, work) if known is None else known

    def _used_since(self, amounts: _Numbers) -> _Numbers | None:
        """What was used of each repeated choice since the first question; None where that is not all that differs."""
        if self._first is None:
            return None
        taken = self._first - amounts
        used = taken[self._alone] // np.maximum(self._each, 1) * self._traced
        some = used.nonzero()[0]
        due = taken - used[some] @ self._often[some]
        same = np.where(self._takes | (amounts > 0), due == 0, due <= 0)
        return used if same.all() and (used >= 0).all() else None

    def _known_moves(self, used: _Numbers) -> float | None:
        some = (used * self._matters).nonzero()[0]
        for found in reversed(self._found):
            able = (found.counts[some] >= used[some, None]).all(0)
            if able.any():
                place = int(able.argmax())
                rest = np.maximum(found.counts[:, place] - used, 0)
                return float(rest @ self._often_moves + found.moves[place])
            if found.complete and (used >= found.used)[self._matters].all():
                return INFINITE
        return None

    def _search(self, amounts: _Numbers, used: _Numbers, work: WorkBudget) -> float | None:
        bounds = self._count_bounds(amounts)
        if bounds is None:
            return INFINITE
        least, most, once = bounds
        if (most - least)[self._matters].max(initial=0) > _OFTEN:
            return None
        rows = self._shared & (self._takes | (amounts > 0))
        low, high = np.where(self._takes, 0, amounts), np.where(self._takes, amounts, _ENDLESS)
        for resource, due in self._pairs:
            if rows[resource] and rows[due]:
                low[resource], rows[due] = amounts[due], False
        base = least @ self._often + sum([group.min(0) for group, _ in once], np.zeros_like(low))
        most_taken = most @ self._often + sum([group.max(0) for group, _ in once], np.zeros_like(low))
        if (base[rows] > high[rows]).any() or (most_taken[rows] < low[rows]).any():
            return INFINITE
        rows &= (base < low) | (most_taken > high)
        free = most > least
        chosen = (free & self._often[:, rows].any(1)).nonzero()[0]
        values = [np.arange(most[n] - least[n] + 1)[:, None] * self._often[n, rows] for n in chosen]
        values += [(group - group.min(0))[:, rows] for group, _ in once]
        digits, finished = np.zeros((len(values), 1), np.int64), True
        if rows.any():
            digits, finished = self._solve_problem(
                _Problem(values, [one.max(0) for one in values], (low - base)[rows], (high - base)[rows]), work
            )
        counts = np.repeat((used + least)[:, None], digits.shape[1], 1)
        counts[chosen] += digits[: len(chosen)]
        moves = np.zeros(digits.shape[1])
        for (_, costs), taken in zip(once, digits[len(chosen) :], strict=True):
            moves += costs[taken]
        # What was read since is looked for among the numbers that were chosen, so all must have been chosen.
        complete = finished and bool((free & self._matters).sum() == len(chosen))
        self._found = [*self._found[1 - _GROUPS :], _Found(used, counts, moves, complete)]
        if digits.shape[1]:
            return self._known_moves(used)
        return INFINITE if finished else None

    def _count_bounds(
        self, amounts: _Numbers
    ) -> tuple[_Numbers, _Numbers, list[tuple[_Numbers, NDArray[np.float64]]]] | None:
        """How often repeated choices are taken at least and at most, what is left of the others; None for nothing."""
        each = np.maximum(self._often, 1)
        able = np.where(self._often > 0, np.where(self._takes, amounts // each, -(-amounts // each)), -1)
        due = ~self._takes & (amounts > 0)
        least = np.where(due & ~self._shared, able, 0).max(1, initial=0)
        limited = (self._often[:, self._takes] > 0).any(1)
        most = np.where(self._takes & (able >= 0), able, _ENDLESS).min(1, initial=_ENDLESS)
        most = np.where(limited, most, np.where(due, able, 0).max(1, initial=0))
        if (least > most).any():
            return None
        once = []
        for group, moves in zip(self._once, self._once_moves, strict=True):
            needed = np.where(due & ~self._shared & group.any(0), amounts, 0)
            kept = ((group <= amounts) | ~self._takes).all(1) & (group >= needed).all(1)
            if not kept.any():
                return None
            once.append((group[kept], moves[kept]))
        return least, most, once

    def _solve_problem(self, problem: _Problem, work: WorkBudget) -> _Solutions:
        room = int(min((work.left - work.floor) * _ROWS / 4, _MOST_ROWS))
        bits = np.log2([len(one) for one in problem.values])
        found = None
        if room > 0 and bits.sum() / 2 <= min(np.log2(room) + _PRUNED, _HALF_BITS):
            found = self._meet(problem, range(len(bits)), room, work)
        if found is not None:
            return found
        made = [np.zeros((len(bits), 0), np.int64)]
        wanted = 1 if self._found else _TRIALS  # the first question has most time, and what it finds serves all others
        parts = 4 if (problem.low == problem.high).sum() > 1 else 2
        for _ in range(_TRIALS):
            room = int(min((work.left - work.floor) * _ROWS / 2 / parts, 1 << _PART_BITS[parts]))
            if room < _LITTLE_ROOM or len(made) > wanted:
                break
            order = self._rng.permutation(len(bits))
            core = order[bits[order].cumsum() <= parts * np.log2(room)]
            digits = self._fix_choices(problem, core, work)
            fixed = np.array([values[digit] for values, digit in zip(problem.values, digits, strict=True)]).sum(0)
            rest = problem._replace(low=problem.low - fixed, high=problem.high - fixed)
            more = (self._meet if parts == 2 else self._meet_in_parts)(rest, core, room, work)
            if more is not None and more[0].shape[1]:
                made.append(more[0] + digits[:, None])
        return np.concatenate(made, 1), False

    def _meet(self, problem: _Problem, choices: Iterable[int], room: int, work: WorkBudget) -> _Solutions | None:
        """Put two halves of some choices together; None where one is larger than there is room."""
        parts = _split_choices(problem, choices)
        work.left -= _EACH * sum(map(len, parts))
        halves = []
        for part, others in (parts, parts[::-1]):
            half = _list_totals(problem, part, others, room)
            work.left -= (room if half is None else len(half.codes)) / _ROWS
            if half is None:
                return None
            halves.append(half)
        return _match_halves(problem, halves[0], halves[1], self._rng)

    def _meet_in_parts(self, problem: _Problem, core: _Numbers, room: int, work: WorkBudget) -> _Solutions | None:
        """Some solutions of many choices: four parts, joined in twos where one total is near what it should be."""
        parts = [part for half in _split_choices(problem, core) for part in _split_choices(problem, half)]
        work.left -= 6 * room / _ROWS + _EACH * len(core)
        listed = [_list_totals(problem, part, np.setdiff1d(core, part), 2 * room) for part in parts]
        some = [one for one in listed if one is not None and len(one.codes)]
        if len(some) < len(parts):
            return None
        row, halves = int((problem.high - problem.low).argmin()), []
        means = [one.totals[row].mean() for one in some]
        middle = round(means[0] + means[1] + (int(problem.low[row]) - sum(means)) / 2)
        for one, other, goal in ((*some[:2], middle), (*some[2:], int(problem.low[row]) - middle)):
            near = room * (one.totals[row].std() + other.totals[row].std()) // (len(one.codes) * len(other.codes))
            mine, others = _list_pairs(one.totals[row], other.totals[row], goal - near, goal + near, room, self._rng)
            codes = one.codes[mine] * prod(len(problem.values[n]) for n in other.choices) + other.codes[others]
            halves.append(_Half(one.choices + other.choices, one.totals[:, mine] + other.totals[:, others], codes))
        return _match_halves(problem, halves[0], halves[1], self._rng)

    def _fix_choices(self, problem: _Problem, core: _Numbers, work: WorkBudget) -> _Numbers:
        """Alternatives by chance, changed one by one while that brings the totals nearer; those of the core stay 0."""
        sums = np.maximum(np.sum(problem.tops, 0), 1)
        digits = np.array([int(self._rng.integers(len(one))) for one in problem.values])
        digits[self._rng.random(len(digits)) > min(0.9, float((problem.high / sums).min()))] = 0
        digits[core] = 0
        others = np.setdiff1d(np.arange(len(digits)), core)
        now = np.sum([problem.tops[n] / 2 for n in core], 0)
        now = now + np.sum([problem.values[n][digits[n]] for n in others], 0)
        alternatives = np.concatenate([problem.values[n] for n in others] or [problem.values[0][:0]])
        owners = np.repeat(others, [len(problem.values[n]) for n in others])
        cost = np.inf
        for _ in range(_CHANGES if len(others) else 0):
            work.left -= (2_000 + alternatives.size) / _CHANGED
            held = np.zeros((len(digits), len(sums)), np.int64)
            held[others] = [problem.values[n][digits[n]] for n in others]
            after = now + alternatives - held[owners]
            off = (((after - after.clip(problem.low, problem.high)) / sums) ** 2).sum(1)
            best = int(off.argmin())
            if off[best] >= cost:
                break
            cost, now = off[best], after[best]
            digits[owners[best]] = best - int(owners.searchsorted(owners[best]))
        return digits


class ExactSums:
    """All quantities of a grammar that are bounded from both sides.

    Args:
        demands: the demands that states are made with.
        work: what it may cost; when that is over, nothing is ruled out.
    """

    def __init__(self, demands: PendingSymbols, work: WorkBudget) -> None:
        self._demands, self._work = demands, work
        deep = len(demands.resources.ways) - len(demands.resources.leaves) > _SYMBOLS
        pairs = [] if deep else demands.counters.pair_bounds()
        self._pairs = [(demands.resources.resource_of_bound(number), *same) for number, same in pairs]
        self._sums = [
            (ExactSum(demands, dict(bound.weights), bound.most, work), *pair)
            for (number, _), pair in zip(pairs, self._pairs, strict=True)
            if (bound := demands.counters.bounds[number]).most is not None and bound.most <= _LARGEST
        ]
        self._choices = _ChoiceFinder(demands)
        self._tables: dict[int, tuple[_SumTable, float] | None] = {}
        self._alike: dict[object, _SumTable] = {}

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def are_possible(self, pending: int, left: int, needed: int) -> bool:
        """Whether each quantity may come out between what is needed and what is left."""
        amount = self._demands.resources.unpack_amount
        return all(
            one.is_possible(pending, needed >> shift & mask, amount(left, resource))
            for one, resource, shift, mask in self._sums
        )

    def decide_state(self, state: SearchState) -> float | None:
        """The moves of some completion of a state of the search; infinite for none, None for unknown."""
        if not self._pairs or state.unresolved is not None:
            return None
        found = self._find_table(state.pending)
        if found is None:
            return None
        table, besides = found
        left = self._demands.resources.unpack_amounts(state.left)
        due = {shift: amount for _, shift, amount in self._demands.counters.open_bounds(state.needed)}
        if not due.keys() <= set(table.dues):
            return INFINITE  # nothing that is pending pays it
        amounts = [*(left[number] for number in table.resources), *(due.get(shift, 0) for shift in table.dues)]
        if max(amounts, default=0) > _LARGE:
            return None
        moves = table.decide_amounts(np.array(amounts, np.int64), self._work)
        return None if moves is None else moves + besides

    def _find_table(self, pending: int) -> tuple[_SumTable, float] | None:
        """The table of what is pending, shared by what comes to the same choices, and the moves besides."""
        if pending not in self._tables:
            if len(self._tables) >= _TABLES:
                self._tables.clear()
                self._alike.clear()
            choices = self._choices.choices_of(pending)
            made = None
            if choices is not None:
                once = [group for group in choices.once if any(group)]
                besides = sum([min(group.values()) for group in choices.once if not any(group)])
                key = (
                    tuple(sorted(choices.often.items())),
                    tuple(sorted(tuple(sorted(group.items())) for group in once)),
                )
                if key not in self._alike:
                    pairs = [(resource, shift) for resource, shift, _ in self._pairs]
                    self._alike[key] = _SumTable(once, choices.often, pairs)
                made = self._alike[key], besides
            self._tables[pending] = made
        return self._tables[pending]
