"""The integer program: right by itself, asked when the search has spent its budget, and not needed."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, Production, SumLimit, Symbol
from formal_llm.automata.lookahead.exact.integer_program import IntegerProgram, is_solver_installed
from formal_llm.automata.lookahead.stacks import SearchState
from tests.oracles import INF, Reference
from tests.strategies import (
    HEADS,
    LETTERS,
    automata,
    choices,
    direct_automata,
    examples,
    limited_automata,
    limited_grammars,
    tool_grammars,
    walk,
)


@st.composite
def demanding_grammars(draw):
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
    sums = ()
    if priced:
        sums = draw(
            st.just(())
            | st.builds(SumLimit, st.just("cost"), st.integers(0, 5)).map(lambda limit: (limit,))
            | st.builds(SumLimit, st.just("cost"), st.none(), st.integers(1, 5)).map(lambda limit: (limit,))
        )
    limits = Limits(
        at_most=draw(st.dictionaries(terminals, st.integers(0, 3), max_size=2)),
        at_least=draw(st.dictionaries(terminals, st.integers(1, 3), max_size=2)),
        sums=sums,
    )
    return CFG(plain.productions, plain.start, {n: Symbol(numbers={"cost": v}) for n, v in priced.items()}, limits)


def alone(grammars):
    return grammars.map(lambda cfg: (cfg, None))


sources = st.one_of(
    alone(demanding_grammars()),
    alone(demanding_grammars()),
    alone(limited_grammars()),
    alone(tool_grammars()),
    limited_automata(),
    st.tuples(automata() | direct_automata(), st.builds(Limits, default=st.integers(1, 2))),
)


def truth(lookahead, now, word):
    """The least moves of a completion, computed the slow way."""
    inner = getattr(now, "inner", now)
    return Reference(lookahead.pda, lookahead.limits).moves(inner.state, tuple(inner.stack), word)


def by_program(lookahead, now, **settings):
    """What the integer program says by itself, about all that the stack asks for."""
    inner, remaining, needed = lookahead._split_configuration(now)
    demands = lookahead._search.demands
    demand = demands.for_configuration(*inner)
    remaining -= demand.promised
    if demand.least_steps == INF or remaining & demands.counters.guard != demands.counters.guard:
        return INF
    needed = demands.counters.subtract_paid(needed, demand.paid)
    state = SearchState(demand.pending, demand.unresolved, demands.resources.resources_left(remaining), needed)
    found = IntegerProgram(demands, **settings).decide_state(state)
    return None if found is None else found + demand.free_steps


def verdict(source, *, limits=None, **settings):
    cfg = CFG.from_string(source) if isinstance(source, str) else source
    return Lookahead(cfg, limits, **settings).completable()


#: Each day two of six people, nobody twice: an exact cover, beyond the filters.
SHIFTS = """
%limit 1
Week -> Monday Tuesday Wednesday
Monday    -> ann bob | cat dan | ann fay
Tuesday   -> ann bob | cat eve | dan fay
Wednesday -> eve fay | ann cat | bob dan
"""


@pytest.mark.skipif(not is_solver_installed(), reason="needs the extra: pip install ortools")
class TestWithSolver:
    @given(sources, choices)
    @examples(200)
    def test_alone_it_agrees_with_the_reference(self, source, picks):
        lookahead = Lookahead(*source)
        now, word = walk(lookahead.automaton, picks)
        least = truth(lookahead, now, word)
        found = by_program(lookahead, now)
        assert found is not None
        assert (found == INF) == (least == INF)
        assert found >= least

    @given(sources, choices, st.integers(0, 3))
    @examples(100)
    def test_with_a_tiny_budget_of_states_nothing_is_unknown(self, source, picks, max_states):
        lookahead = Lookahead(*source, max_states=max_states)
        now, word = walk(lookahead.automaton, picks)
        least = truth(lookahead, now, word)
        found = lookahead.completable(now)
        assert found.value == ("no" if least == INF else "yes")
        if found.value == "yes":
            assert found.steps >= least
        for steps in (1, 4, 9):
            assert lookahead.completable(now, steps=steps).value in {"yes" if least <= steps else "no", "unknown"}

    @given(alone(tool_grammars()) | alone(demanding_grammars()), choices)
    @examples(25)
    def test_one_lookahead_serves_many_configurations(self, source, picks):
        lookahead = Lookahead(*source, max_states=1)
        for length in (*range(len(picks) + 1), *reversed(range(len(picks) + 1))):
            now, word = walk(lookahead.automaton, picks[:length])
            assert (lookahead.completable(now).value == "yes") == (truth(lookahead, now, word) < INF)

    def test_every_verdict_tells_what_decided(self):
        assert str(verdict(SHIFTS)) == "yes (search)"
        assert str(verdict(SHIFTS, max_states=1)) == "yes (integer program)"
        assert str(verdict(SHIFTS, max_states=1, solver=False)) == "unknown (state budget)"
        assert str(verdict("S -> a b")) == "yes (filter)"
        assert str(verdict("S -> a a", limits=Limits(default=1))) == "no (filter)"
        # Each person may work once, but dan and eve are not there, and ann cannot be twice.
        few = Limits(at_most={"dan": 0, "eve": 0})
        assert verdict(SHIFTS, limits=few, max_states=0).value == "no"

    def test_what_it_decided_is_remembered_with_how(self):
        lookahead = Lookahead(CFG.from_string(SHIFTS), max_states=1)
        assert [str(lookahead.completable()) for _ in range(2)] == ["yes (integer program)"] * 2

    def test_a_cycle_that_nothing_leads_to_pays_no_lower_bound(self):
        # A could pay with A -> A b, but only c leads to A, and c may not be used.
        cfg = CFG.from_string("S -> S d | c A | d\nA -> A b | b | d")
        limits = Limits(at_most={"c": 1, "d": 3}, at_least={"b": 2})
        lookahead = Lookahead(cfg, limits)
        now = lookahead.automaton.start()
        assert by_program(lookahead, now) < INF
        # Each turn of S takes one of d; once S -> d is matched, no A can come.
        for pick in (0, 2):
            now = lookahead.automaton.step(now, lookahead.automaton.moves(now)[pick])
        assert by_program(lookahead, now) == INF

    def test_symbols_that_reach_each_other_in_a_circle_only(self):
        cfg = CFG.from_string("S -> a S | a\nS -> A a a a\nA -> B\nB -> A b | b")
        for most, value in ((2, "no"), (3, "yes")):
            found = verdict(cfg, limits=Limits(at_most={"a": most}, at_least={"b": 1}), max_states=0)
            assert found.value == value

    def test_large_bounds(self):
        cfg = CFG.from_string("S -> a S b S | c")
        limits = Limits(at_least={"a": 10_000}, at_most={"b": 10_000})
        found = verdict(cfg, limits=limits, max_states=0)
        assert str(found) == "yes (integer program)"
        assert found.steps >= 40_000
        assert verdict(cfg, limits=Limits(at_least={"a": 51}, at_most={"b": 50}), max_states=0).value == "no"

    def test_numbers_beyond_the_solver_are_left_undecided(self):
        huge = {name: Symbol(numbers={"cost": 10**19 + number}) for number, name in enumerate("abc")}
        cfg = CFG([("S", ("A", "A")), ("A", ("a",)), ("A", ("b", "c"))], symbols=huge)
        for most, value in ((2 * 10**19, "yes"), (2 * 10**19 - 1, "no")):
            limits = Limits(sums=(SumLimit("cost", most),))
            lookahead = Lookahead(cfg, limits, max_states=0)
            assert by_program(lookahead, lookahead.automaton.start()) in {None, INF if value == "no" else None}
            assert Lookahead(cfg, limits).completable().value == value

    def test_an_open_stack_is_part_of_the_program(self):
        # X is popped into p or q, and only then is it known what Y asks for.
        pda = PDA(
            [
                ("s", "a", "X", "p"),
                ("s", "b", "X", "q"),
                ("p", "a", "Y", "f"),
                ("q", "c", "Y", "f"),
            ],
            start="s",
            accepting=["f"],
            stack=("X", "Y"),
        )
        for limits, value in (
            (Limits(default=1), "yes"),
            (Limits(at_most={"a": 1, "c": 0}), "no"),
            (Limits(at_least={"a": 2}), "yes"),
            (Limits(at_least={"a": 1, "c": 1}), "no"),
        ):
            lookahead = Lookahead(pda, limits, max_states=0)
            start = lookahead.automaton.start()
            assert lookahead.completable().value == value
            assert (by_program(lookahead, start) < INF) == (value == "yes")

    def test_without_effort_the_search_goes_on(self, monkeypatch):
        monkeypatch.setattr(IntegerProgram, "decide_state", lambda self, state, effort: None)
        monkeypatch.setattr("formal_llm.automata.lookahead.search.PATIENCE", 1)
        assert str(verdict(SHIFTS)) == "yes (search)"
        assert str(verdict(SHIFTS, max_states=2)) == "unknown (state budget)"

    def test_the_same_question_gets_the_same_answer(self):
        found = {verdict(SHIFTS, max_states=0).steps for _ in range(5)}
        assert len(found) == 1

    def test_the_solver_is_not_loaded_before_it_is_needed(self):
        from subprocess import run

        program = (
            "import sys; from formal_llm import CFG, Lookahead;"
            "Lookahead(CFG.from_string('%limit 1\\nS -> A A\\nA -> a b | a c | d')).completable();"
            "print('ortools' in sys.modules)"
        )
        done = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "False"


class TestWithoutSolver:
    @pytest.fixture(autouse=True)
    def no_solver(self, monkeypatch):
        for name in [name for name in sys.modules if name == "ortools" or name.startswith("ortools.")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "ortools", None)

    def test_it_is_not_found(self):
        assert not is_solver_installed()

    def test_all_is_as_before(self):
        assert str(verdict(SHIFTS)) == "yes (search)"
        assert str(verdict(SHIFTS, max_states=1)) == "unknown (state budget)"

    def test_a_broken_installation_is_none(self, monkeypatch):
        monkeypatch.setattr("formal_llm.automata.lookahead.exact.integer_program.is_solver_installed", lambda: True)
        assert str(verdict(SHIFTS)) == "yes (search)"
        assert str(verdict(SHIFTS, max_states=1)) == "unknown (state budget)"
