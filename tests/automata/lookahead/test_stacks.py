"""What stacks ask for, against the slow reference without limits."""

from collections import Counter

from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import PDA, Limits, Lookahead
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import LENGTH, FlowGrammar
from formal_llm.automata.lookahead.stacks import DEAD, NOTHING, PendingSymbols
from formal_llm.automata.models.automaton import Stack
from formal_llm.automata.models.pda import LOOP
from tests.automata.lookahead.judging import parts
from tests.automata.lookahead.test_flow import SlowCosts, many_exits
from tests.oracles import INF, Reference
from tests.strategies import (
    automata,
    choices,
    direct_automata,
    examples,
    grammars,
    limited_automata,
    limited_grammars,
    walk,
)


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

    @given(limited_automata() | direct_automata().map(lambda pda: (pda, Limits())), choices)
    @examples(60)
    def test_the_least_that_a_stack_asks_for_where_terminals_are_limited(self, source, picks):
        pda = source[0].with_limits(source[0].limits & source[1])
        lookahead = Lookahead(pda)
        state, stack = lookahead.uncounted(walk(lookahead.automaton, picks)[0])
        demand = lookahead._search.demands.for_configuration(state, stack)
        upper = [bound for bound in pda.bounds if bound.most is not None]
        banned = {name for bound in upper for name, weight in bound.weights.items() if weight > bound.most}
        for found, length in ((demand.least_steps, 0), (demand.least_length, LENGTH)):
            slow = SlowCosts(pda, banned, length)
            least = slow.work_off(state, (*stack, None))[1]
            # What terminals on the stack take together may be too much, too.
            assert found == least or (
                demand == DEAD and lookahead.completable(walk(lookahead.automaton, picks)[0]).value == "no"
            )

    @given(limited_grammars(), choices)
    @examples(60)
    def test_of_a_grammar_each_symbol_on_the_stack_adds_its_part(self, cfg, picks):
        lookahead = Lookahead(cfg)
        demands, counters, grammar = lookahead._search.demands, lookahead._search.counters, lookahead._search.grammar
        state, stack = lookahead.uncounted(walk(lookahead.automaton, picks)[0])
        assume(state == LOOP)
        demand = demands.for_configuration(state, stack)
        *above, _ = stack  # the bottom is popped without reading
        terminals = [symbol for symbol in above if symbol in cfg.terminals]
        others = [grammar.get_symbol(LOOP, symbol, LOOP) for symbol in above if symbol not in cfg.terminals]
        too_many = any(
            sum(bound.weights.get(name, 0) for name in terminals) > bound.most
            for bound in lookahead.bounds if bound.most is not None
        )  # fmt: skip
        if too_many or any(symbol.least_steps == INFINITE for symbol in others):
            assert demand == DEAD
            return
        paid = 0
        for name in terminals:
            paid = counters.add_payment(name, paid)
        promised = sum(counters.need.get(name, 0) for name in terminals)
        assert (demand.unresolved, demand.promised, demand.paid) == (None, promised, paid)
        pending = Counter(symbol.index for symbol in others if symbol.due or not symbol.is_free)
        assert {one.index: count for one, count, _ in demands.multisets.list_items(demand.pending)} == pending
        free = [symbol.free_steps for symbol in others if symbol.index not in pending]
        assert demand.free_steps == len(terminals) + sum(free) + 1

    @given(limited_grammars(), choices)
    @examples(40)
    def test_below_the_top_is_the_rest_of_the_stack(self, cfg, picks):
        lookahead = Lookahead(cfg)
        demands = lookahead._search.demands
        state, stack = lookahead.uncounted(walk(lookahead.automaton, picks)[0])
        assume(state == "loop" and stack.rest.top is not None)
        for _ in range(2):  # the second answer is remembered
            below = demands.demand_below(state, stack)
            assert (below is None) == (len(lookahead._search.grammar.target_states(state, stack.top)) != 1)
            assert below is None or below == demands.for_configuration(state, stack.rest)

    def test_nothing_is_asked_for_where_the_run_may_end(self):
        lookahead = Lookahead(PDA([("q", "a", None, "q"), ("p", "a", None, "q")], start="p", accepting="p"))
        assert lookahead._search.demands.for_configuration("p", Stack.of()) == NOTHING
        assert lookahead._search.demands.for_configuration("q", Stack.of()).least_steps == INFINITE

    @given(many_exits, st.integers(0, 3))
    @examples(60)
    def test_of_an_automaton_with_several_exits(self, source, most):
        pda, state, stack = source
        pda = pda.with_limits(Limits({"b": most}))
        demand = PendingSymbols(FlowGrammar(pda, Counters(pda.bounds))).for_configuration(state, stack)
        slow = Reference(pda, pda.limits)
        assert demand.least_steps <= slow.moves(state, tuple(stack))
        for found, length in ((demand.least_steps, 0), (demand.least_length, LENGTH)):
            assert found >= SlowCosts(pda, {"b"} if not most else (), length).work_off(state, (*stack, None))[1]
        assert demand == DEAD or demand.least_steps < INFINITE
        if most == 3 and not demand.promised:  # nothing was ruled out by what terminals on the stack take
            assert demand.least_steps == SlowCosts(pda, (), 0).work_off(state, (*stack, None))[1]


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
