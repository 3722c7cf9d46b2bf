"""Linear programs: what they decide is right, what they learned is used, and their work is bounded."""

from itertools import combinations, combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, Lookahead, Production, SumLimit, Symbol, Walk
from formal_llm.automata.lookahead import search
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.exact import linear_program
from formal_llm.automata.lookahead.exact.linear_program import (
    EFFORT,
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
            found, _ = lookahead._search.linear.decide_state(state)
            assert (found is None) == (state.unresolved is not None)
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


def week(cost, least):
    """The week with other bounds."""
    limits = Limits(sums=(SumLimit("cost", at_most=cost), SumLimit("value", at_least=least)))
    return CFG(WEEK.productions, WEEK.start, WEEK.symbols, limits)


class TestWholeNumbers:
    @pytest.mark.parametrize(("cost", "value"), [(20, 26), (61, 62), (80, 71)])
    def test_a_week_that_is_just_possible_and_one_that_is_just_not(self, cost, value):
        """Parts of outings would give more than whole ones, so what is learned of them must refute both halves."""
        prices = [(13, 11), (9, 9), (7, 8), (2, 3)]
        weeks = combinations_with_replacement(prices, 7)
        assert value == max(sum(value for _, value in week) for week in weeks if sum(one for one, _ in week) <= cost)
        for least, moves in ((value, 17), (value + 1, INFINITE)):
            lookahead = Lookahead(week(cost, least))
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


# -- a program --------------------------------------------------------------------------------------------------------


def linear_of(cfg):
    """(the programs over a grammar, the state of its search at the start)."""
    lookahead = Lookahead(cfg)
    linear, state = lookahead._search.linear, state_at(lookahead, lookahead.automaton.start())
    assert linear.is_ready()
    return linear, state


def moves_of_all(demands, state):
    """The moves of all completions of a state, way by way; each way has to take something."""
    resources, counters, multisets = demands.resources, demands.counters, demands.multisets
    known = {}

    def moves(pending, left, needed):
        key = pending, left, needed
        if key not in known:
            found = known[key] = set()
            if not pending:
                found |= {0} if not needed else set()
            else:
                symbol, _, unit = next(multisets.list_items(pending))
                rest = pending - unit
                if symbol.is_free:
                    found |= {symbol.free_steps + more for more in moves(rest, left, needed)}
                for way in resources.ways[symbol.index]:
                    if (left - way.need) & resources.guard == resources.guard:
                        after = rest + sum(multisets.unit_of(child) for child in way.children)
                        paid = counters.pay_all(way.reads, needed)
                        found |= {way.steps + more for more in moves(after, left - way.need, paid)}
        return known[key]

    return moves(state.pending, state.left, state.needed)


@st.composite
def circling_grammars(draw):
    """Every rule reads a terminal of its own, some have to be read, and rules lead in circles of their own."""
    bodies = st.sampled_from([("A",), ("B",), ("C",), ("D",), ("A", "B"), ("C", "D"), ("B", "B"), ()])
    rules = [("S", draw(bodies)) for _ in range(draw(st.integers(1, 2)))]
    rules += [(head, draw(bodies)) for head in "ABCD" for _ in range(draw(st.integers(1, 3)))]
    made = [Production(head, (f"t{n}", *body)) for n, (head, body) in enumerate(rules)]
    made += [Production(head, (f"end{head}",)) for head in "SABCD"]
    plain = CFG(made)
    names = list(plain.terminals)
    numbers = st.fixed_dictionaries({"cost": st.integers(1, 3), "value": st.integers(0, 3)})
    symbols = {name: Symbol(numbers=draw(numbers)) for name in names}
    sums = (SumLimit("cost", at_most=draw(st.integers(4, 12))), SumLimit("value", at_least=draw(st.integers(0, 10))))
    required = draw(st.dictionaries(st.sampled_from(names), st.integers(1, 2), min_size=1, max_size=2))
    limits = Limits(at_least=required, default=draw(st.sampled_from([2, 2, 3, None])), sums=sums)
    return CFG(plain.productions, plain.start, symbols, limits)


class TestBranching:
    @given(circling_grammars(), st.lists(choices, max_size=2), st.sampled_from([1, 2, 6]))
    @examples(120)
    def test_all_states_are_decided_as_trying_all_ways_does(self, cfg, walks, cuts):
        """Also the states after some steps, by the same table, with the cuts that were learned before."""
        lookahead = Lookahead(cfg)
        linear = lookahead._search.linear
        states = [state_at(lookahead, walk(lookahead.automaton, picks)[0]) for picks in [[], *walks, []]]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(linear_program, "_CUTS", cuts)
            for state in states:
                if state is None:
                    continue
                every = moves_of_all(lookahead._search.demands, state)
                moves, _ = linear.decide_state(state)
                assert moves in every if every else moves == INFINITE
                assert linear.is_refuted(state) <= (not every)
                assert linear.known_moves(state) in {*every, None}
                assert all(made.is_valid(linear.flow) for made in linear.arguments if not made.cuts)
                rows = linear._simplex._factors[linear._height :]
                assert [{n: f for n, f in enumerate(row) if f} for row in rows.tolist()] == [
                    cut.row_factors() for cut in linear.flow.cuts
                ]

    @given(
        st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=5, max_size=5),
        st.integers(8, 20),
        st.integers(10, 25),
    )
    @examples(80)
    def test_three_tools_that_are_used_once_are_chosen_as_by_trying_all(self, numbers, most, least):
        some = combinations(numbers, 3)
        possible = any(sum(c for c, _ in one) <= most and sum(v for _, v in one) >= least for one in some)
        symbols = {f"t{n}": Symbol(numbers={"cost": c, "value": v}) for n, (c, v) in enumerate(numbers)}
        rules = [Production("S", ("T", "T", "T")), *(Production("T", (name,)) for name in symbols)]
        sums = (SumLimit("cost", at_most=most), SumLimit("value", at_least=least))
        lookahead = Lookahead(CFG(rules, "S", symbols, Limits(default=1, sums=sums)))
        state = state_at(lookahead, lookahead.automaton.start())
        assert state is not None or not possible
        if state is not None:
            assert (lookahead._search.linear.decide_state(state)[0] < INFINITE) == possible

    @pytest.mark.parametrize(
        "text",
        [
            "%limit cost >= 0.5\nS -> c S | ε\nc cost=1",
            "%limit 1\n%require 2 pay\n%limit 2 pay\nS -> a | b B\nB -> e | out A\nA -> pay A | back B",
        ],
    )
    def test_what_leads_to_a_circle_is_not_tried_where_it_is_ruled_out(self, text):
        """Bounds that contradict each other were asked of the table again and again till all effort was spent."""
        linear, state = linear_of(CFG.from_string(text))
        assert linear.decide_state(state)[0] in moves_of_all(linear._demands, state)
        assert linear.tries < EFFORT / 50

    def test_work_is_told_and_ends_where_it_is_allowed_to(self):
        linear, state = linear_of(week(43, 49))
        assert linear.decide_state(state) == (INFINITE, False)
        enough, work = linear.tries, linear._simplex.work
        assert enough * 5_000 == work
        linear.decide_state(state._replace(needed=state.needed - 1))
        assert linear.tries * 5_000 == linear._simplex.work - work
        for part in (0.001, 0.3, 0.9):
            linear, state = linear_of(week(43, 49))
            assert linear.decide_state(state, part * enough) == (None, False)
            assert part * enough <= linear.tries < part * enough + 30
        linear, state = linear_of(week(43, 49))
        assert linear.decide_state(state, enough) == (INFINITE, False)
        linear, state = linear_of(week(43, 49))
        assert linear.decide_state(state, 0) == (None, False) and linear.tries == 0

    def test_a_program_that_is_asked_later_ends_as_well(self):
        linear, state = linear_of(week(43, 49))
        linear.decide_state(state)
        linear.decide_state(state._replace(needed=0))
        assert linear.decide_state(state, 12) == (None, False)  # a question costs 10, and a step 5
        assert 15 < linear.tries < 16

    def test_a_state_that_is_not_settled_or_of_an_older_grammar_is_left_alone(self):
        linear, state = linear_of(week(50, 57))
        assert linear.decide_state(state) == (INFINITE, True) and linear.is_refuted(state)
        assert not linear.is_refuted(state._replace(unresolved=("q", None)))
        linear._demands.version += 1
        assert not linear.is_refuted(state)
        assert linear.decide_state(state) == (INFINITE, True) and linear.is_refuted(state)
        assert len(linear.arguments) == 1
        linear, state = linear_of(week(61, 62))
        assert linear.decide_state(state._replace(unresolved=("q", None))) == (None, False)
        assert linear.known_moves(state) is None and linear.decide_state(state)[0] == linear.known_moves(state) == 17
        assert linear.known_moves(state._replace(unresolved=("q", None))) is None
        linear._demands.version += 1
        assert linear.known_moves(state) is None
