"""Our linear programs beside HiGHS, on the engine's own systems: those that some cases of the strain set ask for.

    pip install highspy
    python benchmarks/linear_programs.py

Every question to a table is recorded with all that changed since the last one, and then put to HiGHS as well, whose
dual simplex is kept warm as ours is (``automata/lookahead/exact/simplex.py``). Times are processor time.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1]))

from benchmarks.strain_cases.hunted import _SETTINGS, TOOLS, _asked
from benchmarks.strain_cases.sums import budgeted_tools, walked
from formal_llm.automata.lookahead.exact import simplex
from formal_llm.automata.lookahead.exact.simplex import Simplex

#: What is done to a table: the name of a method of :class:`Simplex`, and its arguments.
Call = tuple[str, tuple[Any, ...]]


class Highs:
    """A table as :class:`Simplex` has it, solved by HiGHS."""

    def __init__(self, columns: Any, exact: Any, costs: Any) -> None:
        highspy = importlib.import_module("highspy")
        self._infeasible = highspy.HighsModelStatus.kInfeasible
        self._exact, self._model = list(exact), highspy.Highs()
        for option, value in (("output_flag", False), ("presolve", "off"), ("threads", 1), ("solver", "simplex")):
            self._model.setOptionValue(option, value)
        rows: list[dict[int, int]] = [{} for _ in exact]
        for number, column in enumerate(columns):
            self._model.addVar(0.0, 0.0)
            self._model.changeColCost(number, float(costs[number]))
            for row, factor in column.items():
                rows[row][number] = factor
        for one in rows:
            self._add(one)

    def _add(self, row: dict[int, int]) -> None:
        self._model.addRow(0.0, 0.0, len(row), np.array([*row], np.int32), np.array([*row.values()], float))

    def add_row(self, row: dict[int, int]) -> None:
        """One more row, its slack from 0 up."""
        self._exact.append(False)
        self._add({number: factor for number, factor in row.items() if number < self._model.getNumCol()})

    def drop_rows(self, places: list[int]) -> None:
        """Take rows out."""
        if places:
            self._model.deleteRows(len(places), np.array(places, np.int32))
        self._exact = [one for number, one in enumerate(self._exact) if number not in places]

    def is_feasible(self, right: Any, lower: Any, upper: Any) -> bool:
        """Whether there is a solution."""
        width, height = len(lower), len(right)
        self._model.changeColsBounds(
            width, np.arange(width, dtype=np.int32), np.array(lower, float), np.array(upper, float)
        )
        below = np.where(self._exact, np.array(right, float), -np.inf)
        for row in range(height):
            self._model.changeRowBounds(row, below[row], float(right[row]))
        self._model.run()
        return bool(self._model.getModelStatus() != self._infeasible)


class Recorded(Simplex):
    """A table that writes down what is asked of it, and how long that takes."""

    tables: ClassVar[list[list[Call]]] = []
    seconds: ClassVar[float] = 0.0

    def __init__(self, *given: Any) -> None:
        self._calls: list[Call] = [("new", given)]
        self.tables.append(self._calls)
        self._timed(super().__init__, *given)

    def _timed(self, work: Callable[..., Any], *given: Any) -> Any:
        begun = process_time()
        found = work(*given)
        Recorded.seconds += process_time() - begun
        return found

    def add_row(self, row: Any) -> None:
        """As of a table, and written down."""
        self._calls.append(("add_row", (dict(row),)))
        self._timed(super().add_row, row)

    def drop_loose_rows(self, first: int) -> list[int]:
        """As of a table, and written down."""
        before = len(self._exact)
        kept: list[int] = self._timed(super().drop_loose_rows, first)
        self._calls.append(("drop_rows", ([number for number in range(first, before) if number not in kept],)))
        return kept

    def solve_bounded(self, right: Any, lower: Any, upper: Any, most: float) -> Any:
        """As of a table, and written down."""
        found = self._timed(super().solve_bounded, right, lower, upper, most)
        decided = None if found == (None, None) else found[0] is not None
        self._calls.append(("solve", (list(right), list(lower), list(upper), decided)))
        return found


def tools(count: int) -> object:
    rng = random.Random(1_000 * count)
    return walked(budgeted_tools(count, rng), rng, 2, solver=False)


def cases() -> Iterator[tuple[str, Callable[[], object]]]:
    """Some cases of the strain set in which linear programs are asked."""
    for count in (60, 120, 200):
        yield f"{count} tools, three sums, five required", partial(tools, count)
    line = TOOLS["five required, a formula"]
    settings = {"tools": 200, **dict(zip(_SETTINGS, map(int, line.split()), strict=True))}
    yield "200 tools, five required, a formula", partial(_asked, "tools", settings, 10)


def replay(calls: list[Call]) -> tuple[float, int]:
    """(the seconds of all questions to a table of HiGHS, how many were decided another way than by ours)."""
    table, seconds, differ = None, 0.0, 0
    for name, given in calls:
        begun = process_time()
        if name == "new":
            table = Highs(*given)
        elif name != "solve":
            getattr(table, name)(*given)
        else:
            assert table is not None
            differ += table.is_feasible(*given[:3]) == (not given[3]) and given[3] is not None
        seconds += process_time() - begun
    return seconds, differ


def main() -> None:
    try:
        importlib.import_module("highspy")
    except ImportError:
        sys.exit("skipped: highspy is not installed (pip install highspy)")
    table = Table("case", "tables", "rows x columns", "questions", "ours, ms", "HiGHS, ms", "ours / HiGHS", "differ")
    for name, work in cases():
        Recorded.tables, Recorded.seconds = [], 0.0
        with patch.object(simplex, "Simplex", Recorded):
            work()
        found = [calls for calls in Recorded.tables if len(calls) > 1]
        asked = sum(call[0] == "solve" for calls in found for call in calls)
        replayed = [replay(calls) for calls in found]
        mine, other = (1_000 * one / asked for one in (Recorded.seconds, sum(one[0] for one in replayed)))
        size = max((len(calls[0][1][1]), len(calls[0][1][0])) for calls in found)
        table.add_row(
            name, str(len(found)), f"{size[0]:,} x {size[1]:,}", f"{asked:,}", f"{mine:.2f}", f"{other:.2f}",
            f"{mine / other:.2f}", str(sum(one[1] for one in replayed)),
        )  # fmt: skip
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
