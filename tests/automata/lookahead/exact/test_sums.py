"""Exact sums: which totals of bounded quantities are left, against enumeration and the reference."""

import itertools
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, Lookahead, SumLimit, Symbol
from formal_llm.automata.lookahead.exact import sums
from formal_llm.automata.lookahead.exact.sums import ExactSum, ExactSums
from formal_llm.automata.lookahead.verdicts import WorkBudget
from tests.automata.lookahead.exact.test_linear_program import state_at
from tests.automata.lookahead.judging import parts, reference
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
        assert ExactSums(both, WorkBudget())
        assert not ExactSums(one, WorkBudget())

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
        assert ExactSums(lookahead._search.demands, WorkBudget()).are_possible(state.pending, state.left, state.needed)
        assert lookahead.completable().value == "yes"


def kept(exact):
    """What is counted as kept, from what is."""
    totals = sum(64 + (totals or 0).bit_length() for pending, totals in exact._all.items() if pending)
    return totals + sum(8 * len(found) for found in exact._bytes.values())


@pytest.mark.parametrize("most_kept", [400_000_000, 600, 100])
def test_totals_of_all_subsets(monkeypatch, most_kept):
    """All that may be pending, between all bounds; also where what was found is forgotten again and again."""
    monkeypatch.setattr(sums, "_KEPT", most_kept)
    weights, most = [2, 3, 7, 7], 19
    demands = Lookahead(packing(weights, most))._search.demands
    exact = ExactSum(demands, {f"item{n}": weight for n, weight in enumerate(weights)}, most, WorkBudget())
    symbols = {symbol.key[1]: symbol.index for symbol in demands.grammar.symbols}
    kinds = [demands.multisets.unit_of(symbols[f"Choice{n}"]) for n in range(len(weights))]
    for chosen in itertools.product((0, 1, 2), repeat=len(weights)):
        pending = sum(unit * count for unit, count in zip(kinds, chosen, strict=True))
        most_of_each = [range(0, weight * count + 1, weight) for weight, count in zip(weights, chosen, strict=True)]
        totals = {sum(one) for one in itertools.product(*most_of_each)}
        for low, high in itertools.combinations(range(most + 1), 2):
            assert exact.is_possible(pending, low, high) == any(low <= total <= high for total in totals)
            assert not exact.is_possible(pending, high, low)
        for only in range(most + 1):
            assert exact.is_possible(pending, only, only) == (only in totals)
        assert exact.is_possible(0, 0, 0) and not exact.is_possible(0, 1, most)
        assert exact._kept == kept(exact)
        totals = [64 + (found or 0).bit_length() for part, found in exact._all.items() if part]
        assert sum(totals) <= most_kept or len(totals) == 1


def test_what_was_found_of_a_part_is_not_found_again():
    """From what lies deepest on a stack to its top: of the whole, all such parts are kept."""
    work = WorkBudget()
    demands = Lookahead(packing([20, 30, 40, 50], 140))._search.demands
    exact = ExactSum(demands, {f"item{n}": 20 + 10 * n for n in range(4)}, 140, work)
    units = [
        demands.multisets.unit_of(s.index) for s in demands.grammar.symbols if (s.key[1] or "").startswith("Choice")
    ]
    whole = [unit for _, _, unit in demands.multisets.list_items(sum(units))]
    work.left = 1_000.0
    assert exact.is_possible(sum(whole), 140, 140)
    assert 0 < 1_000 - work.left < 1  # the few bits of a few totals
    for count in (3, 2, 1):
        work.left = 1_000.0
        assert exact.is_possible(sum(whole[:count]), 0, 7)
        assert 1_000 - work.left == pytest.approx(8 / 150_000, rel=1e-6)


def test_adding_totals_costs_work_by_their_number_and_bits():
    work = WorkBudget()
    exact = ExactSum(Lookahead(packing([2, 3], 5))._search.demands, {}, 5, work)
    work.left = 1_000.0
    for some, others in ((0b1011, 0b11), (0b11, 0b1011)):
        assert exact._add_totals(some, others) == 0b11111
    assert 1_000 - work.left == pytest.approx(2 * 2 * 4 / 150_000, rel=1e-6)


def test_reading_what_is_kept_costs_work_by_its_bits():
    work = WorkBudget()
    demands = Lookahead(packing([200, 300, 400], 900))._search.demands
    exact = ExactSum(demands, {"item0": 200, "item1": 300, "item2": 400}, 900, work)
    pending = sum(
        demands.multisets.unit_of(s.index) for s in demands.grammar.symbols if (s.key[1] or "").startswith("Choice")
    )
    assert exact.is_possible(pending, 0, 900)
    work.left = 1000.0
    assert exact.is_possible(pending, 0, 807)
    assert 1000 - work.left == pytest.approx(808 / 150_000, rel=1e-6)


def test_a_symbol_that_cannot_be_completed_within_the_bound_has_no_total():
    cfg = CFG.from_string("%limit n <= 10\n%limit n >= 10\n%order forward\nS -> Day Day\nDay -> a | b b\na n=5\nb n=4")
    demands = Lookahead(cfg)._search.demands
    (day,) = (symbol.index for symbol in demands.grammar.symbols if symbol.key[1] == "Day")
    for most, possible in ((4, False), (5, True)):
        exact = ExactSum(demands, {"a": 5, "b": 4}, most, WorkBudget())
        assert exact.is_possible(demands.multisets.unit_of(day), 0, most) is possible
        assert exact._kept == kept(exact)
