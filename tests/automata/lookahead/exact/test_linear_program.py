"""Linear programs: what they decide is right, what they learned is used, and their work is bounded."""

from collections import Counter
from itertools import combinations_with_replacement

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, Lookahead, SumLimit, Symbol, Walk
from formal_llm.automata.lookahead import search
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.exact import linear_program
from formal_llm.automata.lookahead.exact.linear_program import (
    EFFORT,
    ArgumentNumbers,
    ConnectivityCut,
    FlowSystem,
    LinearArgument,
    make_argument,
)
from formal_llm.planning.walks.choices import ChoiceTable
from tests.automata.lookahead.judging import parts, reference, sources
from tests.oracles import INF
from tests.strategies import choices, examples, tool_grammars, walk


@st.composite
def priced_tools(draw):
    """Typed tools with numbers, some required, sums bounded from above and from below."""
    plain = draw(tool_grammars())
    names = list(plain.terminals)
    number = st.integers(0, 4)
    symbols = {name: Symbol(numbers={"cost": draw(number), "value": draw(number)}) for name in names}
    sums = (SumLimit("cost", at_most=draw(st.integers(0, 9))), SumLimit("value", at_least=draw(st.integers(0, 7))))
    required = draw(st.dictionaries(st.sampled_from(names), st.just(1), max_size=2))
    return CFG(plain.productions, plain.start, symbols, plain.limits & Limits(at_least=required, sums=sums))


def state_at(lookahead, now):
    """The state of the search at a configuration; None where filters decide."""
    inner, remaining, needed = lookahead._split_configuration(now)
    search = lookahead._search
    demand = search.demands.for_configuration(*inner)
    remaining -= demand.promised
    if demand.least_steps == INF or remaining & search.counters.guard != search.counters.guard:
        return None
    if search._version != search.demands.version:
        search._forget_old_version()
    needed = search.counters.subtract_paid(needed, demand.paid)
    normal = search._after.normalize_state(
        demand.pending, demand.unresolved, search.demands.resources.resources_left(remaining), needed
    )
    return None if normal is None else normal[1]


