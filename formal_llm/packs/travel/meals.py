"""The least that meals in one city can cost: exact, whatever has been eaten there already.

So many different restaurants must be visited, a few more may be, and together they must offer some cuisines. Which
ones are cheapest is found without a search over all restaurants: of those that offer the same of the wanted cuisines
only the cheapest can be needed to cover them (a dearer one can be exchanged for it), no cover needs two of them, and
what is still to be eaten is filled up with the cheapest of all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

#: More than anything costs: no way to do it.
NEVER = 10**15


class Table(NamedTuple):
    """A restaurant, as far as it counts.

    Attributes:
        cost: of a meal of all travellers, in cents.
        offers: which of the wanted cuisines it has, a bit for each.
    """

    cost: int
    offers: int


class Kitchen:
    """The restaurants of a city.

    Args:
        tables: the restaurants, the cheapest first.
        wanted: all cuisines that are wanted, a bit for each.
    """

    def __init__(self, tables: Sequence[Table], wanted: int) -> None:
        if any(one.cost > other.cost for one, other in pairwise(tables)):
            raise ValueError("the tables of a kitchen are sorted by their cost")
        self.tables = tuple(tables)
        self.wanted = wanted
        #: For each set of wanted cuisines that is missing: by what is offered of it, who offers that.
        self._offering: dict[int, dict[int, list[int]]] = {}
        self._found: dict[tuple[object, ...], tuple[int, ...]] = {}

    def least(self, used: Collection[int], must: int, may: int, missing: int) -> tuple[int, ...]:
        """What it costs at least to visit ``must`` to ``must + may`` restaurants, none of them in ``used``.

        Args:
            used: the restaurants that have been visited, by their places.
            must: how many more have to be visited.
            may: how many may be visited beside these.
            missing: the cuisines that are asked for below.

        Returns:
            for each set of cuisines, by its bits, the cost where that is to be covered; :data:`NEVER` where it cannot,
            and for sets with others than the missing ones.
        """
        cheap = self._cheapest(used, must)
        if cheap is None:
            return (NEVER,) * (self.wanted + 1)
        first = self._first(used, missing)
        key = (cheap, tuple(first.items()), may, missing)
        found = self._found.get(key)
        if found is None:
            costs = [NEVER] * (self.wanted + 1)
            cover = missing
            while True:
                costs[cover] = self._covering(cheap, first, may, cover)
                if not cover:
                    break
                cover = (cover - 1) & missing
            found = self._found[key] = tuple(costs)
        return found

    def _cheapest(self, used: Collection[int], count: int) -> tuple[int, ...] | None:
        """The cheapest restaurants that are not used; None where there are too few."""
        if not used:
            return tuple(range(count)) if count <= len(self.tables) else None
        found: list[int] = []
        place = 0
        while len(found) < count:
            if place == len(self.tables):
                return None
            if place not in used:
                found.append(place)
            place += 1
        return tuple(found)

    def _first(self, used: Collection[int], missing: int) -> dict[int, int]:
        """By what restaurants offer of the missing cuisines, the cheapest of those that are not used."""
        offering = self._offering.get(missing)
        if offering is None:
            offering = self._offering[missing] = {}
            for place, table in enumerate(self.tables):
                if offers := table.offers & missing:
                    offering.setdefault(offers, []).append(place)
        found = {}
        for offers, places in offering.items():
            free = next((place for place in places if place not in used), None)
            if free is not None:
                found[offers] = free
        return found

    def _covering(self, cheap: tuple[int, ...], first: dict[int, int], may: int, cover: int) -> int:
        """The least cost of visiting as many as ``cheap`` has, and up to ``may`` more, so that ``cover`` is covered."""
        offers: dict[int, int] = {}
        for offered, place in first.items():
            part = offered & cover
            if part and place < offers.get(part, len(self.tables)):
                offers[part] = place
        return self._search(cheap, sorted((place, part) for part, place in offers.items()), may, cover, ())

    def _search(
        self, cheap: tuple[int, ...], offers: list[tuple[int, int]], may: int, cover: int, chosen: tuple[int, ...]
    ) -> int:
        if not cover:
            return self._filled(cheap, chosen)
        if len(chosen) == len(cheap) + may:
            return NEVER
        lowest, best = cover & -cover, NEVER
        for place, offered in offers:
            if offered & lowest and place not in chosen:
                best = min(best, self._search(cheap, offers, may, cover & ~offered, (*chosen, place)))
        return best

    def _filled(self, cheap: tuple[int, ...], chosen: tuple[int, ...]) -> int:
        """What the chosen ones cost, and the cheapest of the others that make them as many as there must be."""
        cost = sum(self.tables[place].cost for place in chosen)
        more = len(cheap) - len(chosen)
        for place in cheap:
            if more <= 0:
                break
            if place not in chosen:
                cost += self.tables[place].cost
                more -= 1
        return cost


def together(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """What it costs at least to cover each set of cuisines in two places together."""
    found = []
    for cover in range(len(one)):
        best, part = NEVER, cover
        while True:
            best = min(best, one[part] + other[cover & ~part])
            if not part:
                break
            part = (part - 1) & cover
        found.append(best)
    return tuple(found)


def together_at(one: Sequence[int], other: Sequence[int], cover: int) -> int:
    """What it costs at least to cover one set of cuisines in two places together."""
    best, part = NEVER, cover
    while True:
        cost = one[part] + other[cover & ~part]
        if cost < best:
            best = cost
        if not part:
            return best
        part = (part - 1) & cover
