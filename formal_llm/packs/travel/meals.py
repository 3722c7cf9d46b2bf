"""The exact minimum cost of meals in one city, given the restaurants visited so far.

A number of different restaurants must be visited, some more may be, and together they must offer certain cuisines. Few
restaurants are relevant for the cheapest solution. Of those that offer the same missing cuisines, or fewer for more
money, only the cheapest can be needed to cover them: it can replace a more expensive one, and no cover needs both. The
remaining meals are taken in the cheapest restaurants of all. Over these few, dynamic programming by their number and
by the cuisines that they cover is exact.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: More than any cost: there is no solution.
NEVER = 10**15
#: Minimum costs for each set of cuisines to cover, indexed by its bits.
Costs: TypeAlias = NDArray[np.int64]


class MealOption(NamedTuple):
    """The relevant facts of a restaurant.

    Attributes:
        cost: the cost of a meal for all travellers, in cents.
        offers: the wanted cuisines that it has, one bit each.
    """

    cost: int
    offers: int


class Kitchen:
    """The restaurants of a city.

    Args:
        tables: the restaurants, cheapest first.
        wanted: all wanted cuisines, one bit each.
    """

    def __init__(self, tables: Sequence[MealOption], wanted: int) -> None:
        if any(one.cost > other.cost for one, other in pairwise(tables)):
            raise ValueError("the tables of a kitchen are sorted by their cost")
        self.tables = tuple(tables)
        self.wanted = wanted
        #: For each set of missing cuisines: its offered subsets, each with its restaurants, cheapest first.
        self._offering: dict[int, list[tuple[int, list[int]]]] = {}
        self._found: dict[tuple[object, ...], Costs] = {}

    def find_least_costs(self, used: Collection[int], must: int, may: int, missing: int) -> Costs:
        """Return the minimum cost of ``must`` to ``must + may`` restaurants outside of ``used``.

        Args:
            used: the positions of the restaurants visited so far.
            must: the number of restaurants that must be visited.
            may: the number of further restaurants that may be visited.
            missing: the cuisines that may have to be covered.

        Returns:
            the minimum cost for each set of cuisines to cover, indexed by its bits; :data:`NEVER` if it cannot be
            covered, and for sets with cuisines that are not missing.
        """
        cheap = self._find_cheapest(used, must)
        if cheap is None:
            return nothing(self.wanted, NEVER)
        places = sorted({*cheap, *self._find_covering(used, missing)})
        key = (*places, must, may, missing)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._compute_costs(places, must, may, missing)
        return found

    def _find_cheapest(self, used: Collection[int], count: int) -> list[int] | None:
        """Return the cheapest unused restaurants; None if there are too few."""
        found = list(islice((place for place in range(len(self.tables)) if place not in used), count))
        return found if len(found) == count else None

    def _find_covering(self, used: Collection[int], missing: int) -> list[int]:
        """Return the unused restaurants that covering missing cuisines may need: the cheapest of comparable ones."""
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

    def _compute_costs(self, places: Sequence[int], must: int, may: int, missing: int) -> Costs:
        """Compute the minimum costs over these restaurants by their number and their cuisines."""
        sets = np.arange(self.wanted + 1)
        costs = np.full((must + may + 1, self.wanted + 1), NEVER)
        costs[0, 0] = 0
        for number, place in enumerate(places):
            cost, offers = self.tables[place]
            # Fewer than ``low`` could not become enough, and more than ``number`` are not there yet.
            low, high = max(0, must - len(places) + number), min(number + 1, must + may)
            taken = costs[low:high, sets & ~(offers & missing)] + cost
            costs[low + 1 : high + 1] = np.minimum(costs[low + 1 : high + 1], taken)
        found: Costs = np.minimum(costs[must:].min(axis=0), NEVER)
        found[(sets & ~missing) != 0] = NEVER
        return found


def nothing(wanted: int, cost: int = 0) -> Costs:
    """Return the costs of covering nothing: :data:`NEVER` for every set of cuisines except the empty one."""
    found = np.full(wanted + 1, NEVER)
    found[0] = cost
    return found


@lru_cache(maxsize=16)
def _split_sets(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return all ways to split each set of cuisines in two: the first parts, the second parts, and the set offsets."""
    parts = [[part for part in range(size) if not part & ~cover] for cover in range(size)]
    one = np.array([part for found in parts for part in found])
    other = np.array([cover & ~part for cover, found in enumerate(parts) for part in found])
    return one, other, np.cumsum([0, *map(len, parts[:-1])])


@lru_cache(maxsize=1024)
def _split_set(cover: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all ways to split a set of cuisines in two."""
    parts = np.array([part for part in range(cover + 1) if not part & ~cover])
    return parts, cover & ~parts


def together(one: Costs, other: Costs) -> Costs:
    """Combine the costs of two places to the minimum costs of covering each set of cuisines in both together."""
    part, rest, begins = _split_sets(len(one))
    found: Costs = np.minimum(np.minimum.reduceat(one[part] + other[rest], begins), NEVER)
    return found


def together_at(one: Costs, other: Costs, cover: int) -> int:
    """Return the minimum cost of covering one set of cuisines in two places together."""
    parts, rest = _split_set(cover)
    return min(int((one[parts] + other[rest]).min()), NEVER)
