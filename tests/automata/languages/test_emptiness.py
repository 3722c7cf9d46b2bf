from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, SumLimit, Symbol
from formal_llm.automata.languages.emptiness import RuleSet, why_empty
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.product import constrained
from tests.oracles import Reference
from tests.strategies import automata, examples, grammars, limited_grammars, limits


def clash(source, max_states=20_000, search_time=None):
    """The names of the rules of a clash."""
    rules = RuleSet(as_automaton(source), max_states, search_time)
    return rules.name_rules(rules.find_clash())


def remedy(source, max_states=20_000, max_tries=60):
    """The names of the rules of a smallest remedy."""
    rules = RuleSet(as_automaton(source), max_states)
    return rules.name_rules(rules.find_remedy(rules.find_clash(), max_tries))


class Ruled:
    """A base under constraints and limits, and whether any set of these rules leaves a word, found the slow way.

    Names are those of messages: ``"constraint 1"`` for the first of the constraints, a limit's line.
    """

    def __init__(self, base, constraints=(), bounds=None):
        self.base = base
        self.bounds = bounds or Limits()
        self.constraints = {f"constraint {place}": one for place, one in enumerate(constraints, 1)}
        numbers = {name: symbol.numbers for name, symbol in base.symbols.items()}
        self.lines = [bound.line for bound in self.bounds.bounds(list(base.terminals), numbers)]
        self.every = [*self.constraints, *self.lines]

    @property
    def automaton(self):
        return as_automaton(constrained(self.base, self.constraints.values()), self.bounds)

    def empty(self, kept):
        """Whether nothing follows the rules of these names."""
        inner = constrained(self.base, [one for name, one in self.constraints.items() if name in kept])
        bounds = self.bounds
        for line in self.lines:
            if line not in kept:
                bounds = bounds.without(line)
        return Reference(inner, bounds, self.base.terminals).empty

    def left(self, dropped):
        return [name for name in self.every if name not in dropped]

    def check_clash(self):
        """The rules that are named leave no word together, and without any one of them there is one."""
        named = clash(self.automaton)
        if self.empty([]):
            assert named == []
            return
        assert named
        assert set(named) <= set(self.every)
        assert self.empty(named)
        for name in named:
            assert not self.empty([other for other in named if other != name])

    def check_remedy(self):
        """There is a word without the remedy, and no smaller set of rules does that."""
        found = remedy(self.automaton)
        if self.empty([]):
            assert found == []
            return
        least = next(
            size
            for size in range(len(self.every) + 1)
            if any(not self.empty(self.left(dropped)) for dropped in combinations(self.every, size))
        )
        assert len(found) == len(set(found)) == least
        assert not self.empty(self.left(found))


@st.composite
def ruled(draw):
    """A small grammar or automaton under up to three constraints and a few limits, without any word."""
    base = draw(st.one_of(grammars().map(PDA.from_cfg), limited_grammars().map(PDA.from_cfg), automata()))
    constraints = draw(st.lists(automata(finite=True, states=2, size=5), max_size=2))
    # A constraint that allows much, so that not each of them is a clash of its own.
    loose = draw(st.lists(st.sampled_from(["ab", "bc", "ac"]).map(only), max_size=1))
    quantities = ("cost",) if base.symbols else ()
    rules = Ruled(base, [*constraints, *loose], draw(limits(tuple(base.terminals), quantities, high=2, most=1)))
    assume(rules.empty(rules.every))
    return rules


def only(letters, name=""):
    """The constraint that nothing but these letters is used."""
    return PDA([("x", letter, None, "x") for letter in letters], start="x", accepting="x", name=name)


ABC = PDA.from_cfg(CFG.from_string("S -> a S | b S | c"))


class TestClash:
    @given(ruled())
    @examples(60)
    def test_constraints_and_limits(self, rules):
        rules.check_clash()

    @given(ruled())
    @examples(30)
    def test_a_small_budget_may_name_too_much_but_never_too_little(self, rules):
        named = clash(rules.automaton, max_states=1)
        assert rules.empty(named)

    def test_constraints_that_share_a_name(self):
        one = PDA([("x", "a", None, "y"), ("y", "c", None, "z")], start="x", accepting="z", name="order")
        other = PDA([("x", "b", None, "y"), ("y", "c", None, "z")], start="x", accepting="z", name="order")
        assert clash(constrained(ABC, [one, other])) == ["order", "order"]
        assert remedy(constrained(ABC, [one, other])) == ["order"]

    def test_the_default_is_named_for_the_terminal_it_hits(self):
        cfg = CFG.from_string("S -> a a b")
        assert clash(Lookahead(cfg, Limits(default=1)).source) == ["%limit 1 a"]

    def test_terminals_with_blanks_in_their_names(self):
        pda = PDA([("p", "wash hands", None, "q")], start="p", accepting="q")
        bounds = Limits({"wash hands": 0})
        # Dropping the limit by its line must drop it, or looking for the clash would never end.
        assert bounds.without("%limit 0 wash hands") == Limits()
        assert clash(as_automaton(pda, bounds)) == ["%limit 0 wash hands"]

    def test_limits_around_limits(self):
        nested = as_automaton(as_automaton(ABC, Limits({"a": 1})), Limits(at_least={"a": 2}))
        assert sorted(clash(nested)) == ["%limit 1 a", "%require 2 a"]


