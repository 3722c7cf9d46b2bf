"""The simplex method: a solution fits, and what is said to have none has none, by a combination of rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.lookahead.exact import simplex as simplex_module
from formal_llm.automata.lookahead.exact.simplex import Simplex
from tests.strategies import examples


@st.composite
def systems(draw):
    """(columns, which rows are exact, some right-hand sides with lower and upper bounds)."""
    height, width = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    factor = st.integers(-3, 3)
    columns = [{row: f for row in range(height) if (f := draw(factor))} for _ in range(width)]
    exact = draw(st.lists(st.booleans(), min_size=height, max_size=height))
    bound = st.tuples(st.sampled_from([0, 0, 1, 2]), st.sampled_from([0, 1, 2, math.inf]))
    asked = st.tuples(
        st.lists(st.integers(-4, 6), min_size=height, max_size=height),
        st.lists(bound.map(lambda pair: (pair[0], sum(pair))), min_size=width, max_size=width),
    )
    return columns, exact, draw(st.lists(asked, min_size=1, max_size=4))


def check(simplex, columns, exact, right, bounds):
    solution, factors = simplex.solve_bounded(right, [low for low, _ in bounds], [high for _, high in bounds], 1e9)
    assert (solution is None) != (factors is None)
    if solution is not None:
        for row, wanted in enumerate(right):
            slack = wanted - sum(column.get(row, 0) * x for column, x in zip(columns, solution, strict=True))
            assert abs(slack) < 1e-5 if exact[row] else slack > -1e-5
        assert all(low - 1e-5 < x < high + 1e-5 for x, (low, high) in zip(solution, bounds, strict=True))
    else:
        # y A x + y s is least where each x stands at the bound that its factor asks for; that is still more than y b.
        assert all(y > -1e-6 for y, same in zip(factors, exact, strict=True) if not same)
        least = 0.0
        for column, (low, high) in zip(columns, bounds, strict=True):
            along = sum(factors[row] * factor for row, factor in column.items())
            assert along > -1e-6 or high < math.inf
            least += along * (high if along < -1e-6 else low)
        assert least > sum(y * wanted for y, wanted in zip(factors, right, strict=True)) + 1e-9
    return solution is not None


def check_table(simplex, low, high):
    """What holds between two questions: the basis is the unit matrix, and no variable out of it would be cheaper."""
    basis, free, upper = simplex._basis, simplex._free, simplex._upper
    assert np.allclose(simplex._rows[:, basis], np.eye(len(basis)), atol=1e-6)
    assert set(np.flatnonzero(~free)) == set(basis)
    assert not (upper & ~free).any()
    costs = np.zeros(free.size)
    costs[: simplex._width] = simplex._costs
    assert np.allclose(simplex._prices, costs - costs[basis] @ simplex._rows, atol=1e-6)
    varies = np.ones(free.size, dtype=bool)
    varies[: simplex._width] = np.array(low) < np.array(high)
    varies[simplex._width :] = ~np.array(simplex._exact)
    signs = np.where(upper, -1.0, 1.0) * simplex._prices
    assert (signs[free & varies] > -1e-6).all()


class TestSimplex:
    @given(systems(), st.lists(st.integers(-2, 2), min_size=5, max_size=5), st.integers(-2, 4))
    @examples(80)
    def test_the_table_is_always_one_of_a_cheapest_basis(self, system, factors, bound):
        columns, exact, asked = system
        simplex = Simplex(columns, exact, [1.0 + n / 7 for n in range(len(columns))])
        height, extra = len(exact), []
        for right, bounds in asked:
            low, high = [low for low, _ in bounds], [min(high, low + 9) for low, high in bounds]
            simplex.solve_bounded([*right, *extra], low, high, 1e9)
            check_table(simplex, low, high)
            simplex.add_row({n: factor for n, factor in enumerate(factors[: len(columns)]) if factor})
            check_table(simplex, low, high)
            simplex.solve_bounded([*right, *extra, bound], low, high, 1e9)
            kept = simplex.drop_loose_rows(height)
            check_table(simplex, low, high)
            extra = [[*extra, bound][row - height] for row in kept]

    def test_a_table_made_anew_is_kept_again(self, monkeypatch):
        monkeypatch.setattr(simplex_module, "_FRESH", 2)
        simplex = Simplex([{0: 1}, {0: 1, 1: 1}], [True, False], [2.0, 1.0])
        pivots = []
        for right in ([2, 1], [2, 1], [2, 3], [2, 3], [2, 3], [2, 3]):
            simplex.solve_bounded(right, [0, 0], [9, 9], 1e9)
            pivots.append(simplex.pivots)
        assert pivots == [2, 2, 3, 4, 4, 4]

    @given(systems())
    @examples(200)
    def test_a_solution_fits_and_where_there_is_none_the_rows_say_so(self, system):
        columns, exact, asked = system
        warm = Simplex(columns, exact, [1.0 + n / 7 for n in range(len(columns))])
        for right, bounds in asked:
            cold = Simplex(columns, exact, [0.5] * len(columns))
            assert check(warm, columns, exact, right, bounds) == check(cold, columns, exact, right, bounds)

    @given(systems(), st.lists(st.integers(-2, 2), min_size=5, max_size=5), st.integers(-2, 4))
    @examples(60)
    def test_a_row_can_be_added_later_and_dropped_where_it_does_not_bind(self, system, factors, bound):
        columns, exact, asked = system
        simplex = Simplex(columns, exact, [1.0] * len(columns))
        height = len(exact)
        row = {n: factor for n, factor in enumerate(factors[: len(columns)]) if factor}
        more = [{**column, height: row[n]} if n in row else column for n, column in enumerate(columns)]
        for right, bounds in asked:
            check(simplex, columns, exact, right, bounds)
            simplex.add_row(row)
            check(simplex, more, [*exact, False], [*right, bound], bounds)
            if simplex.drop_loose_rows(height):  # it binds
                check(simplex, more, [*exact, False], [*right, bound], bounds)
                break

    @given(systems(), st.sampled_from([0, 1, 3]))
    @examples(60)
    def test_a_table_made_anew_gives_the_same_answers(self, system, fresh):
        columns, exact, asked = system
        often, once = (Simplex(columns, exact, [1.0 + n / 7 for n in range(len(columns))]) for _ in range(2))
        for right, bounds in asked * 2:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(simplex_module, "_FRESH", fresh)
                found = check(often, columns, exact, right, bounds)
            assert found == check(once, columns, exact, right, bounds)

    @pytest.mark.parametrize("costs", [[1.0, 5.0, 3.0], [5.0, 1.0, 3.0], [5.0, 3.0, 1.0]])
    def test_what_costs_less_is_preferred(self, costs):
        simplex = Simplex([{0: 1}, {0: 1}, {0: 1}], [True], costs)
        assert simplex.solve_bounded([2], [0] * 3, [math.inf] * 3, 1e9)[0] == [2.0 * (cost == 1.0) for cost in costs]
        # Two of it are too many now, so the next one helps out.
        filled = {1.0: 1.0, 3.0: 1.0, 5.0: 0.0}
        assert simplex.solve_bounded([2], [0] * 3, [1] * 3, 1e9)[0] == [filled[cost] for cost in costs]

    def test_what_it_costs(self):
        """Two rows and two variables are a table of eight entries; each step looks at the rows that it changes."""
        columns = [{0: 1}, {0: 1, 1: 1}]
        simplex = Simplex(columns, [False, False], [1.0, 1.0])
        assert simplex.solve_bounded([1, 1], [0, 0], [9, 9], 0) == ([0.0, 0.0], None)
        assert (simplex.work, simplex.pivots) == (50_008, 0)
        assert simplex.solve_bounded([-1, 1], [0, 0], [9, 9], 0) == (None, [1.0, 0.0])
        assert (simplex.work, simplex.pivots) == (100_016, 0)
        for most, pivots in ((50_008, 0), (75_012, 1), (75_013, 2)):
            simplex = Simplex(columns, [True, False], [2.0, 1.0])
            found = simplex.solve_bounded([2, 1], [0, 0], [9, 9], most)
            assert found == (([1.0, 1.0], None) if pivots == 2 else (None, None))
            assert (simplex.work, simplex.pivots) == (50_008 + pivots * 25_004, pivots)

    def test_it_goes_on_from_where_it_was(self):
        """The same question again takes no step."""
        simplex = Simplex([{0: 1, 1: 2}, {0: 1, 1: -1}], [True, False], [1.0, 2.0])
        assert simplex.solve_bounded([3, 3], [0, 0], [math.inf, math.inf], 1e9)[0] is not None
        before = simplex.pivots
        assert simplex.solve_bounded([3, 3], [0, 0], [math.inf, math.inf], 1e9)[0] is not None
        assert before > 0 and simplex.pivots == before
