"""Linear arguments: right for every state, and what they rule out is impossible."""

from collections import Counter

from hypothesis import assume, given

from formal_llm import CFG, Lookahead
from formal_llm.automata.lookahead.linear import (
    ArgumentNumbers,
    ConnectivityCut,
    FlowSystem,
    LinearArgument,
    make_argument,
)
from tests.automata.lookahead.judging import parts, reference
from tests.automata.lookahead.test_linear_program import priced_tools, state_at
from tests.oracles import INF
from tests.strategies import choices, examples, walk

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
