"""Sums bounded from both sides: what is ruled out has no completion, and subset sums are decided."""

import itertools
import random

from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, Lookahead, SumLimit, Symbol
from formal_llm.automata.lookahead.exact_sums import ExactSums
from formal_llm.automata.lookahead.work import Work
from tests.automata.lookahead.judging import parts, reference
from tests.automata.lookahead.test_linear_program import state_at
from tests.oracles import INF
from tests.strategies import choices, examples, limited_grammars, tool_grammars, walk


@st.composite
def exact_grammars(draw):
    """Grammars whose terminals have weights that must come to a total, or near it."""
    plain = draw(limited_grammars() | tool_grammars())
    assume(plain.terminals)
    symbols = {name: Symbol(numbers={"weight": draw(st.integers(0, 5))}) for name in plain.terminals}
    bare = Limits(plain.limits.at_most, plain.limits.at_least, plain.limits.default)
    least = draw(st.integers(1, 9))
    total = SumLimit("weight", at_most=least + draw(st.integers(0, 2)), at_least=least)
    return CFG(plain.productions, plain.start, symbols, bare & Limits(sums=(total,)))


def packing(weights, total):
    """Take each weight or leave it; the total is to be hit."""
    productions = [("Pack", tuple(f"Choice{n}" for n in range(len(weights))))]
    productions += [(f"Choice{n}", (name,)) for n in range(len(weights)) for name in (f"item{n}", f"none{n}")]
    symbols = {f"item{n}": Symbol(numbers={"weight": weight}) for n, weight in enumerate(weights)}
    return CFG(productions, "Pack", symbols, Limits(sums=(SumLimit("weight", at_most=total, at_least=total),)))


class TestExactSums:
    @given(exact_grammars(), choices)
    @examples(100)
    def test_as_the_reference_says(self, cfg, picks):
        lookahead = Lookahead(cfg)
        now, word = walk(lookahead.automaton, picks)
        least = reference(lookahead).moves(*parts(now), word)
        assert (lookahead.completable(now).value == "no") == (least == INF)

    @given(st.lists(st.integers(1, 30), min_size=1, max_size=7), st.integers(1, 90))
    @examples(60)
    def test_subset_sums_need_no_search_to_be_refused(self, weights, total):
        lookahead = Lookahead(packing(weights, total), solver=False)
        subsets = itertools.product((0, 1), repeat=len(weights))
        possible = any(sum(w for w, taken in zip(weights, one, strict=True) if taken) == total for one in subsets)
        verdict = lookahead.completable()
        assert verdict.value == ("yes" if possible else "no")
        assert possible or verdict.how == "filter"

    def test_thirty_large_weights_are_decided_without_a_solver(self):
        rng = random.Random(1)
        weights = [2 * rng.randint(5_000, 50_000) for _ in range(30)]
        assert Lookahead(packing(weights, sum(weights[::2])), solver=False, max_states=100).completable().value == "yes"
        odd = Lookahead(packing(weights, sum(weights[::2]) + 1), solver=False, max_states=100).completable()
        assert str(odd) == "no (filter)"

    def test_bounds_from_one_side_only_are_not_looked_at(self):
        plain = packing([3, 4], 7)
        one_sided = CFG(plain.productions, plain.start, plain.symbols, Limits(sums=(SumLimit("weight", at_least=7),)))
        both, one = (Lookahead(cfg)._search.demands for cfg in (plain, one_sided))
        assert ExactSums(both, Work())
        assert not ExactSums(one, Work())

    def test_cycles_rule_nothing_out(self):
        cfg = CFG.from_string("""
            %limit weight <= 7
            %limit weight >= 7
            S -> a S | b | c S
            a weight=3
            b weight=1
            c weight=2
        """)
        lookahead = Lookahead(cfg)
        state = state_at(lookahead, lookahead.automaton.start())
        assert ExactSums(lookahead._search.demands, Work()).possible(state.pending, state.left, state.needed)
        assert lookahead.completable().value == "yes"
