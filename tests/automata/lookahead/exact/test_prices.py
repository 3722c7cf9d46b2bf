"""Prices of lower bounds: never too high, and exact where one circle decides."""

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.exact.prices import CostEstimate, find_most, find_prices, group_ways
from tests.strategies import examples

#: S is worked off by one use or by a use and S again; a use costs 3 and pays up to 10.
DAY = [(0, 1, {}, [1]), (0, 1, {}, [0, 1]), *((1, 2, {7: paid}, []) for paid in range(1, 11))]


class TestPrices:
    def test_a_unit_costs_what_the_best_circle_takes_for_it(self):
        (prices,) = find_prices(group_ways(DAY), [7])
        assert prices.unit[7] * 10 == 3 * prices.scale
        assert CostEstimate(DAY, [7]).least_cost_of([(0, 1)], [(7, 1_000)]) == 300

    def test_what_cannot_be_paid_at_all(self):
        assert CostEstimate(DAY, [7]).least_cost_of([(1, 2)], [(7, 21)]) == INFINITE
        assert CostEstimate(DAY, [7]).least_cost_of([(1, 2)], [(7, 20)]) <= 4

    def test_several_bounds_are_paid_together_or_one_after_the_other(self):
        ways = [(0, 0, {}, []), (0, 1, {1: 1}, [0]), (0, 1, {2: 1}, [0]), (0, 1, {3: 1}, [0])]
        assert CostEstimate(ways, [1, 2, 3]).least_cost_of([(0, 1)], [(1, 2), (2, 3), (3, 4)]) == 9

    def test_sums_beyond_what_a_float_holds_are_endless(self):
        tree = [(300, 1, {7: 1}, []), *((n, 1, {}, [n + 1] * 20) for n in range(299, -1, -1))]
        circle = [(301, 1, {}, []), (301, 1, {7: 1}, [301]), (302, 1, {}, [0, 301])]
        assert CostEstimate([*tree, *circle], [7]).least_cost_of([(302, 1)], [(7, 1)]) < INFINITE

    def test_no_price_without_work_to_find_one(self, monkeypatch):
        monkeypatch.setattr("formal_llm.automata.lookahead.exact.prices._WORK", 3)
        assert find_prices(group_ways(DAY), [7]) == []
        assert CostEstimate(DAY, [7]).least_cost_of([(0, 1)], [(7, 1_000)]) == 0
        assert find_most(group_ways(DAY), 7) == {0: INFINITE, 1: 10}

    def test_no_price_where_nothing_goes_round(self):
        line = [(n, 1, {7: n}, [n + 1]) for n in range(300)] + [(300, 1, {}, [])]
        assert find_prices(group_ways(line), [7]) == []
        assert find_most(group_ways(line), 7)[0] == sum(range(300))

    def test_each_group_comes_after_those_that_it_leads_to(self):
        ways = [(0, 1, {}, [1, 3]), (1, 1, {}, [2]), (2, 1, {}, [1]), (2, 1, {}, []), (3, 1, {}, [])]
        assert [sorted({way[0] for way in group}) for group in group_ways(ways)] == [[1, 2], [3], [0]]

    def test_symbols_that_no_other_one_leads_to_are_known_as_well(self):
        ways = [(9, 1, {}, [0]), (9, 5, {7: 100}, []), *DAY]
        estimate = CostEstimate(ways, [7])
        assert estimate.least_cost_of([(9, 1)], [(7, 1_000)]) == 275 == estimate.least_cost_of([(9, 1)], [(7, 1_000)])
        assert CostEstimate(ways[1:2], [7]).least_cost_of([(9, 2)], [(7, 201)]) == INFINITE

    def test_the_most_that_can_be_paid(self):
        assert find_most(group_ways(DAY), 7) == {0: INFINITE, 1: 10}
        assert find_most(group_ways([(0, 1, {}, [1, 1]), (1, 1, {7: 3}, []), (1, 1, {}, [])]), 7) == {0: 6, 1: 3}


ways = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 3),
        st.dictionaries(st.sampled_from("xy"), st.integers(0, 4), max_size=2),
        st.lists(st.integers(0, 3), max_size=2),
    ),
    min_size=1,
    max_size=7,
)


def derived(made, pending, budget):
    """What derivations of pending symbols cost and pay, all of at most so many ways."""
    found, todo = set(), [(tuple(pending), 0, 0, 0, budget)]
    seen = set(todo)
    while todo:
        symbols, cost, x, y, left = todo.pop()
        if not symbols:
            found.add((cost, x, y))
            continue
        if left < len(symbols):
            continue
        for head, price, pays, children in made:
            if head == symbols[0]:
                rest = tuple(sorted((*symbols[1:], *children)))
                after = (rest, cost + price, min(9, x + pays.get("x", 0)), min(9, y + pays.get("y", 0)), left - 1)
                if after not in seen and len(seen) < 4_000:
                    seen.add(after)
                    todo.append(after)
    return found


@given(ways, st.integers(0, 6), st.integers(0, 6))
@examples(150)
def test_no_derivation_costs_less(made, x, y):
    able = {head for head, *_ in made if derived(made, [head], 6)}
    made = [way for way in made if way[0] in able and able.issuperset(way[3])]
    due = [(bound, amount) for bound, amount in (("x", x), ("y", y)) if amount]
    estimate = CostEstimate(made, ["x", "y"])
    for symbol in sorted({way[0] for way in made}):
        least = estimate.least_cost_of([(symbol, 1)], due)
        costs = [cost for cost, paid_x, paid_y in derived(made, [symbol], 7) if paid_x >= x and paid_y >= y]
        assert least <= min(costs, default=INFINITE)
