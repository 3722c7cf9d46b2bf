"""The program that decides limits, against trying everything; by HiGHS and by CP-SAT, alone and behind the search."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, combinations_with_replacement
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, Lookahead, Production, SumLimit, Symbol
from formal_llm.automata.lookahead import program as program_module
from formal_llm.automata.lookahead import search
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.program import FlowProgram, FlowRows, is_solver_installed
from formal_llm.automata.lookahead.search import States
from formal_llm.automata.lookahead.verdicts import FILTER, LINEAR, WorkBudget
from tests.automata.lookahead.judging import judge, parts, pieces, reference, search_of, sources
from tests.oracles import INF
from tests.strategies import HEADS, LETTERS, choices, examples, tool_grammars, walk

#: Much more than any of these programs needs.
ENOUGH = 200_000.0

#: A week of days, each with one of four outings: what they cost and give is bounded both.
WEEK = CFG.from_string("""
%limit cost <= 61
Week -> Day Day Day Day Day Day Day
Day -> sea | hill | town | home
sea "Sea" cost=13 value=11
hill "Hill" cost=9 value=9
town "Town" cost=7 value=8
home "Home" cost=2 value=3
""")


def week(least: int) -> tuple[CFG, Limits]:
    return WEEK, Limits(sums=(SumLimit("value", at_least=least),))


@st.composite
def demanding_grammars(draw: Any) -> CFG:
    """Short bodies over few symbols (ε-cycles, unit cycles, left recursion), where much is required."""
    symbol = st.sampled_from(HEADS + LETTERS)
    body = st.lists(symbol, max_size=3).map(tuple)
    made = [Production("S", draw(st.lists(symbol, min_size=1, max_size=3).map(tuple)))]
    made += draw(st.lists(st.builds(Production, st.sampled_from(HEADS), body), min_size=2, max_size=9))
    plain = CFG(made)
    if not plain.terminals:
        return plain
    terminals = st.sampled_from(tuple(plain.terminals))
    priced = draw(st.dictionaries(terminals, st.sampled_from([0.5, 1, 2, 3]), max_size=2))
    sums: tuple[SumLimit, ...] = ()
    if priced:
        sums = draw(
            st.sampled_from([(), (SumLimit("cost", 3),), (SumLimit("cost", None, 4),), (SumLimit("cost", 5, 5),)])
        )
    limits = Limits(
        at_most=draw(st.dictionaries(terminals, st.integers(0, 3), max_size=2)),
        at_least=draw(st.dictionaries(terminals, st.integers(1, 3), max_size=2)),
        sums=sums,
    )
    return CFG(plain.productions, plain.start, {n: Symbol(numbers={"cost": v}) for n, v in priced.items()}, limits)


@st.composite
def circling_grammars(draw: Any) -> CFG:
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


@st.composite
def priced_tools(draw: Any) -> CFG:
    """Typed tools with numbers, some required, sums bounded from above and from below."""
    plain = draw(tool_grammars())
    names = list(plain.terminals)
    number = st.integers(0, 4)
    symbols = {name: Symbol(numbers={"cost": draw(number), "value": draw(number)}) for name in names}
    sums = (SumLimit("cost", at_most=draw(st.integers(0, 9))), SumLimit("value", at_least=draw(st.integers(0, 7))))
    required = draw(st.dictionaries(st.sampled_from(names), st.just(1), max_size=2))
    return CFG(plain.productions, plain.start, symbols, plain.limits & Limits(at_least=required, sums=sums))


hard = st.one_of(circling_grammars(), priced_tools(), demanding_grammars()).map(lambda cfg: (cfg, None))


def solver_programs() -> list[type[FlowProgram]]:
    if not is_solver_installed():
        return []
    from formal_llm.automata.lookahead.cp_sat import SolverProgram

    return [SolverProgram]


#: HiGHS, and where the extra ``solver`` is installed CP-SAT.
kinds = pytest.mark.parametrize("kind", [FlowProgram, *solver_programs()])


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search leaves all but what filters decide to the program."""
    monkeypatch.setattr(search, "PATIENCE", 0)


def states_of(lookahead: Lookahead, walks: list[list[int]]) -> Any:
    """(the rows, a state of the search, the least moves to the end) at the start and after walks."""
    slow, demands = reference(lookahead), search_of(lookahead).demands
    for picks in [[], *walks]:
        now, word = walk(lookahead.automaton, picks)
        inner, remaining, needed = pieces(lookahead, now)
        rest = demands.rest_of(demands.for_configuration(*inner), remaining, needed)
        normal = rest and States(demands, WorkBudget()).normalize(*rest)
        if normal and normal[1].unresolved is None and (normal[1].pending or normal[1].needed):
            yield FlowRows(demands), normal[1], slow.moves(*parts(now), word)


