from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.travel.meals import NEVER, Kitchen, MealOption, together, together_at
from tests.strategies import examples

WANTED = 7
tables = st.lists(st.builds(MealOption, st.integers(1, 30), st.integers(0, WANTED)), max_size=7).map(sorted)


def tried(found, used, must, may, cover):
    """All sets of restaurants."""
    left = [table for place, table in enumerate(found) if place not in used]
    best = NEVER
    for size in range(must, must + may + 1):
        for eaten in combinations(left, size):
            offered = 0
            for table in eaten:
                offered |= table.offers
            if not cover & ~offered:
                best = min(best, sum(table.cost for table in eaten))
    return best


@given(tables, st.sets(st.integers(0, 6)), st.integers(0, 4), st.integers(0, 3), st.integers(0, WANTED))
@examples(300)
def test_the_least_cost_is_that_of_trying_all_sets(found, used, must, may, missing):
    costs = Kitchen(found, WANTED).find_least_costs(used, must, may, missing)
    for cover in range(WANTED + 1):
        if not cover & ~missing:
            assert costs[cover] == tried(found, used, must, may, cover)
        else:
            assert costs[cover] == NEVER


@given(tables, st.lists(st.sets(st.integers(0, 6)), min_size=2, max_size=5), st.integers(0, 4))
def test_what_is_remembered_is_what_is_found_anew(found, uses, must):
    kitchen = Kitchen(found, WANTED)
    for used in uses:
        again = Kitchen(found, WANTED).find_least_costs(used, must, 2, WANTED)
        assert kitchen.find_least_costs(used, must, 2, WANTED).tolist() == again.tolist()


costs = st.lists(st.integers(0, 50), min_size=8, max_size=8)


@given(costs, costs)
def test_two_places_share_the_cuisines(one, other):
    one, other = np.array(one), np.array(other)
    found = together(one, other)
    for cover in range(8):
        parts = [(a, cover & ~a) for a in range(8) if not a & ~cover]
        assert found[cover] == min(one[a] + other[b] for a, b in parts) == together_at(one, other, cover)


def test_the_tables_have_to_be_sorted():
    with pytest.raises(ValueError, match="sorted by their cost"):
        Kitchen([MealOption(2, 0), MealOption(1, 0)], 0)