class TestDecide:
    @given(st.one_of(priced_tools().map(lambda cfg: (cfg, None)), sources), choices)
    @examples(150)
    def test_alone_it_agrees_with_the_reference(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        state = state_at(lookahead, now)
        if state is not None:
            found, _ = lookahead._search.linear.decide_state(state, 10 * EFFORT)
            assert found is None or (found == INFINITE) == (reference(lookahead).moves(*parts(now), word) == INF)

    @given(priced_tools(), st.lists(choices, min_size=2, max_size=4))
    @examples(80)
    def test_what_is_kept_and_learned_agrees_with_the_reference(self, cfg, walks):
        lookahead = Lookahead(cfg)
        linear = lookahead._search.linear
        for picks in walks:
            now, word = walk(lookahead.automaton, picks)
            state = state_at(lookahead, now)
            if state is None:
                continue
            least = reference(lookahead).moves(*parts(now), word)
            if linear.is_refuted(state):
                assert least == INF
            elif linear.known_moves(state) is not None:
                assert least < INF
            else:
                linear.decide_state(state)

    def test_cycles_that_nothing_leads_to_pay_nothing(self, monkeypatch):
        """Only Loop pays: without connectivity, S -> a would do with a round of it that nothing leads to."""
        monkeypatch.setattr(search, "PATIENCE", 0)
        cfg = CFG.from_string("""
            %limit 1
            %require 1 pay
            S -> a Rest | b Rest | Out
            Rest -> e | f
            Out -> c Loop
            Loop -> pay Loop | d
        """)
        walk = Walk(ChoiceTable(Lookahead(cfg, solver=False)))
        assert walk.done
        assert walk.word == ("c", "pay", "d")

    def test_no_work_is_done_beyond_what_is_allowed(self):
        lookahead = Lookahead(WEEK)
        state = state_at(lookahead, lookahead.automaton.start())
        linear = lookahead._search.linear
        assert linear.decide_state(state, 0) == (None, False)
        assert linear.decide_state(state, 10 * EFFORT)[0] is not None

    def test_large_grammars_are_left_to_the_search(self, monkeypatch):
        monkeypatch.setattr(linear_program, "LARGEST", 10)
        lookahead = Lookahead(WEEK)
        state = state_at(lookahead, lookahead.automaton.start())
        assert lookahead._search.linear.decide_state(state) == (None, False)


#: A week of days, each with one of four outings: what they cost and give is bounded both.
WEEK = CFG.from_string("""
%limit cost <= 61
%limit value >= 62
Week -> Day Day Day Day Day Day Day
Day -> sea | hill | town | home
sea "Sea" cost=13 value=11
hill "Hill" cost=9 value=9
town "Town" cost=7 value=8
home "Home" cost=2 value=3
""")


class TestWholeNumbers:
    @pytest.mark.parametrize(("cost", "value"), [(20, 26), (61, 62), (80, 71)])
    def test_a_week_that_is_just_possible_and_one_that_is_just_not(self, cost, value):
        """Parts of outings would give more than whole ones, so what is learned of them must refute both halves."""
        prices = [(13, 11), (9, 9), (7, 8), (2, 3)]
        weeks = combinations_with_replacement(prices, 7)
        assert value == max(sum(value for _, value in week) for week in weeks if sum(one for one, _ in week) <= cost)
        for least, moves in ((value, 17), (value + 1, INFINITE)):
            limits = Limits(sums=(SumLimit("cost", at_most=cost), SumLimit("value", at_least=least)))
            lookahead = Lookahead(CFG(WEEK.productions, WEEK.start, WEEK.symbols, limits))
            state = state_at(lookahead, lookahead.automaton.start())
            assert lookahead._search.linear.decide_state(state, 10 * EFFORT)[0] == moves


class TestLearning:
    def test_most_questions_are_decided_by_what_is_known(self, monkeypatch):
        solved = []
        decide = linear_program.LinearProgram.decide_state

        def counted(self, state, effort=EFFORT):
            solved.append(state)
            return decide(self, state, effort)

        monkeypatch.setattr(linear_program.LinearProgram, "decide_state", counted)
        table = ChoiceTable(Lookahead(WEEK, solver=False))
        offered = 0
        for pick in (1, 2, 3, 1):
            week = Walk(table)
            while week.question is not None:
                offered += len(week.question.options)
                week.answer(min(pick, len(week.question.options)))
            assert week.plan.usage.wasted == 0
        assert offered > 30 and 3 * len(solved) < offered


#: Each of three days takes 40 of a budget at least.
DAYS = CFG.from_string("""
%limit cost <= 150
Trip -> Day Day Day
Day -> hostel | hotel
hostel "Hostel" cost=40
hotel "Hotel" cost=90
""")


def flow_of(cfg):
    lookahead = Lookahead(cfg)
    return FlowSystem(lookahead._search.demands)


def potentials(flow, trip, day):
    """Potentials by symbol: of a day, of a trip and of the start, which is one; what only ends a plan has 0."""
    by_name = {"Day": day, "Trip": trip}
    return {index: by_name.get(flow.demands.grammar.symbols[index].key[1], 0) for index in flow.of}


def trips(flow):
    """One trip, as it is pending."""
    return {index: 1 for index in flow.of if flow.demands.grammar.symbols[index].key[1] == "Trip"}


class TestArgument:
    def test_three_days_of_40_do_not_fit_into_119(self):
        flow = flow_of(DAYS)
        (resource,) = flow.resources
        made = LinearArgument({resource: 1}, {}, potentials(flow, 120, 40))
        assert made.is_valid(flow)
        assert made.excess_demand(trips(flow), [119], {}) == 1
        assert made.excess_demand(trips(flow), [120], {}) == 0
        assert not LinearArgument({resource: 1}, {}, potentials(flow, 120, 41)).is_valid(flow)
        assert not LinearArgument({resource: 1}, {}, potentials(flow, 121, 40)).is_valid(flow)
        assert not LinearArgument({resource: -1}, {}, potentials(flow, -270, -90)).is_valid(flow)

    def test_numbers_that_are_about_right_become_an_argument_that_is_right(self):
        flow = flow_of(DAYS)
        (resource,) = flow.resources
        near = ArgumentNumbers(potentials(flow, 120.00000005, 40.0000001), {resource: 1.0}, {}, [])
        made, extra = make_argument(flow, near)
        assert made.is_valid(flow) and not extra
        assert made.excess_demand(trips(flow), [119], {}) > 0

    def test_a_cut_binds_a_way_to_those_that_lead_to_it(self):
        cut = ConnectivityCut(2, 3, frozenset((5, 6)), (0, 1))
        assert cut.row_factors() == {2: 1, 0: -3, 1: -3}
        assert (cut.right_side({5: 2, 6: 1, 7: 9}), cut.right_side({7: 1}), cut.right_side({})) == (9, 0, 0)

    def test_what_only_one_way_takes_is_no_resource(self):
        flow = flow_of(CFG.from_string("%limit 1 a b\nS -> a S | T b | b S | c\nT -> b | d"))
        takes = [dict(way.takes) for way in flow.ways]
        users = Counter(number for one in takes for number in one)
        assert sorted(users.values()) == [1, 3]
        assert flow.resources == [number for number, count in users.items() if count > 1]
        (alone,) = (way for way in flow.ways if way.alone is not None)
        assert users[alone.alone[0]] == 1 and alone.alone in alone.takes

    def test_without_prices_there_is_none(self):
        flow = flow_of(DAYS)
        assert make_argument(flow, ArgumentNumbers(dict.fromkeys(flow.of, 0.0), {}, {}, [])) is None

    @given(priced_tools(), choices, choices)
    @examples(30)
    def test_what_was_learned_of_one_state_holds_for_others(self, cfg, picks, others):
        lookahead = Lookahead(cfg)
        now, _ = walk(lookahead.automaton, picks)
        linear, state = lookahead._search.linear, state_at(lookahead, now)
        assume(state is not None)
        linear.decide_state(state, 200)
        for made in linear.arguments:
            assert made.is_valid(linear.flow)
        then, word = walk(lookahead.automaton, others)
        other = state_at(lookahead, then)
        if other is not None and linear.is_refuted(other):
            assert reference(lookahead).moves(*parts(then), word) == INF
