import copy
import pickle
from collections import deque

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, Planner, SumLimit, Symbol
from formal_llm.automata import Transition
from formal_llm.automata.lookahead.flow import LENGTH
from formal_llm.automata.lookahead.limited import LimitedAutomaton
from formal_llm.automata.lookahead.lookahead import PlainSearch
from formal_llm.errors import Undecided
from tests.automata.lookahead.judging import Plain, judge, parts, reference, sources
from tests.oracles import INF, Reference, keeps, language
from tests.strategies import choices, examples, grammars, limited_automata, walk


class TestCompletable:
    @given(sources, choices)
    @example((CFG.from_string("%require 4 a\nS -> a S | b"), None), [0] * 6)
    @examples(150)
    def test_all_answers_are_those_of_the_reference_in_any_order(self, source, picks):
        """What was remembered for one configuration must not mislead another."""
        lookahead = Lookahead(*source)
        for length in (*range(0, len(picks) + 1, 2), *range(len(picks), -1, -3)):
            judge(lookahead, *walk(lookahead.automaton, picks[:length]))
        assert (lookahead.completable().value == "no") == reference(lookahead).empty

    @given(sources, choices, st.integers(0, 3))
    @examples(100)
    def test_a_tiny_budget_of_states_may_say_unknown_but_nothing_wrong(self, source, picks, max_states):
        lookahead = Lookahead(*source, max_states=max_states)
        judge(lookahead, *walk(lookahead.automaton, picks), sure=False)

    @pytest.mark.parametrize(
        "rules", ["S -> a | b", "S -> a S | b S | c", "S -> A c\nA -> a | b", "S -> b A\nA -> a | c"]
    )
    def test_alike_but_for_what_is_required(self, rules):
        assert Lookahead(CFG.from_string(rules), Limits(at_least={"b": 1})).completable().value == "yes"

    def test_a_used_terminal_on_the_stack_cannot_be_exchanged(self):
        lookahead = Lookahead(CFG.from_string("S -> T T\nT -> a | b"), Limits(default=1))
        now, _ = walk(lookahead.automaton, [0] * 5)  # a was read, and a is on top
        assert lookahead.completable(now, steps=8).value == "no"

    def test_interchangeable_terminals_are_told_apart_where_they_wait_on_the_stack(self):
        # Each tool once: "a a" cannot be finished although two uses of the class are left.
        cfg = CFG.from_string("%limit 1 a b\nS -> T T | a a\nT -> a | b")
        assert {w for w in language(cfg, 2) if keeps(w, cfg.limits, "ab", {})} == {("a", "b"), ("b", "a")}
        lookahead = Lookahead(cfg)
        start = lookahead.automaton.moves(lookahead.automaton.start())[0]
        now = lookahead.automaton.step(lookahead.automaton.start(), start)
        verdicts = [
            lookahead.completable(lookahead.automaton.step(now, m)).value for m in lookahead.automaton.moves(now)
        ]
        assert verdicts == ["yes", "no"]

    def test_interchangeable_terminals_read_in_a_different_number_of_moves(self):
        # a takes one move, b takes two; both are needed once, and $ is one more.
        pda = PDA(
            [
                ("q", "a", "A", "q"),
                ("q", None, "A", "q", ("b",)),
                ("q", "b", "b", "q"),
                ("q", None, "$", "f"),
            ],
            start="q",
            accepting=["f"],
            stack=("A", "A", "$"),
        )
        lookahead = Lookahead(pda, Limits(default=1))
        assert [lookahead.completable(steps=steps).value for steps in (3, 4)] == ["no", "yes"]
        assert sorted(lookahead.shortest_word()) == ["a", "b"]

    def test_large_limits_are_counted_without_enumerating(self):
        cfg = CFG.from_string("S -> a S b S | c")
        limits = Limits(at_least={"a": 10_000}, at_most={"b": 10_000})
        assert Lookahead(cfg, limits).completable().value == "yes"
        limits = Limits(at_least={"a": 51}, at_most={"b": 50})
        assert Lookahead(cfg, limits).completable().value == "no"

    def test_sums_of_fractions_are_exact(self):
        # Ten times 0.1 is 1, not a little less.
        cfg = CFG(
            [("S", ("a",) * 10)],
            symbols={"a": Symbol(numbers={"cost": 0.1})},
        )
        for bound, value in ((SumLimit("cost", at_least=1), "yes"), (SumLimit("cost", at_most=1), "yes")):
            assert Lookahead(cfg, Limits(sums=(bound,))).completable().value == value
        for bound in (SumLimit("cost", at_least=1.01), SumLimit("cost", at_most=0.99)):
            assert Lookahead(cfg, Limits(sums=(bound,))).completable().value == "no"


