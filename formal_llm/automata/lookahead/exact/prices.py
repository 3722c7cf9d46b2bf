"""Prices of what lower bounds still need: how many moves, or terminals, a unit of each costs at least.

An example: a day needs 1,000 minutes, no step takes more than 10, and each step takes 3 moves. So a minute costs 3/10
of a move at least, and no day can be done in fewer than 300 moves. No search is needed to see that.

In general there is a price for a unit of each lower bound, such that no derivation can go round in a circle and earn by
it. Then each symbol has a *rest*: the least that any derivation of it costs when what it pays is bought back at these
prices. The rests of all that is pending, and the price of all that is needed, are together no more than any completion
costs. (Lagrangian relaxation; the highest price is the least ratio of cost to payment over all circles, Lawler 1967,
found by Newton's method as in Dinkelbach 1967. All numbers are whole, so nothing is rounded.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE

#: One way to work off a symbol: the symbol, what it costs, what it pays to each lower bound, the symbols it leaves.
PricedWay = tuple[int, int, Mapping[int, int], Sequence[int]]

#: The ways looked at before prices are given up; and how often one price is lowered.
_WORK, _LOWERED = 40_000, 20
#: What pays more than this may as well pay without an end.
_LARGEST = 1 << 60
#: The most sets of prices; each makes every estimate a little dearer.
_MOST = 4


class BoundPrices(NamedTuple):
    """Prices for the lower bounds, and what the symbols cost at these.

    Attributes:
        unit: what a unit of each lower bound costs, times ``scale``.
        rest: what each symbol costs at least beyond what it pays, times ``scale``; negative where it pays more.
        scale: what all are multiplied by, so that they are whole numbers.
    """

    unit: Mapping[int, int]
    rest: Mapping[int, int]
    scale: int


class CostEstimate:
    """What completing costs at least, by several sets of prices.

    Args:
        ways: the ways of all symbols; each symbol can be derived.
        bounds: the lower bounds, by importance.
    """

    def __init__(self, ways: Sequence[PricedWay], bounds: Sequence[int]) -> None:
        # Where a derivation can only begin is looked at when one does: such symbols are many beside a clock.
        inside = {child for way in ways for child in way[3]}
        self._bounds = tuple(bounds)
        self._outside: dict[int, list[PricedWay]] = {}
        for way in ways:
            if way[0] not in inside:
                self._outside.setdefault(way[0], []).append(way)
        groups = group_ways(way for way in ways if way[0] in inside)
        self.prices = find_prices(groups, bounds)
        most = {bound: find_most(groups, bound) for bound in bounds}
        #: For each symbol its rest in each set of prices; the most that it pays to each lower bound.
        self._rests = {index: [one.rest[index] for one in self.prices] for index in inside}
        self._most = {index: {bound: most[bound].get(index, 0) for bound in bounds} for index in inside}

    def least_cost_of(self, pending: Iterable[tuple[int, int]], due: Sequence[tuple[int, int]]) -> float:
        """The least that completing costs; infinite where what is pending cannot pay what is due.

        Args:
            pending: (symbol, how often).
            due: (lower bound, what it still needs).
        """
        pending = list(pending)
        for index, _ in pending:
            if index not in self._rests:
                self._add_outside_symbol(index)
        for bound, amount in due:
            if sum([self._most[index][bound] * count for index, count in pending]) < amount:
                return INFINITE
        least: float = 0
        for number, (unit, _, scale) in enumerate(self.prices):
            total = 0
            for index, count in pending:
                total += self._rests[index][number] * count
            for bound, amount in due:
                total += unit[bound] * amount
            least = max(least, -(-total // scale))
        return least

    def _add_outside_symbol(self, index: int) -> None:
        """Work out what is known of a symbol that no other one leads to."""
        ways = self._outside[index]
        self._rests[index] = [
            min(
                cost * scale - sum([unit[b] * n for b, n in pays.items()]) + sum([rest[child] for child in children])
                for _, cost, pays, children in ways
            )
            for unit, rest, scale in self.prices
        ]
        self._most[index] = {
            bound: max(
                pays.get(bound, 0) + sum([self._most[child][bound] for child in children])
                for _, _, pays, children in ways
            )
            for bound in self._bounds
        }


def group_ways(ways: Iterable[PricedWay]) -> list[list[PricedWay]]:
    """The ways of symbols that lead to each other together, and each group after those that it leads to.

    So one look at each is enough where nothing goes round in a circle, as under a clock. (Tarjan 1972.)
    """
    of_symbol: dict[int, list[PricedWay]] = {}
    for way in ways:
        of_symbol.setdefault(way[0], []).append(way)
    groups: list[list[PricedWay]] = []
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_: list[int] = []
    done: set[int] = set()
    for root in of_symbol:
        under_way: list[tuple[int, Iterator[int]]] = [(root, iter(()))] if root not in number else []
        while under_way:
            symbol, children = under_way[-1]
            if symbol not in number:
                number[symbol] = lowest[symbol] = len(number)
                open_.append(symbol)
                children = iter(dict.fromkeys(child for way in of_symbol.get(symbol, ()) for child in way[3]))
                under_way[-1] = symbol, children
            new = next((child for child in children if child not in done), None)
            if new is None:
                under_way.pop()
                if lowest[symbol] == number[symbol]:
                    place = open_.index(symbol) if open_[-1] != symbol else len(open_) - 1
                    done.update(open_[place:])
                    groups.append([way for one in open_[place:] for way in of_symbol.get(one, ())])
                    del open_[place:]
                if under_way:
                    above = under_way[-1][0]
                    lowest[above] = min(lowest[above], lowest[symbol])
            elif new in number:
                lowest[symbol] = min(lowest[symbol], number[new])
            else:
                under_way.append((new, iter(())))
    return [group for group in groups if group]


def _cyclic_symbol_count(group: Sequence[PricedWay]) -> int:
    """How many symbols a group is of; 0 where none leads back to itself."""
    heads = {way[0] for way in group}
    return len(heads) if len(heads) > 1 or any(way[0] in way[3] for way in group) else 0


def find_most(groups: Iterable[Sequence[PricedWay]], bound: int) -> dict[int, float]:
    """The most that each symbol can pay to a lower bound; infinite where it can go round in a circle and pay.

    Also infinite where too much would have to be looked at.

    Args:
        groups: the ways, as :func:`group_ways` has them.
        bound: the lower bound.
    """
    most: dict[int, float] = {}
    work = _WORK
    for ways in groups:
        count = _cyclic_symbol_count(ways)
        users = _ways_by_child(ways) if count else {}
        todo: Iterable[int] = range(len(ways))
        # Derivations without a circle are no deeper than there are symbols; what rises after that has one.
        for turn in range(2 * count + 1):
            again: set[int] = set()
            for number in todo:
                work -= 1
                head, _, pays, children = ways[number]
                if most.keys() >= set(children):
                    amount = pays.get(bound, 0) + sum([most[child] for child in children])
                    if amount > most.get(head, -1):
                        most[head] = amount if turn < max(1, count) and amount < _LARGEST else INFINITE
                        again.update(users.get(head, ()))
            if not again:
                break
            if work < 0:
                most.update(dict.fromkeys((way[0] for way in ways), INFINITE))
                break
            todo = sorted(again)
    return most


def _ways_by_child(ways: Sequence[PricedWay]) -> dict[int, list[int]]:
    """For each symbol the ways that leave it."""
    users: dict[int, list[int]] = {}
    for number, way in enumerate(ways):
        for child in dict.fromkeys(way[3]):
            users.setdefault(child, []).append(number)
    return users


def find_prices(groups: Sequence[Sequence[PricedWay]], bounds: Sequence[int]) -> list[BoundPrices]:
    """Some sets of prices: in each the bounds get theirs one after the other, as high as those before leave it.

    None where nothing goes round in a circle: no price would be too high, and so none bounds anything.

    Args:
        groups: the ways, as :func:`group_ways` has them; each symbol can be derived.
        bounds: the lower bounds, by importance: each is the first one in some set, as far as there are sets.
    """
    finder = _PriceFinder(groups)
    if not any(turns for _, _, turns in finder.groups):
        return []
    found: list[BoundPrices] = []
    for first in range(min(len(bounds), _MOST)):
        prices = finder.find_price_set([*bounds[first:], *bounds[:first]])
        if prices is not None and prices not in found:
            found.append(prices)
    return found


class _PriceFinder:
    def __init__(self, groups: Sequence[Sequence[PricedWay]]) -> None:
        self.ways = [way for group in groups for way in group]
        self.work = _WORK
        #: Of each group (the number of its first way, the number behind its last, how often it is looked at at most).
        self.groups: list[tuple[int, int, int]] = []
        #: For each symbol on a circle the ways of its group that leave it.
        self.users: dict[int, list[int]] = {}
        first = 0
        for group in groups:
            turns = _cyclic_symbol_count(group)
            self.groups.append((first, first + len(group), turns))
            if turns:
                own = {way[0] for way in group}
                found = ((symbol, numbers) for symbol, numbers in _ways_by_child(group).items() if symbol in own)
                self.users |= {symbol: [first + number for number in numbers] for symbol, numbers in found}
            first += len(group)

    def find_price_set(self, bounds: Sequence[int]) -> BoundPrices | None:
        """Prices for the bounds in this order; None where too much would have to be looked at."""
        unit: dict[int, Fraction] = {}
        for bound in bounds:
            scale, _, base = self._scale_prices(unit)
            highest = self._highest_price(base, [pays.get(bound, 0) for _, _, pays, _ in self.ways])
            if highest is None:
                return None
            unit[bound] = highest / scale
        scale, whole, costs = self._scale_prices(unit)
        rest = self._cheapest_derivations(costs, [0] * len(costs), Fraction(0))
        return BoundPrices(whole, {i: cost for i, (cost, _) in rest.items()}, scale) if isinstance(rest, dict) else None

    def _scale_prices(self, unit: Mapping[int, Fraction]) -> tuple[int, dict[int, int], list[int]]:
        """Prices as whole numbers: (what they are multiplied by, the prices, what is left of the cost of each way)."""
        scale = lcm(*(price.denominator for price in unit.values()))
        whole = {bound: int(price * scale) for bound, price in unit.items()}
        costs = [
            cost * scale - sum([whole[bound] * amount for bound, amount in pays.items() if bound in whole])
            for _, cost, pays, _ in self.ways
        ]
        return scale, whole, costs

    def _highest_price(self, base: Sequence[int], pays: Sequence[int]) -> Fraction | None:
        """The highest price at which no circle earns, for what ``pays`` when ways cost ``base``; None as above."""
        # Where nothing goes round in a circle no price is too high; beyond this one more would bound nothing.
        least = min((amount for amount in pays if amount), default=0)
        price = Fraction(sum(map(abs, base)), least) if least else Fraction(0)
        for _ in range(_LOWERED):
            found = self._cheapest_derivations(base, pays, price)
            if not isinstance(found, Fraction):
                return None if found is None else price
            price = found if 0 < found < price else Fraction(0)
        return Fraction(0)

    def _cheapest_derivations(
        self, base: Sequence[int], pays: Sequence[int], price: Fraction
    ) -> dict[int, tuple[int, int]] | Fraction | None:
        """The cheapest derivations as (cost, payment); or a price at which a circle that earns does not any more."""
        up, down = price.numerator, price.denominator
        best: dict[int, tuple[int, int]] = {}
        worth: dict[int, int] = {}
        by: dict[int, int] = {}
        for first, last, turns in self.groups:
            changed = -1
            todo: Iterable[int] = range(first, last)
            for turn in range(1, turns + 2):
                again: set[int] = set()
                for number in todo:
                    self.work -= 1
                    head, _, _, children = self.ways[number]
                    if not worth.keys() >= set(children):
                        continue
                    value = base[number] * down - up * pays[number] + sum([worth[child] for child in children])
                    if head not in worth or value < worth[head]:
                        cost = base[number] + sum([best[child][0] for child in children])
                        best[head] = cost, pays[number] + sum([best[child][1] for child in children])
                        worth[head], by[head], changed = value, number, head
                        again.update(self.users.get(head, ()))
                if not again:
                    break
                if self.work < 0:
                    return None
                # A circle among the cheapest ways earns: it is looked for from time to time, and not only in the end.
                if (
                    not turn & turn - 1
                    and (circle := self._find_cycle_ratio(changed, base, pays, best, by)) is not None
                ):
                    return circle
                todo = sorted(again)
            else:
                return self._find_cycle_ratio(changed, base, pays, best, by) or Fraction(0)
        return best

    def _find_cycle_ratio(
        self,
        head: int,
        base: Sequence[int],
        pays: Sequence[int],
        best: Mapping[int, tuple[int, int]],
        by: Mapping[int, int],
    ) -> Fraction | None:
        """The ratio of cost to payment of a circle among the cheapest derivations below ``head``; None for none."""
        path: list[tuple[int, int]] = []  # (symbol, its next child to look at)
        place: dict[int, int] = {}
        done: set[int] = set()
        todo: list[tuple[int, int]] = [(head, 0)]
        while todo:
            now, at = todo.pop()
            if at == 0:
                place[now] = len(path)
                path.append((now, -1))
            children = self.ways[by[now]][3]
            if at == len(children):
                path.pop()
                del place[now]
                done.add(now)
                continue
            path[-1] = now, at
            child = children[at]
            if child in place:
                cost = amount = 0
                for symbol, taken in path[place[child] :]:
                    number = by[symbol]
                    others = [c for k, c in enumerate(self.ways[number][3]) if k != taken]
                    cost += base[number] + sum(best[other][0] for other in others)
                    amount += pays[number] + sum(best[other][1] for other in others)
                return Fraction(cost, amount) if amount else Fraction(0)
            todo.append((now, at + 1))
            if child not in done:
                todo.append((child, 0))
        return None