@kinds
class TestAlone:
    @given(hard, st.lists(choices, max_size=3))
    @examples(120)
    def test_all_states_are_decided_as_the_reference_says(self, kind, source, walks):
        """By one program, with what it has learned and kept before."""
        lookahead = Lookahead(*source)
        made = None
        for rows, state, least in states_of(lookahead, walks):
            made = kind(rows) if made is None or made.rows.demands.version != rows.demands.version else made
            known = made.decide_known(state) if made.rows.is_small else None
            assert known is None or (known[0] == INFINITE) == (least == INF)
            if made.rows.is_small:
                decided = made.decide_state(state, ENOUGH)
                assert decided is None or (decided[0] == INFINITE) == (least == INF)

    @given(
        st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=5, max_size=5),
        st.integers(8, 20),
        st.integers(10, 25),
    )
    @examples(80)
    def test_three_tools_that_are_used_once_are_chosen_as_by_trying_all(self, kind, numbers, most, least):
        some = combinations(numbers, 3)
        possible = any(sum(c for c, _ in one) <= most and sum(v for _, v in one) >= least for one in some)
        symbols = {f"t{n}": Symbol(numbers={"cost": c, "value": v}) for n, (c, v) in enumerate(numbers)}
        rules = [Production("S", ("T", "T", "T")), *(Production("T", (name,)) for name in symbols)]
        sums = (SumLimit("cost", at_most=most), SumLimit("value", at_least=least))
        lookahead = Lookahead(CFG(rules, "S", symbols, Limits(default=1, sums=sums)))
        for rows, state, _ in states_of(lookahead, []):
            decided = kind(rows).decide_state(state, ENOUGH)
            assert decided is not None and (decided[0] < INFINITE) == possible

    @pytest.mark.parametrize("rules", ["S -> p | q A\nA -> a A | e", "S -> q A | p\nA -> e | a A"])
    @pytest.mark.parametrize("bound", ["", "%limit 1 p\n", "%limit 2 e\n"])
    def test_a_cut_leaves_room_for_all_that_is_required(self, kind, rules, bound):
        """No limit bounds the circle of A, only what is required does; its rows must allow as much."""
        cfg = CFG.from_string(f"%order forward\n%require 40 a\n{bound}{rules}")
        ((rows, state, least),) = states_of(Lookahead(cfg), [])
        decided = kind(rows).decide_state(state, ENOUGH)
        assert decided is not None and least <= decided[0] < INFINITE
        assert Lookahead(cfg, solver=kind is not FlowProgram).completable().value == "yes"

    def test_a_week_that_is_just_possible_and_one_that_is_just_not(self, kind):
        outings = [(13, 11), (9, 9), (7, 8), (2, 3)]
        weeks = (sum(map(Counter, ([n] for n in one)), Counter()) for one in combinations_with_replacement(range(4), 7))
        best = max(
            sum(outings[n][1] * k for n, k in one.items())
            for one in weeks
            if sum(outings[n][0] * k for n, k in one.items()) <= 61
        )
        for least in (best, best + 1):
            lookahead = Lookahead(*week(least))
            for rows, state, _ in states_of(lookahead, []):
                decided = kind(rows).decide_state(state, ENOUGH)
                assert decided is not None and (decided[0] < INFINITE) == (least == best)


class TestInTheSearch:
    @given(hard | sources, choices, st.sampled_from([1, 30, 20_000]))
    @examples(50)
    def test_verdicts_are_those_of_the_reference_or_unknown(self, source, picks, max_states):
        lookahead = Lookahead(*source, max_states=max_states, solver=False)
        judge(lookahead, *walk(lookahead.automaton, picks), sure=False)

    def test_a_shorter_completion_by_a_limited_terminal_counts_where_moves_are_bounded(self):
        lookahead = Lookahead(CFG.from_string("%limit 1 b\nS -> a a | b"))
        least = lookahead.fewest_moves()
        assert lookahead.completable(steps=least).value == "yes"
        assert lookahead.completable(steps=least - 1).value == "no"

    def test_cycles_that_nothing_leads_to_pay_nothing(self):
        """Only Loop pays: without connectivity, S -> a would do with a round of it that nothing leads to."""
        lookahead = Lookahead(
            CFG.from_string("""
            %limit 1
            %require 1 pay
            S -> a Rest | b Rest | Out
            Rest -> e | f
            Out -> c Loop
            Loop -> pay Loop | d
        """)
        )
        assert lookahead.shortest_word() == ("c", "pay", "d")
        after = lookahead.automaton.start()
        for wanted in (None, None, "a"):
            after = next(
                lookahead.automaton.step(after, move)
                for move in lookahead.automaton.moves(after)
                if move.read == wanted and (wanted or "a" in move.push or "S" in move.push)
            )
        assert lookahead.completable(after).value == "no"

    def test_what_was_learned_decides_what_is_harder_and_what_was_found_what_is_easier(self, monkeypatch):
        lookahead = Lookahead(*week(62), solver=False)
        now = lookahead.automaton.start()
        assert lookahead.completable(now).value == "yes"
        solved = []
        solve = program_module._Relaxation.solve
        monkeypatch.setattr(program_module._Relaxation, "solve", lambda self, *a: solved.append(1) or solve(self, *a))
        while lookahead.automaton.moves(now):
            after = [lookahead.automaton.step(now, move) for move in lookahead.automaton.moves(now)]
            now = next(one for one in after if lookahead.completable(one).value == "yes")
        assert len(solved) <= 6  # of 28 options