class TestSignature:
    @given(sources)
    @examples(60)
    def test_equal_signatures_have_the_same_moves_with_the_same_verdicts(self, source):
        lookahead = Lookahead(*source)
        automaton, slow = lookahead.automaton, reference(lookahead)
        words = {automaton.start(): ()}
        todo = deque(words)
        while todo and len(words) < 40:
            now = todo.popleft()
            for move in automaton.moves(now):
                after = automaton.step(now, move)
                if after not in words:
                    words[after] = words[now] + (() if move.read is None else (move.read,))
                    todo.append(after)
        # All signatures at the end: the grammar of the automaton has been learnt then.
        for now in words:
            lookahead.signature(now)
        seen = {}
        for now, word in words.items():
            if slow.moves(*parts(now), word) == INF:
                continue  # a walk never stands there
            verdicts = [
                (move, slow.moves(*parts(automaton.step(now, move)), word + ((move.read,) if move.read else ())) < INF)
                for move in automaton.moves(now)
            ]
            signature, rest = lookahead.signature(now)
            assert rest < INF
            known = seen.setdefault(signature, verdicts)
            assert known == verdicts

    def test_what_can_never_be_finished_shares_none_with_what_can(self):
        lookahead = Lookahead(CFG([("S", ("a", "T")), ("S", ("a", "D")), ("T", ("b",)), ("D", ("D", "b"))]))
        alive, _ = walk(lookahead.automaton, [0, 0])
        dead, _ = walk(lookahead.automaton, [0, 1])
        assert [lookahead.completable(now).value for now in (alive, dead)] == ["yes", "no"]
        assert lookahead.signature(alive)[0] != lookahead.signature(dead)[0]

    def test_deep_stacks_of_free_symbols_share_one(self):
        lookahead = Lookahead(CFG.from_string("%order prefix\n%limit 1 b\nS -> a S T | b\nT -> c"))
        now = lookahead.automaton.start()
        found = []
        for _ in range(30):
            now = lookahead.automaton.step(now, lookahead.automaton.moves(now)[0])
            found.append(lookahead.signature(now)[0])
        # Expanding S and matching a take turns; how many T wait below does not matter.
        assert len(set(found[4::2])) == 1
        assert len(set(found[5::2])) == 1


