"""Whether linear inequalities have a solution: the dual simplex method with bounded variables, kept warm.

The system is A x + s = b with l <= x <= u and a slack s for each row, from 0 up or just 0. A is fixed; the right-hand
side and the bounds change from one question to the next, and the basis of the last question is where the next one
begins (Lemke 1954, The dual method of solving the linear programming problem). Costs only break ties: any basis is as
good a beginning as another, since a solution is all that is asked for.

It counts in floating point numbers, so nothing it says is certain: who asks checks the solution, or the combination of
rows that no solution can meet (Farkas' lemma), in whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formal_llm.automata.lookahead.cheapest import INFINITE

_ZERO = 1e-9
_OUTSIDE = 1e-7
#: After so many pivots the table is made anew, so that errors do not add up.
_FRESH = 300


class Simplex:
    """The table of one system.

    Args:
        columns: for each variable its factors by row.
        exact: for each row whether its slack must be 0.
        costs: for each variable a cost from 0, which says what is preferred.

    Attributes:
        pivots: how many steps were taken in all.
    """

    def __init__(self, columns: Sequence[Mapping[int, int]], exact: Sequence[bool], costs: Sequence[float]) -> None:
        self._columns = [dict(column) for column in columns]
        self._exact = list(exact)
        self._costs = costs
        self._width = len(columns)
        self.pivots = 0
        self._reset()

    def _reset(self) -> None:
        """The basis of all slacks."""
        height = len(self._exact)
        self._rows = [[0.0] * (self._width + height) for _ in range(height)]
        for number, column in enumerate(self._columns):
            for row, factor in column.items():
                self._rows[row][number] = float(factor)
        for row in range(height):
            self._rows[row][self._width + row] = 1.0
        self._basis = list(range(self._width, self._width + height))
        self._free = [True] * self._width + [False] * height  # not in the basis
        self._upper = [False] * (self._width + height)  # out of the basis at the upper bound
        self._prices = [*self._costs, *[0.0] * height]
        self._made = self.pivots

    def add(self, row: Mapping[int, int]) -> None:
        """One more row (by column), its slack from 0 up; the basis stays."""
        number = len(self._exact)
        self._exact.append(False)
        line = [0.0] * (self._width + number)
        for column, factor in row.items():
            self._columns[column][number] = factor
            line[column] = float(factor)
        for other, j in zip(self._rows, self._basis, strict=True):
            factor_there = line[j]
            if factor_there:
                line = [value - factor_there * of_other for value, of_other in zip(line, other, strict=True)]
                line[j] = 0.0
        for other in self._rows:
            other.append(0.0)
        self._rows.append([*line, 1.0])
        self._basis.append(self._width + number)
        self._free.append(False)
        self._upper.append(False)
        self._prices.append(0.0)

    def drop(self, first: int) -> list[int]:
        """Take out the rows from ``first`` on that do not bind now; the numbers of those that stay."""
        basic = {j: row for row, j in enumerate(self._basis)}
        loose = [n for n in range(first, len(self._exact)) if self._width + n in basic]
        kept = [n for n in range(first, len(self._exact)) if self._width + n not in basic]
        for number in reversed(loose):
            place = self._width + number
            for row in (*self._rows, self._prices):
                del row[place]
            del self._free[place], self._upper[place]
            line = self._basis.index(place)
            del self._rows[line], self._basis[line], self._exact[number]
            self._basis = [j - (j > place) for j in self._basis]
        if loose:
            after = {number: first + place for place, number in enumerate(kept)}
            for column in self._columns:
                rows = {after.get(row, row): factor for row, factor in column.items() if row < first or row in after}
                column.clear()
                column.update(rows)
        return kept

    def solve(
        self, right: Sequence[int], lower: Sequence[int], upper: Sequence[float], most: int
    ) -> tuple[list[float] | None, list[float] | None]:
        """(a solution, None), (None, factors of rows that no solution can meet), or (None, None) after ``most`` pivots.

        The factors y are such that y A x + y s > y b for all x and s within their bounds.
        """
        if self.pivots - self._made > _FRESH:
            self._reset()
        low = [*lower, *[0] * len(right)]
        high = [*upper, *(0.0 if exact else INFINITE for exact in self._exact)]
        values = self._values(right, low, high)
        last = self.pivots + most
        while True:
            out, excess = self._leaving(values, low, high)
            if out < 0:
                solution = [
                    float(high[j] if self._upper[j] else low[j]) if self._free[j] else 0.0 for j in range(self._width)
                ]
                for row, j in enumerate(self._basis):
                    if j < self._width:
                        solution[j] = values[row]
                return solution, None
            into = self._entering(out, excess, low, high)
            if into < 0:
                sign = -1.0 if excess > 0 else 1.0
                return None, [sign * factor for factor in self._rows[out][self._width :]]
            if self.pivots >= last:
                return None, None
            self._pivot(out, into, excess, values, low, high)

    def _values(self, right: Sequence[int], low: Sequence[int], high: Sequence[float]) -> list[float]:
        """The values of the basis."""
        inside = [(j, float(b)) for j, b in enumerate(right, self._width) if b]
        for j, free in enumerate(self._free):
            if free:
                # Bounds may have changed: at the bound that its price asks for, or at no price where there is none.
                self._upper[j] = self._prices[j] < 0 and high[j] < INFINITE
                if self._prices[j] < 0 and not self._upper[j]:
                    self._prices[j] = 0.0
                value = high[j] if self._upper[j] else low[j]
                if value:
                    inside.append((j, -value))
        return [sum([row[j] * value for j, value in inside]) for row in self._rows]

    def _leaving(self, values: Sequence[float], low: Sequence[int], high: Sequence[float]) -> tuple[int, float]:
        """The row whose variable is furthest outside its bounds, and by how much (above: more than 0)."""
        out, worst, excess = -1, _OUTSIDE, 0.0
        for row, j in enumerate(self._basis):
            value = values[row]
            beyond = value - high[j]
            if beyond > worst:
                out, worst, excess = row, beyond, beyond
            else:
                beyond = low[j] - value
                if beyond > worst:
                    out, worst, excess = row, beyond, -beyond
        return out, excess

    def _entering(self, out: int, excess: float, low: Sequence[int], high: Sequence[float]) -> int:
        """The variable that can mend the row at the least price."""
        into, best, strength = -1, INFINITE, 0.0
        upper, prices, free = self._upper, self._prices, self._free
        for j, factor in enumerate(self._rows[out]):
            if not free[j] or -_ZERO < factor < _ZERO or low[j] == high[j]:
                continue
            if (factor > 0) != ((excess > 0) != upper[j]):
                continue
            size = abs(factor)
            ratio = abs(prices[j]) / size
            if ratio < best - _ZERO or (ratio <= best + _ZERO and size > strength):
                into, best, strength = j, ratio, size
        return into

    def _pivot(
        self, out: int, into: int, excess: float, values: list[float], low: Sequence[int], high: Sequence[float]
    ) -> None:
        rows, gone = self._rows, self._basis[out]
        pivot = rows[out][into]
        step = excess / pivot
        begin = high[into] if self._upper[into] else low[into]
        line = [value / pivot for value in rows[out]]
        line[into] = 1.0
        places = [j for j, value in enumerate(line) if value > _ZERO or value < -_ZERO]
        for number, row in enumerate(rows):
            factor = row[into]
            if number == out or -_ZERO < factor < _ZERO:
                continue
            values[number] -= factor * step
            for j in places:
                row[j] -= factor * line[j]
            row[into] = 0.0
        rows[out] = line
        values[out] = begin + step
        factor = self._prices[into]
        if factor:
            for j in places:
                self._prices[j] -= factor * line[j]
        self._prices[into] = 0.0
        self._basis[out] = into
        self._free[into], self._free[gone] = False, True
        self._upper[into], self._upper[gone] = False, excess > 0
        self.pivots += 1
