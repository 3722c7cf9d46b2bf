"""Exact sums: which totals of bounded quantities are left, against enumeration and the reference."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, Lookahead, SumLimit, Symbol, Walk
from formal_llm.automata.lookahead.exact import sums
from formal_llm.automata.lookahead.exact.sums import ExactSum, ExactSums
from formal_llm.automata.lookahead.verdicts import WorkBudget
from formal_llm.planning.walks.choices import ChoiceTable
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


#: Ways to work off symbols: cycles, some through other symbols, groups, what follows a cycle, and two copies.
SHAPES = [
    "S -> a S | b S | c S | d S | end",
    "S -> G S | end;G -> a | b | c x | d",
    "S -> a T | end;T -> b S | c T | d",
    "S -> A B;A -> a A | b A | end;B -> c B | d B | end",
    "S -> a S | b S | A;A -> c A | d | c",
    "S -> C C D;C -> a | b C | end;D -> c | d | end",
    "S -> a S | T;T -> a T | b c T | d U | end;U -> T",
    "S -> a S S | b | c",
]
amounts = st.integers(0, 6)


@st.composite
def cycling_grammars(draw):
    """Grammars with cycles, limits of terminals, and one or two sums between two bounds."""
    symbols = {name: Symbol(numbers={q: draw(amounts) for q in ("p", "q", "z")}) for name in "abcd"}
    sums = []
    for name in "pq"[: draw(st.integers(1, 2))]:
        least = draw(st.integers(1, 14))
        sums.append(SumLimit(name, at_least=least, at_most=least + draw(st.sampled_from((0, 0, 1, 3)))))
    if draw(st.booleans()):
        sums.append(SumLimit("z", at_most=draw(st.integers(1, 9))))
    most = {name: draw(st.integers(1, 3)) for name in draw(st.sets(st.sampled_from("abcd")))}
    least = dict.fromkeys(draw(st.sets(st.sampled_from("abcd"), max_size=2)), 1)
    productions = [
        (head, tuple(body.split()))
        for line in draw(st.sampled_from(SHAPES)).split(";")
        for head, _, bodies in [line.partition(" -> ")]
        for body in bodies.split(" | ")
    ]
    names = {name for _, body in productions for name in body}
    limits = Limits(
        {n: k for n, k in most.items() if n in names}, {n: k for n, k in least.items() if n in names},
        default=draw(st.sampled_from((None, None, 2))), sums=tuple(sums),
    )  # fmt: skip
    return CFG(productions, "S", {n: one for n, one in symbols.items() if n in names}, limits)


def chosen_once(weights, total, required=()):
    """Amounts, each at most once, in any order; the totals are to be hit."""
    names = [f"t{n}" for n in range(len(weights))]
    symbols = {
        n: Symbol(numbers={f"s{k}": w for k, w in enumerate(one)}) for n, one in zip(names, weights, strict=True)
    }
    sums = tuple(SumLimit(f"s{k}", at_least=amount, at_most=amount) for k, amount in enumerate(total))
    limits = Limits(dict.fromkeys(names, 1), dict.fromkeys(required, 1), default=None, sums=sums)
    return CFG([*(("S", (name, "S")) for name in names), ("S", ("end",))], "S", symbols, limits)


class TestChoices:
    """What falls into choices that do not depend on each other is decided by putting halves together."""

    @given(cycling_grammars(), choices, st.sampled_from((1 << 20, 4)))
    @examples(150)
    def test_as_the_reference_says(self, cfg, picks, most_rows):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sums, "_MOST_ROWS", most_rows)  # so few that chance fixes choices
            lookahead = Lookahead(cfg, solver=False)
            for count in range(len(picks) + 1):  # what was found at one place is used at the next
                now, word = walk(lookahead.automaton, picks[:count])
                least = reference(lookahead).moves(*parts(now), word)
                verdict = lookahead.completable(now)
                assert verdict.value == "unknown" or (verdict.value == "no") == (least == INF)
                assert verdict.value != "yes" or verdict.steps >= least

    @given(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=7), st.tuples(amounts, amounts), st.data())
    @examples(80)
    def test_all_subsets(self, weights, total, data):
        assume(all(total) and all(any(one[k] for one in weights) for k in (0, 1)))
        lookahead = Lookahead(chosen_once(weights, total), solver=False)
        automaton = lookahead.automaton
        now, used = automaton.start(), ()
        while True:
            free = [n for n in range(len(weights)) if n not in used]
            subsets = itertools.chain.from_iterable(itertools.combinations(free, k) for k in range(len(free) + 1))
            hit = any(all(sum(weights[n][k] for n in (*one, *used)) == total[k] for k in (0, 1)) for one in subsets)
            assert lookahead.completable(now).value == ("yes" if hit else "no")
            begun = automaton.step(now, automaton.moves(now)[0]) if not used else now
            after = {m.push[0]: automaton.step(begun, m) for m in automaton.moves(begun) if m.push != ("end",)}
            able = {name: then for name, then in after.items() if automaton.moves(then)}
            if not able:
                break
            name = data.draw(st.sampled_from(sorted(able)))
            now, used = automaton.step(able[name], automaton.moves(able[name])[0]), (*used, int(name[1:]))

    @pytest.mark.parametrize(("items", "sizes", "required"), [(20, 1, 0), (30, 1, 0), (30, 2, 5)])
    def test_no_question_is_wasted(self, items, sizes, required):
        rng = random.Random(items)
        weights = [tuple(rng.randint(10**5, 10**6) for _ in range(sizes)) for _ in range(items)]
        plan = rng.sample(range(items), items // 2)
        total = [sum(weights[n][k] for n in plan) for k in range(sizes)]
        cfg = chosen_once(weights, total, [f"t{n}" for n in plan[:required]])
        walked = Walk(ChoiceTable(Lookahead(cfg, solver=False), search_time=None))
        while (question := walked.question) is not None:
            walked.answer(rng.randrange(len(question.options)) + 1)
        assert walked.usage.wasted == walked.usage.verdicts.unknown == 0
        assert cfg.accepts(walked.plan.word)

    @pytest.mark.parametrize(("items", "sizes"), [(60, 2), (100, 3), (200, 4)])
    def test_more_choices_than_can_be_put_together(self, items, sizes):
        rng = random.Random(3)
        weights = [tuple(rng.randint(1, 100) for _ in range(sizes)) for _ in range(items)]
        total = [sum(one[k] for one in weights[: items // 2]) for k in range(sizes)]
        lookahead = Lookahead(chosen_once(weights, total), solver=False, max_states=1)
        assert str(lookahead.completable()) == "yes (search)"
        (table,) = lookahead._search._after.sums._alike.values()
        due = np.array(sorted(total))
        for found in table._found:
            assert not found.complete  # what chance does not find is not ruled out
            paid = table._often[:, len(table.resources) :].T @ found.counts
            assert (np.sort(paid, 0) == due[:, None]).all()

    def test_what_pays_without_a_limit_is_taken_as_often_as_needed(self):
        grammar = "%limit n <= 100\n%limit n >= 99\n%limit 4 b\nS -> a S | b S | end\na n=7\nb n=3"
        lookahead = Lookahead(CFG.from_string(grammar), solver=False)
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
    demands = Lookahead(packing([201, 301, 401], 903))._search.demands
    exact = ExactSum(demands, {"item0": 201, "item1": 301, "item2": 401}, 903, work)
    pending = sum(
        demands.multisets.unit_of(s.index) for s in demands.grammar.symbols if (s.key[1] or "").startswith("Choice")
    )
    assert exact.is_possible(pending, 0, 903)
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
