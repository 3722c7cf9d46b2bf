"""Least costs of derivations and of ways, against relaxing every rule and every edge."""

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN, least_cost, least_costs

names = st.sampled_from("STUV")
rules = st.lists(st.tuples(names, st.integers(0, 4), st.lists(names, max_size=3)), max_size=8)
edges = st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.integers(0, 5), max_size=14)


class TestDerivations:
    @given(rules)
    def test_as_by_relaxing_every_rule(self, rules):
        costs = {}
        for _ in range(len(rules) + 1):
            for head, cost, body in rules:
                if all(name in costs for name in body):
                    whole = cost + sum(costs[name] for name in body)
                    costs[head] = min(whole, costs.get(head, whole))
        assert least_costs(rules) == costs

    def test_costs_of_any_size(self):
        doubling = [(number, 0, [number + 1] * 2) for number in range(3_000)]
        assert least_costs([*doubling, (3_000, 1, [])])[0] == 2**3_000


class TestWays:
    @given(edges, st.integers(0, 6), st.integers(0, 8))
    def test_as_by_relaxing_every_edge(self, edges, end, max_states):
        far = {0: 0}
        for _ in range(8):
            for (one, other), price in edges.items():
                if one in far:
                    far[other] = min(far[one] + price, far.get(other, INFINITE))

        def after(state):
            return [(price, other, 0) for (one, other), price in edges.items() if one == state]

        assert least_cost((0, 0, 0), after, lambda state: state == end, 100) == far.get(end, INFINITE)
        cut = least_cost((0, 0, 0), after, lambda state: state == end, max_states)
        assert cut in {far.get(end, INFINITE), UNKNOWN}

    def test_an_estimate_saves_states(self):
        visited = []

        def after(at):
            visited.append(at)
            return [(1, at + step, abs(9 - at - step)) for step in (-1, 1)]

        assert least_cost((0, 0, 9), after, lambda at: at == 9, 100) == 9
        assert visited == list(range(9))
