"""Deciding states of the search by linear programs: arguments that are learned, completions that are kept.

A state asks how often each way is taken (:mod:`formal_llm.automata.lookahead.exact.integer_program` explains why that
is enough). Let these numbers be fractions, and what is asked is a linear program. It is used in three ways:

- where it has no solution, a linear argument proves it, and that argument is tried on every later state first;
- where it has one in whole numbers, that is a completion. What is left of it after each of its first ways is a
  completion of what is left to do then, so the next question finds most of its answers there;
- else it is split: some way is taken at most, or at least, so often (branch and bound, Land and Doig 1960). A solution
  with cycles that nothing pending leads to is cut off, or split: none of their ways is taken, or one that leads there.

Every *no* is checked as an argument in whole numbers, every *yes* as a completion. All work is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.stacks import PendingSymbols, SearchState

#: The bits of a multiplier, about; multipliers are whole numbers.
_BITS = 32
#: How often potentials are gone over until all are right.
_ROUNDS = 25


class FlowWay(NamedTuple):
    """A way as linear arguments see it: how often it is taken is a variable.

    Attributes:
        head: the symbol that it works off.
        takes: (resource, amount) that it takes.
        pays: (place of the lower bound's field, amount) that it pays.
        children: (symbol, count) that it leaves, without those that can neither prevent a completion nor help it.
        moves: the moves it takes, those of the symbols left out included.
        need: what it takes, packed as the resources do.
        alone: of a resource that no other way takes, (resource, amount); None where there is none.
    """

    head: int
    takes: tuple[tuple[int, int], ...]
    pays: tuple[tuple[int, int], ...]
    children: tuple[tuple[int, int], ...]
    moves: float
    need: int
    alone: tuple[int, int] | None


class ConnectivityCut(NamedTuple):
    """What connectivity adds: a way within some symbols is taken only where something leads to them.

    Where ``way`` is taken at most ``most`` times, it is taken at most ``most`` times as often as all ways ``into``
    those symbols together are, and as those symbols are pending.
    """

    way: int
    most: int
    inside: frozenset[int]
    into: tuple[int, ...]

    def row_factors(self) -> dict[int, int]:
        """The factors of ways: their sum is at most ``most`` for each of the symbols that is pending."""
        return {self.way: 1, **dict.fromkeys(self.into, -self.most)}

    def right_side(self, pending: Mapping[int, int]) -> int:
        """What that sum is at most."""
        return self.most * sum([count for symbol, count in pending.items() if symbol in self.inside])


class FlowSystem:
    """The ways of all symbols that the start leads to, as the grammar is known now.

    Attributes:
        ways: the ways.
        of: the numbers of the ways of each symbol.
        free: the symbols that may also be dropped, each with the moves of that.
        cuts: what was learned of connectivity.
        resources: the resources that more than one way takes, by number.
        dues: the lower bounds, each by the place and the mask of its field.
    """

    def __init__(self, demands: PendingSymbols) -> None:
        self.demands = demands
        symbols, counters = demands.grammar.symbols, demands.counters
        self.dues = {
            shift: mask
            for (shift, mask), bound in zip(counters.fields, counters.bounds, strict=True)
            if bound.most is None
        }
        made: list[FlowWay] = []
        leaves = demands.resources.leaves  # never pending: they are merged into the ways that lead to them
        for index, group in demands.resources.ways.items():
            for way in group if index not in leaves else ():
                takes = tuple(demands.resources.list_taken(way.need))
                pays: Counter[int] = Counter()
                for name in way.reads:
                    for shift, _, weight in counters.dues.get(name, ()):
                        pays[shift] += weight
                idle = [symbols[c] for c in way.children if symbols[c].is_free and not symbols[c].due]
                children = Counter(c for c in way.children if not symbols[c].is_free or symbols[c].due)
                moves = way.steps + sum(child.free_steps for child in idle)
                made.append(FlowWay(index, takes, tuple(pays.items()), tuple(children.items()), moves, way.need, None))
        users = Counter(number for one in made for number, _ in one.takes)
        self.ways = tuple(one._replace(alone=next((t for t in one.takes if users[t[0]] == 1), None)) for one in made)
        bound = {one.alone[0] for one in self.ways if one.alone is not None}
        self.resources = [number for number in sorted(users) if number not in bound]
        self.of: dict[int, list[int]] = {}
        for number, one in enumerate(self.ways):
            self.of.setdefault(one.head, []).append(number)
        self.free = {index: symbols[index].free_steps for index in self.of if symbols[index].is_free}

        self.most = [self._most_uses(one) for one in self.ways]
        self.cuts: list[ConnectivityCut] = []
        #: For each way its factors in cuts.
        self.factors: list[dict[int, int]] = [{} for _ in self.ways]

    def keep_cuts(self, cuts: Iterable[ConnectivityCut]) -> None:
        """Forget the other cuts."""
        self.cuts = list(cuts)
        self.factors = [{} for _ in self.ways]
        for place, cut in enumerate(self.cuts):
            for n, factor in cut.row_factors().items():
                self.factors[n][place] = factor

    def _most_uses(self, way: FlowWay) -> int | None:
        """How often a way can be taken at all, as far as a resource of its own bounds it."""
        if way.alone is None:
            return None
        begin = self.demands.resources.resources_left(self.demands.counters.remaining)
        return self.demands.resources.unpack_amounts(begin)[way.alone[0]] // way.alone[1]

    def add_cut(self, number: int, inside: frozenset[int]) -> ConnectivityCut | None:
        """A new cut: the way is one of these symbols; None where it has no bound of its own."""
        most = self.most[number]
        if not most:
            return None
        into = (n for n, way in enumerate(self.ways) if way.head not in inside)
        leads = tuple(n for n in into if any(child in inside for child, _ in self.ways[n].children))
        cut = ConnectivityCut(number, most, inside, leads)
        if cut in self.cuts:
            return None
        for n, factor in cut.row_factors().items():
            self.factors[n][len(self.cuts)] = factor
        self.cuts.append(cut)
        return cut

    def state_parts(self, state: SearchState) -> tuple[dict[int, int], tuple[int, ...], dict[int, int]]:
        """(symbols pending, what is left of each resource, what each lower bound needs) of a state."""
        pending = {symbol.index: count for symbol, count, _ in self.demands.multisets.list_items(state.pending)}
        needed = {shift: state.needed >> shift & mask for shift, mask in self.dues.items()}
        return pending, self.demands.resources.unpack_amounts(state.left), needed

    def stranded_symbols(self, counts: Mapping[int, float], pending: Mapping[int, int]) -> set[int]:
        """The symbols that are worked off though nothing leads to them."""
        return {self.ways[number].head for number in counts} - self.reached_symbols(counts, pending)

    def reached_symbols(self, counts: Mapping[int, float], pending: Mapping[int, int]) -> set[int]:
        """The symbols that ways which are taken lead to."""
        ways, of = self.ways, self.of
        reached = set(pending)
        todo = list(pending)
        while todo:
            for number in of[todo.pop()]:
                if number in counts:
                    for child, _ in ways[number].children:
                        if child not in reached:
                            reached.add(child)
                            todo.append(child)
        return reached

    def parts_after(
        self, counts: Mapping[int, int], pending: Mapping[int, int], left: Sequence[int], needed: Mapping[int, int]
    ) -> tuple[Counter[int], tuple[int, ...], dict[int, int]]:
        """The parts of a state when each way has been taken so often; below 0 where that is too often."""
        balance, over, due = Counter(pending), list(left), dict(needed)
        for number, count in counts.items():
            way = self.ways[number]
            balance[way.head] -= count
            for child, times in way.children:
                balance[child] += times * count
            for resource, amount in way.takes:
                over[resource] -= amount * count
            for shift, amount in way.pays:
                due[shift] -= amount * count
        return balance, tuple(over), due

    def moves_of_completion(
        self, counts: Mapping[int, int], pending: Mapping[int, int], left: tuple[int, ...], needed: Mapping[int, int]
    ) -> float | None:
        """The moves of a completion that takes each way so often; None where it is none, or one is not reached."""
        balance, over, due = self.parts_after(counts, pending, left, needed)
        if (over and min(over) < 0) or any(d > 0 for d in due.values()):
            return None
        moves = sum([self.ways[number].moves * count for number, count in counts.items()])
        for symbol, count in balance.items():
            if count:
                steps = self.free.get(symbol)
                if count < 0 or steps is None:
                    return None
                moves += steps * count
        return None if self.stranded_symbols(counts, pending) else moves


@dataclass(frozen=True, slots=True)
class LinearArgument:
    """Prices of bounds, and potentials of symbols that fit them.

    Attributes:
        prices: for each resource that has one, what a unit of it is worth.
        dues: for each lower bound (by the place of its field) what a unit that is paid to it is worth.
        potentials: for each symbol a lower bound of what its completions take less what they pay.
        cuts: for each cut that has one (with its number) its price.
    """

    prices: Mapping[int, int]
    dues: Mapping[int, int]
    potentials: Mapping[int, int]
    cuts: tuple[tuple[int, ConnectivityCut, int], ...] = ()

    def excess_demand(self, pending: Mapping[int, int], left: Sequence[int], needed: Mapping[int, int]) -> int:
        """By how much too much is asked; there is no completion where that is more than 0."""
        asked = sum([self.potentials[symbol] * count for symbol, count in pending.items()])
        asked += sum([price * needed[shift] for shift, price in self.dues.items()])
        asked -= sum([price * cut.right_side(pending) for _, cut, price in self.cuts])
        return asked - sum([price * left[number] for number, price in self.prices.items()])

    def way_cost(self, way: FlowWay, factors: Mapping[int, int]) -> int:
        """What a way takes, its children included, less what it pays; ``factors`` are its factors in cuts."""
        taken = sum([price * factors[number] for number, _, price in self.cuts if number in factors]) if factors else 0
        taken += sum([self.prices.get(number, 0) * amount for number, amount in way.takes])
        taken -= sum([self.dues.get(shift, 0) * amount for shift, amount in way.pays])
        return taken + sum([self.potentials[child] * count for child, count in way.children])

    def is_valid(self, flow: FlowSystem) -> bool:
        """Whether prices are from 0 and no potential is more than some way costs: then the argument is right."""
        return (
            all(price >= 0 for price in (*self.prices.values(), *self.dues.values(), *(p for _, _, p in self.cuts)))
            and all(
                self.potentials[way.head] <= self.way_cost(way, factors)
                for way, factors in zip(flow.ways, flow.factors, strict=True)
            )
            and all(self.potentials[symbol] <= 0 for symbol in flow.free)
        )


class ArgumentNumbers(NamedTuple):
    """The numbers of a :class:`LinearArgument` in floating point: potentials, prices, dues, and prices of all cuts."""

    potentials: Mapping[int, float]
    prices: Mapping[int, float]
    dues: Mapping[int, float]
    cuts: Sequence[float]


def make_argument(
    flow: FlowSystem, near: ArgumentNumbers, capped: Collection[int] = ()
) -> tuple[LinearArgument, dict[int, int]] | None:
    """Numbers that are about right as an argument that is right.

    Args:
        flow: the ways.
        near: the numbers. A price that is not given, of a resource that one way alone takes, is found.
        capped: the numbers of ways that are bounded, how often they may be taken, for some reason besides.

    Returns:
        The argument, and the prices that it gives to one use of capped ways; it is an argument in itself where there
        are none. None where rounding did not come to an end.
    """
    potentials, prices, dues, cuts = near
    largest = max(map(abs, (*potentials.values(), *prices.values(), *dues.values(), *cuts)), default=0.0)
    if not largest:
        return None
    scale = (1 << _BITS) / largest
    # Rounded so that no way becomes cheaper: then no cycle of ways can lower potentials without an end.
    whole = {number: -int(-price * scale // 1) for number, price in prices.items() if price > 0}
    paid = {shift: int(price * scale) for shift, price in dues.items() if price > 0}
    reached = {symbol: round(potential * scale) for symbol, potential in potentials.items()}
    for symbol in flow.free:
        reached[symbol] = min(reached[symbol], 0)
    # A cut makes its way dearer and those into it cheaper, so it is rounded to the nearest.
    priced = ((n, cut, round(price * scale)) for n, (cut, price) in enumerate(zip(flow.cuts, cuts, strict=True)))
    made = LinearArgument(whole, paid, reached, tuple(one for one in priced if one[2] > 0))
    bounded = [n for n, way in enumerate(flow.ways) if way.alone is not None or n in capped]
    loose = [(way, flow.factors[n]) for n, way in enumerate(flow.ways) if way.alone is None and n not in capped]
    for _ in range(_ROUNDS):
        changed = False
        for way, factors in loose:
            cost = made.way_cost(way, factors)
            if cost < reached[way.head]:
                reached[way.head] = cost
                changed = True
        if not changed:
            break
    else:
        return None
    extra: dict[int, int] = {}
    for number in bounded:
        way = flow.ways[number]
        short = reached[way.head] - made.way_cost(way, flow.factors[number])
        if short > 0:
            if number in capped:
                extra[number] = short
            else:
                assert way.alone is not None
                whole[way.alone[0]] = -(-short // way.alone[1])
    return made, extra


#: The most entries of a table; in larger grammars no linear program is asked.
LARGEST = 300_000
#: The most effort for one state, in the unit of :class:`~formal_llm.automata.lookahead.verdicts.WorkBudget`, and how
#: many entries of a table that are looked at are one unit.
EFFORT, _ENTRIES = 16_000, 5_000
#: How many arguments are remembered, and how many completions (of what is alike).
_ARGUMENTS, _COMPLETIONS, _ALIKE = 64, 20_000, 8
_NEAR = 1e-6
#: How many cuts are learned.
_CUTS, _AT_ONCE = 6, 2


class _Completion(NamedTuple):
    """How often each way is taken, and the ways of them that are gone already."""

    counts: Mapping[int, int]
    gone: Mapping[int, int]


class LinearProgram:
    """The linear programs over the states of one search.

    Args:
        demands: the demands that the states were made with.

    Attributes:
        arguments: what was learned, the most useful last.
        tries: what the last question cost, in the unit of effort.
    """

    most_effort = EFFORT

    def __init__(self, demands: PendingSymbols) -> None:
        self._demands = demands
        self._version = 0  # that of demands is more
        self._fits: bool
        self.arguments: list[LinearArgument] = []
        self.tries = 0.0

    def is_ready(self) -> bool:
        """Make the table of the grammar as it is known now; False where it would be too large."""
        demands = self._demands
        if self._version == demands.version:
            return self._fits
        self._version = demands.version
        self.arguments.clear()
        self._kept: dict[int, list[_Completion]] = {}
        groups = [
            len(group) for index, group in demands.resources.ways.items() if index not in demands.resources.leaves
        ]
        self._fits = len(groups) * (len(groups) + sum(groups)) <= LARGEST
        if not self._fits:
            return False
        self.flow = flow = FlowSystem(demands)
        self._rows = {symbol: row for row, symbol in enumerate(flow.of)}
        self._resource_rows = {number: row for row, number in enumerate(flow.resources, len(self._rows))}
        first_due = len(self._rows) + len(self._resource_rows)
        self._due_rows = {shift: row for row, shift in enumerate(flow.dues, first_due)}
        height = first_due + len(self._due_rows)
        self._height = height
        self._fits = height * (height + len(flow.ways)) <= LARGEST
        if self._fits:
            self._reset_table()
            unit = demands.multisets.unit_of
            self._left_behind = [sum(unit(c) * n for c, n in way.children) for way in flow.ways]
        return self._fits

    def _reset_table(self) -> None:
        """A table without cuts."""
        # numpy takes as long to import as all else together, and most rules need no linear program.
        from formal_llm.automata.lookahead.exact.simplex import Simplex

        flow = self.flow
        flow.keep_cuts(())
        exact = [symbol not in flow.free for symbol in self._rows] + [False] * (self._height - len(self._rows))
        self._simplex = Simplex(
            [self._make_column(number) for number in range(len(flow.ways))], exact, self._preference_costs()
        )

    def _preference_costs(self) -> list[float]:
        """What ways take of the bounds that many share, less what they pay: solutions that leave room are preferred.

        Below 0 and among equals any order will do; it is fixed by a fraction of the golden ratio for each.
        """
        start = self._demands.counters.needed
        begin = self._demands.resources.resources_left(self._demands.counters.remaining)
        left = self._demands.resources.unpack_amounts(begin)
        shared = {number: 1 / left[number] for number in self._resource_rows}  # something is: ways take of it
        due = {shift: 1 / amount for shift, mask in self.flow.dues.items() if (amount := start >> shift & mask) > 1}
        costs = []
        for number, way in enumerate(self.flow.ways):
            cost = sum(shared.get(n, 0.0) * amount for n, amount in way.takes)
            cost -= sum(due.get(shift, 0.0) * amount for shift, amount in way.pays)
            costs.append(10 * max(0.0, cost) + 0.1 * (number * 0.618034 % 1.0))
        return costs

    def _make_column(self, number: int) -> dict[int, int]:
        way = self.flow.ways[number]
        column = Counter({self._rows[way.head]: 1})
        for child, count in way.children:
            column[self._rows[child]] -= count
        column.update({self._resource_rows[n]: amount for n, amount in way.takes if n in self._resource_rows})
        column.update({self._due_rows[shift]: -amount for shift, amount in way.pays})
        return {row: factor for row, factor in column.items() if factor}

    # -- what is known already ----------------------------------------------------------------------------------

    def is_refuted(self, state: SearchState) -> bool:
        """Whether an argument that was learned rules a state out."""
        if state.unresolved is not None or self._version != self._demands.version or not self.arguments:
            return False
        parts = self.flow.state_parts(state)
        for place in reversed(range(len(self.arguments))):
            if self.arguments[place].excess_demand(*parts) > 0:
                self.arguments.append(self.arguments.pop(place))
                return True
        return False

    def known_moves(self, state: SearchState) -> float | None:
        """The moves of a completion that is known from another state; None where none is."""
        if state.unresolved is not None or self._version != self._demands.version:
            return None
        group = self._kept.get(state.pending)
        if not group:
            return None
        pending, left, needed = self.flow.state_parts(state)
        for kept in reversed(group):
            counts = {number: count - kept.gone.get(number, 0) for number, count in kept.counts.items()}
            counts = {number: count for number, count in counts.items() if count}
            moves = self.flow.moves_of_completion(counts, pending, left, needed)
            if moves is not None:
                self._keep_completion(state, counts)
                return moves
        return None

    def _keep_completion(self, state: SearchState, counts: Mapping[int, int]) -> None:
        """Remember a completion, under what is pending after each of the ways it may begin with."""
        if len(self._kept) > _COMPLETIONS:
            self._kept.clear()
        begins = [(state.pending, _Completion(counts, {}))]
        for symbol, _, unit in self._demands.multisets.list_items(state.pending):
            for number in self.flow.of[symbol.index]:
                if number in counts:
                    after = state.pending - unit + self._left_behind[number]
                    begins.append((after, _Completion(counts, {number: 1})))
        for pending, completion in begins:
            group = self._kept.setdefault(pending, [])
            group.append(completion)
            del group[:-_ALIKE]

    # -- a new program ------------------------------------------------------------------------------------------

    def decide_state(self, state: SearchState, effort: float = EFFORT) -> tuple[float | None, bool]:
        """Whether a state can be completed.

        Args:
            state: as the search makes them.
            effort: what it may cost.

        Returns:
            The moves of some completion, infinite for none, None where the effort was spent before; and whether the
            first linear program was enough.
        """
        self.tries = 0.0
        if state.unresolved is not None or not self.is_ready():
            return None, False
        before = self._simplex.work
        decided = self._branch_and_bound(state, before + effort * _ENTRIES)
        self.tries = (self._simplex.work - before) / _ENTRIES
        return decided

    def _branch_and_bound(self, state: SearchState, last: float) -> tuple[float | None, bool]:
        """As :meth:`decide_state`, until the table's work comes to ``last``: branch and bound."""
        if len(self.flow.cuts) >= _CUTS:
            kept = self._simplex.drop_loose_rows(self._height)
            self.flow.keep_cuts([self.flow.cuts[row - self._height] for row in kept])
        pending, left, needed = parts = self.flow.state_parts(state)
        right = [pending.get(symbol, 0) for symbol in self._rows]
        right += [left[number] for number in self._resource_rows]
        right += [-needed[shift] for shift in self._due_rows]
        right += [cut.right_side(pending) for cut in self.flow.cuts]
        most = [min([INFINITE, *(left[n] // amount for n, amount in way.takes)]) for way in self.flow.ways]
        todo: list[tuple[dict[int, int], dict[int, int]]] = [({}, {})]
        solved = 0
        while todo:
            lower, upper = todo.pop()
            if self._simplex.work >= last:
                return None, False
            solved += 1
            low = [lower.get(number, 0) for number in range(len(most))]
            high = [min(bound, upper.get(number, INFINITE)) for number, bound in enumerate(most)]
            if any(high[number] < count for number, count in lower.items()):
                continue
            solution, factors = self._simplex.solve_bounded(right, low, high, last - self._simplex.work)
            if factors is not None:
                if not self._learn_refutation(factors, parts, lower, upper, high):
                    return None, False
            elif solution is None:
                return None, False
            elif self._learn_cuts(solution, pending, right):
                todo.append((lower, upper))
            elif (number := self._most_fractional_way(solution)) is not None:
                todo += self._split_bounds(number, solution[number], lower, upper)
            else:
                counts = {n: round(value) for n, value in enumerate(solution) if round(value)}
                moves = self.flow.moves_of_completion(counts, pending, left, needed)
                if moves is not None:
                    self._keep_completion(state, counts)
                    return moves, solved == 1
                stranded = self.flow.stranded_symbols(counts, pending)
                if not stranded:
                    return None, False  # rounding made it wrong
                todo += self._connect_stranded(stranded, lower, upper)
        return INFINITE, solved == 1

    def _learn_refutation(
        self,
        factors: list[float],
        parts: tuple[Mapping[int, int], tuple[int, ...], Mapping[int, int]],
        lower: Mapping[int, int],
        upper: Mapping[int, int],
        high: list[float],
    ) -> bool:
        """Whether factors of rows become an argument that rules out a state within bounds; it is learned then."""
        flow = self.flow
        near = ArgumentNumbers(
            {symbol: -factors[row] for symbol, row in self._rows.items()},
            {number: factors[row] for number, row in self._resource_rows.items()},
            {shift: factors[row] for shift, row in self._due_rows.items()},
            factors[self._height :],
        )
        # Whole numbers bound ways more than what they take does, in this state: an argument may need that or not.
        for capped in (upper, [number for number, bound in enumerate(high) if bound < INFINITE]):
            made = make_argument(flow, near, capped)
            if made is None:
                continue
            found, extra = made
            excess = found.excess_demand(*parts) - sum(int(high[number]) * price for number, price in extra.items())
            for number, count in lower.items():
                way = flow.ways[number]
                cost = found.way_cost(way, flow.factors[number])
                excess += count * max(0, cost - found.potentials[way.head])
            if excess > 0:
                if not extra:
                    self.arguments.append(found)
                    del self.arguments[:-_ARGUMENTS]
                return True
        return False

    def _learn_cuts(self, solution: list[float], pending: Mapping[int, int], right: list[int]) -> bool:
        """Learn of ways that are taken though nothing leads to them; whether there was something new."""
        counts = {number: value for number, value in enumerate(solution) if value > _NEAR}
        stranded = frozenset(self.flow.stranded_symbols(counts, pending))
        if not stranded or len(self.flow.cuts) >= 30:
            return False
        new = 0
        for number in sorted(counts, key=counts.__getitem__, reverse=True):
            if new < _AT_ONCE and self.flow.ways[number].head in stranded:
                cut = self.flow.add_cut(number, stranded)
                if cut is not None:
                    self._simplex.add_row(cut.row_factors())
                    right.append(cut.right_side(pending))
                    new += 1
        return new > 0

    @staticmethod
    def _most_fractional_way(solution: list[float]) -> int | None:
        """The way that is furthest from being taken a whole number of times."""
        number, worst = None, _NEAR
        for n, value in enumerate(solution):
            off = abs(value - round(value))
            if off > worst:
                number, worst = n, off
        return number

    @staticmethod
    def _split_bounds(
        number: int, value: float, lower: dict[int, int], upper: dict[int, int]
    ) -> list[tuple[dict[int, int], dict[int, int]]]:
        """At most, and at least: the nearer one last, to be tried first."""
        floor = int(value)
        below = (lower, {**upper, number: floor})
        above = ({**lower, number: floor + 1}, upper)
        return [below, above] if value - floor > 0.3 else [above, below]

    def _connect_stranded(
        self, stranded: set[int], lower: dict[int, int], upper: dict[int, int]
    ) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        """Some way that leads to these symbols is taken, or none of theirs."""
        into = [
            number
            for number, way in enumerate(self.flow.ways)
            if way.head not in stranded and any(child in stranded for child, _ in way.children)
        ]
        for place, number in enumerate(into):
            yield {**lower, number: 1}, {**upper, **dict.fromkeys(into[:place], 0)}
        yield lower, {**upper, **{number: 0 for symbol in stranded for number in self.flow.of[symbol]}}
