import itertools
from collections import deque

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, SumLimit, Symbol, Undecided, Verdict
from formal_llm.automata.lookahead.flow import LENGTH
from formal_llm.automata.lookahead.lookahead import as_automaton
from formal_llm.automata.lookahead.plain_search import Exploration
from formal_llm.automata.models.limited import LimitedAutomaton, split
from tests.oracles import INF, Reference, bounds_of, keeps, language
from tests.strategies import (
    automata,
    choices,
    direct_automata,
    examples,
    grammars,
    limited_automata,
    limited_grammars,
    tool_grammars,
    walk,
)


def parts(configuration):
    """(state, stack as a tuple) of a configuration, with or without counters."""
    inner = getattr(configuration, "inner", configuration)
    return inner.state, tuple(inner.stack)


def reference(lookahead):
    pda, limits = split(lookahead.automaton)
    return Reference(pda, limits)


#: A grammar or an automaton, and limits on top of its own.
sources = st.one_of(limited_grammars().map(lambda cfg: (cfg, None)), limited_automata())


class TestCompletable:
    @given(sources, choices)
    @examples(150)
    def test_verdict_is_that_of_the_reference(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        least = reference(lookahead).moves(*parts(now), word)
        verdict = lookahead.completable(now)
        assert verdict.value == ("no" if least == INF else "yes")
        if verdict.value == "yes":
            assert verdict.steps >= least

    @given(sources, choices)
    @examples(100)
    def test_step_budget_is_met_exactly_from_the_fewest_moves_on(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        least = reference(lookahead).moves(*parts(now), word)
        for steps in range(12):
            assert lookahead.completable(now, steps=steps).value == ("yes" if least <= steps else "no"), steps

    @given(sources, choices, st.integers(0, 3))
    @examples(100)
    def test_a_tiny_budget_of_states_may_say_unknown_but_nothing_wrong(self, source, picks, max_states):
        lookahead = Lookahead(*source, max_states=max_states)
        now, word = walk(lookahead.automaton, picks)
        least = reference(lookahead).moves(*parts(now), word)
        truth = "no" if least == INF else "yes"
        assert lookahead.completable(now).value in {truth, "unknown"}
        for steps in (1, 4, 9):
            verdict = lookahead.completable(now, steps=steps).value
            assert verdict in {"yes" if least <= steps else "no", "unknown"}
        try:
            shortest = lookahead.shortest(now)
        except Undecided:
            return
        length = reference(lookahead).length(*parts(now), word)
        assert shortest == (None if length == INF else length)

    @given(tool_grammars(), choices)
    @examples(60)
    def test_classes_of_tools(self, cfg, picks):
        lookahead = Lookahead(cfg)
        now, word = walk(lookahead.automaton, picks)
        slow = reference(lookahead)
        least, length = slow.moves(*parts(now), word), slow.length(*parts(now), word)
        assert lookahead.completable(now).value == ("no" if least == INF else "yes")
        assert lookahead.shortest(now) == (None if length == INF else length)
        for steps in (4, 8, 12):
            assert lookahead.completable(now, steps=steps).value == ("yes" if least <= steps else "no")

    @given(direct_automata(), choices)
    @examples(60)
    def test_terminals_read_with_and_without_a_move_before(self, pda, picks):
        lookahead = Lookahead(pda, Limits(default=1))
        now, word = walk(lookahead.automaton, picks)
        least = reference(lookahead).moves(*parts(now), word)
        for steps in range(12):
            assert lookahead.completable(now, steps=steps).value == ("yes" if least <= steps else "no"), steps
        rest = lookahead.shortest_word(now)
        assert (rest is None) == (least == INF)
        assert rest is None or lookahead.automaton.accepts(word + rest)

    @given(sources, choices)
    def test_one_lookahead_serves_many_configurations_in_any_order(self, source, picks):
        # What was remembered for one configuration must not mislead another.
        lookahead = Lookahead(*source)
        slow = reference(lookahead)
        for length in (*range(len(picks) + 1), *reversed(range(len(picks) + 1))):
            now, word = walk(lookahead.automaton, picks[:length])
            assert (lookahead.completable(now).value == "yes") == (slow.moves(*parts(now), word) < INF)

    @given(sources)
    def test_the_start_is_the_configuration_where_none_is_given(self, source):
        lookahead = Lookahead(*source)
        assert (lookahead.completable().value == "no") == reference(lookahead).empty

    @given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
    def test_agrees_with_words_written_out(self, most_a, least_b, most_b):
        # S -> a S b | c, so the words are a^n c b^n.
        limits = Limits(at_most={"a": most_a, "b": most_b}, at_least={"b": least_b})
        fits = any(n <= most_a and least_b <= n <= most_b for n in range(10))
        verdict = Lookahead(CFG.from_string("S -> a S b | c"), limits).completable()
        assert verdict.value == ("yes" if fits else "no")

    def test_a_tool_used_up_closes_the_branch_that_needs_it(self):
        lookahead = Lookahead(CFG.from_string("%limit 1 cut\nS -> cut S serve | boil"))
        now, _ = walk(lookahead.automaton, [0])
        cut, boil = lookahead.automaton.moves(now)
        assert [m.production.body[0] for m in (cut, boil)] == ["cut", "boil"]
        now = lookahead.automaton.step(now, cut)
        now = lookahead.automaton.step(now, lookahead.automaton.moves(now)[0])
        again, boil = lookahead.automaton.moves(now)
        assert lookahead.completable(lookahead.automaton.step(now, again)).value == "no"
        assert lookahead.completable(lookahead.automaton.step(now, boil)).value == "yes"

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


class TestShortest:
    @given(sources, choices)
    @examples(120)
    def test_length_is_that_of_the_reference(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        length = reference(lookahead).length(*parts(now), word)
        assert lookahead.shortest(now) == (None if length == INF else length)
        assert lookahead.least_length(now) <= length or length == INF
        assert lookahead.least_steps(now) <= reference(lookahead).moves(*parts(now), word)

    @given(sources, choices)
    @examples(120)
    def test_word_has_that_length_and_completes_the_plan(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        rest = lookahead.shortest_word(now)
        if rest is None:
            assert reference(lookahead).length(*parts(now), word) == INF
            return
        assert len(rest) == reference(lookahead).length(*parts(now), word)
        pda, limits = split(lookahead.automaton)
        assert keeps(word + rest, limits, list(pda.terminals), pda.symbols)
        assert lookahead.automaton.accepts(word + rest)

    @given(limited_grammars())
    def test_grammars_agree_with_all_words_written_out(self, cfg):
        fitting = [w for w in language(cfg, 4) if keeps(w, cfg.limits, list(cfg.terminals), cfg.symbols)]
        shortest = Lookahead(cfg).shortest()
        if fitting:
            assert shortest == min(map(len, fitting))
        else:
            assert shortest is None or shortest > 4

    def test_doubling_grammar_is_not_written_out(self):
        rules = [(f"A{level}", (f"A{level + 1}",) * 2) for level in range(20)]
        assert Lookahead(CFG([*rules, ("A20", ("a",))])).shortest() == 2**20

    def test_many_moves_do_not_spill_into_the_length(self):
        rules = [(f"A{level}", (f"A{level + 1}",) * 2) for level in range(25)]
        assert Lookahead(CFG([*rules, ("A25", ("a",))])).shortest() == 2**25

    def test_none_where_there_is_no_word(self):
        lookahead = Lookahead(CFG([("S", ("a", "S"))]))
        assert lookahead.shortest() is None
        assert lookahead.shortest_word() is None
        assert lookahead.least_steps(lookahead.automaton.start()) == INF
        assert lookahead.least_length(lookahead.automaton.start()) == INF

    def test_undecided_says_what_to_raise(self):
        cfg = CFG.from_string("%limit 3\n%require 2 a b c\nS -> T S T | U\nT -> a | b U | c\nU -> c T | a b")
        with pytest.raises(Undecided, match="raise max_states"):
            Lookahead(cfg, max_states=1).shortest()
        with pytest.raises(Undecided, match="raise max_states"):
            Lookahead(cfg, max_states=1).shortest_word()


class TestVerdict:
    def test_has_no_truth_value(self):
        with pytest.raises(TypeError, match="three values"):
            bool(Lookahead(CFG.from_string("S -> a")).completable())

    def test_possible_means_not_ruled_out(self):
        assert [Verdict(value, "search").possible for value in ("yes", "no", "unknown")] == [True, False, True]

    def test_text_tells_what_decided(self):
        lookahead = Lookahead(CFG.from_string("S -> a b"))
        assert str(lookahead.completable()) == "yes (filter)"
        assert str(lookahead.completable(steps=2)) == "no (step budget)"


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
        lookahead = Lookahead(CFG.from_string("%limit 1 b\nS -> a S T | b\nT -> c"))
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
        assert lookahead.detours(lookahead.automaton.start()) == {"a": 1, "b": 0}


class Plain:
    """A finite automaton that is no PDA: words over a and b with an even number of a."""

    terminals = ("a", "b")
    fingerprint = "even"

    class Step:
        def __init__(self, read):
            self.read = read

    steps = (Step("a"), Step("b"))

    def start(self):
        return 0

    def moves(self, configuration):
        return self.steps

    def step(self, configuration, move):
        return (configuration + (move.read == "a")) % 2

    def accepting(self, configuration):
        return configuration == 0


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
        class Counting(Plain):
            def step(self, configuration, move):
                return configuration + 1

            def accepting(self, configuration):
                return False

        lookahead = Lookahead(Counting(), max_states=50)
        assert lookahead.completable().value == "unknown"
        assert lookahead.completable(steps=3).value in {"no", "unknown"}
        with pytest.raises(Undecided):
            lookahead.shortest()


class TestExploration:
    @given(limited_automata(), choices)
    @examples(80)
    def test_never_says_anything_wrong_and_finds_the_fewest_moves(self, source, picks):
        automaton = as_automaton(*source)
        pda, limits = split(automaton)
        now, word = walk(automaton, picks)
        slow = Reference(pda, limits)
        exploration = Exploration(automaton, max_states=300)
        found = exploration.cheapest(now, by_length=False)
        least = slow.moves(*parts(now), word)
        assert found in {least, -1.0}
        if least <= 3:
            assert found == least
        length = exploration.cheapest(now, by_length=True)
        assert length == -1.0 or (length == INF) == (least == INF)
        if 0 <= length < INF:
            assert length // LENGTH == slow.length(*parts(now), word)

    @given(limited_automata(finite=True), choices)
    @examples(80)
    def test_both_searches_agree_on_finite_automata(self, source, picks):
        # Finitely many configurations: exploring them all decides everything.
        lookahead = Lookahead(*source)
        now, _ = walk(lookahead.automaton, picks)
        exploration = Exploration(lookahead.automaton, max_states=20_000)
        cheapest = exploration.cheapest(now, by_length=False)
        assume(cheapest != -1.0)
        assert lookahead.completable(now).value == ("no" if cheapest == INF else "yes")
        for steps in range(6):
            assert lookahead.completable(now, steps=steps).value == ("yes" if cheapest <= steps else "no")

    def test_terminals_are_those_that_moves_can_read(self):
        automaton = as_automaton(CFG.from_string("%limit 1 a\nS -> a S | b | c c"))
        assert Exploration(automaton, 1000).terminals(automaton.start()) == {"a", "b", "c"}
        now, _ = walk(automaton, [0, 0, 0])
        assert Exploration(automaton, 1000).terminals(now) == {"b", "c"}


class TestReference:
    """The reference itself, against words written out."""

    @given(limited_grammars())
    def test_grammars(self, cfg):
        pda = PDA.from_cfg(cfg)
        fitting = [w for w in language(cfg, 4) if keeps(w, cfg.limits, list(cfg.terminals), cfg.symbols)]
        length = Reference(pda, cfg.limits).length(pda.start_state, pda.start_stack)
        if fitting:
            assert length == min(map(len, fitting))
        else:
            assert length > 4

    @given(automata(letters=("a", "b")))
    def test_automata(self, pda):
        from tests.oracles import runs

        words = [w for n in range(4) for w in itertools.product("ab", repeat=n)]
        verdicts = {w: runs(pda, w) for w in words}
        length = Reference(pda, Limits()).length(pda.start_state, pda.start_stack)
        accepted = [len(w) for w, verdict in verdicts.items() if verdict]
        if accepted:
            assert length <= min(accepted)
        if None not in verdicts.values():
            assert length == min(accepted, default=length)
            assert accepted or length > 3

    def test_bounds_are_read_from_limits(self):
        limits = Limits(at_most={"a": None}, at_least={"b": 2}, default=3, sums=(SumLimit("cost", 0.5),))
        symbols = {"a": Symbol(numbers={"cost": 0.25})}
        found = bounds_of(limits, ["a", "b"], symbols)
        assert [(dict(w), least, most) for w, least, most in found] == [
            ({"b": 1}, None, 3),
            ({"b": 1}, 2, None),
            ({"a": 0.25}, None, 0.5),
        ]
