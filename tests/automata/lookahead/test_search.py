"""The search over multisets: what decided, what is remembered, what a budget does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, Verdict
from formal_llm.automata.lookahead import program as program_module
from formal_llm.automata.lookahead import search as search_module
from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import AcceptBelowTarget, FlowGrammar
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.stacks import SearchState
from formal_llm.automata.lookahead.verdicts import BUDGET, FILTER, LINEAR, PROGRAM, SEARCH, TIME
from formal_llm.automata.models.automaton import Stack
from tests.automata.lookahead.judging import parts, reference, sources
from tests.automata.lookahead.test_flow import endings, many_exits
from tests.oracles import INF, Reference
from tests.strategies import choices, examples, tool_grammars, walk

#: Each day two of six people, nobody twice: an exact cover, beyond the filters.
SHIFTS = CFG.from_string("""
%limit 1
Week -> Monday Tuesday Wednesday
Monday    -> ann bob | cat dan | ann fay
Tuesday   -> ann bob | cat eve | dan fay
Wednesday -> eve fay | ann cat | bob dan
""")


def search_of(lookahead, max_states, **more):
    """A search of its own, by default without a solver."""
    return CompletionSearch(FlowGrammar(lookahead.pda, Counters(lookahead.bounds)), max_states, **more)


def decide(search, lookahead, now):
    (state, stack), remaining, needed = lookahead._split_configuration(now)
    return search.decide_demand(search.demands.for_configuration(state, stack), remaining, needed)


class TestDecide:
    @given(sources, choices)
    @examples(100)
    def test_as_the_reference_says(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        least = reference(lookahead).moves(*parts(now), word)
        found, how = decide(search_of(lookahead, 20_000), lookahead, now)
        assert (found == INFINITE) == (least == INF)
        assert found >= least
        assert how in (FILTER, LINEAR, SEARCH, PROGRAM)

    @given(tool_grammars(), choices)
    @examples(40)
    def test_a_small_budget_is_never_wrong_and_says_what_ended_it(self, cfg, picks):
        lookahead = Lookahead(cfg)
        now, word = walk(lookahead.automaton, picks)
        least = reference(lookahead).moves(*parts(now), word)
        for max_states in (0, 1, 3):
            found, how = decide(search_of(lookahead, max_states), lookahead, now)
            assert (found == UNKNOWN) == (how == BUDGET)
            assert found == UNKNOWN or (found == INFINITE) == (least == INF)

    def test_what_was_found_is_remembered(self):
        lookahead = Lookahead(SHIFTS)
        search = search_of(lookahead, 20_000)
        first = decide(search, lookahead, lookahead.automaton.start())
        assert first[1] == SEARCH
        search.max_states = 0
        assert decide(search, lookahead, lookahead.automaton.start()) == first

    @given(sources, choices)
    @examples(40)
    def test_what_is_remembered_of_states_on_the_way_is_right(self, source, picks):
        lookahead = Lookahead(*source)
        search = search_of(lookahead, 20_000)
        decide(search, lookahead, walk(lookahead.automaton, picks)[0])
        search._forget_old_version()  # nothing was searched yet where a filter decided
        for state, moves in [*search._memo.items()][:20]:
            fresh = search.fresh_copy()
            again = fresh.finish_moves(*state)
            assert (again == INFINITE) == (moves == INFINITE)

    @given(sources | tool_grammars().map(lambda cfg: (cfg, None)), choices, st.sampled_from([1, 8, 40]))
    @examples(60)
    def test_a_search_that_is_paused_again_and_again_ends_as_one_that_is_not(self, source, picks, tries):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        search, found, how = search_of(lookahead, 20_000), UNKNOWN, TIME
        for _ in range(2_000):
            search.work.left = search.work.part = tries
            found, how = decide(search, lookahead, now)
            assert (found == UNKNOWN) == (how == TIME)
            if found != UNKNOWN:
                break
            assert search.work.left <= 0
        least = reference(lookahead).moves(*parts(now), word)
        assert (found == INFINITE) == (least == INF)
        assert found >= least
        assert how in (FILTER, LINEAR, SEARCH, PROGRAM)

    @given(many_exits, st.tuples(st.integers(0, 3), st.integers(0, 2)), st.sampled_from([5, 20_000]))
    @examples(100)
    def test_it_finds_the_moves_of_a_run(self, source, bounds, max_states):
        """Of automata with several exits, against all runs of a few moves."""
        most, least = bounds
        pda, state, stack = source
        lookahead = Lookahead(pda.with_limits(Limits({"b": most}, at_least={"a": least} if least else {})))
        remaining, needed = lookahead.automaton.start()[1:]
        search = search_of(lookahead, max_states)
        demand = search.demands.for_configuration(state, stack)
        slow = Reference(lookahead.pda, lookahead.limits, "ab").moves(state, tuple(stack))
        runs = endings(lookahead.pda, (state, stack.top, AcceptBelowTarget((*stack.rest,))), 5)
        moves = {count for read, count in runs if read.count("b") <= most and read.count("a") >= least}
        for _ in range(2):  # the second answer is remembered
            found, how = search.decide_demand(demand, remaining, needed)
            assert (found == UNKNOWN) == (how == BUDGET)
            assert search.completion_moves(demand, remaining, needed) == found
            if found != UNKNOWN:
                assert (found == INFINITE) == (slow == INF)
                assert found > 5 or found in moves

    def test_what_another_search_has_found_is_taken_over(self):
        lookahead = Lookahead(SHIFTS)
        search = search_of(lookahead, 0)
        (state, stack), remaining, needed = lookahead._split_configuration(lookahead.automaton.start())
        demand = search.demands.for_configuration(state, stack)
        search.finish_moves(0, None, 0, 0)
        search.remember_decision(demand, remaining, needed, (11.0, SEARCH))
        assert search.decide_demand(demand, remaining, needed) == (11 + demand.free_steps, SEARCH)

    def test_finish_judges_what_is_pending(self):
        lookahead = Lookahead(CFG.from_string("%limit 1\nS -> T T\nT -> a | b"), Limits())
        search = lookahead._search
        one = search.multisets.unit_of(search.grammar.get_symbol("loop", "T", "loop").index)
        left = search.demands.resources.resources_left(lookahead.automaton.start().remaining)
        assert [search.finish_moves(count * one, None, left, 0) for count in (0, 1, 2, 3)] == [0, 2, 4, INFINITE]


class TestOpenStacks:
    """From p the X is popped into q or r: by way of q ``abdb`` is read, by way of r ``cdb``."""

    def begin(self, most, turn=1, more=()):
        ways = [("p", "a", "X", "q"), ("p", None, "X", "r")][::turn]
        ways += [("q", "b", "Y", "s"), ("r", "c", "Y", "s"), *more]
        pda = PDA([*ways, ("s", "d", "Z", "s"), ("s", "b", "W", "t")], start="p", accepting="t", stack="XYZW")
        lookahead = Lookahead(pda, Limits({"a": 2, "b": most}, at_least={"c": 2}))
        self.search = search_of(lookahead, 20_000)
        self.search._forget_old_version()
        (state, stack), remaining, needed = lookahead._split_configuration(lookahead.automaton.start())
        self.counters, self.resources = self.search.counters, self.search.demands.resources
        return SearchState(0, (state, stack), self.resources.resources_left(remaining), needed)

    def need(self, names):
        return sum(self.resources.pack_need(self.counters.need[name]) for name in names)


class TestBudget:
    """What a search may visit, where it alone decides."""

    def states(self, search, root):
        """All states that a search may come to."""
        found, todo = {root}, [root]
        while todo:
            for _, state in search._after.list_successors(todo.pop()):
                if state not in found:
                    found.add(state)
                    todo.append(state)
        return found

    def test_it_visits_as_many_states_as_it_may(self, monkeypatch):
        monkeypatch.setattr(program_module, "_LARGEST", 0)
        cfg = CFG.from_string("%limit 1\nS -> D D D | e\nD -> a E | b E | a b\nE -> c | d c")
        lookahead = Lookahead(cfg)

        def ask(max_states):
            search = search_of(lookahead, max_states)
            search._forget_old_version()
            day = search.multisets.unit_of(search.grammar.get_symbol("loop", "D", "loop").index)
            left = search.demands.resources.resources_left(lookahead.automaton.start().remaining)
            return search, (2 * day, None, left, 0)

        search, rest = ask(0)
        _, root = search._after.normalize_state(*rest)
        count = len(self.states(search, root))
        assert count > 3
        for most in range(count + 3):
            search, rest = ask(most)
            found = search.decide_rest(*rest)
            assert found == ((INFINITE, SEARCH) if most >= count else (UNKNOWN, BUDGET))
            assert found == search.decide_rest(*rest)

    def test_what_is_left_undecided_rules_nothing_out(self, monkeypatch):
        monkeypatch.setattr(program_module, "_LARGEST", 0)
        lookahead = Lookahead(SHIFTS, solver=False)
        after, (_, root) = begin(lookahead)
        ((_, following),) = after.list_successors(root)
        search = lookahead._search.fresh_copy()
        search.max_states = 0
        assert search.decide_rest(*following) == (UNKNOWN, BUDGET)
        search.max_states = 20_000
        assert search.decide_rest(*root) == (UNKNOWN, BUDGET)

    @pytest.mark.parametrize("patience", [1, 2, 3, 4, 5, 8, 20])
    def test_wherever_it_pauses_the_moves_are_right(self, monkeypatch, patience):
        """All completions of a state of these shifts take as many moves."""
        monkeypatch.setattr(program_module, "_LARGEST", 0)
        monkeypatch.setattr(search_module, "PATIENCE", patience)
        lookahead = Lookahead(SHIFTS, solver=False)
        after, (_, root) = begin(lookahead)
        expected = {
            state: sum(
                {"$": 12, "Week": 10}.get(symbol.key[1], 3) * count
                for symbol, count, _ in after.multisets.list_items(state.pending)
            )
            for state in self.states(lookahead._search, root)
        }
        alone = {state: lookahead._search.fresh_copy().finish_moves(*state) for state in expected}
        assert all(found in (INFINITE, expected[state]) for state, found in alone.items())
        for states in (sorted(expected), sorted(expected, key=expected.__getitem__), [root, *expected]):
            shared = lookahead._search.fresh_copy()
            assert {state: shared.finish_moves(*state) for state in states} == alone


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


def begin(lookahead, now=None):
    """(the successors' maker, the normal form of a configuration; None where a filter rules it out)."""
    (state, stack), remaining, needed = lookahead._split_configuration(now or lookahead.automaton.start())
    search = lookahead._search
    demand = search.demands.for_configuration(state, stack)
    search._forget_old_version()
    if demand.least_steps == INFINITE:
        return search._after, None
    left = (
        search.demands.resources.resources_left(remaining - demand.promised) if remaining >= demand.promised else None
    )
    if left is None or (remaining - demand.promised) & search.counters.guard != search.counters.guard:
        return search._after, None
    needed = search.counters.subtract_paid(needed, demand.paid)
    return search._after, search._after.normalize_state(demand.pending, demand.unresolved, left, needed)


def done(state):
    """Whether nothing is left to do."""
    return not state.pending and state.unresolved is None and not state.needed


def test_what_is_free_is_left_out() -> None:
    lookahead = Lookahead(CFG.from_string("%limit b 2\nS -> Dear Free\nFree -> a | a Free\nDear -> b | b b"))
    after, normal = begin(lookahead)
    assert normal is not None
    pending = [symbol for symbol, _, _ in after.multisets.list_items(normal[1].pending)]
    assert len(pending) == 1 and not pending[0].is_free


def test_what_bounds_cannot_pay_is_no_state() -> None:
    cfg = CFG.from_string("S -> a D D\nD -> b | b b")
    assert begin(Lookahead(cfg, Limits(at_most={"b": 1})))[1] is None
    assert begin(Lookahead(cfg, Limits(at_most={"b": 2})))[1] is not None


@given(sources, choices)
@examples(60)
def test_a_state_can_be_completed_where_one_that_follows_can(source, picks) -> None:
    lookahead = Lookahead(*source)
    now, word = walk(lookahead.automaton, picks)
    after, normal = begin(lookahead, now)
    least = reference(lookahead).moves(*parts(now), word)
    if normal is None:
        assert least == INFINITE
        return
    _, state = normal
    search = lookahead._search
    if not done(state):
        found = [
            0 if done(following) else search._depth_first_search(following, 5_000)
            for _, following in after.list_successors(state)
        ]
        assert (least == INFINITE) == all(one == INFINITE for one in found)


def test_of_what_is_free_as_much_is_kept_as_bounds_may_still_need() -> None:
    for needs in (1, 2, 3, 9):
        lookahead = Lookahead(CFG.from_string(f"%require {needs} a\n%order forward\nS -> F F F F\nF -> a F | a | b"))
        now, _ = walk(lookahead.automaton, [0, 0])
        after, normal = begin(lookahead, now)
        assert normal is not None
        steps, state = normal
        ((symbol, count, _),) = after.multisets.list_items(state.pending)
        assert symbol.is_free
        assert count == min(needs, 4)
        assert steps == (4 - count) * symbol.free_steps


class TestDays:
    """Two parts that are free and may read an ``a`` that is needed, and two days that read one ``c`` or two."""

    def begin(self):
        text = (
            "%require 2 a\n%limit c 5\n%order forward\nS -> Part Part Day Day\nPart -> a Part | a | b\nDay -> c | c c"
        )
        lookahead = Lookahead(CFG.from_string(text))
        search = lookahead._search
        search._forget_old_version()
        self.search, self.after = search, search._after
        self.counters, self.resources = search.counters, search.demands.resources
        _, remaining, self.needed = lookahead._split_configuration(lookahead.automaton.start())
        self.left = self.resources.resources_left(remaining)
        names = {symbol.key[1]: symbol.index for symbol in search.grammar.symbols}
        self.part, self.day = (search.multisets.unit_of(names[name]) for name in ("Part", "Day"))
        self.one_more = self.counters.pay_for("a", self.needed)

    def normal(self, pending, needed, unresolved=None):
        found = self.after.normalize_state(pending, unresolved, self.left, needed)
        if found is None:
            return None
        cost, state = found
        assert (state.left, state.needed, state.unresolved) == (self.left, needed, unresolved)
        return cost, state.pending

    def test_no_more_days_than_can_be_paid(self):
        self.begin()
        for count in range(1_000):
            expected = (0, count * self.day) if count <= 5 else None
            assert self.normal(count * self.day, 0) == expected

    def test_what_is_free_and_not_needed_is_left_out_with_its_moves(self):
        self.begin()
        for count in range(5):
            assert self.normal(count * self.part + self.day, 0) == (2 * count, self.day)
            for needed, kept in ((self.one_more, min(count, 1)), (self.needed, min(count, 2))):
                expected = (2 * (count - kept), kept * self.part + self.day) if count else None
                assert self.normal(count * self.part + self.day, needed) == expected

    def test_what_is_needed_may_be_in_the_open_part(self):
        self.begin()
        at = ("loop", Stack.of("Part"))
        assert self.normal(self.day, self.needed) is None
        assert self.normal(self.day, self.needed, at) == (0, self.day)
        assert self.normal(0, 0) == (0, 0)

    def test_what_follows(self):
        self.begin()
        c = self.resources.pack_need(self.after.counters.need["c"])
        state = SearchState(2 * self.day, None, self.left, 0)
        ways = [(2, state._replace(pending=self.day, left=self.left - c))]
        ways += [(3, state._replace(pending=self.day, left=self.left - 2 * c))]
        assert sorted(self.after.list_successors(state)) == ways
        # What is free is left out where it is not needed.
        state = SearchState(2 * self.part + self.day, None, self.left - 4 * c, self.one_more)
        assert [*self.after.list_successors(state)] == [(4, state._replace(pending=self.part, left=self.left - 5 * c))]
        state = SearchState(2 * self.part, None, self.left, self.one_more)
        rest = state._replace(pending=0, needed=0)
        assert sorted(self.after.list_successors(state)) == [
            (2, state._replace(pending=self.part)),
            (4, rest),
            (6, rest),
        ]

    def test_what_it_costs(self):
        self.begin()
        work = self.after.work
        look = 0.01 + self.resources.guard.bit_length() / 800_000
        for pending, needed, found in ((2 * self.day, 0, 2), (3 * self.day, 0, 2), (2 * self.part, self.needed, 3)):
            work.left = 1_000.0
            state = SearchState(pending, None, self.left, needed)
            assert len([*self.after.list_successors(state)]) == found
            expected = found * (0.5 + pending.bit_count() / 16 + 0.2 * bool(needed) + look)
            assert 1_000 - work.left == pytest.approx(expected)

    def test_of_several_that_of_which_fewest_ways_are_left(self):
        self.begin()
        c = self.resources.pack_need(self.after.counters.need["c"])
        both = self.part + self.day
        for used, following in ((0, self.part), (3, self.part), (4, self.part)):
            state = SearchState(both, None, self.left - used * c, self.needed)
            assert {after.pending for _, after in self.after.list_successors(state)} == {following}

    def test_what_is_left_out_at_once_counts_too(self):
        self.begin()
        search = self.search.fresh_copy()
        for count in range(4):
            assert search.finish_moves(count * self.part + self.day, None, self.left, 0) == 2 * count + 2

    @pytest.mark.parametrize("many", [1, 2, 3])
    def test_of_very_many_ways_none_is_taken_that_cannot_be_paid(self, monkeypatch, many):
        monkeypatch.setattr(search_module, "_MANY", many)
        self.begin()
        c = self.resources.pack_need(self.after.counters.need["c"])
        for used, found in ((4, [2]), (3, [2, 3]), (0, [2, 3])):
            self.after.work.left = 1_000.0
            state = SearchState(self.day, None, self.left - used * c, 0)
            assert [moves for moves, *_ in self.after._raw_successors(state)] == found
            assert 1_000 - self.after.work.left == pytest.approx(2 * self.after._effort)
