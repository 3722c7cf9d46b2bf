"""What stacks ask for, against the slow reference without limits."""

from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import PDA, Lookahead
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.flow import LENGTH
from formal_llm.automata.lookahead.stacks import DEAD, NOTHING
from formal_llm.automata.models.automaton import Stack
from tests.automata.lookahead.judging import parts
from tests.oracles import INF, Reference
from tests.strategies import automata, choices, direct_automata, examples, grammars, limited_grammars, walk


class TestDemands:
    @given(automata() | direct_automata(), choices)
    @examples(80)
    def test_the_least_that_a_stack_asks_for(self, pda, picks):
        lookahead = Lookahead(pda)
        now, _ = walk(pda, picks)
        demand = lookahead._search.demands.for_configuration(*now)
        slow = Reference(pda, lookahead.limits)
        assert demand.least_steps == slow.moves(*parts(now))
        length = slow.length(*parts(now))
        assert demand.least_length // LENGTH == length if length < INF else demand == DEAD
        # Without limits all symbols are free, so all that is not left open is done with.
        assert demand == DEAD or demand.pending == 0

    @given(grammars(), choices, st.lists(st.integers(0, 20), max_size=4))
    @examples(60)
    def test_what_is_pushed_adds_to_what_lies_below(self, cfg, picks, pushed):
        lookahead = Lookahead(cfg)
        demands = lookahead._search.demands
        (state, stack), _ = walk(lookahead.automaton, picks)
        assume(state == "loop")
        every = [*cfg.nonterminals, *cfg.terminals]
        symbols = tuple(every[number % len(every)] for number in pushed)
        below, added = demands.for_configuration(state, stack), demands.demand_of_pushed(state, symbols)
        whole = demands.for_configuration(state, stack.push(symbols))
        assert whole.least_steps == below.least_steps + added.least_steps
        assert whole.free_steps == below.free_steps + added.free_steps

    @given(limited_grammars(), choices)
    @examples(40)
    def test_below_the_top_is_the_rest_of_the_stack(self, cfg, picks):
        lookahead = Lookahead(cfg)
        demands = lookahead._search.demands
        state, stack = lookahead.uncounted(walk(lookahead.automaton, picks)[0])
        assume(state == "loop" and stack.rest.top is not None)
        below = demands.demand_below(state, stack)
        assert below is None or below == demands.for_configuration(state, stack.rest)

    def test_nothing_is_asked_for_where_the_run_may_end(self):
        lookahead = Lookahead(PDA([("q", "a", None, "q"), ("p", "a", None, "q")], start="p", accepting="p"))
        assert lookahead._search.demands.for_configuration("p", Stack.of()) == NOTHING
        assert lookahead._search.demands.for_configuration("q", Stack.of()).least_steps == INFINITE


class TestMultisets:
    @given(limited_grammars(), st.lists(st.integers(0, 9), max_size=6))
    @examples(40)
    def test_sums_of_units_are_multisets(self, cfg, picks):
        search = Lookahead(cfg)._search
        assume(search.grammar.symbols)
        chosen = [search.grammar.symbols[pick % len(search.grammar.symbols)].index for pick in picks]
        packed = sum(search.multisets.unit_of(index) for index in chosen)
        found = {symbol.index: count for symbol, count, _ in search.multisets.list_items(packed)}
        assert found == {index: chosen.count(index) for index in chosen}
        free = sum(unit * count for symbol, count, unit in search.multisets.list_items(packed) if symbol.is_free)
        assert packed & search.multisets.free == free
