"""Linear arguments: why no completion can keep all bounds at once, in a few numbers.

An argument gives each bound a multiplier from 0, what a unit of it is worth, and each symbol a potential: no more than
what any completion of it takes from the upper bounds, less what it pays to the lower ones, at those prices. So where
the potentials of what is pending add up to more than what is left is worth, less what is still needed, there is no
completion (Farkas' lemma, 1902, on the flow of Verma, Seidl and Schwentick 2005).

Example: each of three days takes 40 of a budget at least, so the potential of a day is 40 at a price of 1, and a budget
of 119 does not do.

Whether potentials are right does not depend on what is pending or left. So an argument that was found for one state
holds for all, and one sum decides then what would otherwise be searched anew. All is counted in whole numbers here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
        children: (symbol, count) that it leaves, without those that can neither stand in the way nor be of use.
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
        if min(over, default=0) < 0 or any(d > 0 for d in due.values()):
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
    paid = {shift: int(price * scale // 1) for shift, price in dues.items() if price > 0}
    reached = {symbol: round(potential * scale) for symbol, potential in potentials.items()}
    for symbol in flow.free:
        reached[symbol] = min(reached.get(symbol, 0), 0)
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
