"""The simplex method: a solution fits, and what is said to have none has none, by a combination of rows."""

import math

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.lookahead.exact.simplex import Simplex
from tests.strategies import examples


@st.composite
def systems(draw):
    """(columns, which rows are exact, some right-hand sides with upper bounds)."""
    height, width = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    factor = st.integers(-3, 3)
    columns = [{row: f for row in range(height) if (f := draw(factor))} for _ in range(width)]
    exact = draw(st.lists(st.booleans(), min_size=height, max_size=height))
    bound = st.sampled_from([0, 1, 2, math.inf])
    asked = st.tuples(
        st.lists(st.integers(-4, 6), min_size=height, max_size=height),
        st.lists(bound, min_size=width, max_size=width),
    )
    return columns, exact, draw(st.lists(asked, min_size=1, max_size=4))


def check(simplex, columns, exact, right, upper):
    solution, factors = simplex.solve_bounded(right, [0] * len(upper), upper, 1e9)
    assert (solution is None) != (factors is None)
    if solution is not None:
        for row, wanted in enumerate(right):
            slack = wanted - sum(column.get(row, 0) * x for column, x in zip(columns, solution, strict=True))
            assert abs(slack) < 1e-5 if exact[row] else slack > -1e-5
        assert all(-1e-5 < x < most + 1e-5 for x, most in zip(solution, upper, strict=True))
    else:
        # y A x + y s is least where each x stands at the bound that its factor asks for; that is still more than y b.
        assert all(y > -1e-6 for y, same in zip(factors, exact, strict=True) if not same)
        least = 0.0
        for column, most in zip(columns, upper, strict=True):
            along = sum(factors[row] * factor for row, factor in column.items())
            assert along > -1e-6 or most < math.inf
            least += along * most if along < -1e-6 else 0.0
        assert least > sum(y * wanted for y, wanted in zip(factors, right, strict=True)) + 1e-9
    return solution is not None


class TestSimplex:
    @given(systems())
    @examples(200)
    def test_a_solution_fits_and_where_there_is_none_the_rows_say_so(self, system):
        columns, exact, asked = system
        warm = Simplex(columns, exact, [1.0 + n / 7 for n in range(len(columns))])
        for right, upper in asked:
            cold = Simplex(columns, exact, [0.5] * len(columns))
            assert check(warm, columns, exact, right, upper) == check(cold, columns, exact, right, upper)

    @given(systems(), st.lists(st.integers(-2, 2), min_size=5, max_size=5), st.integers(-2, 4))
    @examples(60)
    def test_a_row_can_be_added_later_and_dropped_where_it_does_not_bind(self, system, factors, bound):
        columns, exact, asked = system
        simplex = Simplex(columns, exact, [1.0] * len(columns))
        height = len(exact)
        row = {n: factor for n, factor in enumerate(factors[: len(columns)]) if factor}
        more = [{**column, height: row[n]} if n in row else column for n, column in enumerate(columns)]
        for right, upper in asked:
            check(simplex, columns, exact, right, upper)
            simplex.add_row(row)
            check(simplex, more, [*exact, False], [*right, bound], upper)
            if simplex.drop_loose_rows(height):  # it binds
                check(simplex, more, [*exact, False], [*right, bound], upper)
                break

    def test_it_goes_on_from_where_it_was(self):
        """The same question again takes no step."""
        simplex = Simplex([{0: 1, 1: 2}, {0: 1, 1: -1}], [True, False], [1.0, 2.0])
        assert simplex.solve_bounded([3, 3], [0, 0], [math.inf, math.inf], 1e9)[0] is not None
        before = simplex.pivots
        assert simplex.solve_bounded([3, 3], [0, 0], [math.inf, math.inf], 1e9)[0] is not None
        assert before > 0 and simplex.pivots == before
