"""Whether linear inequalities have a solution: the dual simplex method with bounded variables, kept warm.

The system is A x + s = b with l <= x <= u and a slack s for each row, from 0 up or just 0. A is fixed; the right-hand
side and the bounds change from one question to the next, and the basis of the last question is where the next one
begins (Lemke 1954, The dual method of solving the linear programming problem). Costs only break ties: any basis is as
good a beginning as another, since a solution is all that is asked for.

It counts in floating point numbers, so no result is certain: the caller checks the solution, or the combination of
rows that no solution can meet (Farkas' lemma), in whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

_ZERO = 1e-9
_OUTSIDE = 1e-7
#: The pivots after which the table is made anew, so that errors do not add up.
_FRESH = 300
#: What a pivot and a new question cost whatever the size of the table, in entries of it.
_PIVOT, _QUESTION = 25_000, 50_000

_Numbers = NDArray[np.float64]


class Simplex:
    """The table of one system.

    Args:
        columns: for each variable its factors by row.
        exact: for each row whether its slack must be 0.
        costs: for each variable a cost from 0, lower where it is preferred.

    Attributes:
        pivots: how many steps were taken in all.
        work: the entries of tables that these looked at.
    """

    def __init__(self, columns: Sequence[Mapping[int, int]], exact: Sequence[bool], costs: Sequence[float]) -> None:
        height, self._width = len(exact), len(columns)
        self._factors: _Numbers = np.zeros((height, self._width))
        for number, column in enumerate(columns):
            for row, factor in column.items():
                self._factors[row, number] = factor
        self._exact = list(exact)
        self._costs = costs
        self.pivots = self.work = 0
        self._reset_basis()

    def _reset_basis(self) -> None:
        """The basis of all slacks."""
        height, width = len(self._exact), self._width
        self._rows: _Numbers = np.hstack([self._factors, np.eye(height)])
        self._basis = np.arange(width, width + height)
        self._free = np.arange(width + height) < width  # not in the basis
        self._upper = np.zeros(width + height, dtype=bool)  # out of the basis at the upper bound
        self._prices: _Numbers = np.concatenate([np.array(self._costs, dtype=float), np.zeros(height)])
        self._made = self.pivots

    def add_row(self, row: Mapping[int, int]) -> None:
        """One more row (by column), its slack from 0 up; the basis stays."""
        height, width = self._rows.shape
        line = np.zeros(width)
        line[list(row)] = list(row.values())
        self._factors = np.vstack([self._factors, line[: self._width]])
        self._exact.append(False)
        line -= line[self._basis] @ self._rows
        line[self._basis] = 0.0
        grown = np.zeros((height + 1, width + 1))
        grown[:height, :width] = self._rows
        grown[height, :width] = line
        grown[height, width] = 1.0
        self._rows = grown
        self._basis = np.append(self._basis, width)
        self._free = np.append(self._free, False)
        self._upper = np.append(self._upper, False)
        self._prices = np.append(self._prices, 0.0)

    def drop_loose_rows(self, first: int) -> list[int]:
        """Take out the rows from ``first`` on that do not bind now; the numbers of those that stay."""
        basic = set(self._basis.tolist())
        loose = [n for n in range(first, len(self._exact)) if self._width + n in basic]
        kept = [n for n in range(first, len(self._exact)) if self._width + n not in basic]
        if loose:
            places = [self._width + n for n in loose]
            stays = ~np.isin(self._basis, places)
            self._rows = np.delete(self._rows[stays], places, axis=1)
            self._basis = self._basis[stays]  # all of them before the places: of later slacks only loose ones are basic
            self._prices = np.delete(self._prices, places)
            self._free, self._upper = np.delete(self._free, places), np.delete(self._upper, places)
            self._factors = np.delete(self._factors, loose, axis=0)
            self._exact = [exact for n, exact in enumerate(self._exact) if n not in loose]
        return kept

    def solve_bounded(
        self, right: Sequence[int], lower: Sequence[int], upper: Sequence[float], most: float
    ) -> tuple[list[float] | None, list[float] | None]:
        """(a solution, None), (None, factors of rows that no solution can meet), or (None, None) after ``most`` work.

        The factors y are such that y A x + y s > y b for all x and s within their bounds.
        """
        if self.pivots - self._made > _FRESH:
            self._reset_basis()
        last = self.work + most
        self.work += _QUESTION + self._rows.size
        height = len(right)
        low = np.concatenate([np.array(lower, dtype=float), np.zeros(height)])
        high = np.concatenate([np.array(upper, dtype=float), np.where(self._exact, 0.0, np.inf)])
        values = self._basis_values(np.array(right, dtype=float), low, high)
        fixed = low == high
        while True:
            over, under = values - high[self._basis], low[self._basis] - values
            beyond = np.maximum(over, under)
            out = int(beyond.argmax())
            if beyond[out] <= _OUTSIDE:
                solution = np.where(self._free, np.where(self._upper, high, low), 0.0)
                solution[self._basis] = values
                found: list[float] = solution[: self._width].tolist()
                return found, None
            excess = float(over[out] if over[out] >= under[out] else -under[out])
            into = self._choose_entering(out, excess > 0, fixed)
            if into < 0:
                factors: list[float] = ((-1.0 if excess > 0 else 1.0) * self._rows[out, self._width :]).tolist()
                return None, factors
            if self.work >= last:
                return None, None
            self._pivot_row(out, into, excess, values, low, high)

    def _basis_values(self, right: _Numbers, low: _Numbers, high: _Numbers) -> _Numbers:
        """The values of the basis."""
        # Bounds may have changed: at the bound that its price asks for, or at no price where there is none.
        asks = self._free & (self._prices < 0)
        self._upper = np.where(self._free, asks & (high < np.inf), self._upper)
        self._prices[asks & ~self._upper] = 0.0
        inside = np.where(self._free, -np.where(self._upper, high, low), 0.0)
        inside[self._width :] += right
        values: _Numbers = self._rows @ inside
        return values

    def _choose_entering(self, out: int, above: bool, fixed: NDArray[np.bool_]) -> int:
        """The variable that can mend the row at the least price; -1 for none."""
        line = self._rows[out]
        size = np.abs(line)
        able = self._free & ~fixed & (size >= _ZERO) & ((line > 0) == (self._upper != above))
        places = np.flatnonzero(able)
        if not places.size:
            return -1
        size = size[places]
        ratio = np.abs(self._prices[places]) / size
        return int(places[np.where(ratio <= ratio.min() + _ZERO, size, 0.0).argmax()])

    def _pivot_row(self, out: int, into: int, excess: float, values: _Numbers, low: _Numbers, high: _Numbers) -> None:
        rows, gone = self._rows, self._basis[out]
        step = excess / rows[out, into]
        begin = high[into] if self._upper[into] else low[into]
        line = rows[out] / rows[out, into]
        line[np.abs(line) <= _ZERO] = 0.0
        column = rows[:, into].copy()
        column[out] = 0.0
        column[np.abs(column) < _ZERO] = 0.0
        touched = np.flatnonzero(column)
        rows[touched] -= np.outer(column[touched], line)
        rows[:, into] = 0.0
        line[into] = 1.0
        rows[out] = line
        values -= column * step
        values[out] = begin + step
        if self._prices[into]:
            self._prices -= self._prices[into] * line
        self._prices[into] = 0.0
        self._basis[out] = into
        self._free[into], self._free[gone] = False, True
        self._upper[into], self._upper[gone] = False, excess > 0
        self.pivots += 1
        self.work += _PIVOT + touched.size * line.size