class TestWhatIsNotBelieved:
    """HiGHS counts in floating point: what it says is checked, and what is wrong is unknown, never a verdict."""

    @given(hard, choices, st.floats(-2, 2), st.integers(0, 20))
    @examples(60)
    def test_a_solution_or_factors_that_are_wrong(self, source, picks, shift, place):
        lookahead = Lookahead(*source, solver=False)
        solve = program_module._Relaxation.solve

        def lie(self: Any, *rest: Any) -> float:
            tries = solve(self, *rest)
            if self.values is not None:
                self.values = [round(v + (n % 21 == place) * shift) for n, v in enumerate(self.values)]
            self.factors = [v + (n % 21 == place) * shift for n, v in enumerate(self.factors)]
            return float(tries)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(program_module._Relaxation, "solve", lie)
            now, word = walk(lookahead.automaton, picks)
            least = reference(lookahead).moves(*parts(now), word)
            assert lookahead.completable(now).value in ("no" if least == INF else "yes", "unknown")

    def test_numbers_beyond_what_floating_point_holds_are_left_to_the_search(self):
        big = 10**18
        cfg = CFG.from_string(f"S -> a a | b c\na cost={big}\nb cost={big - 1}\nc cost={big}")
        lookahead = Lookahead(cfg, Limits(sums=(SumLimit("cost", 2 * big, 2 * big),)))
        assert not FlowRows(search_of(lookahead).demands).is_small
        assert lookahead.completable().value == "yes"
        assert lookahead.shortest_word() == ("a", "a")

    def test_what_it_costs_is_charged_and_bounded(self):
        lookahead = Lookahead(*week(64), solver=False, max_states=1)
        for rows, state, _ in states_of(lookahead, []):
            made = FlowProgram(rows)
            assert made.decide_state(state, 0) is None
            assert made.decide_state(state, ENOUGH) is not None
            assert made.tries > 0
        with lookahead.work.limit_seconds(0):
            assert lookahead.completable().value == "unknown"
        assert lookahead.completable().value == "no"

    def test_the_first_argument_is_told_from_a_search(self):
        lookahead = Lookahead(*week(70), solver=False)
        assert lookahead.completable().how in (FILTER, LINEAR)


def test_an_exact_sum_of_many_amounts() -> None:
    """What rounding makes hard: half of 14 large amounts, to the unit; with one unit more there is none."""
    pytest.importorskip("ortools")
    rng = random.Random(1)
    weights = {f"item{n}": 2 * rng.randint(50_000, 500_000) for n in range(14)}
    total = sum(rng.sample(sorted(weights.values()), 7))
    for wanted, value in ((total, "yes"), (total + 1, "no")):
        rules = [("Pack", tuple(f"Choice{n}" for n in range(14)))]
        rules += [(f"Choice{n}", (name,)) for n in range(14) for name in (f"item{n}", f"none{n}")]
        symbols = {name: Symbol(numbers={"weight": weight}) for name, weight in weights.items()}
        limits = Limits(sums=(SumLimit("weight", at_most=wanted, at_least=wanted),))
        assert Lookahead(CFG(rules, "Pack", symbols, limits)).completable().value == value


@pytest.mark.parametrize("solver", [True, False])
def test_a_sum_beyond_64_bits_is_decided(solver: bool) -> None:
    """Ten ether in wei, and the gas; then twelve amounts of which six are the exact sum."""
    rules = CFG.from_string(
        "%limit cost = 10000000000000000001\nJob -> swap gas | swap swap | swap half\n"
        "swap cost=10000000000000000000\ngas cost=1\nhalf cost=0.5"
    )
    assert Lookahead(rules, solver=solver).count() == 1
    assert Lookahead(rules, solver=solver).shortest_word() in {("swap", "gas"), ("gas", "swap")}
    amounts = [10**19 + n * n for n in range(12)]
    lines = [f"t{n} cost={amount}" for n, amount in enumerate(amounts)]
    text = "\n".join(["%limit 1", "S -> T S | T", f"T -> {' | '.join(f't{n}' for n in range(12))}", *lines])
    for total, verdict in ((sum(amounts[::2]), "yes"), (sum(amounts[::2]) + 10**19 // 2, "no")):
        limits = CFG.from_string(text).limits & Limits(sums=(SumLimit("cost", total, total),))
        found = Lookahead(CFG.from_string(text).with_limits(limits), solver=solver).completable()
        assert found.value == verdict
