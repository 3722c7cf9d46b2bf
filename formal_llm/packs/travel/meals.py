"""The least that meals in one city can cost: exact, whatever has been eaten there already.

So many different restaurants must be visited, a few more may be, and together they must offer some cuisines. Few
restaurants can play a part in the cheapest way to do that. Of those that offer the same of the missing cuisines, or
less for more money, only the cheapest can be needed to cover them: a dearer one can be exchanged for it, and no cover
needs both. What is still to be eaten then is filled up with the cheapest of all. Over these few, dynamic programming by
their number and by what they cover is exact.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: More than anything costs: no way to do it.
NEVER = 10**15
#: What something costs at least, for each set of cuisines that is covered, by its bits.
Costs: TypeAlias = NDArray[np.int64]


class MealOption(NamedTuple):
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

    def __init__(self, tables: Sequence[MealOption], wanted: int) -> None:
        if any(one.cost > other.cost for one, other in pairwise(tables)):
            raise ValueError("the tables of a kitchen are sorted by their cost")
        self.tables = tuple(tables)
        self.wanted = wanted
        #: For each set of missing cuisines: what is offered of it, and who offers just that, the cheapest first.
        self._offering: dict[int, list[tuple[int, list[int]]]] = {}
        self._found: dict[tuple[object, ...], Costs] = {}

    def least(self, used: Collection[int], must: int, may: int, missing: int) -> Costs:
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
            return nothing(self.wanted, NEVER)
        key = (*sorted({*cheap, *self._covering(used, missing)}), must, may, missing)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._table(key[:-3], must, may, missing)
        return found

    def _cheapest(self, used: Collection[int], count: int) -> list[int] | None:
        """The cheapest restaurants that are not used; None where there are too few."""
        found: list[int] = []
        for place in range(len(self.tables)):
            if len(found) == count:
                break
            if place not in used:
                found.append(place)
        return found if len(found) == count else None

    def _covering(self, used: Collection[int], missing: int) -> list[int]:
        """Who may be needed to cover missing cuisines: of those that offer as much or less, the cheapest not used."""
        offering = self._offering.get(missing)
        if offering is None:
            by_offer: dict[int, list[int]] = {}
            for place, table in enumerate(self.tables):
                if offers := table.offers & missing:
                    by_offer.setdefault(offers, []).append(place)
            offering = self._offering[missing] = list(by_offer.items())
        free = ((next((one for one in places if one not in used), None), offers) for offers, places in offering)
        found: list[int] = []
        kept: list[int] = []
        for place, offers in sorted((place, offers) for place, offers in free if place is not None):
            if all(offers & ~other for other in kept):
                found.append(place)
                kept.append(offers)
        return found

    def _table(self, places: Sequence[int], must: int, may: int, missing: int) -> Costs:
        """The least costs where only these restaurants count: by how many are visited, and by what they cover."""
        sets = np.arange(self.wanted + 1)
        costs = np.full((must + may + 1, self.wanted + 1), NEVER)
        costs[0, 0] = 0
        for place in places:
            cost, offers = self.tables[place]
            costs[1:] = np.minimum(costs[1:], costs[:-1, sets & ~(offers & missing)] + cost)
        found: Costs = np.minimum(costs[must:].min(axis=0), NEVER)
        found[(sets & ~missing) != 0] = NEVER
        return found


def nothing(wanted: int, cost: int = 0) -> Costs:
    """What it costs to cover nothing; :data:`NEVER` for every set of cuisines but the empty one."""
    found = np.full(wanted + 1, NEVER)
    found[0] = cost
    return found


@lru_cache(maxsize=16)
def _parted(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """All ways to part each set of cuisines in two: the one part, the other, and where each set begins."""
    parts = [[part for part in range(size) if not part & ~cover] for cover in range(size)]
    one = np.array([part for found in parts for part in found])
    other = np.array([cover & ~part for cover, found in enumerate(parts) for part in found])
    return one, other, np.cumsum([0, *map(len, parts[:-1])])


@lru_cache(maxsize=1024)
def _parts(cover: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All ways to part a set of cuisines in two."""
    parts = np.array([part for part in range(cover + 1) if not part & ~cover])
    return parts, cover & ~parts


def together(one: Costs, other: Costs) -> Costs:
    """What it costs at least to cover each set of cuisines in two places together."""
    part, rest, begins = _parted(len(one))
    found: Costs = np.minimum(np.minimum.reduceat(one[part] + other[rest], begins), NEVER)
    return found


def together_at(one: Costs, other: Costs, cover: int) -> int:
    """What it costs at least to cover one set of cuisines in two places together."""
    parts, rest = _parts(cover)
    return min(int((one[parts] + other[rest]).min()), NEVER)