class TestWhyEmpty:
    def test_limits_to_blame(self):
        cfg = CFG.from_string("S -> a S b | c")
        why = why_empty(Lookahead(cfg, Limits({"c": 0})).source)
        assert (why.symbols, why.limits, why.constraints, why.remedy) == ((), ("%limit 0 c",), (), ("%limit 0 c",))
        assert why.reason == "no plan keeps %limit 0 c"

    def test_constraints_to_blame(self):
        why = why_empty(constrained(ABC, [only("abc"), only("ab", "no c")]))
        assert (why.symbols, why.limits, why.constraints, why.remedy) == ((), (), ("no c",), ("no c",))
        assert why.reason == "no plan keeps constraint 'no c'"

    def test_limits_and_constraints_to_blame(self):
        why = why_empty(as_automaton(constrained(ABC, [only("bc")]), Limits(at_least={"a": 1})))
        assert (why.symbols, why.limits, why.constraints) == ((), ("%require 1 a",), ("constraint 1",))
        assert why.remedy == ("constraint 1",)
        assert why.reason == "these rules clash: constraint 1; %require 1 a; there is a plan without constraint 1"

    def test_one_clash_may_not_be_all(self):
        why = why_empty(as_automaton(ABC, Limits({"a": 0, "b": 0, "c": 0}, {"a": 1, "b": 1})))
        assert why.limits == ("%limit 0 c",)
        assert len(why.remedy) == 3
        assert why.reason == f"no plan keeps %limit 0 c; there is a plan without {' and '.join(why.remedy)}"

    @pytest.mark.parametrize("constraints", [[], [only("b")]])
    def test_symbols_to_blame(self, constraints):
        cfg = CFG([("S", ("a", "T")), ("T", ("T",)), ("U", ("U",))])
        why = why_empty(as_automaton(constrained(PDA.from_cfg(cfg), constraints), Limits({"a": 0})))
        assert why == ("no word can be derived from S, T", ("S", "T"), (), (), (), True)

    @pytest.mark.parametrize("bounds", [None, Limits({"a": 1})])
    def test_an_automaton_that_cannot_end(self, bounds):
        pda = PDA([("p", "a", None, "p"), ("p", "a", "X", "q")], start="p", accepting=["q"], stack=("Y", "X"))
        assert why_empty(as_automaton(pda, bounds)) == ("no run of the automaton accepts", (), (), (), (), True)


class TestRemedy:
    @given(ruled())
    @examples(60)
    def test_constraints_and_limits(self, rules):
        rules.check_remedy()

    @given(ruled(), st.integers(0, 1))
    @examples(40)
    def test_after_too_many_tries_no_rule_of_it_can_be_put_back(self, rules, tries):
        found = remedy(rules.automaton, max_tries=tries)
        assert bool(found) == (not rules.empty([]))
        if found:
            assert not rules.empty(rules.left(found))
            for name in found:
                assert rules.empty(rules.left([other for other in found if other != name]))

    @given(ruled())
    @examples(30)
    def test_what_a_small_budget_finds_is_true(self, rules):
        found = remedy(rules.automaton, max_states=1)
        assert not found or not rules.empty(rules.left(found))

    def test_many_clashes_of_their_own(self):
        # Twelve clashes of two limits each: the smallest remedy takes one of each.
        names = [f"t{number}" for number in range(12)]
        pda = PDA.from_cfg(CFG([*(("S", (name, "S")) for name in names), ("S", ())]))
        automaton = as_automaton(pda, Limits(dict.fromkeys(names, 1), dict.fromkeys(names, 2)))
        found = remedy(automaton)
        assert sorted(line.split()[2] for line in found) == sorted(names)


class TestTime:
    """Weights are even and the sum is odd: each question takes a search, and all together more than a moment."""

    odd = CFG(
        [("S", ("T", "S")), ("S", ("T",)), *(("T", (f"t{n}",)) for n in range(7))],
        symbols={f"t{n}": Symbol(numbers={"g": 2 * (50_000 + 7_919 * n * n)}) for n in range(7)},
        limits=Limits(default=1, sums=[SumLimit("g", at_least=500_001, at_most=500_001)]),
    )

    def test_what_is_not_looked_at_in_time_is_kept_and_said(self):
        whole = why_empty(self.odd)
        assert whole.decided
        assert whole.limits == ("%limit g <= 500001", "%limit g >= 500001")
        hasty = why_empty(self.odd, search_time=0.005)
        assert not hasty.decided
        assert set(whole.limits) < set(hasty.limits)
        assert hasty.reason.endswith("; fewer of them may do so (the search time was over)")
        assert hasty == why_empty(self.odd, search_time=0.005)
        assert why_empty(self.odd, search_time=10.0) == whole
        assert set(whole.limits) < set(clash(self.odd, search_time=0.005))
