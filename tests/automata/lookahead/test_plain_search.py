"""The search that knows nothing but the protocol, against the slow reference and the search over multisets."""

from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Lookahead, Planner
from formal_llm.automata import Transition
from formal_llm.automata.lookahead.flow import LENGTH
from formal_llm.automata.lookahead.plain_search import PlainSearch
from tests.automata.lookahead.judging import parts, reference
from tests.oracles import INF
from tests.strategies import choices, examples, limited_automata, walk


class TestPlainSearch:
    @given(limited_automata(), choices)
    @examples(80)
    def test_never_says_anything_wrong_and_finds_the_fewest_moves(self, source, picks):
        lookahead = Lookahead(*source)
        automaton, slow = lookahead.automaton, reference(lookahead)
        now, word = walk(automaton, picks)
        search = PlainSearch(automaton, max_states=300)
        found = search.cheapest_cost(now, by_length=False)
        least = slow.moves(*parts(now), word)
        assert found in {least, -1.0}
        if least <= 3:
            assert found == least
        length = search.cheapest_cost(now, by_length=True)
        assert length == -1.0 or (length == INF) == (least == INF)
        if 0 <= length < INF:
            assert length // LENGTH == slow.length(*parts(now), word)

    @given(limited_automata(finite=True), choices)
    @examples(80)
    def test_both_searches_agree_on_finite_automata(self, source, picks):
        # Finitely many configurations: exploring them all decides everything.
        lookahead = Lookahead(*source)
        now, _ = walk(lookahead.automaton, picks)
        search = PlainSearch(lookahead.automaton, max_states=20_000)
        cheapest = search.cheapest_cost(now, by_length=False)
        assume(cheapest != -1.0)
        assert lookahead.completable(now).value == ("no" if cheapest == INF else "yes")
        for steps in range(6):
            assert lookahead.completable(now, steps=steps).value == ("yes" if cheapest <= steps else "no")

    def test_terminals_are_those_that_moves_can_read(self):
        automaton = Lookahead(CFG.from_string("%limit 1 a\nS -> a S | b | c c")).automaton
        assert PlainSearch(automaton, 1000).reachable_terminals(automaton.start()) == {"a", "b", "c"}
        now, _ = walk(automaton, [0, 0, 0])
        assert PlainSearch(automaton, 1000).reachable_terminals(now) == {"b", "c"}


class Coins:
    """Words of coins whose sum is to be paid to the cent: the end is foreseen by arithmetic, the search would try all.

    Coins are of 2 and of 5; so 1 and 3 cannot be paid, and every other amount can.
    """

    terminals = ("two", "five")

    def __init__(self, amount):
        self.amount, self.asked = amount, 0

    def start(self):
        return self.amount

    def moves(self, left):
        return [Transition("pay", name, None, "pay") for name in self.terminals if left >= (2 if name == "two" else 5)]

    def step(self, left, move):
        return left - (2 if move.read == "two" else 5)

    def accepting(self, left):
        return left == 0

    def to_end(self, left):
        self.asked += 1
        return min((n + (left - 5 * n) // 2 for n in range(left // 5 + 1) if (left - 5 * n) % 2 == 0), default=None)


class Blind:
    """The same automaton without its foresight."""

    def __init__(self, coins):
        self.start, self.moves, self.step, self.accepting = coins.start, coins.moves, coins.step, coins.accepting


class TestForesight:
    @given(st.integers(0, 60), st.integers(0, 40))
    def test_what_is_foreseen_is_what_a_search_finds(self, amount, steps):
        seeing, blind = Lookahead(Coins(amount)), Lookahead(Blind(Coins(amount)))
        for now in range(amount + 1):
            assert seeing.completable(now) == blind.completable(now)
            assert seeing.completable(now, steps=steps) == blind.completable(now, steps=steps)
            assert seeing.fewest_moves(now) == blind.fewest_moves(now)
            assert seeing.shortest(now) == blind.shortest(now)
            assert seeing.second_look(now, None).value == blind.second_look(now, None).value

    def test_no_state_is_visited_where_the_end_is_foreseen(self):
        coins = Coins(10**4 + 1)
        lookahead = Lookahead(coins, max_states=10)
        assert lookahead.completable(coins.amount).steps == coins.to_end(coins.amount)
        assert Lookahead(Blind(coins), max_states=10).completable(coins.amount).value == "unknown"
        assert lookahead.detours(coins.amount) == {"two": 0, "five": 0}

    def test_it_is_asked_once_for_each_configuration(self):
        coins = Coins(20)
        search = PlainSearch(coins, max_states=10)
        assert {search.least_moves(20) for _ in range(5)} == {4.0}
        assert coins.asked == 1

    def test_plans_never_meet_a_dead_end(self):
        for seed in range(20):
            plan = Planner(Coins(23), f"test:random={seed}").plan("")
            assert sum(2 if name == "two" else 5 for name in plan.word) == 23
            assert not plan.usage.backtracks