class TestDetours:
    @given(sources, choices)
    @examples(60)
    def test_no_terminal_of_a_completion_is_missing(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        slow, detours = reference(lookahead), lookahead.detours(now)
        shortest = Reference(slow.pda, Limits()).length(*parts(now))
        for name in slow.letters:
            length = slow.length_using(name, *parts(now), word)
            if length < INF:
                assert name in detours
                assert shortest + detours[name] <= length
        assert all(extra >= 0 for extra in detours.values())

    @given(grammars(), choices)
    @examples(60)
    def test_without_limits_they_are_just_those(self, cfg, picks):
        lookahead = Lookahead(cfg)
        now, _ = walk(lookahead.automaton, picks)
        slow = reference(lookahead)
        shortest = slow.length(*parts(now))
        assume(shortest < INF)
        exact = {name: slow.length_using(name, *parts(now)) - shortest for name in slow.letters}
        exact = {name: extra for name, extra in exact.items() if extra < INF}
        detours = lookahead.detours(now)
        assert set(detours) == set(exact)
        # A longer way may take fewer moves; they are counted too, so one terminal may be lost in rounding down.
        assert all(extra - 1 <= detours[name] <= extra for name, extra in exact.items())

    def test_what_is_used_up_is_no_detour(self):
        lookahead = Lookahead(CFG.from_string("%limit 1 a\nS -> a S | b"))
        now, _ = walk(lookahead.automaton, [0, 0, 0])
        assert lookahead.detours(now) == {"b": 0}
        assert lookahead.detours(now, limits=False) == {"a": 1, "b": 0}
        assert lookahead.detours(lookahead.automaton.start()) == {"a": 1, "b": 0}


class TestOtherAutomata:
    def test_verdicts_come_from_exploring(self):
        lookahead = Lookahead(Plain())
        assert lookahead.completable(1).value == "yes"
        assert lookahead.completable(1, steps=0).value == "no"
        assert lookahead.shortest(1) == 1
        assert lookahead.shortest_word(1) == ("a",)
        assert lookahead.signature(1) == (1, 0.0)
        assert set(lookahead.detours(0)) == {"a", "b"}

    @pytest.mark.parametrize(("a", "b", "value"), [(2, 1, "yes"), (3, 0, "no"), (0, 3, "yes"), (1, 1, "no")])
    def test_limits_come_on_top(self, a, b, value):
        exactly = Limits(at_most={"a": a, "b": b}, at_least={"a": a, "b": b})
        lookahead = Lookahead(Plain(), exactly)
        assert isinstance(lookahead.automaton, LimitedAutomaton)
        assert lookahead.completable().value == value
        assert lookahead.shortest() == (a + b if value == "yes" else None)

    def test_budget_ends_an_endless_exploration(self):
        class Endless(Plain):
            def step(self, configuration, move):
                return configuration + 1

            def accepting(self, configuration):
                return False

        lookahead = Lookahead(Endless(), max_states=50)
        assert lookahead.completable().value == "unknown"
        assert lookahead.completable(steps=3).value in {"no", "unknown"}
        with pytest.raises(Undecided):
            lookahead.shortest()


class TestCopies:
    @given(sources, choices)
    @examples(30)
    def test_what_is_read_back_answers_the_same_and_carries_nothing_it_found(self, source, picks):
        lookahead = Lookahead(*source, max_states=500, solver=False)
        now, _ = walk(lookahead.automaton, picks)
        asked_nothing = pickle.dumps(lookahead)
        found = lookahead.completable(now), lookahead.signature(now), lookahead.detours(now)
        assert pickle.dumps(lookahead) == asked_nothing
        for twin in (pickle.loads(pickle.dumps(lookahead)), copy.deepcopy(lookahead)):
            assert (twin.max_states, twin.solver, twin.limits) == (500, False, lookahead.limits)
            assert (twin.completable(now), twin.signature(now), twin.detours(now)) == found

    def test_of_an_automaton_of_ones_own_under_limits(self):
        lookahead = Lookahead(Plain(), Limits(at_least={"a": 2}))
        assert pickle.loads(pickle.dumps(lookahead)).shortest() == 2


class TestSources:
    def test_limits_are_those_of_the_rules_and_more(self):
        cfg = CFG.from_string("%limit 2 a\nS -> a S | b S | ε")
        lookahead = Lookahead(cfg, Limits({"b": 0}))
        assert lookahead.limits == lookahead.pda.limits == Limits({"a": 2, "b": 0})
        assert [bound.line for bound in lookahead.bounds] == ["%limit 2 a", "%limit 0 b"]
        # What runs can be handed on: it has its limits with it.
        assert Lookahead(lookahead.automaton, Limits({"a": 1})).limits == Limits({"a": 1, "b": 0})


def test_the_shortest_is_looked_for_within_a_time():
    names = [f"t{number}" for number in range(12)]
    lines = ["%limit 1", "%limit g >= 1000001", "S -> T S | T", f"T -> {' | '.join(names)}"]
    numbers = [f"{name} g={2 * (50_000 + 7_919 * place * place)}" for place, name in enumerate(names)]
    lookahead = Lookahead(CFG.from_string("\n".join([*lines, *numbers])), solver=False)
    for least in (lookahead.fewest_moves, lookahead.shortest):
        with pytest.raises(Undecided, match="within the search time"):
            least(search_time=0.0)
    assert lookahead.shortest() == lookahead.shortest(search_time=5.0) == 1
    assert lookahead.work.left == INF


class TestPlainSearch:
    @given(limited_automata(), choices)
    @examples(80)
    def test_never_says_anything_wrong_and_finds_the_fewest_moves_and_the_shortest_words(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        search, slow = PlainSearch(lookahead.automaton, max_states=300), reference(lookahead)
        found, least = search.cheapest_cost(now, by_length=False), slow.moves(*parts(now), word)
        assert found == least or (found == -1.0 and least > 3)
        found, least = search.cheapest_cost(now, by_length=True), slow.length(*parts(now), word)
        assert found == -1.0 or (found == INF) == (least == INF)
        assert not 0 <= found < INF or found // LENGTH == least

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
